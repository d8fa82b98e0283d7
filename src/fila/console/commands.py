"""The command line that does the same as an action of a page, ready to be pasted into a shell."""

import shlex
from collections.abc import Iterable, Mapping


def command(*words: str, options: Mapping[str, str | int | float | None] | None = None) -> str:
    """`fila` with these words, then the options that have a value. Each is quoted, so that no name becomes an option or
    a second command.
    """
    shown = ["fila", *map(_word, words)]
    for name, value in (options or {}).items():
        if value is not None and value != "":
            shown += [f"--{name}", _word(f"{value:g}" if isinstance(value, float) else str(value))]
    return " ".join(shown)


def flags(line: str, names: Iterable[str]) -> str:
    return " ".join([line, *(f"--{name}" for name in names)])


def _word(text: str) -> str:
    """Characters that a terminal would act on are written as $'...' escapes."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = "".join(char if char.isprintable() and char not in "'\\" else _escape(char) for char in text)
    return f"$'{escaped}'"


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
