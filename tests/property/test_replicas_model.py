"""Several members on one log that lies in every way it may.

The machine lets every step of every member wait at a gate and opens the gates in any order. In between, answers get
lost, entries stand twice or late, local writes fail, members sleep or crash (and forget their last local writes), take
over, release, write snapshots and cut the log off. An oracle reads all that ever stood, with a rule written a second
time, so simply that it can be checked by eye.

What must hold, after every step:
- what was confirmed counts, once, and was confirmed once;
- what was refused does not count, and never will, if the engine did not deny what stands;
- whoever confirms has in its memory all that counts before;
- nothing is confirmed by an owner that has ended;
- a member's store is what the log says, up to its mark, byte for byte.
At the end, everybody can begin, with an old disk or an empty one, and gets to the same.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fila.core.errors import SteppedDown, StoreBusy, StoreFailed
from fila.replicas import snapshots
from fila.replicas.entry import Kind, read_changes, read_entry
from fila.replicas.epochs import Overtaken
from fila.replicas.loading import open_replica
from fila.replicas.log import InDoubt, LogUnavailable, Refused, Truncated
from fila.replicas.memory import Fate, MemoryEngine
from fila.replicas.owner import Owner, take_over
from fila.replicas.replica import MARK_KEY, Mark, read_mark
from fila.replicas.snapshots import CURRENT_KEY, Manifest, trim, write_snapshot
from fila.replicas.tail import Tail
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage

SHARD = 7
MEMBERS = 3
SMALL_ENTRY = 90
"""So that many ticks go in parts"""
State = list[dict[bytes, bytes]]
NUMBERS = st.integers(0, 5)
DOUBTS = [Fate.STANDS, Fate.LOST, Fate.LATE, Fate.UNANSWERED, Fate.DENIED]


def number_key(number: int) -> bytes:
    return number.to_bytes(4, "big")


class Disk:
    """What a member has stored: all versions, so that a crash may forget the last ones."""

    def __init__(self, state: State | None = None) -> None:
        self.versions: list[State] = [state or [{} for _ in Family]]

    def rolled_back(self, writes: int) -> "Disk":
        return Disk(self.versions[max(0, len(self.versions) - 1 - writes)])


class Store(MemoryStorage):
    """Opens a disk. Fails as it is told."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk
        self.failures: list[StoreFailed] = []
        batch = Batch()
        for family, values in zip(Family, disk.versions[-1], strict=True):
            batch.put_many(family, values.items())
        super().write(batch)

    def write(self, batch: Batch) -> None:
        if self.failures:
            raise self.failures.pop()
        super().write(batch)
        self.disk.versions.append(dump(self))


def dump(store: MemoryStorage) -> State:
    return [dict(store.scan(family)) for family in Family]


class Oracle:
    """Reads all that ever stood."""

    def __init__(self) -> None:
        self.read = 0
        self.epoch = self.base = self.tick = 0
        self.parts: list[bytes] = []
        self.state = MemoryStorage()
        self.at: dict[int, tuple[Mark, State]] = {-1: (Mark(), dump(self.state))}
        """Where each mark must be, and what must be stored there"""
        self.counted: dict[int, tuple[int, int]] = {}
        """Number of each batch: epoch and tick"""

    def look(self, history: list[bytes]) -> None:
        for position in range(self.read, len(history)):
            head, body = read_entry(history[position])
            if head.kind is Kind.BARRIER and head.epoch > self.epoch:
                self.epoch, self.base, self.parts = head.epoch, self.tick, []
                self.note(position)
            if head.kind is Kind.TICK and (head.epoch, head.tick, head.part) == (
                self.epoch,
                self.tick + 1,
                len(self.parts),
            ):
                self.parts.append(body)
                if len(self.parts) == head.parts:
                    self.apply(position)
        self.read = len(history)

    def apply(self, position: int) -> None:
        batch = Batch()
        batch.changes = read_changes(b"".join(self.parts))
        self.tick, self.parts = self.tick + 1, []
        self.state.write(batch)
        if batch.changes[0][1] != CURRENT_KEY:
            number = int.from_bytes(batch.changes[0][1], "big")
            assert number not in self.counted, "a batch counts twice"
            self.counted[number] = (self.epoch, self.tick)
        self.note(position)

    def note(self, position: int) -> None:
        self.at[position] = (Mark(self.epoch, self.base, self.tick, position), dump(self.state))


class RememberingEngine(MemoryEngine):
    """Knows what was cut off as well."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__(max_entry_bytes=SMALL_ENTRY, strict=strict)
        self.history: list[bytes] = []
        self.read_at_once = 3

    def stand(self, body: bytes) -> int:
        self.history.append(body)
        return super().stand(body)


class Member:
    """One member, in one of its lives."""

    def __init__(self, world: "World", name: str, disk: Disk) -> None:
        self.world = world
        self.name = name
        self.store = Store(disk)
        self.alive = True
        self.denied: set[tuple[int, int]] = set()
        """Ticks of which the engine has said that they do not stand, and they do"""
        self.log = world.engine.open(self.fate, self.gate)
        self.snaps = world.snaps.open(world.fate, self.gate)
        self.tail: Tail | None = None
        self.checked: Mark | None = None
        self.owner: Owner | None = None
        self.memory: set[int] = set()
        """What a broker would know: numbers of batches that count"""
        self.writing = False
        self.told_end = False
        self.asleep = False
        self.trying = False
        """To take over"""
        self.tasks: list[asyncio.Task[None]] = []
        self.spawn(self.begin())

    def fate(self, body: bytes) -> Fate:
        fate = self.world.fate(body)
        if fate is Fate.DENIED:
            head = read_entry(body)[0]
            self.denied.add((head.epoch, head.tick))
        return fate

    async def gate(self) -> None:
        gate = (self, self.world.loop.create_future())
        self.world.gates.append(gate)
        try:
            await gate[1]
        finally:
            if gate in self.world.gates:
                self.world.gates.remove(gate)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.world.loop.create_task(work)
        self.tasks.append(task)
        task.add_done_callback(self.finished)

    def finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.remove(task)
        if not task.cancelled() and task.exception() is not None:
            self.world.broken.append(task.exception())

    async def begin(self) -> None:
        while self.tail is None:
            try:
                replica = await open_replica(self.store, SHARD, self.log, self.snaps, self.gate)
                self.tail = Tail(self.log, replica, self.gate)
            except (Truncated, LogUnavailable):
                await self.gate()
            except StoreFailed:
                self.die(0)
                return
        await self.follow()

    async def follow(self) -> None:
        assert self.tail is not None
        try:
            await self.tail.follow()
        except (Truncated, StoreFailed):
            self.die(0)

    async def take_over(self) -> None:
        assert self.tail is not None
        try:
            owner = await take_over(self.tail, self.name, self.end)
        except Overtaken:
            self.trying = False
            self.spawn(self.follow())
        except (Truncated, StoreFailed):
            self.die(0)
        else:
            self.memory = {int.from_bytes(key, "big") for key, _ in self.store.scan(Family.QUEUES)}
            self.owner, self.trying = owner, False

    async def snapshot(self, margin: int | None) -> None:
        assert self.tail is not None
        manifest = await write_snapshot(self.snaps, self.tail.replica, self.gate)
        self.world.manifests.append(manifest)
        owning = self.world.member(0, owner=True)
        if margin is not None and owning is not None:
            await owning.accept(manifest)
            await self.trim(margin)

    async def accept(self, manifest: Manifest) -> None:
        if self.owner is not None:
            with suppress(StoreFailed):
                await self.owner.accept(manifest)

    async def trim(self, margin: int) -> None:
        with suppress(LogUnavailable):
            await trim(self.log, self.snaps, self.store, margin)

    def end(self, error: SteppedDown) -> None:
        cause = error.__cause__
        if self.alive and (self.told_end or not isinstance(cause, StoreFailed | Truncated | None)):
            self.world.broken.append(AssertionError(f"an owner ends once, and for a reason: {cause!r}"))
        self.told_end = True
        if self.alive:
            self.spawn(self.step_back())

    async def step_back(self) -> None:
        """The life of a standby again."""
        assert self.owner is not None
        await self.owner.close()
        self.owner, self.told_end = None, False
        await self.follow()

    def write(self, number: int, batch: Batch) -> None:
        self.writing = True
        owner = self.owner
        assert owner is not None
        owner.write(batch, lambda error: self.done(owner, number, error))

    def done(self, owner: Owner, number: int, error: StoreFailed | None) -> None:
        if self.alive:
            try:
                self.answered(owner, number, error)
            except AssertionError as wrong:
                self.world.broken.append(wrong)

    def answered(self, owner: Owner, number: int, error: StoreFailed | None) -> None:
        self.writing = False
        if isinstance(error, SteppedDown):
            assert owner.ended is error
        elif error is not None:
            if owner._epochs.sought not in self.denied:
                self.world.refused.add(number)
        else:
            assert (owner.ended, self.told_end) == (None, False), "confirmed by one who has ended"
            self.memory.add(number)
            self.world.confirm(self, number)

    async def release(self, successor: str) -> None:
        owner = self.owner
        assert owner is not None
        with suppress(InDoubt, LogUnavailable, Refused):
            await owner.release(successor)
        if self.owner is owner and not self.told_end:
            self.end(SteppedDown("released"))

    async def look(self) -> None:
        assert self.owner is not None
        await self.owner.look()

    def die(self, forgets: int) -> None:
        """Everything that runs stops where it is."""
        self.alive = False
        for task in self.tasks:
            task.cancel()
        if self.owner is not None and self.owner._writing is not None:
            self.owner._writing.cancel()
        if self.tail is not None and self.tail._pending is not None:
            self.tail._pending.cancel()
        self.world.disks[self.name] = self.store.disk.rolled_back(forgets)
        del self.world.running[self.name]


class World(RuleBasedStateMachine):
    """The log, its members, and everything that goes wrong."""

    strict = False

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.broken.append(RuntimeError(str(context))))
        self.gates: list[tuple[Member, asyncio.Future[None]]] = []
        self.broken: list[BaseException | None] = []
        self.engine = RememberingEngine(strict=self.strict)
        self.oracle = Oracle()
        self.fates: list[Fate] = []
        self.disks = {f"m{number}": Disk() for number in range(MEMBERS)}
        self.running: dict[str, Member] = {}
        self.snaps = MemoryEngine(max_entry_bytes=SMALL_ENTRY + 30, strict=self.strict)
        self.manifests: list[Manifest] = []
        self.pace = 60
        self.numbers = 0
        self.confirmed: dict[tuple[int, int], int] = {}
        self.refused: set[int] = set()
        self.in_loop(self.start_all)
        self.drain()
        self.takes_over(0)
        self.drain()

    def fate(self, body: bytes) -> Fate:
        return self.fates.pop(0) if self.fates else Fate.STANDS

    def in_loop(self, work: Any) -> None:
        """Run something in the loop, and then all that is ready."""
        self.loop.call_soon(work)
        while self.loop._ready:  # type: ignore[attr-defined]
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def start_all(self) -> None:
        for name in self.disks:
            self.start(name)

    def start(self, name: str) -> None:
        if name not in self.running:
            self.running[name] = Member(self, name, self.disks[name])

    def confirm(self, member: Member, number: int) -> None:
        self.oracle.look(self.engine.history)
        assert member.tail is not None
        mark = member.tail.replica.mark
        assert (mark.epoch, mark.tick) not in self.confirmed, "two confirmations for one tick"
        self.confirmed[mark.epoch, mark.tick] = number
        assert number in self.oracle.counted, "confirmed, and does not count"
        assert self.oracle.counted[number][1] == mark.tick, "confirmed as another tick"
        known = {other for other, (_, tick) in self.oracle.counted.items() if tick <= mark.tick}
        assert member.memory == known, "an owner does not know what counts"

    # Rules

    def member(self, number: int, *, owner: bool | None = None) -> Member | None:
        """One of those that have begun. `owner`: of those that are one, or are none."""
        found = [
            member
            for member in self.running.values()
            if member.tail is not None and owner in {None, member.owner is not None}
        ]
        return found[number % len(found)] if found else None

    @rule(opened=st.lists(st.integers(0, 5), min_size=1, max_size=8))
    def steps(self, opened: list[int]) -> None:
        """Open some gates."""
        for index in opened:
            self.open_gate([gate for gate in self.gates if not gate[0].asleep], index)

    def open_gate(self, gates: list[tuple[Member, asyncio.Future[None]]], index: int) -> None:
        if gates:
            gate = gates[index % len(gates)]
            self.gates.remove(gate)
            self.in_loop(lambda: None if gate[1].done() else gate[1].set_result(None))
            self.what_holds()

    @rule(pace=st.sampled_from([0, 1, 3, 10, 60]))
    def is_paced(self, pace: int) -> None:
        """How many gates open by themselves after each rule. With many, each rule comes to its end before the next."""
        self.pace = pace

    @invariant()
    def time_passes(self) -> None:
        for _ in range(self.pace):
            self.steps([0])

    @rule()
    def all_start(self) -> None:
        self.in_loop(self.start_all)

    @rule(number=NUMBERS)
    def takes_over(self, number: int) -> None:
        member = self.member(number, owner=False)
        if member is not None and not member.trying:
            member.trying = True
            for task in member.tasks:
                task.cancel()
            self.in_loop(lambda: member.spawn(member.take_over()))

    @rule(
        number=NUMBERS,
        batches=st.lists(st.lists(st.integers(0, 40), max_size=6), min_size=1, max_size=4),
        old=st.integers(0, 5),
    )
    def writes(self, number: int, batches: list[list[int]], old: int) -> None:
        """Sizes of values. Who owns nothing tries to, first."""
        for sizes in batches:
            member = self.member(number, owner=True)
            if member is None:
                self.takes_over(number)
            elif not member.writing:
                self.write(member, sizes, old)
            self.time_passes()

    def write(self, member: Member, sizes: list[int], old: int) -> None:
        batch = Batch()
        self.numbers += 1
        batch.put(Family.QUEUES, number_key(self.numbers), b"")
        batch.delete_range(Family.MESSAGES, number_key(old), number_key(old + 2))
        for offset, size in enumerate(sizes):
            batch.put(Family.MESSAGES, number_key(offset), bytes([self.numbers % 256]) * size)
        batch.delete(Family.LEASES, number_key(old))
        batch.put(Family.LEASES, number_key(self.numbers % 5), number_key(self.numbers))
        self.in_loop(lambda number=self.numbers: member.write(number, batch))

    @rule(
        fate=st.sampled_from(DOUBTS),
        opened=st.lists(st.integers(0, 5), min_size=10, max_size=40),
    )
    def is_contested(self, fate: Fate, opened: list[int]) -> None:
        """All others try to take over at once, while the owner has a batch in hand that may be in doubt."""
        owner = self.member(0, owner=True)
        if owner is not None and not owner.writing:
            self.fates.insert(0, fate)
            self.write(owner, [1], 0)
        for number in range(MEMBERS):
            self.takes_over(number)
        self.steps(opened)

    @rule(fates=st.lists(st.sampled_from(DOUBTS), min_size=1, max_size=3), steps=st.integers(0, 20))
    def sleeps_through_a_takeover(self, fates: list[Fate], steps: int) -> None:
        """The owner, with a batch in hand, at any of its steps."""
        owner = self.member(0, owner=True)
        if owner is None or owner.writing:
            return
        self.fates[:0] = fates
        self.write(owner, [1], 0)
        for _ in range(steps):
            self.open_gate([gate for gate in self.gates if gate[0] is owner], 0)
        owner.asleep = True
        self.takes_over(0)
        self.steps([0] * 60)
        for successor in [member for member in self.running.values() if member.owner and member is not owner]:
            if not successor.writing:
                self.write(successor, [1], 0)
        self.steps([0] * 60)
        owner.asleep = False

    @rule(number=NUMBERS)
    def falls_asleep_or_wakes(self, number: int) -> None:
        member = self.member(number)
        if member is not None:
            member.asleep = not member.asleep

    @rule(fates=st.lists(st.sampled_from(Fate), min_size=1, max_size=4))
    def goes_wrong(self, fates: list[Fate]) -> None:
        self.fates += fates

    @precondition(lambda self: self.engine.late)
    @rule(index=st.integers(0, 9))
    def lands(self, index: int) -> None:
        self.in_loop(lambda: self.engine.land(index % len(self.engine.late)))

    @rule(number=NUMBERS, forgets=st.integers(0, 3), again=st.integers(0, 3))
    def crashes(self, number: int, forgets: int, again: int) -> None:
        """Mostly, it starts again at once."""
        if self.running:
            member = list(self.running.values())[number % len(self.running)]
            self.in_loop(lambda: member.die(forgets))
            if again:
                self.in_loop(lambda: self.start(member.name))

    @rule(number=NUMBERS, failures=st.lists(st.sampled_from([StoreBusy, StoreFailed]), min_size=1, max_size=3))
    def local_writes_fail(self, number: int, failures: list[type[StoreFailed]]) -> None:
        member = self.member(number)
        if member is not None:
            member.store.failures += [failure("told to") for failure in failures]

    @rule(number=NUMBERS, successor=NUMBERS)
    def releases(self, number: int, successor: int) -> None:
        member = self.member(number, owner=True)
        if member is not None:
            self.in_loop(lambda: member.spawn(member.release(f"m{successor}")))

    @rule(number=NUMBERS)
    def looks(self, number: int) -> None:
        member = self.member(number, owner=True)
        if member is not None:
            self.in_loop(lambda: member.spawn(member.look()))

    @rule(number=NUMBERS, counts=st.booleans(), margin=st.integers(0, 2))
    def writes_a_snapshot(self, number: int, counts: bool, margin: int) -> None:
        """Mostly it is accepted then, and what it makes superfluous is cut off."""
        member = self.member(number)
        if member is not None and member.tail is not None and member.tail.replica.mark.position >= 0:
            self.in_loop(lambda: member.spawn(member.snapshot(margin if counts else None)))

    @precondition(lambda self: self.manifests)
    @rule(number=NUMBERS, index=st.integers(0, 20))
    def accepts_a_snapshot(self, number: int, index: int) -> None:
        """An old one, perhaps."""
        member, manifest = self.member(number, owner=True), self.manifests[index % len(self.manifests)]
        if member is not None:
            self.in_loop(lambda: member.spawn(member.accept(manifest)))

    @rule(number=NUMBERS, margin=st.integers(0, 2))
    def trims(self, number: int, margin: int) -> None:
        member = self.member(number)
        if member is not None:
            self.in_loop(lambda: member.spawn(member.trim(margin)))

    @rule(steps=st.integers(0, 10))
    def is_away(self, steps: int) -> None:
        """The engine, for a while."""
        for engine in (self.engine, self.snaps):
            self.in_loop(engine.fail)
        for _ in range(steps):
            self.steps([0])
        for engine in (self.engine, self.snaps):
            self.in_loop(engine.heal)

    @precondition(lambda self: self.snaps.late)
    @rule(index=st.integers(0, 9))
    def lands_in_the_snapshots(self, index: int) -> None:
        self.in_loop(lambda: self.snaps.land(index % len(self.snaps.late)))

    # Invariants

    @invariant()
    def what_holds(self) -> None:
        if self.broken:
            raise AssertionError(f"something broke: {self.broken}") from self.broken[0]
        self.oracle.look(self.engine.history)
        assert not self.refused & self.oracle.counted.keys(), "refused, and counts"
        assert set(self.confirmed.values()) <= self.oracle.counted.keys(), "confirmed, and does not count"
        for member in self.running.values():
            if member.tail is None or member.tail.replica.mark == member.checked:
                continue
            member.checked = member.tail.replica.mark
            mark, state = self.oracle.at[member.checked.position]
            assert member.checked == mark == read_mark(member.store)
            stored = dump(member.store)
            stored[Family.DEFAULT].pop(MARK_KEY, None)
            assert stored == state, "the store is not what the log says"

    # The end

    def teardown(self) -> None:
        try:
            self.all_is_well()
        finally:
            self.in_loop(lambda: [member.die(0) for member in list(self.running.values())])
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def all_is_well(self) -> None:
        """When nothing goes wrong any more, everybody gets to the same, and whoever takes over can write."""
        self.fates.clear()
        for engine in (self.engine, self.snaps):
            engine.heal()
            while engine.late:
                self.in_loop(engine.land)
        self.in_loop(lambda: [member.die(0) for member in list(self.running.values())])
        while self.engine.late:  # of those that died just now
            self.in_loop(self.engine.land)
        self.disks["m1"] = Disk()
        self.in_loop(self.start_all)
        self.drain()
        self.takes_over(0)
        self.drain()
        owner = self.member(0, owner=True)
        assert owner is not None
        self.write(owner, [40, 40, 40, 40], 0)
        before = len(self.confirmed)
        self.drain()
        assert len(self.confirmed) == before + 1
        assert len(self.running) == MEMBERS
        stores = [dump(member.store) for member in self.running.values()]
        assert stores == [stores[0]] * MEMBERS
        assert {member.tail and member.tail.replica.position for member in self.running.values()} == {
            self.engine.end - 1
        }

    def drain(self) -> None:
        for _ in range(2000):
            if not self.gates:
                return
            self.steps([0])
        raise AssertionError("it never comes to rest")


class StrictWorld(World):
    """An engine that refuses what would stand elsewhere."""

    strict = True


@pytest.mark.timeout(900)  # a few seconds on a quiet machine, and as long as it likes on a busy one
@pytest.mark.parametrize("world", [World, StrictWorld])
def test_replicas(world, monkeypatch):
    monkeypatch.setattr(snapshots, "CHUNK_BYTES", 60)  # so that snapshots have several
    run_state_machine_as_test(world, settings=settings(max_examples=150, stateful_step_count=60, deadline=None))
