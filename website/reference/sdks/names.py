"""Public names of a package, and the page that shows them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby


@dataclass
class Name:
    """One name: how it is declared, what is said of it as Markdown, and what belongs to it under its whole name."""

    name: str
    code: str
    text: str = ""
    members: list["Name"] = field(default_factory=list)


@dataclass(frozen=True)
class Package:
    """One SDK: its folder, the name of its package, and the language of its code."""

    title: str
    sdk: str
    package: str
    language: str
    first: tuple[str, ...]


def render(package: Package, names: Iterable[Name]) -> str:
    """The names to begin with, the others, and a table of errors."""
    return "\n".join(_lines(package, list(names))) + "\n"


def _lines(package: Package, names: list[Name]) -> Iterator[str]:
    yield f"# {package.title} SDK"
    yield (
        f"\nEvery public name of `{package.package}`, from its sources. "
        f"[The SDK](../sdks/{package.sdk}.md) is the guide. The [gRPC API](api.md) has the messages of the contract.\n"
    )
    errors = [each for each in names if _is_error(each)]
    others = [each for each in names if each not in errors]
    for each in sorted(others, key=lambda each: _rank(package, each)):
        yield f"## {each.name}\n"
        yield from _shown(package, each)
        for name, overloads in groupby(each.members, key=lambda member: member.name):
            yield f"### {name}\n"
            for member in overloads:
                yield from _shown(package, member)
    if errors:
        yield "## Errors\n"
        yield "| error | meaning |"
        yield "|---|---|"
        for each in sorted(errors, key=lambda each: each.name):
            about = _escaped(" ".join(each.text.split())).removeprefix(f"{each.name}: ")
            yield f"| `{each.name}` | {about} |"


def _rank(package: Package, each: Name) -> tuple[int, str]:
    first = package.first.index(each.name) if each.name in package.first else len(package.first)
    return first, each.name


def _is_error(each: Name) -> bool:
    """Of most errors the name says it all. One that has more has a section like anything else."""
    named = each.name.endswith(("Error", "Exception")) or each.name.startswith("Err")
    return named and not each.members and "{" not in each.code


def _shown(package: Package, each: Name) -> Iterator[str]:
    yield f"```{package.language}\n{each.code}\n```\n"
    if each.text:
        yield f"{_escaped(each.text)}\n"


def _escaped(text: str) -> str:
    """`<queue>` is a word of the text and no tag, unless it is in code."""
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
