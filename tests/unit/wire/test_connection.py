"""The connection as a state machine: what it takes, what it refuses, and what it makes a peer wait for."""

import pytest
from hpack import Encoder

from fila.wire import frames, headers
from fila.wire.events import MessageReceived, RequestReceived, StreamEnded, StreamWritable
from fila.wire.status import StatusCode
from fila.wire.stream import Stream
from tests.support.wire import (
    BEGINNING,
    GREETING,
    REQUEST,
    REQUEST_HEADERS,
    Pair,
    Server,
    data,
    greeted,
    message,
    open_stream,
    opened,
    parse,
)


class TestMessages:
    def test_a_message_is_there_as_soon_as_it_is_complete(self):
        server = opened()
        (stream,) = server.accepted
        whole = data(1, message(b"hello"))
        for byte in whole[:-1]:
            server.hear(bytes([byte]))
        assert not stream.messages
        server.hear(whole[-1:])
        assert list(stream.messages) == [b"hello"]

    def test_messages_do_not_care_for_frames(self):
        """Many in one frame, one in many, and none at all."""
        server = opened()
        (stream,) = server.accepted
        text = message(b"one") + message(b"") + message(b"three" * 100)
        server.hear(data(1, text[:3]), data(1, text[3:11]), data(1, text[11:200]), data(1, text[200:]))
        assert list(stream.messages) == [b"one", b"", b"three" * 100]

    def test_padding_is_no_part_of_a_message(self):
        server = opened()
        (stream,) = server.accepted
        padded = bytes([4]) + message(b"x") + b"\0" * 4
        server.hear(frames.frame(frames.DATA, frames.PADDED, 1, padded))
        assert list(stream.messages) == [b"x"]

    @pytest.mark.parametrize("padding", [b"", b"\x01", b"\x05\0\0\0\0"])
    def test_more_padding_than_frame_ends_the_connection(self, padding):
        server = opened().hear(frames.frame(frames.DATA, frames.PADDED, 1, padding))
        assert server.verdict == frames.PROTOCOL_ERROR

    @pytest.mark.parametrize(
        "prefix, code",
        [
            (b"\0\x00\x00\x03\xe9", StatusCode.INVALID_ARGUMENT),
            (b"\0\xff\xff\xff\xff", StatusCode.INVALID_ARGUMENT),
            (b"\1\0\0\0\1", StatusCode.UNIMPLEMENTED),
        ],
    )
    def test_a_message_that_is_not_taken_is_refused_by_its_prefix(self, prefix, code):
        server = opened(max_message_bytes=1000).hear(data(1, prefix))
        assert server.log.of(server.accepted[0])[-1] == ("refused", code)
        assert server.verdict is None

    def test_a_stream_that_ends_inside_a_message_is_refused(self):
        server = opened().hear(data(1, message(b"hello")[:-1], end=True))
        assert ("refused", StatusCode.INTERNAL) in server.log.of(server.accepted[0])
        assert server.verdict is None


class TestWindows:
    def test_nothing_is_given_back_for_what_nobody_reads(self):
        server = opened(stream_window=70_000, connection_window=100_000)
        server.hear(data(1, message(bytes(60_000))))
        assert server.take() == b""
        server.hear(data(1, message(bytes(20_000))))
        assert server.verdict == frames.FLOW_CONTROL_ERROR

    def test_padding_gives_nothing_back_for_the_message_beside_it(self):
        server = opened(stream_window=70_000, connection_window=100_000)
        padded = bytes([255]) + message(bytes(36_000)) + bytes(255)
        server.hear(frames.frame(frames.DATA, frames.PADDED, 1, padded))
        assert server.take() == b""

    def test_reading_gives_room_for_more(self):
        server = opened(stream_window=70_000, connection_window=100_000)
        (stream,) = server.accepted
        server.hear(data(1, message(bytes(60_000))))
        assert server.connection.read(stream) == bytes(60_000)
        updates = {stream_id: int.from_bytes(payload, "big") for _, _, stream_id, payload in parse(server.take())}
        assert updates == {0: 60_005, 1: 60_005}

    def test_a_message_larger_than_the_windows_gets_through(self):
        pair = Pair(server={"stream_window": 70_000, "connection_window": 80_000})
        ours, theirs = pair.open()
        assert not pair.client.send_message(ours, bytes(1_000_000))
        pair.exchange(piece=10_000)
        assert list(theirs.messages) == [bytes(1_000_000)]
        assert "writable" in pair.log.of(ours)

    def test_while_one_message_waits_to_be_read_no_second_one_gets_through(self):
        """So a stream holds a window and a message at most, however long nobody reads."""
        pair = Pair(server={"stream_window": 70_000, "connection_window": 200_000})
        ours, theirs = pair.open()
        for _ in range(5):
            pair.client.send_message(ours, bytes(100_000))
        pair.exchange(piece=1000)
        assert len(theirs.messages) <= 1
        held = sum(map(len, theirs.messages)) + sum(map(len, theirs._parts))
        assert held <= 170_005
        got = 0
        while pair.server.connection.read(theirs) is not None:
            got += 1
            pair.exchange(piece=1000)
        assert got == 5

    def test_a_message_larger_than_the_window_behind_one_that_waits_gets_through_when_that_is_read(self):
        pair = Pair(server={"stream_window": 70_000, "connection_window": 200_000})
        ours, theirs = pair.open()
        pair.client.send_message(ours, b"small")
        pair.client.send_message(ours, bytes(300_000))
        pair.exchange(piece=1000)
        assert len(theirs.messages) == 1
        pair.server.connection.read(theirs)
        pair.exchange(piece=1000)
        assert list(theirs.messages) == [bytes(300_000)]

    def test_what_a_stream_that_ended_owed_is_given_back_to_the_connection(self):
        server = opened(stream_window=70_000, connection_window=100_000)
        for stream_id in range(3, 40, 2):
            server.hear(open_stream(stream_id), data(stream_id, message(bytes(60_000))))
            assert server.verdict is None
            server.connection.reset(server.accepted[-1], frames.CANCEL)

    def test_late_data_of_a_stream_that_ended_costs_no_window(self):
        server = opened(connection_window=100_000)
        server.connection.reset(server.accepted[0], frames.CANCEL)
        for _ in range(20):
            server.hear(data(1, bytes(16_000)))
        assert server.verdict is None

    def test_nothing_is_sent_beyond_the_windows_of_the_peer(self):
        server = opened()
        (stream,) = server.accepted
        assert not server.connection.send_message(stream, bytes(100_000))
        sent = parse(server.take())
        assert sum(len(payload) for _, _, _, payload in sent) == frames.DEFAULT_WINDOW
        assert max(len(payload) for _, _, _, payload in sent) == frames.MIN_FRAME_BYTES
        server.hear(frames.window_update(1, 1 << 20))
        assert server.take() == b""
        server.hear(frames.window_update(0, 1 << 20))
        assert sum(len(payload) for _, _, _, payload in parse(server.take())) == 100_005 - frames.DEFAULT_WINDOW
        assert server.log.of(stream)[-1] == "writable"

    def test_a_smaller_window_in_settings_holds_for_open_streams(self):
        server = opened().hear(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
        server.take()
        (stream,) = server.accepted
        assert not server.connection.send_message(stream, b"x")
        assert server.take() == b""
        server.hear(frames.settings({frames.INITIAL_WINDOW_SIZE: 100}))
        assert (frames.DATA, 0, 1, message(b"x")) in parse(server.take())

    def test_a_transport_that_takes_nothing_stops_messages_and_not_answers_to_pings(self):
        server = opened()
        server.connection.sender.paused = True
        assert not server.connection.send_message(server.accepted[0], b"x")
        server.hear(frames.frame(frames.PING, 0, 0, b"12345678"))
        assert [kind for kind, *_ in parse(server.take())] == [frames.PING]
        server.connection.sender.paused = False
        server.connection.pump()
        assert [kind for kind, *_ in parse(server.take())] == [frames.DATA]

    def test_a_stream_without_a_window_is_not_looked_at_before_it_has_one(self):
        server = greeted().hear(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}), open_stream(1), open_stream(3))
        for stream in server.accepted:
            server.connection.send_message(stream, b"x")
        server.take()
        assert not server.connection.sender.blocked
        server.hear(frames.window_update(0, 1))
        assert server.take() == b""
        server.hear(frames.window_update(3, 100))
        assert parse(server.take()) == [(frames.DATA, 0, 3, message(b"x"))]
        server.hear(frames.settings({frames.INITIAL_WINDOW_SIZE: 100}))
        assert (frames.DATA, 0, 1, message(b"x")) in parse(server.take())

    def test_streams_that_wait_take_turns(self):
        server = greeted().hear(open_stream(1), open_stream(3))
        server.take()
        for stream in server.accepted:
            server.connection.send_message(stream, bytes(200_000))
        server.take()
        turns = []
        for _ in range(4):
            server.hear(frames.window_update(1, 1000) + frames.window_update(3, 1000) + frames.window_update(0, 1000))
            turns += [stream_id for _, _, stream_id, _ in parse(server.take())]
        assert set(turns) == {1, 3}


class TestHostilePeers:
    def test_a_ping_after_each_answer_is_no_chatter(self):
        """So clients of Go measure how much may be under way."""
        server = opened()
        (stream,) = server.accepted
        for _ in range(1000):
            server.connection.send_message(stream, b"")
            probe = frames.frame(frames.PING, 0, 0, bytes(8))
            server.hear(probe, frames.window_update(0, 5), frames.window_update(1, 5))
        assert server.verdict is None
        for _ in range(1000):
            server.hear(frames.frame(frames.PING, 0, 0, bytes(8)))
        assert server.verdict == frames.ENHANCE_YOUR_CALM

    def test_a_message_in_tiny_pieces_takes_no_more_room_than_in_large_ones(self):
        server = opened()
        (stream,) = server.accepted
        payload = bytes(range(256)) * 400
        whole = message(payload)
        server.hear(*(data(1, whole[at : at + 3]) for at in range(0, len(whole) - 3, 3)))
        assert len(stream._parts) == 1
        server.hear(data(1, whole[(len(whole) - 1) // 3 * 3 :]))
        assert list(stream.messages) == [payload]
        assert isinstance(stream.messages[0], bytes)

    @pytest.mark.parametrize(
        "greeting", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + bytes(50)]
    )
    def test_what_is_not_http2_is_turned_away_at_its_first_bytes(self, greeting):
        assert Server().hear(greeting).verdict == frames.PROTOCOL_ERROR

    def test_the_first_frame_must_be_settings(self):
        server = Server().hear(frames.PREFACE + open_stream(1))
        assert server.verdict == frames.PROTOCOL_ERROR
        assert Server().hear(frames.PREFACE + data(1, b"")).verdict == frames.PROTOCOL_ERROR

    @pytest.mark.parametrize(
        "frame, code",
        [
            (frames.frame(frames.DATA, 0, 0, b"x"), frames.PROTOCOL_ERROR),
            (data(3, b"x"), frames.PROTOCOL_ERROR),
            (frames.frame(frames.HEADERS, frames.END_HEADERS, 0, REQUEST), frames.PROTOCOL_ERROR),
            (open_stream(2), frames.PROTOCOL_ERROR),
            (open_stream(1), frames.PROTOCOL_ERROR),  # in the middle of a stream, without its end
            (open_stream(3, b"\xff\xff\xff\xff\xff"), frames.COMPRESSION_ERROR),
            (frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, b""), frames.PROTOCOL_ERROR),
            (frames.frame(frames.PUSH_PROMISE, 0, 1, bytes(8)), frames.PROTOCOL_ERROR),
            (frames.rst_stream(3, 0), frames.PROTOCOL_ERROR),
            (frames.frame(frames.RST_STREAM, 0, 1, b""), frames.FRAME_SIZE_ERROR),
            (frames.window_update(0, 0), frames.PROTOCOL_ERROR),
            (frames.window_update(1, 0), frames.PROTOCOL_ERROR),
            (frames.window_update(3, 1), frames.PROTOCOL_ERROR),
            (frames.window_update(0, frames.MAX_WINDOW), frames.FLOW_CONTROL_ERROR),
            (frames.window_update(1, frames.MAX_WINDOW), frames.FLOW_CONTROL_ERROR),
            (frames.frame(frames.WINDOW_UPDATE, 0, 1, b"123"), frames.FRAME_SIZE_ERROR),
            (frames.frame(frames.SETTINGS, 0, 1, b""), frames.PROTOCOL_ERROR),
            (frames.frame(frames.SETTINGS, 0, 0, b"12345"), frames.FRAME_SIZE_ERROR),
            (frames.frame(frames.SETTINGS, frames.ACK, 0, bytes(6)), frames.FRAME_SIZE_ERROR),
            (frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 31}), frames.FLOW_CONTROL_ERROR),
            (frames.settings({frames.MAX_FRAME_SIZE: 100}), frames.PROTOCOL_ERROR),
            (frames.settings({frames.ENABLE_PUSH: 2}), frames.PROTOCOL_ERROR),
            (frames.frame(frames.PRIORITY, 0, 0, bytes(5)), frames.PROTOCOL_ERROR),
            (frames.frame(frames.PRIORITY, 0, 1, bytes(4)), frames.FRAME_SIZE_ERROR),
            (frames.settings(dict.fromkeys(range(100, 200), 0)), frames.ENHANCE_YOUR_CALM),
            (frames.frame(frames.PING, 0, 0, b"short"), frames.FRAME_SIZE_ERROR),
            (frames.frame(frames.PING, 0, 1, bytes(8)), frames.PROTOCOL_ERROR),
            (frames.frame(frames.GOAWAY, 0, 0, b""), frames.PROTOCOL_ERROR),
            (frames.header(2 << 20, frames.DATA, 0, 1), frames.FRAME_SIZE_ERROR),
            (frames.header(2 << 20, frames.DATA, frames.PADDED, 1), frames.FRAME_SIZE_ERROR),
            (frames.header(90_000, frames.HEADERS, 0, 3), frames.FRAME_SIZE_ERROR),
            (open_stream(3, bytes(70_000)), frames.ENHANCE_YOUR_CALM),
            (frames.header(20_000, 0xAB, 0, 3), frames.FRAME_SIZE_ERROR),
        ],
    )
    def test_a_frame_against_the_rules_ends_the_connection_and_says_why(self, frame, code):
        server = opened().hear(frame)
        assert server.verdict == code
        kind, _, _, payload = parse(server.take())[-1]
        assert (kind, int.from_bytes(payload[4:8], "big")) == (frames.GOAWAY, code)
        assert server.log.of(server.accepted[0])[-1] == ("lost", None)
        assert not server.connection.streams

    def test_after_the_end_nothing_is_heard(self):
        server = opened().hear(frames.window_update(0, 0))
        server.take()
        server.hear(open_stream(3), frames.frame(frames.PING, 0, 0, bytes(8)))
        assert server.take() == b""
        assert len(server.accepted) == 1

    def test_data_after_the_end_of_its_stream(self):
        server = greeted().hear(open_stream(1, end=True), data(1, b"x"))
        assert server.verdict == frames.STREAM_CLOSED

    def test_data_on_a_stream_that_the_peer_has_reset(self):
        server = opened().hear(frames.rst_stream(1, frames.CANCEL), data(1, b"x"))
        assert server.verdict == frames.STREAM_CLOSED

    def test_data_on_a_stream_that_both_have_ended(self):
        server = greeted().hear(open_stream(1, end=True))
        server.connection.send_headers(server.accepted[0], REQUEST, end=True)
        assert server.hear(data(1, b"x")).verdict == frames.STREAM_CLOSED

    def test_headers_after_the_end_of_their_stream(self):
        server = greeted().hear(open_stream(1, end=True), open_stream(1, end=True))
        assert server.verdict == frames.STREAM_CLOSED

    def test_a_request_on_a_closed_stream_ends_the_connection_and_late_trailers_do_not(self):
        server = opened()
        server.connection.reset(server.accepted[0], frames.NO_ERROR)
        server.hear(open_stream(1, headers.encode([(b"late", b"trailer")]), end=True))
        assert server.verdict is None
        assert server.hear(open_stream(1)).verdict == frames.STREAM_CLOSED

    def test_a_stream_below_one_that_was_opened_is_closed(self):
        assert opened(5).hear(open_stream(3)).verdict == frames.STREAM_CLOSED

    def test_headers_without_an_end(self):
        """Each frame is small, and there is always one more."""
        server = greeted(max_header_bytes=100_000).hear(frames.frame(frames.HEADERS, 0, 1, b""))
        for _ in range(100):
            server.hear(frames.frame(frames.CONTINUATION, 0, 1, b""))
        assert server.verdict == frames.ENHANCE_YOUR_CALM

    def test_headers_larger_than_allowed_in_pieces(self):
        server = greeted(max_header_bytes=1000).hear(frames.frame(frames.HEADERS, 0, 1, bytes(3900)))
        assert server.verdict is None
        server.hear(frames.frame(frames.CONTINUATION, 0, 1, bytes(200)))
        assert server.verdict == frames.ENHANCE_YOUR_CALM

    def test_metadata_beyond_the_limit_ends_one_call_and_not_the_connection(self):
        """Also behind it the peer's compressed headers are understood: the decoder has read them."""
        peer = Encoder()
        server = greeted(max_header_bytes=1000)
        large = peer.encode([*BEGINNING, (b"token", b"x" * 2000), (b"kept", b"in the table")])
        server.hear(open_stream(1, large))
        assert server.log.of(server.accepted[0]) == [("request", ()), ("refused", StatusCode.INVALID_ARGUMENT)]
        server.hear(open_stream(3, peer.encode([*BEGINNING, (b"kept", b"in the table")])))
        assert server.log.of(server.accepted[1])[0] == ("request", (*BEGINNING, (b"kept", b"in the table")))
        assert server.verdict is None

    def test_metadata_beyond_the_limit_again_and_again_ends_the_connection(self):
        server = greeted(max_header_bytes=1000)
        block = headers.encode([*BEGINNING, (b"token", b"x" * 2000)])
        for stream_id in range(1, 10_001, 2):
            server.hear(open_stream(stream_id, block, end=True))
            server.connection.streams.clear()
        assert server.verdict == frames.ENHANCE_YOUR_CALM
        assert len(server.accepted) < 3000

    def test_a_malformed_request_is_reset_and_the_connection_goes_on(self):
        server = greeted().hear(open_stream(1, headers.encode([*BEGINNING, (b"connection", b"close")])))
        assert parse(server.take()) == [(frames.RST_STREAM, 0, 1, frames.PROTOCOL_ERROR.to_bytes(4, "big"))]
        assert not server.accepted
        assert server.hear(open_stream(3)).verdict is None
        assert len(server.accepted) == 1

    def test_malformed_trailers_are_reset_and_the_connection_goes_on(self):
        server = opened().hear(open_stream(1, headers.encode([(b":path", b"/")]), end=True))
        assert parse(server.take()) == [(frames.RST_STREAM, 0, 1, frames.PROTOCOL_ERROR.to_bytes(4, "big"))]
        assert server.log.of(server.accepted[0])[-1] == ("lost", frames.PROTOCOL_ERROR)
        assert server.verdict is None

    @pytest.mark.parametrize("sent", [b"", b"123", b"12345"])
    def test_content_that_is_not_as_long_as_announced_is_reset(self, sent):
        block = headers.encode([*BEGINNING, (b"content-length", b"4")])
        server = greeted().hear(open_stream(1, block), data(1, sent, end=True))
        assert server.log.of(server.accepted[0])[-1] == ("lost", frames.PROTOCOL_ERROR)
        assert server.verdict is None

    def test_content_as_long_as_announced_is_taken(self):
        content = message(b"hello")
        block = headers.encode([*BEGINNING, (b"content-length", b"%d" % len(content))])
        server = greeted().hear(open_stream(1, block), data(1, content[:3]), data(1, content[3:], end=True))
        assert list(server.accepted[0].messages) == [b"hello"]
        assert server.accepted[0].remote_closed

    @pytest.mark.parametrize("frame", [data(1, b""), frames.frame(frames.PING, 0, 0, bytes(8)), open_stream(3)])
    def test_nothing_may_come_between_headers_and_their_rest(self, frame):
        server = opened().hear(frames.frame(frames.HEADERS, 0, 5, REQUEST), frame)
        assert server.verdict == frames.PROTOCOL_ERROR

    @pytest.mark.parametrize(
        "frame",
        [
            frames.frame(frames.PING, 0, 0, bytes(8)),
            frames.frame(frames.PING, frames.ACK, 0, bytes(8)),
            frames.settings({}),
            frames.frame(frames.SETTINGS, frames.ACK, 0, b""),
            data(1, b""),
            frames.frame(frames.PRIORITY, 0, 1, bytes(5)),
            frames.frame(0xFA, 0, 0, b"unknown"),
            frames.goaway(0, 0),
        ],
    )
    def test_a_flood_of_what_costs_the_peer_nothing(self, frame):
        server = opened()
        for _ in range(1000):
            server.hear(frame)
        assert server.verdict == frames.ENHANCE_YOUR_CALM

    @pytest.mark.parametrize("frame", [frames.frame(frames.PING, 0, 0, bytes(8)), frames.settings({})])
    def test_a_few_a_second_are_no_flood(self, frame):
        server = opened()
        for _ in range(1000):
            server.now += 0.1
            server.hear(frame)
        assert server.verdict is None

    def test_streams_that_are_opened_and_reset_at_once(self):
        server = greeted()
        for stream_id in range(1, 20_001, 2):
            server.hear(open_stream(stream_id) + frames.rst_stream(stream_id, frames.CANCEL))
        assert server.verdict == frames.ENHANCE_YOUR_CALM
        assert len(server.accepted) < 5000

    def test_more_streams_than_allowed_are_refused_one_by_one(self):
        server = greeted(max_streams=10)
        for stream_id in range(1, 41, 2):
            server.hear(open_stream(stream_id))
        refused = [stream_id for kind, _, stream_id, _ in parse(server.take()) if kind == frames.RST_STREAM]
        assert (len(server.accepted), len(refused), server.verdict) == (10, 10, None)
        for stream_id in range(41, 20_001, 2):
            server.hear(open_stream(stream_id))
        assert server.verdict == frames.ENHANCE_YOUR_CALM

    def test_windows_that_grow_byte_by_byte_make_one_frame_for_each_arrival(self):
        """Not one for each update."""
        server = opened()
        server.connection.send_message(server.accepted[0], bytes(100_000))
        server.take()
        server.hear((frames.window_update(0, 1) + frames.window_update(1, 1)) * 500)
        assert len(parse(server.take())) == 1


class TestEvents:
    """Nobody is told anything before all that arrived is parsed: what happened is returned."""

    def test_a_read_returns_all_that_happened_in_its_order(self):
        server = greeted()
        server.hear(open_stream(1) + data(1, message(b"a")) + data(1, message(b"b"), end=True) + open_stream(3))
        first, second = server.accepted
        assert server.log.events[-5:] == [
            RequestReceived(first, REQUEST_HEADERS),
            MessageReceived(first),
            MessageReceived(first),
            StreamEnded(first),
            RequestReceived(second, REQUEST_HEADERS),
        ]

    def test_what_came_before_a_message_that_is_refused_can_be_read(self):
        server = opened(max_message_bytes=10)
        (stream,) = server.accepted
        server.hear(data(1, message(b"good")) + data(1, message(bytes(11))))
        assert server.log.of(stream)[-2:] == ["readable", ("refused", StatusCode.INVALID_ARGUMENT)]
        assert server.connection.read(stream) == b"good"

    def test_nothing_is_sent_on_a_stream_that_was_reset_in_the_same_read_as_its_request(self):
        server = greeted()
        server.hear(open_stream(1) + data(1, message(b"a")) + frames.rst_stream(1, frames.CANCEL))
        (stream,) = server.accepted
        server.take()
        assert server.connection.can_send(stream)
        assert server.connection.send_message(stream, b"answer")
        server.connection.send_headers(stream, REQUEST, end=True)
        server.connection.end(stream)
        assert server.take() == b""

    def test_streams_that_wait_to_respond_are_named_one_at_a_time(self):
        """What the first one sends may use up the window."""
        server = greeted().hear(*(open_stream(stream_id) for stream_id in (1, 3, 5)))
        connection = server.connection
        connection.sender.window = 0
        assert not any(connection.can_send(stream) for stream in server.accepted)
        events = connection.receive(frames.window_update(0, 100), 0.0)
        assert events == [StreamWritable(server.accepted[0])]
        assert connection.sender.pump_again
        connection.send_message(server.accepted[0], bytes(95))
        assert connection.pump() == []
        assert list(connection.sender.blocked) == server.accepted[1:]


class TestEnds:
    def test_a_stream_ends_when_both_sides_have_ended(self):
        pair = Pair()
        ours, theirs = pair.open()
        pair.client.send_message(ours, b"request", end=True)
        pair.exchange()
        assert theirs.remote_closed
        pair.server.connection.send_headers(theirs, REQUEST, end=True)
        pair.exchange()
        assert not pair.client.streams
        assert not pair.server.connection.streams

    def test_the_end_waits_for_what_is_to_be_sent(self):
        pair = Pair(server={"stream_window": 70_000, "connection_window": 70_000})
        ours, theirs = pair.open()
        pair.client.send_message(ours, bytes(300_000))
        pair.client.end(ours)
        assert not ours.local_closed
        pair.exchange(piece=1000)
        assert theirs.remote_closed
        assert list(theirs.messages) == [bytes(300_000)]

    def test_headers_longer_than_a_frame_arrive(self):
        pair = Pair(server={"max_header_bytes": 100_000})
        written = [*BEGINNING, *((b"a", bytes([number]) * 1000) for number in range(20))]
        pair.client.open(Stream(), headers.encode(written))
        pair.exchange()
        assert [pair.server.log.of(each)[0][1] for each in pair.server.accepted] == [tuple(written)]

    def test_a_server_that_goes_lets_open_streams_end_and_refuses_new_ones(self):
        pair = Pair()
        ours, theirs = pair.open()
        pair.server.connection.go_away()
        pair.exchange()
        assert pair.client.draining
        assert "lost" not in {each[0] for each in pair.log.of(ours)}
        pair.server.hear(open_stream(3))
        assert parse(pair.server.take())[-1][0] == frames.RST_STREAM
        pair.server.connection.send_message(theirs, b"last")
        pair.exchange()
        assert list(ours.messages) == [b"last"]

    def test_calls_that_a_leaving_server_has_not_seen_are_lost(self):
        pair = Pair()
        streams = [Stream() for _ in range(3)]
        for stream in streams:
            pair.client.open(stream, REQUEST)
        pair.hear(frames.goaway(3, frames.NO_ERROR))
        assert [("lost", None) in pair.log.of(stream) for stream in streams] == [False, False, True]

    def test_a_client_that_used_up_all_numbers_takes_no_more_calls(self):
        client = Pair().client
        client._next_id = frames.MAX_STREAM_ID
        client.open(Stream(), REQUEST)
        assert client.draining


def test_greetings_say_what_is_allowed():
    server = Server(max_streams=7, stream_window=100_000, connection_window=200_000, max_frame_bytes=20_000)
    (_, _, _, settings), (_, _, _, window) = parse(server.take())
    assert frames.read_settings(settings) == {
        frames.INITIAL_WINDOW_SIZE: 100_000,
        frames.MAX_FRAME_SIZE: 20_000,
        frames.MAX_HEADER_LIST_SIZE: 16 << 10,
        frames.MAX_CONCURRENT_STREAMS: 7,
    }
    assert int.from_bytes(window, "big") == 200_000 - frames.DEFAULT_WINDOW
    assert server.hear(GREETING).verdict is None
