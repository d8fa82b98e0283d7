"""docs/walkthrough.md names functions that exist, where it says they are."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "walkthrough.md").read_text()
HOPS = re.findall(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \|", PAGE, re.MULTILINE)


def functions(path: Path) -> set[str]:
    found = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(prefix + child.name)
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(path.read_text()), "")
    return found


@pytest.mark.parametrize("hop, file, function", HOPS)
def test_each_hop_exists(hop, file, function):
    assert function in functions(ROOT / "src" / "fila" / file)


def test_every_row_of_a_walk_was_read():
    """A row in another form would be left out without a word."""
    assert len(HOPS) == len(re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE))
    assert len(re.findall(r"^## ", PAGE, re.MULTILINE)) == sum(hop == "1" for hop, _, _ in HOPS)


def test_files_named_in_the_text_exist():
    for file in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (ROOT / "src" / "fila" / file).is_file(), file
