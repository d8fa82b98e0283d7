"""Places that docs/changing.md names exist, and the map in docs/architecture.md has every module of the broker."""

import re
from pathlib import Path

from tests.unit.docs.test_walkthrough import functions

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "changing.md").read_text()


def test_every_place_exists():
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]*|[A-Z]+\.md)`", PAGE)
    assert len(named) > 50
    missing = [each for each in named if not any((base / each).exists() for base in (ROOT, ROOT / "src" / "fila"))]
    assert missing == []


def test_functions_and_classes_that_are_named_exist():
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "fila").rglob("*.py") if "/v1/" not in str(path))
    proto = "\n".join(path.read_text() for path in (ROOT / "proto").rglob("*.proto"))
    named = set(re.findall(r"`(\w+(?:\.\w+)?)`", PAGE))
    assert {"Effect", "Command", "NUMBERS", "ask_on_failure_ahead", "EndingLeases.note_release"} <= named
    members = {name for path in (ROOT / "src" / "fila").rglob("*.py") for name in functions(path)}
    missing = [
        name
        for name in named
        if not (name in members if "." in name else re.search(rf"\b{name}\b", source + proto))
        and name not in {"inspect", "CHANGELOG.md"}
    ]
    assert missing == []


def test_the_map_of_the_broker_has_every_module_once():
    text = (ROOT / "docs" / "architecture.md").read_text().split("## The modules of the broker")[1].split("\n## ")[0]
    rows = [row.split("|")[2] for row in text.splitlines() if row.startswith("|") and "`" in row]
    named = [name for row in rows for name in re.findall(r"`(\w+\.py)`", row)]
    there = [path.name for path in (ROOT / "src" / "fila" / "broker").glob("*.py") if path.name != "__init__.py"]
    assert sorted(named) == sorted(there)
