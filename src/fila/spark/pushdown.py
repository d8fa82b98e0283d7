"""Filters of a query on the journal that its reader takes over, so that Spark never sees the rows they leave out.

`seq` and `at_ns` become the range of numbers that the broker is asked for, and so does one `queue`. Several queues and
`kind` are sorted out by the reader. No column is ever null. Any other filter is Spark's to apply.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from fila.spark.selection import Selection

_RANGES = ("seq", "at_ns")
_NAMES = ("queue", "kind")
_LAST = (1 << 63) - 1


class PushFilters:
    """`pushFilters` of a reader that also works where Spark pushes no filters.

    Spark refuses a reader with this method while `spark.sql.python.filterPushdown.enabled` is false, lest somebody
    thinks that filters are pushed. Ours give the same rows either way. What Spark looks at is `__func__`.
    """

    def __init__(self, push: Callable[[Sequence[Filter]], Iterable[Filter]]) -> None:
        self._push = push
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: Sequence[Filter]) -> Iterable[Filter]:
        return self._push(filters)


class Pushed:
    """A selection, narrowed by filters, and the range of numbers that they leave, `end` included."""

    def __init__(self, selection: Selection) -> None:
        self.start, self.end, self.selection = 1, _LAST, selection

    def take(self, filters: Sequence[Filter]) -> Iterator[Filter]:
        """Yields those that Spark must apply."""
        for each in filters:
            if not self._takes(each):
                yield each

    def _takes(self, given: Filter) -> bool:
        match given:
            case IsNotNull((_,)):
                return True
            case EqualTo((str(column),), int(value)) if column in _RANGES:
                return self._between(column, value, value)
            case GreaterThan((str(column),), int(value)) if column in _RANGES:
                return self._between(column, value + 1, _LAST)
            case GreaterThanOrEqual((str(column),), int(value)) if column in _RANGES:
                return self._between(column, value, _LAST)
            case LessThan((str(column),), int(value)) if column in _RANGES:
                return self._between(column, 0, value - 1)
            case LessThanOrEqual((str(column),), int(value)) if column in _RANGES:
                return self._between(column, 0, value)
            case EqualTo((str(column),), str(value)) if column in _NAMES:
                return self._one_of(column, (value,))
            case In((str(column),), values) if column in _NAMES and all(isinstance(each, str) for each in values):
                return self._one_of(column, values)
        return False

    def _between(self, column: str, low: int, high: int) -> bool:
        """Both included."""
        if column == "at_ns":
            wanted = self.selection
            until = wanted.until_ns if high == _LAST else min(wanted.until_ns, max(0, high + 1))
            self.selection = replace(wanted, from_ns=max(wanted.from_ns, low), until_ns=until)
            return True
        self.start, self.end = max(self.start, low), min(self.end, high)
        return True

    def _one_of(self, column: str, values: Sequence[str]) -> bool:
        also = (*self.selection.also, (column, frozenset(values)))
        self.selection = replace(self.selection, also=also)
        return True
