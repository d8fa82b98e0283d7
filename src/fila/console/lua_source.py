"""Lua with colours: the source cut into pieces, each with a class. The template escapes the pieces."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class Piece(NamedTuple):
    """A piece of the source, and the class that colours it; empty for none."""

    text: str
    kind: str


_TOKEN: Final = re.compile(
    r"""(?P<cm>--\[\[.*?(?:\]\]|\Z)|--[^\n]*)
    |(?P<s>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\[\[.*?(?:\]\]|\Z))
    |(?P<m>\b\d[\w.]*)
    |(?P<k>\b(?:and|break|do|else|elseif|end|false|for|function|goto|if|in|local|nil|not|or|repeat|return|then|true|until
        |while)\b)
    |(?P<fn>\b(?:on_enqueue|on_failure|fila)\b)""",
    re.VERBOSE | re.DOTALL,
)


def pieces(source: str) -> Iterator[Piece]:
    """All of the source, in order."""
    end = 0
    for found in _TOKEN.finditer(source):
        if found.start() > end:
            yield Piece(source[end : found.start()], "")
        yield Piece(found.group(), found.lastgroup or "")
        end = found.end()
    if end < len(source):
        yield Piece(source[end:], "")
