"""Whatever is said arrives, however the network cuts it; whatever bytes come, they are taken or end the connection."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.wire import frames
from tests.support.wire import GREETING, REQUEST, Pair, Server, data, open_stream

small_windows = st.fixed_dictionaries(
    {
        "stream_window": st.integers(65_535, 80_000),
        "connection_window": st.integers(65_536, 100_000),
        "max_frame_bytes": st.sampled_from([16_384, 30_000, 1 << 20]),
    }
)
payloads = st.one_of(st.binary(max_size=50), st.integers(0, 200_000).map(bytes))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("open")),
        st.tuples(st.just("send"), st.booleans(), st.integers(0, 9), payloads),
        st.tuples(st.just("read"), st.booleans(), st.integers(0, 9)),
        st.tuples(st.just("exchange"), st.integers(1, 5000)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(small_windows, small_windows, steps)
def test_every_message_arrives_whole_and_in_order_however_it_is_cut(client, server, plan):
    pair = Pair(client=client, server=server)
    ends: list[tuple] = []  # of each stream: connection, stream, what was sent to it, what it got
    for name, *arguments in plan:
        if name == "open":
            ours, theirs = pair.open()
            ends.append(((pair.client, ours, [], []), (pair.server.connection, theirs, [], [])))
        elif name == "exchange":
            pair.exchange(piece=arguments[0])
        elif ends:
            up, index = arguments[0], arguments[1] % len(ends)
            sender, receiver = ends[index] if up else reversed(ends[index])
            if name == "send":
                receiver[2].append(arguments[2])
                sender[0].send_message(sender[1], arguments[2])
            elif (got := receiver[0].read(receiver[1])) is not None:
                receiver[3].append(got)
    assert pair.server.verdict is None
    assert pair.client.failure is None
    waiting = [end for both in ends for end in both]
    progress = True
    while progress:  # as long as somebody reads, everything gets through
        pair.exchange(piece=20_000)
        progress = False
        for connection, stream, _, got in waiting:
            while (message := connection.read(stream)) is not None:
                got.append(message)
                progress = True
    for _, stream, sent, got in waiting:
        assert got == sent
        assert not stream.outgoing


frame_bytes = st.builds(
    frames.frame,
    st.integers(0, 11),
    st.integers(0, 255),
    st.sampled_from([0, 1, 2, 3, 5, frames.MAX_STREAM_ID]),
    st.one_of(st.just(REQUEST), st.binary(max_size=40), st.just(bytes(8)), st.just(bytes(4))),
)
noise = st.lists(
    st.one_of(
        frame_bytes,
        st.builds(open_stream, st.sampled_from([1, 3, 5, 7])),
        st.builds(data, st.sampled_from([1, 3, 5]), st.binary(max_size=60)),
        st.binary(max_size=30),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(noise, st.integers(1, 100), st.booleans())
def test_any_bytes_are_taken_or_end_the_connection(said, piece, greets):
    """No other exception, and no stream left behind."""
    server = Server()
    stream = (GREETING if greets else b"") + b"".join(said)
    for at in range(0, len(stream), piece):
        server.hear(stream[at : at + piece])
    if server.connection.closed:
        assert not server.connection.streams
    assert len(server.connection.streams) <= len(server.accepted)


@settings(max_examples=300, deadline=None)
@given(noise, st.integers(1, 100))
def test_any_bytes_of_a_server_are_taken_or_end_the_connection(said, piece):
    pair = Pair()
    ours, _ = pair.open()
    stream = b"".join(said)
    for at in range(0, len(stream), piece):
        pair.hear(stream[at : at + piece])
    assert pair.client.closed == (pair.client.failure is not None)
    if pair.client.closed:
        assert not pair.client.streams
        assert any(each[0] == "lost" for each in pair.log.of(ours)) or ours.remote_closed


@settings(max_examples=100, deadline=None)
@given(noise, st.integers(1, 50), st.integers(1, 50))
def test_the_cuts_of_the_network_change_nothing(said, one, other):
    def heard(piece):
        server = Server()
        stream = GREETING + b"".join(said)
        for at in range(0, len(stream), piece):
            server.hear(stream[at : at + piece])
        messages = [list(each.messages) for each in server.accepted]
        return server.verdict, messages

    assert heard(one) == heard(other)
