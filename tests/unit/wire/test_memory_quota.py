"""Room: whoever holds most gives way, what has room can be completed, and nobody who holds little waits for ever."""

from hypothesis import given
from hypothesis import strategies as st

from fila.wire.memory_quota import PREEMPT_AFTER_S, MemoryQuota, Reservation, Shares
from fila.wire.work_limit import WorkLimit
from tests.support.wire import Pair, data, greeted, message, open_stream

SHARES = Shares(server=800, peer=600, connection=400)


class Holder:
    """A connection with calls of so many bytes."""

    def __init__(self, quota, address="a"):
        self.account = quota.open(address, self)
        self.calls = []
        self.ended = []

    def hold(self, size):
        self.calls.append(size)
        self.account.take(size)
        self.account.quota.relieve(self.account)

    def evict(self):
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
    quota = MemoryQuota(SHARES)
    holders = [Holder(quota, "abc"[number // 2]) for number in range(6)]
    for number, size in plan:
        holders[number].hold(size)
        assert quota.held == sum(sum(holder.calls) for holder in holders) <= SHARES.server
        assert all(peer.held <= SHARES.peer for peer in quota.peers.values())
        assert all(holder.account.held <= SHARES.connection for holder in holders)
    for holder in holders:
        quota.close(holder.account)
    assert (quota.held, quota.peers) == (0, {})


def test_who_holds_little_is_never_refused_for_what_others_hold():
    quota = MemoryQuota(SHARES)
    greedy, modest = [Holder(quota, name) for name in "abc"], Holder(quota, "d")
    modest.hold(50)
    for _ in range(50):
        for holder in greedy:
            holder.hold(100)
    assert not modest.ended
    assert quota.held <= SHARES.server


def test_room_is_given_when_there_is_some_and_those_who_hold_least_come_first():
    quota, order = MemoryQuota(SHARES), []
    first, large, small = Holder(quota, "a"), Holder(quota, "b"), Holder(quota, "c")
    first.hold(390)
    large.hold(100)
    assert not quota.reserve(Reservation(large.account, 300, 0.0, lambda: order.append("large")))
    assert not quota.reserve(Reservation(small.account, 300, 0.0, lambda: order.append("small")))
    quota.serve_queue(0.0)
    assert order == []
    first.evict()
    quota.serve_queue(0.0)
    assert order == ["small"]


def test_who_has_waited_takes_from_those_who_hold_more_and_from_nobody_else():
    quota, order = MemoryQuota(SHARES), []
    holders = [Holder(quota, name) for name in "ab"]
    for holder in holders:
        holder.hold(300)
    late = Holder(quota, "c")
    assert not quota.reserve(Reservation(late.account, 200, 0.0, lambda: order.append("late")))
    quota.serve_queue(PREEMPT_AFTER_S / 2)
    assert order == []
    quota.serve_queue(PREEMPT_AFTER_S)
    assert order == ["late"]
    assert sum(len(holder.ended) for holder in holders) == 1
    assert not quota.reserve(Reservation(holders[0].account, 390, 0.0, lambda: order.append("never")))
    quota.serve_queue(10 * PREEMPT_AFTER_S)
    assert order == ["late"]


def test_a_small_request_never_waits_for_the_large_ones_of_others():
    quota, work, order = MemoryQuota(SHARES), WorkLimit(100), []
    large, small = Holder(quota, "a"), Holder(quota, "b")

    def admit(name):
        return lambda: order.append(name) or True

    assert work.enter(large.account, 90, admit("first"))
    for number in range(3):
        assert not work.enter(large.account, 90, admit(f"large {number}"))
    assert not work.enter(small.account, 20, admit("small"))
    work.leave(90)
    assert order == ["small"]
    work.leave(20)
    assert order == ["small", "large 0"]


def test_a_request_larger_than_the_gate_goes_in_alone_and_one_that_is_not_wanted_takes_no_place():
    quota, work, order = MemoryQuota(SHARES), WorkLimit(100), []
    one = Holder(quota)
    assert work.enter(one.account, 500, lambda: True)
    assert not work.enter(one.account, 60, lambda: order.append("gone"))
    assert not work.enter(one.account, 70, lambda: order.append("wanted") or True)
    work.leave(500)
    assert order == ["gone", "wanted"]


def with_account(server, quota, address="a"):
    server.connection.charge(quota.open(address, server))
    return server


def test_a_server_gives_window_for_a_whole_request_or_none():
    """So that what has begun can be completed."""
    quota = MemoryQuota(Shares(server=1_000_000, peer=1_000_000, connection=600_000))
    server = with_account(greeted(stream_window=65_535), quota)
    for stream_id in (1, 3, 5):
        server.hear(open_stream(stream_id), data(stream_id, message(bytes(400_000))[:1000]))
    assert [stream.memory.reserved for stream in server.accepted] == [399_005, 0, 0]
    assert quota.held < 450_000
    rest = message(bytes(400_000))[1000:]
    for at in range(0, len(rest), 16_000):
        server.hear(data(1, rest[at : at + 16_000]))
    assert list(server.accepted[0].messages) == [bytes(400_000)]
    assert server.connection.read(server.accepted[0]) is not None
    server.accepted[0].memory.finish_request()
    quota.serve_queue(0.0)
    assert server.accepted[1].memory.reserved == 399_005
    assert server.verdict is None


def test_what_a_connection_held_is_free_when_it_ends():
    quota = MemoryQuota(Shares())
    server = with_account(greeted(), quota)
    for stream_id in range(1, 41, 2):
        server.hear(open_stream(stream_id), data(stream_id, message(bytes(100_000))[:50_000]))
        server.connection.send_message(server.accepted[-1], bytes(200_000))
    assert quota.held > 20 * 50_000
    server.connection.close("test")
    assert (quota.held, server.connection.account.reservations) == (0, 0)


CALLS = 4
PLANS = st.lists(st.tuples(st.integers(0, CALLS - 1), st.integers(0, 300_000)), max_size=12)


def send_and_read(plan, piece, shares):
    """Send requests of so many bytes on so many calls, read and answer what arrives. Returns the pair, the quota, and
    of each call the server's end of it, what was sent and what arrived.
    """
    pair = Pair(server={"stream_window": 65_535})
    quota = MemoryQuota(shares)
    with_account(pair.server, quota)
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
            theirs.memory.finish_request()
        quota.serve_queue(0.0)
        if not pair.server.connection.out and got == sent:
            break
    return pair, quota, list(zip([theirs for _, theirs in ends], sent, got, strict=True))


def check_nothing_is_held(pair, quota, calls):
    for theirs, _, _ in calls:
        pair.server.connection.reset(theirs, 0)
    assert pair.server.verdict is None
    assert (quota.held, pair.server.connection.account.reservations) == (0, 0)


@given(PLANS, st.integers(500, 20_000))
def test_every_request_arrives_whole_when_all_of_them_fit(plan, piece):
    """As long as somebody reads and answers, nothing is left over. Nobody reads before all has come, in this test."""
    most = sum(size for _, size in plan) + CALLS * 10_000
    pair, quota, calls = send_and_read(plan, piece, Shares(server=2 * most, peer=2 * most, connection=most))
    assert [got for _, _, got in calls] == [sent for _, sent, _ in calls]
    check_nothing_is_held(pair, quota, calls)


@given(PLANS, st.integers(500, 20_000))
def test_a_request_arrives_whole_or_its_call_ends_when_there_is_little_room(plan, piece):
    """Nobody waits for ever for those who wait, and nothing is left over."""
    pair, quota, calls = send_and_read(plan, piece, Shares(server=700_000, peer=700_000, connection=500_000))
    for theirs, sent, got in calls:
        assert got == sent or (theirs.id not in pair.server.connection.streams and got == sent[: len(got)])
    check_nothing_is_held(pair, quota, calls)
