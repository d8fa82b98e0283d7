"""docs/data-model.md names every family of the store, who writes it, and everything that is kept of a queue and of the
broker.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.storage.base import Family

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "data-model.md").read_text()
PUT, DELETE = "put", "delete"
CHANGES = {"put": PUT, "put_many": PUT, "delete": DELETE, "delete_many": DELETE, "delete_range": DELETE}
"""Methods of a Batch, whose first argument is the family"""
HELPERS = {
    "put_grant": [(PUT, "LEASES"), (PUT, "LEASE_EXPIRY")],
    "put_attempt": [(PUT, "ATTEMPTS")],
    "drop_history": [(DELETE, "ATTEMPTS")],
}
"""Functions that change a batch for their callers"""
HELD = re.compile(r"^\| `([A-Z_]+)` \|.*\| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def section(title: str) -> str:
    return PAGE.split(f"## {title}", 1)[1].split("\n## ", 1)[0]


def named(text: str) -> set[str]:
    return {name.split(".")[-1] for name in re.findall(r"`([\w.]+)`", text)}


def listed() -> dict[tuple[str, str], set[str]]:
    """What the page says: the modules that put to, or delete from, each family."""
    found: dict[tuple[str, str], set[str]] = {}
    for family, put, deleted in HELD.findall(section("Durable")):
        for change, cell in ((PUT, put), (DELETE, deleted)):
            modules = {name.removeprefix("broker/") for name in re.findall(r"`([\w/]+\.py)`", cell)}
            for other in re.findall(r"as `([A-Z_]+)`", cell):
                modules |= found[change, other]
            found[change, family] = modules
    return found


def families(node: ast.expr, loops: dict[str, list[str]]) -> list[str]:
    """The families that an argument names: `Family.X`, or the variable of a loop over several."""
    match node:
        case ast.Attribute(value=ast.Name(id="Family"), attr=name):
            return [name]
        case ast.Name(id=name):
            return loops.get(name, [])
    return []


def loops_over_families(tree: ast.AST) -> dict[str, list[str]]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple):
            found[node.target.id] = [name for element in node.iter.elts for name in families(element, {})]
    return found


def changes_in(source: str) -> set[tuple[str, str]]:
    """Which families a module changes, and how."""
    tree = ast.parse(source)
    loops = loops_over_families(tree)
    found: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=method) | ast.Name(id=method), args=[first, *_]) if method in CHANGES:
                found |= {(CHANGES[method], family) for family in families(first, loops)}
            case ast.Call(func=ast.Name(id=helper)) if helper in HELPERS:
                found |= set(HELPERS[helper])
    return found


def written() -> dict[tuple[str, str], set[str]]:
    """What the code does, as `listed`."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for folder, prefix in (("broker", ""), ("storage", "storage/"), ("replicas", "replicas/")):
        for path in (ROOT / "src" / "fila" / folder).glob("*.py"):
            for change in changes_in(path.read_text()):
                found[change].add(prefix + path.name)
    return found


def test_every_family_has_a_row():
    rows = [family for family, _, _ in HELD.findall(section("Durable"))]
    assert sorted(rows) == sorted(family.name for family in Family)


@pytest.mark.parametrize("change", [PUT, DELETE])
@pytest.mark.parametrize("family", [family.name for family in Family])
def test_the_modules_that_change_a_family_are_listed_and_no_others(family, change):
    assert listed()[change, family] == written()[change, family]


def test_every_way_to_change_a_family_is_found():
    """Else a module could write without being missed on the page."""
    source = """
        batch.put(Family.A, key, value)
        tick.batch.delete_many(Family.B, keys)
        for family in (Family.C, Family.D):
            batch.delete_range(family, start, end)
        put_grant(batch, queue, grant)
        others.put(key, value)
        put(Family.E, key, value)
    """
    assert changes_in(re.sub(r"^ {8}", "", source, flags=re.MULTILINE).rstrip()) == {
        (PUT, "A"),
        (DELETE, "B"),
        (DELETE, "C"),
        (DELETE, "D"),
        (PUT, "E"),
        (PUT, "LEASES"),
        (PUT, "LEASE_EXPIRY"),
    }


def test_everything_in_memory_is_named():
    names = named(section("Derived") + section("Only while"))
    kept = {name for name in (*QueueState.__slots__, *BrokerState.__slots__) if not name.startswith("_")}
    assert kept <= names
