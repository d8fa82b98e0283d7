"""Patterns of names: glob by dot segments.

- `*` matches any characters but a dot: `orders.*` matches `orders.new`, not `orders.new.eu`; `orders-*` matches
  `orders-eu`.
- `**` as the last segment matches one or more segments: `orders.**` matches `orders.new` and `orders.new.eu`, not
  `orders`. Alone it matches every name.
- Every other character matches itself. Case counts.
"""

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
    wanted, found = pattern.split("."), name.split(".")
    if wanted[-1] == EVERY:
        *wanted, _ = wanted
        found, rest = found[: len(wanted)], found[len(wanted) :]
        if not "".join(rest) and len(rest) < 2:  # one empty segment, or none: nothing is left to match
            return False
    return len(wanted) == len(found) and all(map(fits, wanted, found))


def fits(part: str, text: str) -> bool:
    """Whether a text fits one part of a pattern, with any number of `*`. What is between two of them is looked for from
    left to right, and the first place is as good as any. So nothing is tried twice: trying all would take time that
    grows exponentially with the stars.
    """
    first, *others = part.split("*")
    if not others:
        return part == text
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
