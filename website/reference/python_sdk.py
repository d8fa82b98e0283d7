"""The public names of the Python SDK, from their signatures and docstrings."""

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator

import fila.client


def page() -> str:
    """Clients first, then what they return, then errors."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Python SDK"
    yield "\nEvery public name of `fila`. [Python SDK](../sdk-python.md) is the guide.\n"
    found = {name: getattr(fila.client, name) for name in fila.client.__all__}
    errors = {name: each for name, each in found.items() if inspect.isclass(each) and issubclass(each, Exception)}
    first = [name for name in ("Client", "AsyncClient") if name in found]
    others = [name for name in sorted(found) if name not in first and name not in errors]
    for name in [*first, *others]:
        yield from _name(name, found[name])
    yield "## Errors\n"
    yield "| error | is a | meaning |"
    yield "|---|---|---|"
    for name, each in sorted(errors.items()):
        yield f"| `{name}` | `{each.__bases__[0].__name__}` | {_first(each)} |"


def _name(name: str, each: object) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{_text(each)}\n"
    if not inspect.isclass(each):
        return
    if issubclass(each, enum.Enum):
        yield "".join(f"- `{member.name}`\n" for member in each)
    elif dataclasses.is_dataclass(each):
        yield "".join(
            f"- `{field.name}: {_type(field.type)}`\n" for field in dataclasses.fields(each) if field.name[0] != "_"
        )
    for method, made in _methods(each):
        yield f"### {name}.{method}\n"
        yield f"```python\n{method}{_signature(made)}\n```\n"
        yield f"{_text(made)}\n"


def _methods(each: type) -> Iterator[tuple[str, object]]:
    for name, made in inspect.getmembers(each):
        owner = next((base for base in each.__mro__ if name in vars(base)), object)
        ours = owner.__module__.startswith("fila.")
        if ours and not name.startswith("_") and inspect.isfunction(made) and inspect.getdoc(made):
            yield name, made


def _signature(made: object) -> str:
    try:
        return re.sub(r"fila\.client\.\w+\.|collections\.abc\.|typing\.", "", str(inspect.signature(made)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"


def _type(kind: object) -> str:
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    return re.sub(r"fila\.client\.\w+\.", "", text)


def _text(each: object) -> str:
    """A docstring, as Markdown: what is indented is code."""
    text = inspect.getdoc(each) or ""
    return re.sub(r"(?m)(^(?: {4}.*\n?)+)", lambda found: f"```python\n{inspect.cleandoc(found[0])}\n```\n", text)


def _first(each: object) -> str:
    return " ".join((inspect.getdoc(each) or "").split("\n\n")[0].split()).replace("|", "\\|")
