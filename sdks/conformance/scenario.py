"""Scenarios as data: `scenarios/*.toml`. README.md describes the form."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "scenarios"

SERVERS = ("shared", "own", "large", "tls", "mutual", "keys", "cluster")

Step = Mapping[str, Any]

_KINDS = {"op", "do", "wait", "check", "rounds"}
_STEP_FIELDS = _KINDS | {
    "with", "expect", "error", "save", "background", "driver", "until", "repeat", "for_each", "steps", "at_least_ms",
    "at_most_ms", "timeout_ms", "or_error",
}  # fmt: skip
_FIELDS = {"name", "about", "fast", "server", "connect", "fresh", "steps"}


class BadScenario(ValueError):
    """A scenario is not written as it must be."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table."""

    name: str
    #: The rule that it shows, in one sentence.
    about: str
    #: Whether it is part of the quick run.
    fast: bool
    #: One of SERVERS.
    server: str
    #: Whether the client "c" is connected to the server, through the proxy, before the first step.
    connect: bool
    #: Whether it needs a process of the driver that did nothing before.
    fresh: bool
    steps: tuple[Step, ...]


def load(folder: Path = FOLDER) -> list[Scenario]:
    """All scenarios, in the order of the files and in them. Raises BadScenario."""
    found: list[Scenario] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            tables = tomllib.loads(path.read_text())["scenario"]
        except tomllib.TOMLDecodeError as error:
            raise BadScenario(f"{path.name}: {error}") from error
        found += [_scenario(path, given) for given in tables]
    names = [scenario.name for scenario in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadScenario(f"two scenarios have one name: {', '.join(sorted(twice))}")
    return found


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Also those inside of others."""
    for step in steps:
        yield step
        yield from all_steps(step.get("steps", ()))


def _scenario(path: Path, given: dict[str, Any]) -> Scenario:
    where = f"{path.name}: {given.get('name', '?')}"
    if unknown := given.keys() - _FIELDS:
        raise BadScenario(f"{where}: unknown fields {sorted(unknown)}")
    if missing := {"name", "about", "steps"} - given.keys():
        raise BadScenario(f"{where}: {sorted(missing)} are missing")
    server = given.get("server", "shared")
    if server not in SERVERS:
        raise BadScenario(f"{where}: no such server {server!r}")
    steps = tuple(given["steps"])
    for step in all_steps(steps):
        if unknown := step.keys() - _STEP_FIELDS:
            raise BadScenario(f"{where}: unknown fields {sorted(unknown)} in {step}")
        if len(_KINDS & step.keys()) != 1:
            raise BadScenario(f"{where}: one of {', '.join(sorted(_KINDS))} in {step}")
    if not any({"expect", "error", "until"} & step.keys() for step in all_steps(steps)):
        raise BadScenario(f"{where}: expects nothing, so it cannot fail")
    return Scenario(
        given["name"],
        given["about"],
        given.get("fast", False),
        server,
        given.get("connect", True),
        given.get("fresh", False),
        steps,
    )
