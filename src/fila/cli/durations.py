"""Times on the command line: one syntax for all options, `500ms`, `2s`, `1.5h`, `7d`."""

from __future__ import annotations

import re
from typing import Any, Literal

import click

from fila.cli.output import printable

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
MOST_MS = 36_500 * UNITS_MS["d"]
_FORM = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(ms|s|min|m|h|d)?", re.ASCII)


def milliseconds(text: str, bare: str | None = None) -> float:
    """A time in milliseconds. A number without a unit is in the unit `bare`. Raises ValueError."""
    found = _FORM.fullmatch(text)
    unit = (found[2] or bare) if found else None
    if found is None or unit is None:
        raise ValueError(f'"{printable(text)}" is not a time such as 500ms, 90s, 5m, 2h or 7d')
    value = float(found[1]) * UNITS_MS[unit]
    if value > MOST_MS:
        raise ValueError(f'"{printable(text)}" is not a time such as 7d: it is longer than 100 years')
    return value


class Duration(click.ParamType[float]):
    """A time with its unit. `bare` is the unit of a number that has none; without it such a number is refused."""

    name = "time"

    def __init__(
        self, unit: Literal["ms", "s"], *, bare: str | None = None, low_s: float = 0.0, high_s: float = float("inf")
    ) -> None:
        self._unit = unit
        self._bare = bare
        self._low_s, self._high_s = low_s, high_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Whole milliseconds, or seconds."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return] # a default, which is in the unit of the result
        try:
            found = milliseconds(value, self._bare)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self._low_s <= found / 1000 <= self._high_s:
            most = "" if self._high_s == float("inf") else f" and at most {self._high_s:g}s"
            self.fail(f"{printable(value)} must be at least {self._low_s:g}s{most}", param, ctx)
        return round(found) if self._unit == "ms" else found / 1000


MILLISECONDS = Duration("ms", bare="ms")
"""For settings whose names end in `_ms`: a number without a unit is in milliseconds."""
AGE_MS = Duration("ms")
"""Days rather than milliseconds: a number without a unit is refused."""
SECONDS = Duration("s", bare="s")
