"""Which entries of the journal a query wants, as far as a reader can tell before they are rows.

The broker is asked for a range of numbers and, where there is only one, for a queue. Entries of other queues, kinds and
times are left out in the process that reads, before they are rows.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NEVER_NS = (1 << 63) - 1


@dataclass(frozen=True)
class Selection:
    """Which entries are wanted. Names of queues are alternatives, in which `*` stands for a part and `**` for parts."""

    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    from_ns: int = 0
    until_ns: int = NEVER_NS
    #: Further sets of names, one of each of which must fit: what queries ask for besides.
    also: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def queue(self) -> str:
        """The one queue that the broker can be asked for; else empty."""
        if len(self.queues) == 1 and "*" not in self.queues[0]:
            return self.queues[0]
        return next((next(iter(names)) for column, names in self.also if column == "queue" and len(names) == 1), "")

    def mask(self, columns: dict[str, list[Any]], rows: int) -> "pa.Array | None":
        """Which of the first rows are wanted; None if all are."""
        masks = []
        if self.queues and not (len(self.queues) == 1 and self.queue == self.queues[0]):
            names = pa.array(columns["queue"][:rows], pa.string()).dictionary_encode()
            fits = pa.array([self._pattern.fullmatch(name) is not None for name in names.dictionary.to_pylist()])
            masks.append(pc.take(fits, names.indices))
        alternatives = [("kind", frozenset(self.kinds))] if self.kinds else []
        for column, wanted in (*alternatives, *self.also):
            values = pa.array(columns[column][:rows], pa.string())
            masks.append(pc.is_in(values, value_set=pa.array(sorted(wanted), pa.string())))
        if self.from_ns > 0 or self.until_ns < NEVER_NS:
            at_ns = pa.array(columns["at_ns"][:rows], pa.int64())
            masks.append(pc.and_(pc.greater_equal(at_ns, self.from_ns), pc.less(at_ns, self.until_ns)))
        whole = None
        for mask in masks:
            whole = mask if whole is None else pc.and_(whole, mask)
        return whole

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(_as_regex(name) for name in self.queues), re.DOTALL)


def _as_regex(name: str) -> str:
    return re.escape(name).replace(r"\*\*", ".*").replace(r"\*", r"[^.]*")
