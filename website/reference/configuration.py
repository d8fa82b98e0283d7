"""Every setting of the server, from the classes that load them."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field
from typing import Any

from fila.config import Config
from fila.settings import Section, section_types
from fila.settings.section import rules


def page() -> str:
    """A table for each section."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Configuration"
    yield "\n`fila-server` reads `fila.toml`, `/etc/fila/fila.toml`, or the file that `--config` names. The environment"
    yield "variable `FILA_<SECTION>__<KEY>` replaces a setting, such as `FILA_STORAGE__DURABILITY=fsync`."
    yield "Units are in the names.\n"
    for name, section in section_types(Config).items():
        yield f"## [{name}]\n"
        yield f"{inspect.getdoc(section) or ''}\n"
        yield "| key | default | allowed | meaning |"
        yield "|---|---|---|---|"
        said = comments(section)
        for key, each in rules(section).items():
            allowed = each.metadata["rule"].expected
            yield f"| `{key}` | `{_toml(default(each))}` | {_cell(allowed)} | {_cell(said.get(key, ''))} |"
        yield ""


def default(each: Field[Any]) -> object:
    """What a setting is when nobody sets it."""
    return each.default if each.default_factory is MISSING else each.default_factory()


def comments(section: type[Section]) -> dict[str, str]:
    """What the comments `#:` above the fields of a class say."""
    source = textwrap.dedent(inspect.getsource(section))
    lines = source.splitlines()
    [made] = ast.parse(source).body
    assert isinstance(made, ast.ClassDef)
    found: dict[str, str] = {}
    for node in made.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = node.lineno - 2
            said: list[str] = []
            while lines[above].strip().startswith("#:"):
                said.insert(0, lines[above].strip()[2:].strip())
                above -= 1
            found[node.target.id] = " ".join(said)
    return found


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
