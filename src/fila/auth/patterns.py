"""Patterns of names: glob by dot segments.

- `*` matches any characters but a dot: `orders.*` matches `orders.new`, not `orders.new.eu`; `orders-*` matches
  `orders-eu`.
- `**` as the last segment matches one or more segments: `orders.**` matches `orders.new` and `orders.new.eu`, not
  `orders`. Alone it matches every name.
- Every other character matches itself. Case counts.
"""

import re
from functools import lru_cache

MAX_PATTERN = 300
EVERY = "**"


def check_pattern(pattern: str) -> None:
    """Raises ValueError with what is wrong with it."""
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has 1 to {MAX_PATTERN} characters")
    if not pattern.isprintable():
        raise ValueError("a pattern must not contain control characters")
    if "**" in pattern.removesuffix(EVERY) or (pattern.endswith(EVERY) and pattern != EVERY and pattern[-3] != "."):
        raise ValueError(f'"{pattern}": ** must be the whole last segment, as in orders.**')


def matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    head = pattern.removesuffix(EVERY)
    body = r"\.".join(map(_segment, head.split(".")))
    return re.compile(body + ".+" if head != pattern else body, re.DOTALL)


def _segment(text: str) -> str:
    """A segment as a regular expression. What stands between two stars is taken where it first occurs, for good: later
    occurrences fit no better, and trying them all would take time that grows exponentially with the stars.
    """
    first, *middle = map(re.escape, text.split("*"))
    if not middle:
        return first
    *middle, last = middle
    return first + "".join(rf"(?>[^.]*?{part})" for part in middle) + rf"[^.]*{last}"
