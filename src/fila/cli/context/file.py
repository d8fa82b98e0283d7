"""The file of the contexts, TOML in a folder of the user.

use = "prod"

[contexts.prod]
addr = "broker.example:5555"
tls_ca = "/home/me/ca.pem"
api_key_file = "/home/me/prod.key"

Rules of this file:
- All of it is checked before one value is used.
- Others must not be able to change it, since it says to whom a key is sent.
- It is replaced at once, never written in place.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fila.cli.context.contexts import Context, Contexts
from fila.cli.draft import Draft
from fila.settings import Layers, SettingsError, unknown

MOST_BYTES = 256 << 10
_MOST_SAID = 500
"""Of what is wrong: names and values of the file are quoted."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def location() -> Path | None:
    """$XDG_CONFIG_HOME/fila/contexts.toml; None for a user without a home.

    As the XDG specification says, a relative $XDG_CONFIG_HOME is ignored.
    """
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        folder = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "fila" / "contexts.toml"


def read() -> Contexts:
    """No file means no contexts. Raises SettingsError, with the file and what is wrong with it."""
    file = location()
    return Contexts() if file is None else _read(file)


def update(change: Callable[[Contexts], Contexts]) -> Contexts:
    """Read, change and write the file, one process at a time. Raises SettingsError."""
    file = location()
    if file is None:
        raise SettingsError("there is no home to keep contexts in: set XDG_CONFIG_HOME")
    target = Path(os.path.realpath(file))  # a link into a folder of dotfiles stays one
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone_in(target.parent):
            changed = change(_read(target))
            _write(target, changed)
    except OSError as error:
        raise SettingsError(f"cannot write {target}: {error.strerror}") from error
    return changed


def _read(file: Path) -> Contexts:
    try:
        return _parse(_content(file))
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from error
    except RecursionError as error:
        raise SettingsError(f"{file}: too deeply nested") from error
    except ValueError as error:  # also of the TOML parser and of the decoder
        raise SettingsError(f"{file}: {error}"[:_MOST_SAID]) from error


def _content(file: Path) -> str:
    opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would keep us waiting
    with os.fdopen(opened, "rb") as source:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            raise SettingsError("not a regular file")
        if about.st_mode & _OTHERS_MAY_WRITE:
            raise SettingsError("other users may change it; run chmod 600 on it")
        data = source.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise SettingsError(f"more than {MOST_BYTES} bytes")
    return data.decode()


def _parse(content: str) -> Contexts:
    tables = tomllib.loads(content)
    for name in tables:
        if name not in {"use", "contexts"}:
            raise SettingsError(unknown("key", name, ("use", "contexts")))
    entries = tables.get("contexts", {})
    if not isinstance(entries, Mapping):
        raise SettingsError("contexts must be a table")
    found = Contexts()
    for name, table in entries.items():
        layers = Layers({name: Context})
        layers.add_tables({name: table})
        found = found.with_one(name, layers.build(name))
    used = tables.get("use", "")
    if not isinstance(used, str):
        raise SettingsError("use must be the name of a context")
    return found.using(used)


def _write(file: Path, contexts: Contexts) -> None:
    content = _toml(contexts).encode()
    if len(content) > MOST_BYTES:
        raise SettingsError(f"{file} would have more than {MOST_BYTES} bytes")
    with Draft(file) as draft:
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)


def _toml(contexts: Contexts) -> str:
    lines = [f"use = {_quoted(contexts.use)}"] if contexts.use else []
    for name, context in sorted(contexts.by_name.items()):
        lines += ["", f"[contexts.{_quoted(name)}]"]
        given = context.given().items()
        lines += [f"{key} = {'true' if value is True else _quoted(str(value))}" for key, value in given]
    return "\n".join(lines).lstrip("\n") + "\n"


def _quoted(value: str) -> str:
    """A basic string of TOML."""
    kept = (char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08X}" for char in value)
    return f'"{"".join(kept)}"'


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
