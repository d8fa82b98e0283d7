"""A part in one pass: what happened, held against the scheduler; the model as it was; and the model under changes.

Memory: what the three replays keep of messages that exist. Entries are read once, in order.
"""

import json
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fila.pipelines.whatif.changes import Changes
from fila.pipelines.whatif.entries import COLUMNS, DAY_NS, Entry, Hold, entry, ticks
from fila.pipelines.whatif.follow import Follower, Verdict
from fila.pipelines.whatif.known import Known
from fila.pipelines.whatif.simulate import Simulation
from fila.pipelines.whatif.tally import Row, Tally

if TYPE_CHECKING:
    import pyarrow as pa

RECORDED, MODEL, WHATIF = VARIANTS = ("recorded", "model", "whatif")
"""What happened; the model of the consumers under the same settings; and under changed ones."""
SCHEMA = (
    "part string, variant string, queue string, key string, window bigint, weight bigint, wanted_ns bigint, "
    "leased bigint, cost bigint, wait_ns bigint, longest_ns bigint, backlog bigint, "
    "classes array<bigint>, counts array<bigint>, verdict string"
)
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is replayed, the same for all parts."""

    changes: Changes
    first_ns: int
    last_ns: int
    window_ns: int
    by_day: bool
    complete: bool
    """Whether the journal begins with the first entry of its broker"""

    def end_of(self, part: str) -> int:
        """The last moment of a part."""
        if not self.by_day:
            return self.last_ns
        return min(self.last_ns, (int(part.partition(":")[2]) + 1) * DAY_NS - 1)

    def begin_of(self, part: str) -> int:
        """The first moment of a part."""
        return max(self.first_ns, int(part.partition(":")[2]) * DAY_NS) if self.by_day else self.first_ns

    def is_whole(self, part: str) -> bool:
        """Whether the queues of a part began with it."""
        return self.complete and (not self.by_day or int(part.partition(":")[2]) == self.first_ns // DAY_NS)


def replay(plan: Plan, part: str, entries: Iterable[Entry]) -> Generator[tuple[str, Row], None, Verdict]:
    """The rows of a part by variant. Returns the verdict. Raises BadInput."""

    def tally() -> Tally:
        return Tally(plan.first_ns, plan.window_ns)

    known = Known(whole=plan.is_whole(part), since=plan.begin_of(part))
    follower = Follower(known=known, tally=tally())
    everyone: dict[str, Follower | Simulation] = {RECORDED: follower, MODEL: Simulation(Changes(), tally())}
    if not plan.changes.none:
        everyone[WHATIF] = Simulation(plan.changes, tally())
    for at, together in ticks(entries):
        for variant, each in everyone.items():
            for row in each.take(at, together):
                yield variant, row
    for variant, each in everyone.items():
        for row in each.finish(plan.end_of(part)):
            yield variant, row
    return follower.verdict


def in_arrow(plan: Plan, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """What an executor does: rows of parts, one part after the other and each in order, become rows of SCHEMA."""
    import pyarrow as pa

    names = [name for name, _ in _fields()]
    gathered: list[dict[str, Any]] = []
    for part, rows in groupby(_rows(batches), key=lambda row: row[0]):
        entries = (found for _, found in rows if found is not None)
        replayed = replay(plan, part, entries)
        while True:
            try:
                variant, row = next(replayed)
            except StopIteration as end:
                verdict = end.value
                break
            gathered.append({"part": part, "variant": variant, **row._asdict(), "verdict": None})
            if len(gathered) >= _ROWS_AT_ONCE:
                yield pa.RecordBatch.from_pylist(gathered, schema=arrow_schema())
                gathered = []
        told = dict.fromkeys(names) | {"part": part, "variant": RECORDED, "verdict": json.dumps(asdict(verdict))}
        gathered.append(told)
    if gathered:
        yield pa.RecordBatch.from_pylist(gathered, schema=arrow_schema())


def _rows(batches: "Iterable[pa.RecordBatch]") -> Iterator[tuple[str, Entry | None]]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("part", *COLUMNS, "holds")]
        for part, *row, holds in zip(*columns, strict=True):
            told = tuple(Hold(each["ns"], each["kind"], each["delay"], each["alone"]) for each in holds)
            yield part, entry(row, told)


def arrow_schema() -> "pa.Schema":
    import pyarrow as pa

    kinds = {"string": pa.string(), "bigint": pa.int64(), "array<bigint>": pa.list_(pa.int64())}
    return pa.schema([(name, kinds[kind]) for name, kind in _fields()])


def _fields() -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (each.strip().split(" ", 1) for each in SCHEMA.split(","))]
