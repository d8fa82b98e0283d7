"""Tracebacks for the log: where something failed and as what, without anything that a user sent.

Rules:
- No local variables.
- The text of an exception is shown only where Python or the operating system wrote it about the program. That of a
  `ValueError` or a `KeyError` quotes the value that was wrong, and that of a library or of our own errors may do so.
"""

import traceback
from types import TracebackType
from typing import Final, TextIO

HIDDEN: Final = "[text not shown]"

_QUOTES_VALUES: Final = (ValueError, LookupError)
_MOST_LINKS: Final = 10
"""Of a chain of causes."""

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def traceback_text(exc_info: ExcInfo) -> str:
    """As Python prints it, the first cause first, with the texts hidden that may quote what a user sent."""
    parts: list[str] = []
    error: BaseException | None = exc_info[1]
    for _ in range(_MOST_LINKS):
        if error is None:
            break
        stack = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
        parts.append(f"Traceback (most recent call last):\n{stack}{_summary(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\nwhich led to:\n\n".join(reversed(parts))


def write_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    """As a formatter of structlog's console."""
    stream.write("\n" + traceback_text(exc_info))


def _summary(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    shown = kind.__module__ == "builtins" and not isinstance(error, _QUOTES_VALUES)
    return f"{name}: {error if shown else HIDDEN}"
