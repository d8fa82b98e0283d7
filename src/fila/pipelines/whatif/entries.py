"""The journal as a replay reads it. It comes from files, so every value is checked."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from fila.core.errors import BrokerError
from fila.core.policy import MAX_COST, MAX_PRIORITY, MAX_THROTTLE_KEYS, MAX_WEIGHT
from fila.core.throttle import Limit
from fila.pipelines.errors import BadInput

COLUMNS = {
    **dict.fromkeys(("seq", "at_ns"), "bigint"),
    **dict.fromkeys(("kind", "queue", "fairness_key"), "string"),
    **dict.fromkeys(("priority", "weight"), "bigint"),
    "message_id": "string",
    **dict.fromkeys(("enqueued_at_ns", "attempt", "cost", "until_ns", "count"), "bigint"),
    **dict.fromkeys(("cause", "target", "note"), "string"),
}
"""The columns of an exported journal that a replay needs."""

DAY_NS = 86_400_000_000_000
MAX_NOTE = 1 << 20
THROTTLE = "throttle."


class Hold(NamedTuple):
    """What became of a delivery: how long the message was held, and how that ended."""

    ns: int
    """-1: it is held still"""
    kind: str
    delay_ns: int
    alone: int
    """The suspicion that the message is under afterwards: 0 for none"""


class Entry(NamedTuple):
    """One entry. Its fields are those of the journal; `message` is the sequence number, 0 where there is none, and
    `number` what the journal calls `count`.
    """

    seq: int
    at: int
    kind: str
    queue: str
    key: str
    priority: int
    weight: int
    message: int
    attempt: int
    cost: int
    until: int
    number: int
    cause: str
    target: str
    note: dict[str, Any]
    holds: tuple[Hold, ...] = ()
    """Of a message that appears: its later deliveries, in order"""

    @property
    def throttles(self) -> tuple[str, ...]:
        return tuple(self.note.get("throttles", ()))


OF_MESSAGES = frozenset(
    ("enqueued", "due", "leased", "acked", "nacked", "expired", "returned", "released", "dead", "redriven", "dropped")
)
CARRIED = "carried"
"""Not of the journal: a message that was there before the part that is replayed. `cause` says where: one of PLACES."""
READY, DELAYED, LEASED = PLACES = ("ready", "delayed", "leased")
KINDS = OF_MESSAGES | {CARRIED, "started", "counted", "consumers", "created", "updated", "deleted", "configured"}


def entry(row: Sequence[Any], holds: tuple[Hold, ...] = ()) -> Entry | None:
    """An entry of a row in the order of COLUMNS; None for a kind that a newer broker may write. Raises BadInput."""
    (
        seq,
        at,
        kind,
        queue,
        key,
        priority,
        weight,
        message_id,
        enqueued,
        attempt,
        cost,
        until,
        count,
        cause,
        target,
        note,
    ) = row
    if kind not in KINDS:
        return None
    for number in (seq, at, priority, weight, enqueued, attempt, cost, until, count):
        if not isinstance(number, int) or not 0 <= number < 1 << 63:
            raise BadInput(f"entry {seq} of the journal has a number that cannot be: {number!r}")
    for text in (queue, key, message_id, cause, target, note):
        if not isinstance(text, str):
            raise BadInput(f"entry {seq} of the journal lacks a text")
    about = _note(seq, note)
    message = enqueued if message_id else 0
    if kind in OF_MESSAGES or kind == CARRIED:
        if not (message and queue and 1 <= weight <= MAX_WEIGHT and priority <= MAX_PRIORITY and cost <= MAX_COST):
            raise BadInput(f"entry {seq} of the journal is of no message that can be: {kind} in {queue!r}")
        if kind in {"dead", "redriven"} and not target:
            raise BadInput(f"entry {seq} of the journal does not say where the message went")
        _check_throttles(seq, about)
    elif kind not in {"started", "configured"} and not queue:
        raise BadInput(f"entry {seq} of the journal names no queue")
    return Entry(
        seq, at, kind, queue, key, priority, weight, message, attempt, cost, until, count, cause, target, about, holds
    )


def _note(seq: int, text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        found = json.loads(text) if len(text) <= MAX_NOTE else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInput(f"entry {seq} of the journal has a note that is no JSON object")
    return found


def _check_throttles(seq: int, note: dict[str, Any]) -> None:
    found = note.get("throttles", [])
    fine = isinstance(found, list) and len(found) <= MAX_THROTTLE_KEYS and all(isinstance(key, str) for key in found)
    if not fine:
        raise BadInput(f"entry {seq} of the journal has throttle keys that cannot be")


def whole(entry: Entry, name: str) -> int:
    """A number that a note must have. Raises BadInput."""
    value = entry.note.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise BadInput(
            f"entry {entry.seq} of the journal ({entry.kind}) does not say {name}: it was written by an older broker, "
            "whose journal is not enough for a replay"
        )
    return value


def limit(entry: Entry) -> tuple[str, Limit | None] | None:
    """The throttle key that an entry of the runtime configuration limits, and how; None for other settings."""
    key, value = entry.note.get("key"), entry.note.get("value")
    if not isinstance(key, str) or not key.startswith(THROTTLE):
        return None
    try:
        return key.removeprefix(THROTTLE), None if value is None else Limit.parse(value)
    except (BrokerError, AttributeError) as error:
        raise BadInput(f"entry {entry.seq} of the journal sets {key} to what is no limit: {value!r}") from error


def ticks(entries: Iterable[Entry]) -> Iterator[tuple[int, list[Entry]]]:
    """The entries of each tick with its time: those that happened at once. Raises BadInput where time goes back."""
    last = -1
    for at, together in groupby(entries, key=lambda each: each.at):
        found = list(together)
        if at < last:
            raise BadInput(
                f"the broker's clock went back before entry {found[0].seq}, as it may when a broker is started: what "
                f"came before cannot be replayed together with what came after; export it with --from {found[0].seq}"
            )
        last = at
        yield at, found
