"""Claims and transactions against a model of them that is too simple to be wrong.

The machine claims, acks, extends, stages, commits, lets a consumer take part, lets time pass, makes writes fail and
crashes the broker, in any order. The model says what must be answered, where every message must be, and what a claim
must read as; which messages a claim is made of is for the scheduler to say.
"""

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fila.broker import claims
from fila.broker.claims import find_claim
from fila.broker.commands import (
    AckClaims,
    AckGroup,
    CommitTransaction,
    ExtendClaims,
    MakeClaim,
    Nack,
    Settle,
    StageEnqueue,
)
from fila.config import LimitsConfig
from fila.core.claims import ClaimState
from fila.core.errors import ClaimLost, Fenced, LimitExceeded, NotStaged, StoreFailed
from fila.storage import codec, keys
from fila.storage.base import Family
from tests.helpers.broker import MS, Driver, Recipient, incoming, messages_of

LIMITS = LimitsConfig(max_claims=4, max_claim_messages=7)
GROUPS = ("g", "h")
TTL_MS = 20_000


@dataclass
class Claim:
    """One claim as the model knows it."""

    messages: list[int]
    """By position"""
    expires_at: int
    held: set[int] = field(default_factory=set)


@dataclass
class Group:
    epoch: int = 0
    floor: int = 0
    last: int = 0
    claims: dict[int, Claim] = field(default_factory=dict)


@dataclass
class Producer:
    last: int = -1
    staged: dict[int, dict[str, dict[int, list[bytes]]]] = field(default_factory=dict)
    """Transaction -> part -> sequence -> bodies"""
    ends: dict[int, int] = field(default_factory=dict)

    def bodies(self) -> set[bytes]:
        """Of all that is staged."""
        parts = [part for transaction in self.staged.values() for part in transaction.values()]
        return {body for part in parts for bodies in part.values() for body in bodies}


class ClaimMachine(RuleBasedStateMachine):
    """Drives a broker and the model side by side. Every rule ends with a broker that has nothing left to do."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = patch.object(claims, "PART_MESSAGES", 2)
        self.parts.start()
        self.driver = Driver(limits=LIMITS)
        self.driver.create("q", fairness_header="tenant", visibility_timeout_ms=5_000)
        self.groups = {name: Group() for name in GROUPS}
        self.producers = {name: Producer() for name in ("p", "r")}
        self.expected: dict[bytes, int] = {}
        """Bodies that must exist, each once, with the attempts that it has"""
        self.bodies = 0
        self.consumer: Recipient | None = None

    def teardown(self) -> None:
        self.parts.stop()

    # What clients do.

    @initialize(keys=st.lists(st.sampled_from("xyz"), min_size=6, max_size=12))
    def at_work(self, keys: str) -> None:
        self.enqueue(keys, 0)

    @rule(keys=st.lists(st.sampled_from("xyz"), min_size=1, max_size=5), delay_ms=st.sampled_from([0, 0, 0, 3_000]))
    def enqueue(self, keys: str, delay_ms: int) -> None:
        for key in keys:
            body = self.next_body()
            self.driver.send("q", body, headers={"tenant": key}, delay_ms=delay_ms)
            self.expected[body] = 0
        self.driver.settle_down()

    @rule(
        name=st.sampled_from(GROUPS),
        back=st.sampled_from([0, 0, 0, 0, 1, 2, -1]),
        most=st.sampled_from([1, 3, 7, 7]),
        lease_ms=st.sampled_from([1_000, 10_000, 60_000]),
        epoch=st.sampled_from([0, 0, 0, 1]),
        cap=st.booleans(),
        stop_after=st.sampled_from([None, None, None, 1]),
    )
    def claim(
        self, name: str, back: int, most: int, lease_ms: int, epoch: int, cap: bool, stop_after: int | None
    ) -> None:
        group, driver = self.groups[name], self.driver
        after = group.last - back
        if after < 0:
            return
        newest = sorted(self.ready())[len(self.ready()) // 2] if cap and self.ready() else 0
        epoch += group.epoch
        ready = self.ready()
        steps = 0
        while True:
            try:
                making = self.ask(lambda reply: MakeClaim("q", name, after, most, reply, lease_ms, epoch, newest))
            except ClaimLost:
                assert after < group.floor or after > group.last
                return
            except LimitExceeded:
                assert after == group.last
                assert group.last - group.floor >= LIMITS.max_claims
                return
            group.epoch = epoch
            steps += 1
            if making.done or steps == stop_after:
                break
        if not making.done:  # whoever asked has gone; the next one finishes it
            assert making.claim is not None
            making = self.finish_claim(name, after, epoch)
            newest = 0
            most = LIMITS.max_claim_messages
        if making.claim is None:
            assert after == group.last
            assert not [seq for seq in ready if not newest or seq <= newest]
            return
        made = making.claim
        seqs = [seq for part in made.parts for seq in part.seqs]
        assert made.number == after + 1
        if after < group.last:
            known = group.claims[made.number]
            assert seqs == known.messages
            return
        assert set(seqs) <= ready.keys()
        assert len(set(seqs)) == len(seqs) <= most
        allowed = [seq for seq in ready if not newest or seq <= newest]
        if stop_after is None:
            assert len(seqs) == min(most, len(allowed))
            assert set(seqs) <= set(allowed)
        for key in "xyz":  # inside one key, the oldest first
            own = [seq for seq in seqs if ready[seq] == key]
            assert own == sorted(own)
        group.last = made.number
        group.claims[made.number] = Claim(seqs, driver.now + lease_ms * MS, set(seqs))

    def finish_claim(self, name: str, after: int, epoch: int) -> Any:
        while not (making := self.ask(lambda reply: MakeClaim("q", name, after, 0, reply, 0, epoch))).done:
            pass
        return making

    @rule(
        name=st.sampled_from(GROUPS), step=st.sampled_from([0, 1, 1, 2, 9]), older=st.booleans(), settle=st.booleans()
    )
    def ack(self, name: str, step: int, older: bool, settle: bool) -> None:
        group = self.groups[name]
        upto = group.floor + step
        epoch = group.epoch - 1 if older and group.epoch else group.epoch
        try:
            acked = self.ask(lambda reply: AckClaims("q", name, upto, reply, epoch))
        except Fenced:
            assert epoch < group.epoch
            return
        except ClaimLost:
            assert upto > group.last
            return
        assert epoch == group.epoch
        now = self.driver.now
        gone = {n: group.claims.pop(n) for n in list(group.claims) if n <= upto}
        expired = [n for n, claim in gone.items() if claim.expires_at <= now]
        done = {seq for claim in gone.values() if claim.expires_at > now for seq in claim.held}
        assert acked.messages == len(done)
        assert acked.expired == expired
        for seq in done:
            del self.expected[self.body_of(seq)]
        group.floor = max(group.floor, upto)
        if settle:
            self.driver.settle_down()

    @rule(name=st.sampled_from(GROUPS), lease_ms=st.sampled_from([1, 8_000]), older=st.booleans())
    def extend(self, name: str, lease_ms: int, older: bool) -> None:
        group, now = self.groups[name], self.driver.now
        epoch = group.epoch - 1 if older and group.epoch else group.epoch
        try:
            extended = self.ask(lambda reply: ExtendClaims("q", name, lease_ms, reply, epoch))
        except Fenced:
            assert epoch < group.epoch
            return
        assert extended.extended == [n for n, claim in group.claims.items() if claim.expires_at > now]
        assert extended.expired == [n for n, claim in group.claims.items() if claim.expires_at <= now]
        for number in extended.extended:
            group.claims[number].expires_at = now + lease_ms * MS

    @rule(pick=st.integers(0, 50), fine=st.booleans())
    def settle_one(self, pick: int, fine: bool) -> None:
        """A message of a claim is settled by itself: the claim has a hole from then on."""
        held = [
            (claim, seq)
            for group in self.groups.values()
            for claim in group.claims.values()
            for seq in sorted(claim.held)
        ]
        if not held:
            return
        claim, seq = held[pick % len(held)]
        body, message_id = self.body_of(seq), self.driver.id(seq)
        settle = {"acks": [AckGroup("q", [message_id])]} if fine else {"nacks": [Nack("q", message_id)]}
        failures = self.ask(lambda reply: Settle(reply, **settle))
        if failures:  # the tick began with the end of the claim
            assert claim.expires_at <= self.driver.now
        else:
            claim.held.discard(seq)
            if fine:
                del self.expected[body]

    @rule(
        name=st.sampled_from(["p", "r"]),
        step=st.sampled_from([0, 1, 1, 2]),
        part=st.sampled_from("ab"),
        sequence=st.sampled_from([1, 1, 2]),
        count=st.integers(1, 3),
    )
    def stage(self, name: str, step: int, part: str, sequence: int, count: int) -> None:
        producer = self.producers[name]
        number = max(0, producer.last + step)
        bodies = [self.next_body() for _ in range(count)]
        messages = [incoming("q", body, headers={"tenant": "x"}) for body in bodies]
        before = self.ask(lambda reply: StageEnqueue(name, number, part, sequence, messages, reply, TTL_MS))
        assert before == (number <= producer.last)
        if not before:
            producer.staged.setdefault(number, {}).setdefault(part, {})[sequence] = bodies
            producer.ends[number] = self.driver.now + TTL_MS * MS

    @rule(
        name=st.sampled_from(["p", "r"]),
        step=st.sampled_from([0, 1, 1, 1, 2]),
        names=st.sampled_from(["a", "b", "ab", ""]),
    )
    def commit(self, name: str, step: int, names: str) -> None:
        producer = self.producers[name]
        number = max(0, producer.last + step)
        staged = producer.staged.get(number, {})
        counts = [(part, sum(map(len, staged.get(part, {}).values()))) for part in names]
        whole = all(
            staged.get(part) and sorted(staged[part]) == list(range(1, len(staged[part]) + 1)) for part in names
        )
        try:
            committing = self.ask(lambda reply: CommitTransaction(name, number, counts, reply))
        except NotStaged:
            assert number > producer.last
            assert not whole
            return
        assert committing.before == (number <= producer.last)
        if committing.before or not committing.decided:
            return
        assert whole
        for part in names:
            for _, bodies in sorted(staged[part].items()):
                self.expected.update(dict.fromkeys(bodies, 0))
        producer.last = number
        for passed in [one for one in producer.staged if one <= number]:
            del producer.staged[passed], producer.ends[passed]

    @rule()
    def consume(self) -> None:
        """A consumer takes part; what it gets it acks or gives back when it leaves."""
        if self.consumer is None:
            self.consumer = self.driver.join("q", max_in_flight=2)
            self.driver.settle_down()
        else:
            self.driver.leave(self.consumer)
            self.consumer = None
            self.driver.settle_down()

    # The usual, more often than the rest.

    @rule(
        name=st.sampled_from(GROUPS),
        keys=st.lists(st.sampled_from("xyz"), min_size=3, max_size=6),
        late_ms=st.sampled_from([None, 0, 10_000]),
        older=st.booleans(),
        crash=st.booleans(),
    )
    def claim_next(self, name: str, keys: str, late_ms: int | None, older: bool, crash: bool) -> None:
        """Claim, and ack all that there is, in time or not; then time passes while it is on its way out."""
        self.enqueue(keys, 0)
        self.claim(name, 0, 7, 10_000, 1, False, None)
        if late_ms is None:
            return
        self.be_late(late_ms)
        self.note_expiry()
        group = self.groups[name]
        self.ack(name, group.last - group.floor, older, False)
        if crash:
            self.crash(False)
        self.be_late(10_000)
        self.tick()

    @rule(name=st.sampled_from(["p", "r"]), crash=st.booleans())
    def commit_next(self, name: str, crash: bool) -> None:
        self.stage(name, 1, "a", 1, 2)
        self.stage(name, 1, "a", 2, 1)
        self.stage(name, 1, "b", 1, 1)
        self.commit(name, 1, "a")
        if crash:
            self.tick()
            self.crash(False)

    # What happens to the broker.

    @rule(ms=st.sampled_from([1, 999, 1_000, 5_000, 10_000, 30_000]))
    def wait(self, ms: int) -> None:
        self.driver.advance(ms)

    @rule(ms=st.sampled_from([1_000, 10_000, 60_000]))
    def be_late(self, ms: int) -> None:
        """Time passes and the broker has not noticed yet."""
        self.driver.now += ms * MS

    @rule()
    def tick(self) -> None:
        self.driver.tick()

    @rule(settle=st.booleans())
    def crash(self, settle: bool) -> None:
        self.consumer = None
        self.driver.restart()
        if settle:
            self.driver.settle_down()

    @rule()
    def fail_writes(self) -> None:
        """A tick whose write fails changes nothing, whatever it was to do."""
        driver = self.driver
        before, stored = driver.snapshot(), driver.store.dump()
        group = self.groups["g"]
        driver.store.failing = True
        for make in (
            lambda reply: MakeClaim("q", "g", group.last, 3, reply, 0, group.epoch),
            lambda reply: AckClaims("q", "g", group.last, reply, group.epoch),
            lambda reply: ExtendClaims("q", "g", 9_000, reply, group.epoch),
            lambda reply: StageEnqueue("p", 1 << 40, "a", 1, [incoming("q", b"never")], reply),
            lambda reply: CommitTransaction("p", 1 << 40, [], reply),
        ):
            refused, answers = driver.store.refused, driver.submit(make)
            driver.tick()
            assert driver.store.refused == refused or isinstance(answers[0], StoreFailed)
        driver.store.failing = False
        assert driver.store.dump() == stored
        assert driver.snapshot() == before
        driver.advance(1_000)

    # What must hold.

    @invariant()
    def note_expiry(self) -> None:
        """What expired holds nothing; what was not committed in time goes some time after."""
        for group in self.groups.values():
            for claim in group.claims.values():
                if claim.expires_at <= self.driver.now:
                    claim.held.clear()
        known = self.driver.state.transactions.producers
        for name, producer in self.producers.items():
            for number, ends in list(producer.ends.items()):
                there = name in known and number in known[name].open
                if ends > self.driver.now:
                    assert there
                elif not there:
                    del producer.staged[number], producer.ends[number]
        self.count_attempts()

    @invariant()
    def every_message_is_in_one_place_and_there_once(self) -> None:
        stored: dict[bytes, int] = {}
        for key, record in self.driver.store.scan(Family.MESSAGES):
            seq = keys.read_message(key)[1]
            assert record[11:] not in stored
            stored[record[11:]] = seq
        places = messages_of(self.driver.queue("q"))  # fails when a message is in two
        hidden = self.hidden()
        assert set(stored.values()) == places.keys() | hidden
        assert not places.keys() & hidden
        leaving = self.leaving()
        visible = {body for body, seq in stored.items() if seq not in leaving and seq not in hidden}
        waiting = self.unpublished()
        assert visible | waiting == self.expected.keys()
        assert not visible & waiting

    @invariant()
    def a_claim_reads_as_what_it_holds_of_what_it_was_made_of(self) -> None:
        queue, now = self.driver.queue("q"), self.driver.now
        for name, group in self.groups.items():
            for number, known in group.claims.items():
                claim = find_claim(queue, name, number)
                if known.expires_at <= now:
                    assert claim.state(now) is ClaimState.EXPIRED
                    continue
                assert claim.state(now) is ClaimState.OPEN
                assert [s for _, taken in claim.slice(0, 99) for _, s, _ in taken] == [
                    s for s in known.messages if s in known.held
                ]
                middle = len(known.messages) // 2
                halves = [*claim.slice(0, middle), *claim.slice(middle, 99)]
                assert [s for _, taken in halves for _, s, _ in taken] == [s for s in known.messages if s in known.held]

    @invariant()
    def what_is_known_of_staged_messages_is_what_is_stored(self) -> None:
        calls = self.driver.store.scan(Family.STAGED, keys.STAGED_CALL, keys.after(keys.STAGED_CALL))
        records = [codec.read_staged(value) for _, value in calls]
        known = self.driver.state.transactions
        assert known.size == sum(record.size for record in records)
        assert known.hidden() == sorted((record.first, record.first + record.messages) for record in records)
        staged = {body for producer in self.producers.values() for body in producer.bodies()}
        assert {self.body_of(seq) for seq in self.hidden()} == staged | self.unpublished()

    # Helpers

    def ask(self, command: Any) -> Any:
        return self.driver.ask(command)

    def next_body(self) -> bytes:
        self.bodies += 1
        return b"%d" % self.bodies

    def body_of(self, seq: int) -> bytes:
        for key, record in self.driver.store.scan(Family.MESSAGES):
            if keys.read_message(key)[1] == seq:
                return record[11:]
        raise AssertionError(f"{seq} is gone")

    def ready(self) -> dict[int, str]:
        """Messages that may be claimed, with their fairness keys."""
        return {seq: place[1] for seq, place in messages_of(self.driver.queue("q")).items() if place[0] == "ready"}

    def leaving(self) -> set[int]:
        """Messages of claims that are acked and not removed yet."""
        grants = self.driver.queue("q").leases.grants()
        return {seq for grant in grants if grant.claim is not None and grant.claim.acked for seq in grant.members}

    def hidden(self) -> set[int]:
        """Messages that nobody may see yet."""
        return {seq for start, end in self.driver.state.transactions.hidden() for seq in range(start, end)}

    def unpublished(self) -> set[bytes]:
        """Messages that are committed and not enqueued yet."""
        publishing = [batch for one in self.driver.state.transactions.producers.values() for _, batch in one.publishing]
        return {self.body_of(seq) for batch in publishing for seq in range(batch.first, batch.end)}

    def count_attempts(self) -> None:
        attempts = self.driver.queue("q").attempts
        for key, record in self.driver.store.scan(Family.MESSAGES):
            seq = keys.read_message(key)[1]
            if record[11:] in self.expected:
                assert attempts.get(seq, 0) >= self.expected[record[11:]], "attempts only grow"
                self.expected[record[11:]] = attempts.get(seq, 0)


ClaimMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestClaims = ClaimMachine.TestCase
