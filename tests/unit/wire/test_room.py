"""Room: whoever holds most gives way, what has room can be completed, and nobody who holds little waits for ever."""

from hypothesis import given
from hypothesis import strategies as st

from fila.wire.room import PATIENCE_S, Gate, Room, Shares, Waiting
from tests.support.wire import Pair, data, greeted, message, open_stream

SHARES = Shares(server=800, peer=600, connection=400)


class Holder:
    """A connection with calls of so many bytes."""

    def __init__(self, room, address="a"):
        self.account = room.open(address, self)
        self.calls = []
        self.ended = []

    def hold(self, size):
        self.calls.append(size)
        self.account.take(size)
        self.account.room.relieve(self.account)

    def give_way(self):
        if not self.calls:
            return False
        most = max(self.calls)
        self.calls.remove(most)
        self.ended.append(most)
        self.account.give(most)
        return True


holds = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 300)), max_size=60)


@given(holds)
def test_no_share_is_ever_exceeded_and_what_is_held_adds_up(plan):
    room = Room(SHARES)
    holders = [Holder(room, "abc"[number // 2]) for number in range(6)]
    for number, size in plan:
        holders[number].hold(size)
        assert room.held == sum(sum(holder.calls) for holder in holders) <= SHARES.server
        assert all(peer.held <= SHARES.peer for peer in room.peers.values())
        assert all(holder.account.held <= SHARES.connection for holder in holders)
    for holder in holders:
        room.close(holder.account)
    assert (room.held, room.peers) == (0, {})


def test_who_holds_little_is_never_refused_for_what_others_hold():
    room = Room(SHARES)
    greedy, modest = [Holder(room, name) for name in "abc"], Holder(room, "d")
    modest.hold(50)
    for _ in range(50):
        for holder in greedy:
            holder.hold(100)
    assert not modest.ended
    assert room.held <= SHARES.server


def test_room_is_given_when_there_is_some_and_those_who_hold_least_come_first():
    room, order = Room(SHARES), []
    first, large, small = Holder(room, "a"), Holder(room, "b"), Holder(room, "c")
    first.hold(390)
    large.hold(100)
    assert not room.reserve(Waiting(large.account, 300, 0.0, lambda: order.append("large")))
    assert not room.reserve(Waiting(small.account, 300, 0.0, lambda: order.append("small")))
    room.serve_line(0.0)
    assert order == []
    first.give_way()
    room.serve_line(0.0)
    assert order == ["small"]


def test_who_has_waited_takes_from_those_who_hold_more_and_from_nobody_else():
    room, order = Room(SHARES), []
    holders = [Holder(room, name) for name in "ab"]
    for holder in holders:
        holder.hold(300)
    late = Holder(room, "c")
    assert not room.reserve(Waiting(late.account, 200, 0.0, lambda: order.append("late")))
    room.serve_line(PATIENCE_S / 2)
    assert order == []
    room.serve_line(PATIENCE_S)
    assert order == ["late"]
    assert sum(len(holder.ended) for holder in holders) == 1
    assert not room.reserve(Waiting(holders[0].account, 390, 0.0, lambda: order.append("never")))
    room.serve_line(10 * PATIENCE_S)
    assert order == ["late"]


def test_a_small_request_never_waits_for_the_large_ones_of_others():
    room, gate, order = Room(SHARES), Gate(100), []
    large, small = Holder(room, "a"), Holder(room, "b")

    def admit(name):
        return lambda: order.append(name) or True

    assert gate.enter(large.account, 90, admit("first"))
    for number in range(3):
        assert not gate.enter(large.account, 90, admit(f"large {number}"))
    assert not gate.enter(small.account, 20, admit("small"))
    gate.leave(90)
    assert order == ["small"]
    gate.leave(20)
    assert order == ["small", "large 0"]


def test_a_request_larger_than_the_gate_goes_in_alone_and_one_that_is_not_wanted_takes_no_place():
    room, gate, order = Room(SHARES), Gate(100), []
    one = Holder(room)
    assert gate.enter(one.account, 500, lambda: True)
    assert not gate.enter(one.account, 60, lambda: order.append("gone"))
    assert not gate.enter(one.account, 70, lambda: order.append("wanted") or True)
    gate.leave(500)
    assert order == ["gone", "wanted"]


def with_account(server, room, address="a"):
    server.connection.account = room.open(address, server.connection)
    return server


def test_a_server_gives_window_for_a_whole_request_or_none():
    """So that what has begun can be completed."""
    room = Room(Shares(server=1_000_000, peer=1_000_000, connection=600_000))
    server = with_account(greeted(stream_window=65_535), room)
    for stream_id in (1, 3, 5):
        server.hear(open_stream(stream_id), data(stream_id, message(bytes(400_000))[:1000]))
    assert [stream.reserved for stream in server.accepted] == [399_005, 0, 0]
    assert room.held < 450_000
    rest = message(bytes(400_000))[1000:]
    for at in range(0, len(rest), 16_000):
        server.hear(data(1, rest[at : at + 16_000]))
    assert list(server.accepted[0].messages) == [bytes(400_000)]
    assert server.connection.read(server.accepted[0]) is not None
    server.connection.release(server.accepted[0])
    room.serve_line(0.0)
    assert server.accepted[1].reserved == 399_005
    assert server.verdict is None


def test_what_a_connection_held_is_free_when_it_ends():
    room = Room(Shares())
    server = with_account(greeted(), room)
    for stream_id in range(1, 41, 2):
        server.hear(open_stream(stream_id), data(stream_id, message(bytes(100_000))[:50_000]))
        server.connection.send_message(server.accepted[-1], bytes(200_000))
    assert room.held > 20 * 50_000
    server.connection.close("test")
    assert (room.held, server.connection.account.reservations) == (0, 0)


CALLS = 4
PLANS = st.lists(st.tuples(st.integers(0, CALLS - 1), st.integers(0, 300_000)), max_size=12)


def send_and_read(plan, piece, shares):
    """Send requests of so many bytes on so many calls, read and answer what arrives. Returns the pair, the room, and of
    each call the server's end of it, what was sent and what arrived.
    """
    pair = Pair(server={"stream_window": 65_535})
    room = Room(shares)
    with_account(pair.server, room)
    ends = [pair.open() for _ in range(CALLS)]
    sent, got = [[] for _ in ends], [[] for _ in ends]
    for number, size in plan:
        sent[number].append(size)
        pair.client.send_message(ends[number][0], bytes(size))
    for _ in range(200):
        pair.exchange(piece)
        for number, (_, theirs) in enumerate(ends):
            while (request := pair.server.connection.read(theirs)) is not None:
                got[number].append(len(request))
            pair.server.connection.release(theirs)
        room.serve_line(0.0)
        if not pair.server.connection.out and got == sent:
            break
    return pair, room, list(zip([theirs for _, theirs in ends], sent, got, strict=True))


def check_nothing_is_held(pair, room, calls):
    for theirs, _, _ in calls:
        pair.server.connection.reset(theirs, 0)
    assert pair.server.verdict is None
    assert (room.held, pair.server.connection.account.reservations) == (0, 0)


@given(PLANS, st.integers(500, 20_000))
def test_every_request_arrives_whole_when_all_of_them_fit(plan, piece):
    """As long as somebody reads and answers, nothing is left over. Nobody reads before all has come, in this test."""
    most = sum(size for _, size in plan) + CALLS * 10_000
    pair, room, calls = send_and_read(plan, piece, Shares(server=2 * most, peer=2 * most, connection=most))
    assert [got for _, _, got in calls] == [sent for _, sent, _ in calls]
    check_nothing_is_held(pair, room, calls)


@given(PLANS, st.integers(500, 20_000))
def test_a_request_arrives_whole_or_its_call_ends_when_there_is_little_room(plan, piece):
    """Nobody waits for ever for those who wait, and nothing is left over."""
    pair, room, calls = send_and_read(plan, piece, Shares(server=700_000, peer=700_000, connection=500_000))
    for theirs, sent, got in calls:
        assert got == sent or (theirs.id not in pair.server.connection.streams and got == sent[: len(got)])
    check_nothing_is_held(pair, room, calls)
