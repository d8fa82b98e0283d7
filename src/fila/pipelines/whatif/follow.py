"""The replay that is held against the journal: does the scheduler choose again what it chose?

It goes through the recorded ticks at their recorded times. What arrived and what was settled is done again, and for
each delivery the scheduler is asked for as many messages as it was asked for then. Also the looks at which throttles
held everything up are repeated, because they decide who stands first in line.

What is compared: the messages of each delivery that the scheduler chose, in their order. Not compared, but done as it
was recorded, is what it did not choose: suspects, which are delivered alone when a consumer is empty, and claims of
reader groups, which have a limit of their own. Of a part that begins in the middle, nothing is compared until the state
of the scheduler is known (`known.py`): what it was at its beginning is not in the journal.

Where something else is chosen, the recorded messages are delivered nevertheless, and the replay goes on from there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

from fila.broker.arrival import Arrival
from fila.broker.delivery import Delivery, plan_straight
from fila.broker.promotion import plan_promotion
from fila.broker.queue import QueueState
from fila.broker.tick import Tick
from fila.core.consumers import Consumer
from fila.core.drr import Selection
from fila.core.errors import BrokerError
from fila.core.lane import Taken
from fila.core.leases import Grant
from fila.pipelines.whatif.entries import CARRIED, READY, Entry, Hold, ticks
from fila.pipelines.whatif.known import Known
from fila.pipelines.whatif.tally import Row, Tally
from fila.pipelines.whatif.world import FAILED, World

_LATER = 1 << 62
READER = 1
_MOST_NAMED = 10


@dataclass(slots=True)
class Verdict:
    """How far the scheduler chose again what it chose."""

    alike: int = 0
    """Deliveries that were chosen again, at the same place"""
    different: int = 0
    skipped: int = 0
    """Deliveries that are not compared"""
    unknown: int = 0
    """Entries of messages that were not where they must have been"""
    first: list[str] = field(default_factory=list)
    """The first that differ, told"""


class Follower:
    """One part of a journal, tick by tick."""

    def __init__(self, *, known: Known, tally: Tally) -> None:
        """`tally` is told what happened."""
        self._tally = tally
        self._world = World()
        self._known = known
        self._now = 0
        self.verdict = Verdict()

    def take(self, at: int, entries: list[Entry]) -> Iterator[Row]:
        """One tick. Raises BadInput."""
        yield from self._tally.advance(at)
        self._prepare(at, entries)
        self._ring(at)
        world = self._world
        tick, later = world.tick(at), []
        for (kind, _), run in groupby(entries, key=lambda each: (each.kind, each.queue)):
            later += self._plan(tick, kind, list(run))
        self._commit(tick)
        for queue, recorded in later:
            self._deliver_anyway(at, queue, recorded)
        self._known.look(world.state, at, max(entry.cost for entry in entries))
        self.verdict.unknown = world.unknown

    def finish(self, at: int) -> Iterator[Row]:
        """The end of the part."""
        yield from self._tally.finish(at)

    def _join(self) -> None:
        """Who is granted what in the replay: one consumer for each queue, whoever it was."""
        for queue in self._world.state.queues.values():
            if not len(queue.consumers):
                queue.consumers.add(Consumer(READER, 0, _nowhere, _never))

    def _ring(self, until: int) -> None:
        """Throttles tell their queues when their time comes, as they did between the ticks that wrote something."""
        state = self._world.state
        while (at := state.throttles.next_wakeup()) is not None and at <= until:
            self._now = max(self._now, at)
            state.wakeups.want_throttled(state.queues, state.throttles, self._now)
        self._now = max(self._now, until)

    def _prepare(self, at: int, entries: list[Entry]) -> None:
        """What was before this tick: a new start, settings, messages that were there, looks that wrote nothing."""
        carried = [entry for entry in entries if entry.kind == CARRIED]
        for entry in entries:
            if entry.kind == "started":
                self._world = self._world.restart()
                self._join()
            elif entry.kind in {"counted", "created", "updated", "configured"}:
                if entry.kind in {"configured", "updated"}:
                    self._ring(at)
                tick = self._world.tick(at)
                if entry.kind == "configured":
                    self._world.configure(tick, entry)
                else:
                    self._world.define(tick, entry, lambda record: record)
                self._commit(tick)
                self._join()
            elif entry.kind == "consumers" and 0 < (asked_at := _number(entry, "asked_at_ns")) < at:
                self._look(entry, asked_at)
        for entry in carried:
            lane = self._world.carry(entry, entry.weight, READER)
            if entry.cause == READY:
                self._tally.ready(entry.queue, lane, entry.message, at)
        for entry in entries:
            if entry.kind == "counted":
                self._known.counted(self._world.queue(entry), entry.number, at)
        if any(entry.kind == "started" for entry in entries):
            self._known.began_anew()
        for entry in entries:
            if (
                entry.kind == "deleted"
            ):  # last: it may be what the first tick after a start does, which tells what was there
                tick = self._world.tick(at)
                self._world.delete(tick, entry)
                self._commit(tick)

    def _look(self, entry: Entry, at: int) -> None:
        """A look in vain, in a tick that wrote nothing."""
        self._ring(at)
        tick = self._world.tick(at)
        self._select(tick, self._world.queue(entry), _number(entry, "asked"), [])
        self._commit(tick)

    def _plan(self, tick: Tick, kind: str, run: list[Entry]) -> list[tuple[QueueState, list[Entry]]]:
        """What entries of one kind and queue had to say. Returns deliveries that have to be done as recorded."""
        world = self._world
        if kind == "enqueued":
            for entry in run:
                world.arrive(tick, entry, entry.weight)
        elif kind == "due":
            self._promote(tick, world.queue(run[0]), run)
        elif kind == "leased":
            return self._plan_leased(tick, world.queue(run[0]), run)
        elif kind == "acked" or kind in FAILED or (kind == "dead" and run[0].cause != "dropped"):
            ended = [
                (each.message, Hold(0, kind, max(0, each.until - each.at), each.number), each.target) for each in run
            ]
            world.end_leases(tick, kind, world.queue(run[0]), ended)
        elif kind in {"dead", "dropped", "redriven"}:
            world.unknown += len(run) - len(world.take_away(tick, run))
        elif kind == "consumers" and _number(run[0], "asked_at_ns") == tick.now:
            for entry in run:
                self._select(tick, world.queue(entry), _number(entry, "asked"), [])
        return []

    def _promote(self, tick: Tick, queue: QueueState, run: list[Entry]) -> None:
        if plan_promotion(tick, queue, len(run)) != len(run):
            self._world.unknown += len(run)

    def _plan_leased(self, tick: Tick, queue: QueueState, run: list[Entry]) -> list[tuple[QueueState, list[Entry]]]:
        """Deliveries of one queue follow each other where a selection and suspects, or a claim, came together."""
        later = []
        for asked, part in groupby(run, key=lambda each: each.number):
            entries = list(part)
            if asked:
                if self._select(tick, queue, asked, entries):
                    continue
            elif self._hand_on(tick, queue, entries):
                continue
            else:
                self.verdict.skipped += len(entries)
            later.append((queue, entries))
        return later

    def _select(self, tick: Tick, queue: QueueState, asked: int, recorded: list[Entry]) -> bool:
        """Ask the scheduler. Returns whether it chose what is recorded, which is then delivered."""
        selection = queue.drr.select(min(asked, queue.ready), tick.now)
        chosen = [seq for _, seq, _ in selection.messages]
        expected = [entry.message for entry in recorded]
        self._compare(queue, chosen, expected, tick.now)
        if chosen != expected:
            queue.drr.rollback(selection)
            return False
        delivery = Delivery(queue, selection, asked=asked)
        if selection.messages:
            self._grant(tick, delivery)
        tick.add(delivery)
        return True

    def _compare(self, queue: QueueState, chosen: list[int], expected: list[int], now: int) -> None:
        verdict = self.verdict
        if not self._known.of(queue):
            verdict.skipped += len(expected)
            return
        alike = sum(mine == theirs for mine, theirs in zip(chosen, expected, strict=False))
        verdict.alike += alike
        verdict.different += max(len(expected), len(chosen)) - alike
        if chosen != expected and len(verdict.first) < _MOST_NAMED:
            pairs = list(zip_longest(expected, chosen))
            at = next(at for at, (theirs, mine) in enumerate(pairs) if theirs != mine)
            theirs, mine = pairs[at]
            verdict.first.append(
                f"queue {queue.name} at {now}: delivery {at + 1} of {len(expected)} was of message {theirs or 'none'}, "
                f"chosen is {mine or 'none'}"
            )

    def _hand_on(self, tick: Tick, queue: QueueState, entries: list[Entry]) -> bool:
        """Messages that were delivered in the tick in which they arrived. Returns whether they were, and are again."""
        arrival, reader = tick.of(Arrival, queue), queue.consumers.all()[0]
        seqs = [entry.message for entry in entries]
        if not arrival.seqs or arrival.seqs != seqs:
            return False
        reader.max_in_flight = reader.in_flight + len(seqs)
        plan_straight(tick, arrival)
        reader.max_in_flight = 0
        if arrival.handed_on:
            self.verdict.alike += len(seqs)
        return arrival.handed_on

    def _grant(self, tick: Tick, delivery: Delivery) -> None:
        number = tick.state.sequence.reserve(tick.now, 1)
        members: dict[int, Taken] = {message[1]: message for message in delivery.selection.messages}
        grant = Grant(number, number, READER, _LATER, members)
        delivery.grants.append((delivery.queue.consumers.all()[0], grant))

    def _deliver_anyway(self, at: int, queue: QueueState, recorded: list[Entry]) -> None:
        """As it was recorded, whatever the scheduler would do."""
        tick, world = self._world.tick(at), self._world
        selection = Selection()
        for entry in recorded:
            lane = world.lane_of(queue, entry)
            if lane is None:
                world.unknown += 1
                continue
            throttles, cost = lane.throttles_of(entry.message), lane.key.cost(entry.message)
            home = lane
            if entry.message in queue.suspects:
                home = lane.home  # type: ignore[attr-defined]  # it is a suspect's
                queue.suspects.remove({entry.message})
                home.key.delivered += 1
            else:
                key = lane.key
                home = getattr(lane, "lanes", {}).get(entry.message, lane)
                key.remove(lane, {entry.message})
                if key.head is None:
                    queue.drr.drop({key})
                queue.ready -= 1
                key.outside_lanes += 1
            for throttle in throttles:
                throttle.charge(1, cost)
            selection.messages.append((home, entry.message, cost))
        self._tally.leased(queue.name, selection.messages, at)
        if selection.messages:
            number = tick.state.sequence.reserve(at, 1)
            members: dict[int, Taken] = {message[1]: message for message in selection.messages}
            queue.leases.add(Grant(number, number, READER, _LATER, members))

    def _commit(self, tick: Tick) -> None:
        self._tally.observe(tick)
        tick.commit()
        state = tick.state
        state.wakeups.want_throttled(state.queues, state.throttles, tick.now)
        state.wakeups.overfull.clear()
        state.wakeups.wanted.clear()


def follow(entries: list[Entry], *, whole: bool = True) -> Verdict:
    """Replay a journal that is in memory. `whole`: it begins where the queues began. Raises BadInput."""
    follower = Follower(known=Known(whole=whole, since=0), tally=Tally(0, 1 << 62))
    for at, together in ticks(entries):
        list(follower.take(at, together))
    return follower.verdict


def _number(entry: Entry, name: str) -> int:
    value = entry.note.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _nowhere(_: Grant) -> None:
    pass


def _never(_: BrokerError) -> None:
    pass
