"""Places that docs/changing.md names exist, and the map in docs/architecture.md has every module of the broker and the
sizes of what to read.
"""

import re
from pathlib import Path

import pytest

from tests.unit.docs.test_walkthrough import functions

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "changing.md").read_text()
MAP = (ROOT / "docs" / "architecture.md").read_text()


def test_every_place_exists():
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]*|[A-Z]+\.md)`", PAGE)
    assert len(named) > 50
    missing = [each for each in named if not any((base / each).exists() for base in (ROOT, ROOT / "src" / "fila"))]
    assert missing == []


def test_functions_and_classes_that_are_named_exist():
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "fila").rglob("*.py") if "/v1/" not in str(path))
    proto = "\n".join(path.read_text() for path in (ROOT / "proto").rglob("*.proto"))
    named = set(re.findall(r"`(\w+(?:\.\w+)?)`", PAGE))
    assert {"Effect", "Command", "NUMBERS", "whereabouts", "EndingLeases.note_release"} <= named
    members = {name for path in (ROOT / "src" / "fila").rglob("*.py") for name in functions(path)}
    missing = [
        name
        for name in named
        if not (name in members if "." in name else re.search(rf"\b{name}\b", source + proto))
        and name not in {"inspect", "CHANGELOG.md"}
    ]
    assert missing == []


def lines_of(path):
    return sum(len(file.read_text().splitlines()) for file in ([path] if path.is_file() else path.rglob("*.py")))


def test_sizes_are_about_what_the_page_says():
    """Within a tenth: whoever reads the files first wants to know how long that takes."""
    text = MAP.split("## Where to start reading")[1].split("\n## ")[0]
    source = ROOT / "src" / "fila"
    files = {
        source / file: int(lines)
        for file, lines in re.findall(r"^\| \d+ \| `([\w/.]+)` \| (\d+) \|", text, re.MULTILINE)
    }
    assert len(files) > 10
    parts, all_parts = re.search(r"The product is (.*), about ([\d,]+) lines", text).groups()
    all_files = re.search(r"They are about ([\d,]+) lines", text)[1]
    told = [*files.values(), int(all_parts.replace(",", "")), int(all_files.replace(",", ""))]
    counted = [*map(lines_of, files)]
    counted += [sum(lines_of(source / part) for part in re.findall(r"`(\w+)/`", parts)), sum(counted)]
    assert told == [pytest.approx(lines, rel=0.1) for lines in counted]


def test_the_map_of_the_broker_has_every_module_once():
    text = MAP.split("## The modules of the broker")[1].split("\n## ")[0]
    rows = [row.split("|")[2] for row in text.splitlines() if row.startswith("|") and "`" in row]
    named = [name for row in rows for name in re.findall(r"`(\w+\.py)`", row)]
    there = [path.name for path in (ROOT / "src" / "fila" / "broker").glob("*.py") if path.name != "__init__.py"]
    assert sorted(named) == sorted(there)
