"""Claims: numbered batches of messages that can be read again until they are acked."""

from typing import Any

import pytest

from fila.broker import claims
from fila.broker.claims import AckedClaims, ExtendedClaims, Making, find_claim
from fila.broker.commands import AckClaims, DropGroup, ExtendClaims, MakeClaim, UpdateQueue
from fila.broker.explain import explain, search
from fila.config import LimitsConfig
from fila.core.claims import EPOCH_AHEAD, Claim, ClaimState
from fila.core.errors import (
    BrokerError,
    ClaimLost,
    Fenced,
    InvalidArgument,
    LimitExceeded,
    MessageNotFound,
    NotNow,
    QueueNotFound,
    TooFarAhead,
)
from fila.storage.base import Family
from tests.helpers.broker import MS, SECOND, START, Driver, stats_of


class Reader:
    """A group that reads the queue `q`."""

    def __init__(self, driver: Driver, group: str = "g", queue: str = "q") -> None:
        self.driver = driver
        self.group = group
        self.queue = queue

    def make(self, after: int, most: int = 0, **rest: Any) -> Making:
        """One step."""
        return self.ask(lambda reply: MakeClaim(self.queue, self.group, after, most, reply, **rest))

    def claim(self, after: int, most: int = 0, **rest: Any) -> Claim | None:
        while not (making := self.make(after, most, **rest)).done:
            pass
        return making.claim

    def made(self, after: int, most: int = 0, **rest: Any) -> Claim:
        claim = self.claim(after, most, **rest)
        assert claim is not None
        return claim

    def ack(self, upto: int, epoch: int = 0) -> AckedClaims:
        return self.ask(lambda reply: AckClaims(self.queue, self.group, upto, reply, epoch))

    def extend(self, lease_ms: int = 0, epoch: int = 0) -> ExtendedClaims:
        return self.ask(lambda reply: ExtendClaims(self.queue, self.group, lease_ms, reply, epoch))

    def drop(self) -> None:
        self.ask(lambda reply: DropGroup(self.queue, self.group, reply))

    def read(self, number: int, low: int = 0, high: int = 1 << 32) -> list[int]:
        claim = find_claim(self.driver.queue(self.queue), self.group, number)
        if claim.state(self.driver.now) is ClaimState.EXPIRED:
            return []
        return [seq for _, messages in claim.slice(low, high) for _, seq, _ in messages]

    def ask(self, command: Any) -> Any:
        answer = self.driver.ask(command)
        if isinstance(answer, BrokerError):
            raise answer
        return answer


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.create("q")
    return driver


@pytest.fixture
def reader(driver: Driver) -> Reader:
    return Reader(driver)


def fill(driver: Driver, count: int, queue: str = "q", **rest: Any) -> list[int]:
    return [driver.send(queue, b"%d" % number, **rest) for number in range(count)]


def settle_down(driver: Driver) -> None:
    while driver.engine.has_work(driver.now):
        driver.tick()


def test_a_claim_holds_messages_in_the_order_of_delivery_and_reads_the_same_again(driver, reader):
    seqs = fill(driver, 5)
    claim = reader.made(0, 3)
    assert (claim.number, claim.size, claim.held) == (1, 3, 3)
    assert reader.read(1) == reader.read(1) == seqs[:3]
    assert reader.read(1, 1, 2) == seqs[1:2]
    assert driver.places() == dict.fromkeys(seqs[:3], "leased") | dict.fromkeys(seqs[3:], "ready")


def test_asking_for_a_claim_again_gives_the_same_one(driver, reader):
    fill(driver, 5)
    first = reader.made(0, 3)
    assert reader.made(0, 5) is first
    assert reader.read(1) == list(first.parts[0].seqs)
    assert reader.made(1, 5).number == 2
    assert reader.made(0) is first


def test_with_nothing_to_claim_there_is_no_claim(driver, reader):
    assert reader.claim(0) is None
    driver.send("q", delay_ms=1000)
    assert reader.claim(0) is None
    driver.now += SECOND
    driver.tick()
    assert reader.made(0).size == 1


def test_a_paused_queue_gives_no_claim(driver, reader):
    fill(driver, 3)
    driver.ask(lambda reply: UpdateQueue("q", {"paused": True}, reply))
    assert reader.claim(0) is None
    driver.ask(lambda reply: UpdateQueue("q", {"paused": False}, reply))
    assert reader.made(0).size == 3


def test_acking_removes_the_messages_and_raises_the_floor(driver, reader):
    seqs = fill(driver, 5)
    reader.made(0, 3)
    assert reader.ack(1) == AckedClaims(3, [])
    settle_down(driver)
    assert driver.places() == dict.fromkeys(seqs[3:], "ready")
    assert reader.ack(1) == AckedClaims(0, [])
    assert driver.queue("q").counters.acked == 3
    dump = driver.store.dump()
    assert len(dump[Family.CLAIMS]) == 1
    assert not dump[Family.LEASES]
    assert not dump[Family.LEASE_EXPIRY]


def test_an_expired_claim_is_an_empty_tombstone_and_its_messages_come_again(driver, reader):
    seqs = fill(driver, 2)
    reader.made(0, lease_ms=1000)
    driver.now += SECOND
    driver.tick()
    assert driver.places() == dict.fromkeys(seqs, "ready")
    assert driver.queue("q").attempts == dict.fromkeys(seqs, 1)
    again = reader.made(0)
    assert (again.number, again.held, again.state(driver.now)) == (1, 0, ClaimState.EXPIRED)
    assert reader.read(1) == []
    later = reader.made(1)
    assert (later.number, reader.read(2)) == (2, seqs)
    assert reader.ack(1) == AckedClaims(0, [1])
    assert driver.places() == dict.fromkeys(seqs, "leased")
    assert reader.ack(2) == AckedClaims(2, [])


def test_an_ack_that_comes_after_the_end_acks_nothing_even_before_the_messages_are_back(driver, reader):
    seqs = fill(driver, 2)
    reader.made(0, lease_ms=1000)
    driver.now += SECOND
    assert reader.ack(1) == AckedClaims(0, [1])
    settle_down(driver)
    driver.tick()
    assert driver.places() == dict.fromkeys(seqs, "ready")


def test_what_was_acked_does_not_come_back_when_its_lease_ends(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 2)
    fill(driver, 6)
    reader.made(0, lease_ms=1000)
    reader.ack(1)
    driver.now += 2 * SECOND
    driver.tick()
    assert len(driver.places()) == 4
    assert set(driver.places().values()) == {"leased"}
    settle_down(driver)
    assert driver.places() == {}
    assert driver.queue("q").counters.expired == 0


def test_extending_moves_the_end_of_all_open_claims(driver, reader):
    seqs = fill(driver, 4)
    reader.made(0, 2, lease_ms=1000)
    reader.made(1, 2, lease_ms=5000)
    driver.now += SECOND - MS
    assert reader.extend(3000) == ExtendedClaims([1, 2], [])
    driver.now += 3 * SECOND - MS
    driver.tick()
    assert set(driver.places().values()) == {"leased"}
    driver.now += MS
    driver.tick()
    assert driver.places() == dict.fromkeys(seqs, "ready")
    assert reader.extend(3000) == ExtendedClaims([], [1, 2])


@pytest.mark.parametrize("epoch", [2**64 - 1, START + 2 * 86_400 * SECOND])
def test_no_epoch_locks_a_group(driver, reader, epoch):
    fill(driver, 4)
    reader.made(0, 2, epoch=5)
    for call in (
        lambda: reader.claim(1, 2, epoch=epoch),
        lambda: reader.ack(1, epoch=epoch),
        lambda: reader.extend(epoch=epoch),
    ):
        with pytest.raises(TooFarAhead, match="the last one is 5"):
            call()
    reader.extend(epoch=driver.now)  # a time
    ahead = driver.now + EPOCH_AHEAD
    reader.extend(epoch=ahead)
    reader.extend(epoch=ahead + 1)  # there is always a next one
    assert reader.ack(1, epoch=ahead + 2).messages == 2


def test_a_lower_epoch_is_fenced_off(driver, reader):
    fill(driver, 4)
    reader.made(0, 2, epoch=5)
    for call in (
        lambda: reader.claim(1, 2, epoch=4),
        lambda: reader.ack(1, epoch=4),
        lambda: reader.extend(epoch=4),
    ):
        with pytest.raises(Fenced):
            call()
    reader.extend(epoch=6)
    with pytest.raises(Fenced):
        reader.ack(1, epoch=5)
    driver.restart()
    with pytest.raises(Fenced):
        reader.ack(1, epoch=5)
    assert reader.ack(1, epoch=6).messages == 2


def test_a_claim_that_was_acked_or_never_made_is_refused(driver, reader):
    fill(driver, 4)
    reader.made(0, 2)
    reader.made(1, 2)
    reader.ack(1)
    for call in (
        lambda: reader.claim(0),
        lambda: reader.claim(3),
        lambda: reader.ack(3),
        lambda: find_claim(driver.queue("q"), "g", 1),
        lambda: find_claim(driver.queue("q"), "g", 3),
        lambda: find_claim(driver.queue("q"), "h", 1),
    ):
        with pytest.raises(ClaimLost):
            call()
    assert reader.made(1).number == 2


def test_groups_read_apart(driver, reader):
    fill(driver, 4)
    other = Reader(driver, "h")
    assert reader.made(0, 2).number == other.made(0, 2).number == 1
    assert not set(reader.read(1)) & set(other.read(1))
    reader.ack(1)
    assert other.ack(1).messages == 2


def test_a_large_claim_is_made_in_parts_and_told_of_when_it_is_whole(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 2)
    seqs = fill(driver, 5)
    making = reader.make(0)
    assert not making.done
    with pytest.raises(NotNow):
        find_claim(driver.queue("q"), "g", 1)
    with pytest.raises(NotNow):
        reader.ack(1)
    claim = reader.made(0)
    assert [len(part.seqs) for part in claim.parts] == [2, 2, 1]
    assert reader.read(1) == seqs
    assert reader.read(1, 1, 5) == seqs[1:5]
    assert reader.read(1, 3, 4) == seqs[3:4]


def test_a_crash_while_a_claim_is_made_loses_and_repeats_nothing(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 2)
    seqs = fill(driver, 5)
    reader.make(0)
    driver.restart()
    assert reader.made(0).size == 5
    assert reader.read(1) == seqs


def test_a_restart_keeps_claims_as_they_were(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 2)
    seqs = fill(driver, 6)
    reader.made(0, 4, lease_ms=1000)
    reader.extend(60_000)
    driver.ack("q", driver.id(seqs[1]))
    driver.now += 2 * SECOND
    driver.restart()
    driver.tick()
    assert reader.read(1) == [seqs[0], *seqs[2:4]]
    assert reader.read(1, 1, 3) == [seqs[2]]
    claim = reader.made(0)
    assert (claim.size, claim.held) == (4, 3)
    assert reader.ack(1).messages == 3
    driver.restart()
    settle_down(driver)
    assert driver.places() == dict.fromkeys(seqs[4:], "ready")
    assert reader.made(1).size == 2


@pytest.mark.parametrize("end", ["ack", "drop"])
def test_a_claim_that_was_made_to_end_earlier_has_ended_after_a_restart_too(driver, reader, end):
    """Also when its own record is gone before its messages are back in the queue."""
    seqs = fill(driver, 3)
    reader.made(0, lease_ms=60_000)
    reader.extend(10)
    driver.now += 20 * MS
    if end == "ack":
        assert reader.ack(1).expired == [1]
    else:
        reader.drop()
    driver.restart()
    settle_down(driver)
    driver.tick()
    assert driver.places() == dict.fromkeys(seqs, "ready")


def test_a_claim_that_was_made_to_end_later_is_written_in_few_words(driver, reader):
    """Readers do it again and again, and a claim may be large: its messages are not named anew."""
    fill(driver, 3)
    reader.made(0, lease_ms=60_000)
    leases = driver.store.dump()[Family.LEASES]
    reader.extend(90_000)
    assert driver.store.dump()[Family.LEASES] == leases


def test_a_restart_finishes_an_ack(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 2)
    fill(driver, 6)
    reader.made(0)
    reader.ack(1)
    driver.tick()
    driver.restart()
    driver.now += 3600 * SECOND
    settle_down(driver)
    assert driver.places() == {}
    assert len(driver.store.dump()[Family.CLAIMS]) == 1


def test_a_failed_write_leaves_everything_as_it_was(driver, reader):
    fill(driver, 4)
    reader.made(0, 2)
    before, stored = driver.snapshot(), driver.store.dump()
    driver.store.failing = True
    for call in (lambda: reader.claim(1), lambda: reader.ack(1), lambda: reader.extend(5)):
        with pytest.raises(BrokerError):
            call()
    driver.store.failing = False
    assert driver.snapshot() == before
    assert driver.store.dump() == stored


def test_messages_of_a_claim_can_be_settled_one_by_one_and_leave_holes(driver, reader):
    seqs = fill(driver, 3)
    token = f"{reader.made(0).token:016x}"
    assert driver.ack("q", driver.id(seqs[0]), token=token) == []
    assert driver.nack("q", driver.id(seqs[2]), token=token) == []
    assert reader.read(1) == [seqs[1]]
    assert reader.read(1, 0, 1) == []
    assert reader.read(1, 1, 2) == [seqs[1]]
    (failure,) = driver.extend("q", driver.id(seqs[1]), token=token)
    assert isinstance(failure.error, InvalidArgument)
    assert reader.ack(1).messages == 1


def test_a_message_of_an_acked_claim_cannot_be_settled_any_more(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 1)
    seqs = fill(driver, 3)
    reader.made(0)
    reader.ack(1)
    (failure,) = driver.nack("q", driver.id(seqs[2]))
    assert isinstance(failure.error, MessageNotFound)
    settle_down(driver)
    assert driver.places() == {}


def test_a_cap_leaves_out_what_came_later(driver, reader):
    early = fill(driver, 3, priority=5)
    cap = driver.state.sequence.last
    late = fill(driver, 3, priority=0)
    assert reader.made(0, cap=cap).size == 3
    assert reader.read(1) == early
    assert reader.claim(1, cap=cap) is None
    assert reader.made(1).size == 3
    assert reader.read(2) == late


def test_limits_are_refused_with_words():
    driver = Driver(limits=LimitsConfig(max_claim_messages=2, max_claims=1, max_groups=1, max_claim_lease_ms=1000))
    driver.create("q")
    fill(driver, 4)
    reader = Reader(driver)
    for call, error in (
        (lambda: reader.claim(0, 3), LimitExceeded),
        (lambda: reader.claim(0, lease_ms=1001), InvalidArgument),
        (lambda: reader.claim(0, lease_ms=-1), InvalidArgument),
        (lambda: Reader(driver, "").claim(0), InvalidArgument),
        (lambda: Reader(driver, "x" * 256).claim(0), InvalidArgument),
        (lambda: Reader(driver, "g", "nowhere").claim(0), QueueNotFound),
    ):
        with pytest.raises(error):
            call()
    assert reader.made(0).size == 2
    with pytest.raises(LimitExceeded):
        reader.claim(1)
    with pytest.raises(LimitExceeded):
        Reader(driver, "h").claim(0)
    reader.ack(1)
    assert reader.made(1).size == 2


def test_a_group_is_dropped_once_it_holds_nothing(driver, reader):
    fill(driver, 2)
    reader.made(0, lease_ms=1000)
    with pytest.raises(NotNow):
        reader.drop()
    driver.now += SECOND
    driver.tick()
    reader.drop()
    assert driver.store.dump()[Family.CLAIMS] == {}
    assert reader.made(0).size == 2


def test_deleting_a_queue_takes_its_claims_along(driver, reader, monkeypatch):
    monkeypatch.setattr(claims, "PART_MESSAGES", 1)
    fill(driver, 3)
    reader.made(0, 2)
    reader.ack(1)
    driver.delete("q")
    settle_down(driver)
    assert driver.store.dump()[Family.CLAIMS] == {}
    driver.create("q")
    assert reader.claim(0) is None
    driver.restart()


def test_stats_and_explanations_name_the_claim(driver, reader):
    seqs = fill(driver, 3)
    reader.made(0, 2, epoch=7, lease_ms=1000)
    (group,) = stats_of(driver.queue("q"), now=driver.now).groups
    assert (group.name, group.epoch, group.floor, group.last) == ("g", 7, 0, 1)
    assert (group.open_claims, group.held, group.expires_at) == (1, 2, driver.now + SECOND)
    found = next(search(driver.queue("q"), seqs[0]))
    reason = explain(driver.queue("q"), found, driver.now).reasons[0]
    assert reason.text.startswith('claim 1 of group "g" holds it for another 1 s')
    assert reason.subject == "g"
