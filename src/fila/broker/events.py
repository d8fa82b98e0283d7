"""What happened in a tick, as sections of the journal.

Everything is taken from what the tick lists anyway, before any of it has changed memory, so that planning need not know
that there is a journal. A message has at most one event in a tick, but for one that is delivered in the tick in which
it arrives: so arrivals stand before deliveries, and otherwise the order of the sections means nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from fila.broker.ack import Ack
from fila.broker.arrival import Arrival
from fila.broker.burial import Burials, DeadLetter
from fila.broker.commands import Command, CreateQueue, DeleteQueue, SetConfig, UpdateQueue
from fila.broker.delivery import Delivery
from fila.broker.outcomes import OUTCOMES
from fila.broker.promotion import Promotion
from fila.broker.queue import QueueState, dead_letter_name
from fila.broker.removal import Removal
from fila.broker.returns import Returned, Returns
from fila.broker.tick import Tick
from fila.core.errors import BrokerError
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.storage import keys
from fila.storage.journal import Column, Field, Kind, Packer
from fila.storage.records import LeaseEnd, QueueRecord

_LANE, _SEQ, _ATTEMPT, _SIZE, _COST, _UNTIL, _COUNT, _CAUSE, _TARGET, _THROTTLED = (name.value for name in Field)


class Lanes:
    """The table of lanes of one record."""

    __slots__ = ("_numbers", "_weights")

    def __init__(self) -> None:
        self._numbers: dict[Lane, int] = {}
        self._weights: dict[FairKey, int] = {}

    def numbers(self, lanes: list[Lane]) -> Sequence[int]:
        """Where lanes stand in the table; one number if they are all the same."""
        numbers = self._numbers
        distinct = set(lanes)
        if len(distinct) == 1:
            return (numbers.setdefault(lanes[0], len(numbers)),)
        new = distinct.difference(numbers)
        numbers.update(zip(new, range(len(numbers), len(numbers) + len(new)), strict=True))
        found = map(numbers.__getitem__, lanes)
        return bytes(found) if len(numbers) <= 256 else list(found)

    def of_queue(self, name: str) -> Sequence[int]:
        """For what belongs to no fairness key."""
        return self.numbers([Lane(FairKey("", 0), 0, keys.lane(name, "", 0))])

    def weigh(self, weights: Mapping[FairKey, int]) -> None:
        """Keys whose weight changes in this tick."""
        self._weights.update(weights)

    def prefixes(self) -> list[bytes]:
        return [keys.joined(lane.key_parts) for lane in self._numbers]

    def weights(self) -> list[int]:
        changed = self._weights
        return [changed.get(lane.key, lane.key.weight) for lane in self._numbers]


class Look(NamedTuple):
    """The scheduler was asked for messages of a queue, and throttles held all of them up."""

    queue: str
    at: int
    asked: int


def looks_in_vain(tick: Tick) -> list[Look]:
    """Those of a tick. They change in which order messages are delivered later."""
    return [_look(delivery, tick.now) for delivery in tick.all(Delivery) if delivery.in_vain]


def _look(delivery: Delivery, now: int) -> Look:
    return Look(delivery.queue.name, now, delivery.asked)


class Events:
    """Gathers the record of one tick."""

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._packer = Packer()
        self._credits: dict[str, tuple[int, int]] = {}
        """Consumers of queues and how many messages they may hold: there may be thousands, and many looks at a queue"""

    @property
    def entries(self) -> int:
        return self._packer.entries

    def record(self, at: int) -> bytes:
        return self._packer.record(at, self._lanes.prefixes(), self._lanes.weights())

    def add_start(self) -> None:
        self._packer.add(Kind.STARTED, 1, [(_LANE, self._lanes.of_queue(""))])

    def add_count(self, kind: Kind, queue: str, count: int, note: Mapping[str, Any] | None = None) -> None:
        """How many messages or consumers a queue has."""
        texts = [] if note is None else [_text(note)]
        self._packer.add(kind, 1, [(_LANE, self._lanes.of_queue(queue)), (_COUNT, (count,))], texts)

    def add_held(self, queue: QueueState, count: int) -> None:
        """How many messages a queue holds, and by which settings it delivers them."""
        settings = {"quantum": queue.record.quantum, "paused": queue.record.paused}
        self.add_count(Kind.COUNTED, queue.name, count, settings)

    def add_consumers(self, queue: QueueState, look: Look | None = None) -> None:
        """How many consumers a queue has and how many messages they may hold; also when a look was in vain."""
        if queue.name not in self._credits:
            consumers = queue.consumers.all()
            self._credits[queue.name] = len(consumers), sum([consumer.max_in_flight for consumer in consumers])
        count, credit = self._credits[queue.name]
        note = {"max_in_flight": credit}
        if look is not None:
            note |= {"asked": look.asked, "asked_at_ns": look.at}
        self.add_count(Kind.CONSUMERS, queue.name, count, note)

    def add_limits(self, limits: Mapping[str, str]) -> None:
        """The limits of throttles that were set before."""
        if limits:
            notes = [_text({"key": key, "before": value, "value": value, "by": ""}) for key, value in limits.items()]
            self._packer.add(Kind.CONFIGURED, len(notes), [(_LANE, self._lanes.of_queue(""))], notes)

    def add_tick(self, tick: Tick, commands: Sequence[Command]) -> None:
        """All that the tick moves and changes."""
        for promotion in tick.all(Promotion):
            seqs = [seq for _, seq, _, _ in promotion.delayed]
            until = [due for due, _, _, _ in promotion.delayed]
            lanes = [lane for _, _, lane, _ in promotion.delayed]
            self._add(Kind.DUE, lanes, seqs, (_ATTEMPT, _attempts(promotion.queue, seqs)), (_UNTIL, until))
        for arrival in tick.all(Arrival):
            self._add_arrival(arrival)
        for returns in tick.all(Returns):
            self._add_returned(returns.messages)
        for burials in tick.all(Burials):
            self._add_dead(burials.letters)
        for acked in tick.all(Ack):
            if acked.seqs:
                lanes = acked.queue.leases.lanes(acked.seqs)
                self._add(Kind.ACKED, lanes, acked.seqs, (_ATTEMPT, _attempts(acked.queue, acked.seqs)))
        for delivery in tick.all(Delivery):
            if delivery.grants:
                self._add_delivery(delivery, tick.now)
            elif delivery.in_vain:
                self.add_consumers(delivery.queue, _look(delivery, tick.now))
        for removal in tick.all(Removal):
            if removal.locations:
                self._add_removal(removal)
        if len(commands) == 1:  # those of which there is an entry have a tick to themselves
            _, answer = tick.replies[0]
            if not isinstance(answer, BrokerError):
                self._add_command(tick, commands[0], answer)

    def _add(
        self, kind: Kind, lanes: list[Lane], seqs: Sequence[int], *more: Column, texts: Sequence[str] = ()
    ) -> None:
        self._packer.add(kind, len(seqs), [(_LANE, self._lanes.numbers(lanes)), (_SEQ, seqs), *more], texts)

    def _add_delivery(self, delivery: Delivery, now: int) -> None:
        messages = delivery.selection.messages
        lanes = [message[0] for message in messages]
        seqs = [message[1] for message in messages]
        columns: list[Column] = [
            (_ATTEMPT, _attempts(delivery.queue, seqs)),
            (_COST, [message[2] for message in messages]),
            (_UNTIL, (delivery.grants[0][1].expires_at,)),
        ]
        if delivery.asked:
            columns.append((_COUNT, (delivery.asked,)))
        if any(lane.holdups is not None for lane in set(lanes)):
            held_up = delivery.queue.ledger.held_up
            columns.append((_THROTTLED, [held_up(lane, seq, now) for lane, seq, _ in messages]))
        self._add(Kind.LEASED, lanes, seqs, *columns)

    def _add_arrival(self, arrival: Arrival) -> None:
        lanes, seqs, sizes = [*arrival.lanes], [*arrival.seqs], [*arrival.sizes, *arrival.delayed_sizes]
        costs, until = [1], [0]
        if arrival.costs or arrival.delayed:
            costs, until = [arrival.costs.get(seq, 1) for seq in seqs], [0] * len(seqs)
            for due, seq, lane, cost in arrival.delayed:
                lanes.append(lane)
                seqs.append(seq)
                costs.append(cost)
                until.append(due)
        if not seqs:
            return
        self._lanes.weigh(arrival.weights)
        numbers: Sequence[int] = seqs
        run = range(seqs[0], seqs[0] + len(seqs))
        if seqs[-1] == run[-1] and seqs == list(run):  # they came in order, and none is left out
            numbers = run
        self._add(
            Kind.ENQUEUED, lanes, numbers, (_SIZE, sizes), (_COST, costs), (_UNTIL, until), texts=_throttles(lanes)
        )

    def _add_returned(self, returned: list[Returned]) -> None:
        groups: dict[tuple[str, LeaseEnd], list[Returned]] = {}
        for back in returned:
            groups.setdefault((back.queue.name, back.kind), []).append(back)
        for (_, kind), group in groups.items():
            seqs = [back.seq for back in group]
            attempts, until = [back.attempts for back in group], [back.due for back in group]
            queue = group[0].queue
            columns: list[Column] = [(_ATTEMPT, attempts), (_UNTIL, until)]
            alone = [queue.suspicion_after(back.seq, kind, uncounted=back.suspect) or 0 for back in group]
            if any(alone):
                columns.append((_COUNT, alone))
            self._add(OUTCOMES[kind].journal, queue.leases.lanes(seqs), seqs, *columns)

    def _add_dead(self, buried: list[DeadLetter]) -> None:
        groups: dict[str, list[DeadLetter]] = {}
        for dead in buried:
            groups.setdefault(dead.queue.name, []).append(dead)
        for group in groups.values():
            seqs = [dead.seq for dead in group]
            self._add(
                Kind.DEAD,
                group[0].queue.leases.lanes(seqs),
                seqs,
                (_ATTEMPT, [dead.attempts for dead in group]),
                (_CAUSE, [OUTCOMES[dead.kind].journal for dead in group]),
                (_TARGET, self._lanes.numbers([dead.lane for dead in group])),
            )

    def _add_removal(self, removal: Removal) -> None:
        queue = removal.queue
        lanes: dict[tuple[str, int], Lane] = {}
        for found in removal.locations:
            where = found.key, found.priority
            if where not in lanes:
                lanes[where] = Lane(queue.keys[found.key], found.priority, keys.lane(queue.name, *where))
        seqs = [found.seq for found in removal.locations]
        columns: list[Column] = [(_ATTEMPT, [queue.attempts.get(seq, 0) for seq in seqs])]
        kind, cause = removal.journal
        if cause is not None:
            columns.append((_CAUSE, (cause,)))
        if removal.targets:
            columns.append((_TARGET, self._lanes.numbers(removal.targets)))
        self._add(kind, [lanes[found.key, found.priority] for found in removal.locations], seqs, *columns)

    def _add_command(self, tick: Tick, command: Command, answer: object) -> None:
        match command:
            case CreateQueue(record):
                self._add_note(Kind.CREATED, record.name, _settings(record))
                self._add_note(Kind.CREATED, dead_letter_name(record.name), {"source": record.name})
            case UpdateQueue(name):
                before = _settings(tick.state.queues[name].record)
                after = _settings(answer) if isinstance(answer, QueueRecord) else before
                changed = {key: [before[key], after[key]] for key in after if after[key] != before[key]}
                self._add_note(Kind.UPDATED, name, changed)
            case DeleteQueue(name):
                queue = tick.state.queues[name]
                for leaving in (queue, queue.dead_letters):
                    if leaving is not None:
                        self.add_count(Kind.DELETED, leaving.name, leaving.size)
            case SetConfig(key, value):
                note = {"key": key, "before": answer, "value": value, "by": command.origin.by}
                self._add_note(Kind.CONFIGURED, "", note)

    def _add_note(self, kind: Kind, queue: str, note: Mapping[str, Any]) -> None:
        self._packer.add(kind, 1, [(_LANE, self._lanes.of_queue(queue))], [_text(note)])


def _text(note: Mapping[str, Any]) -> str:
    return json.dumps(note, ensure_ascii=False)


def _throttles(lanes: list[Lane]) -> list[str]:
    """The throttle keys of each message; nothing where none has any."""
    told = {
        lane: _text({"throttles": [throttle.name for throttle in lane.throttles]}) if lane.throttles else ""
        for lane in set(lanes)
    }
    return [told[lane] for lane in lanes] if any(told.values()) else []


def _attempts(queue: QueueState, seqs: list[int]) -> Sequence[int]:
    """Which attempt it is that begins or ends."""
    failed = queue.attempts
    return [failed.get(seq, 0) + 1 for seq in seqs] if failed else (1,)


def _settings(record: QueueRecord) -> dict[str, Any]:
    """A queue's settings in few bytes: of a script only its size."""
    settings = asdict(record)
    del settings["name"], settings["created_at"]
    settings["script"] = len(record.script)
    return settings
