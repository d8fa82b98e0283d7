"""The replay that goes its own way: the broker's ticks on a clock of its own, with consumers that are modelled.

What is taken from the journal: what arrives and when, how long each delivery of a message was held and how that ended,
how many consumers a queue had and how much they might hold, and what operators did. Everything else is decided anew.

The model of a consumer:
- it has room for as many messages as the consumers had, and takes what it is sent at once;
- it holds the n-th delivery of a message for as long as the n-th one was held, and ends it in the same way, with the
  same delay. A delivery that was held to the end of the journal is held to the end;
- ticks and messages take no time.
"""

from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from itertools import count, groupby

from fila.broker.delivery import plan_deliveries
from fila.broker.promotion import plan_promotion
from fila.broker.queue import QueueState
from fila.broker.tick import Tick
from fila.config import SchedulerConfig
from fila.core.consumers import Consumer
from fila.core.errors import BrokerError
from fila.core.leases import Grant
from fila.pipelines.whatif.changes import Changes
from fila.pipelines.whatif.entries import CARRIED, LEASED, THROTTLE, Entry, Hold, whole
from fila.pipelines.whatif.tally import Row, Tally
from fila.pipelines.whatif.world import FAILED, World

_BUDGET = SchedulerConfig().max_tick_messages
Delivered = Callable[[str, int, int], None]


class Simulation:
    """One part of a journal, under some changes."""

    def __init__(self, changes: Changes, tally: Tally, on_delivery: Delivered | None = None) -> None:
        """`on_delivery` is told queue, message and time of each delivery."""
        self._changes = changes
        self._tally = tally
        self._on_delivery = on_delivery
        self._world = World()
        self._numbers = count(1)
        self._serial = count()
        self._now = -1
        self._holds: dict[int, tuple[Hold, ...]] = {}
        """What becomes of the next deliveries of messages"""
        self._ends: list[tuple[int, int, str, int, Hold]] = []
        """When leases end: time, queue, message, and how"""
        self._taken_over: dict[int, Consumer] = {}
        """Messages of consumers that went, and whose room they take up until they end"""
        self._freed: list[Consumer] = []
        """Those that have room again when the tick is over"""

    @property
    def held(self) -> int:
        """Messages that exist."""
        return len(self._holds)

    def take(self, at: int, entries: list[Entry]) -> Iterator[Row]:
        """Go on to a recorded tick, and let in what came there. Raises BadInput."""
        if self._now < 0:
            self._begin(at)
        yield from self._run(at - 1)
        self._now = at
        yield from self._tally.advance(at)
        for entry in sorted(entries, key=lambda each: each.kind == CARRIED):
            self._prepare(at, entry)
        tick = self._tick(at)
        for entry in entries:
            if entry.kind == "enqueued":
                self._world.arrive(tick, entry, self._changes.weight(entry.queue, entry.key, entry.weight))
                self._holds[entry.message] = entry.holds
        moving = [each for each in entries if each.kind in {"dropped", "redriven"} or each.cause == "dropped"]
        for (kind, _, _), run in groupby(moving, key=lambda each: (each.kind, each.queue, each.target)):
            gone = self._world.take_away(tick, list(run))
            for seq in gone if kind == "dropped" else ():
                self._holds.pop(seq, None)
        self._finish(tick)
        self._settle_down(at)

    def finish(self, at: int) -> Iterator[Row]:
        """The journal ends."""
        yield from self._run(at)
        yield from self._tally.finish(at)

    def _begin(self, at: int) -> None:
        self._now = at
        for key, value in self._changes.throttles.items():
            if value is not None:
                self._world.state.apply_setting(THROTTLE + key, value, at)

    def _run(self, until: int) -> Iterator[Row]:
        """Everything that happens up to a point in time."""
        while (at := self._next()) is not None and at <= until:
            self._now = max(self._now, at)
            yield from self._tally.advance(self._now)
            self._finish(self._tick(self._now))
            self._settle_down(self._now)
        self._now = until
        yield from self._tally.advance(until)

    def _next(self) -> int | None:
        state = self._world.state
        times = [state.wakeups.due_at, state.throttles.next_wakeup(), self._ends[0][0] if self._ends else None]
        return min((at for at in times if at is not None), default=None)

    # A tick

    def _tick(self, now: int) -> Tick:
        """What is due."""
        world = self._world
        tick, wakeups = world.tick(now), world.state.wakeups
        if now >= wakeups.due_at:
            for queue in world.state.queues.values():
                plan_promotion(tick, queue, _BUDGET)
        ended: list[tuple[str, str, int, Hold]] = []
        while self._ends and self._ends[0][0] <= now:
            _, _, name, seq, hold = heappop(self._ends)
            ended.append((hold.kind, name, seq, hold))
        ended.sort(key=lambda each: each[:2])
        for (kind, name), run in groupby(ended, key=lambda each: each[:2]):
            self._end(tick, kind, name, [(seq, hold) for _, _, seq, hold in run])
        return tick

    def _end(self, tick: Tick, kind: str, name: str, messages: list[tuple[int, Hold]]) -> None:
        queue = self._world.state.queues.get(name)
        if queue is None:  # it was deleted meanwhile
            return
        target = queue.dead_letters
        if kind == "dead" and target is None:
            return
        there = target.name if target is not None else ""
        here = [(seq, hold, there) for seq, hold in messages if queue.leases.find(seq) is not None]
        self._world.end_leases(tick, kind, queue, here)
        for seq, _, _ in here:
            if seq in self._taken_over:
                self._freed.append(self._taken_over.pop(seq))
            if kind == "acked":
                self._holds.pop(seq, None)

    def _finish(self, tick: Tick) -> None:
        """Deliver, and have it all happen."""
        state = self._world.state
        plan_deliveries(tick, _BUDGET)
        self._tally.observe(tick)
        tick.commit()
        for consumer in self._freed:
            consumer.in_flight -= 1
        self._freed.clear()
        state.wakeups.overfull.clear()
        state.wakeups.want_throttled(state.queues, state.throttles, tick.now)
        if tick.now >= state.wakeups.due_at:
            state.wakeups.look_up_due(state.queues.values())

    def _settle_down(self, now: int) -> None:
        """Tick until nothing more can be delivered at this time."""
        wakeups = self._world.state.wakeups
        while wakeups.wanted or now >= wakeups.due_at:
            self._finish(self._tick(now))

    # What the journal says besides

    def _prepare(self, at: int, entry: Entry) -> None:
        world, changes = self._world, self._changes
        if entry.kind == "started":
            self._world = world.restart()
        elif entry.kind == CARRIED:
            self._carry(entry)
        elif entry.kind == "consumers":
            self._set_consumers(world.queue(entry), entry)
        elif entry.kind in {"counted", "created", "updated", "deleted", "configured"}:
            tick = world.tick(at)
            if entry.kind == "deleted":
                for seq in world.delete(tick, entry):
                    self._holds.pop(seq, None)
            elif entry.kind != "configured":
                world.define(tick, entry, changes.record)
            elif str(entry.note.get("key", "")).removeprefix(THROTTLE) not in changes.throttles:
                world.configure(tick, entry)
            self._tally.observe(tick)
            tick.commit()

    def _carry(self, entry: Entry) -> None:
        """A message that was there before."""
        lane = self._world.carry(entry, self._changes.weight(entry.queue, entry.key, entry.weight), 0)
        holds = entry.holds
        if entry.cause == LEASED:
            self._schedule_end(entry.queue, entry.message, entry.at, holds[0] if holds else None)
            holds = holds[1:]
        elif entry.cause != "delayed":
            self._tally.ready(entry.queue, lane, entry.message, entry.at)
        self._holds[entry.message] = holds

    def _set_consumers(self, queue: QueueState, entry: Entry) -> None:
        wanted = self._changes.credit(queue.name, entry.number, whole(entry, "max_in_flight"))
        there = sorted(queue.consumers.all(), key=lambda consumer: consumer.number)
        gone = {consumer.number for consumer in there[len(wanted) :]}
        for number in gone:
            queue.consumers.remove(number)
            queue.consumers.forget(number)
        for consumer, credit in zip(there, wanted, strict=False):
            consumer.max_in_flight = credit
        self._take_over(queue, gone)
        for credit in wanted[len(there) :]:
            queue.consumers.add(Consumer(next(self._numbers), credit, partial(self._deliver, queue.name), _never))
        self._world.state.wakeups.want(queue)

    def _take_over(self, queue: QueueState, gone: set[int]) -> None:
        """What consumers still hold that are there no longer takes up room of the others: which ones went, the journal
        does not say.
        """
        others = queue.consumers.all()
        for grant in queue.leases.grants() if gone and others else ():
            for seq in grant.members if grant.consumer in gone else ():
                other = max(others, key=lambda consumer: consumer.credit)
                other.in_flight += 1
                self._taken_over[seq] = other

    def _deliver(self, name: str, grant: Grant) -> None:
        """A consumer is handed messages."""
        for seq in grant.members:
            holds = self._holds.get(seq, ())
            self._holds[seq] = holds[1:]
            self._schedule_end(name, seq, self._now, holds[0] if holds else None)
            if self._on_delivery is not None:
                self._on_delivery(name, seq, self._now)

    def _schedule_end(self, name: str, seq: int, now: int, hold: Hold | None) -> None:
        if hold is not None and hold.ns >= 0 and (hold.kind in FAILED or hold.kind in {"acked", "dead"}):
            heappush(self._ends, (now + hold.ns, next(self._serial), name, seq, hold))


def _never(_: BrokerError) -> None:
    pass
