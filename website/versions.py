"""A folder with the pages of several versions: a folder for each, a list for the menu, a page that leads to the newest.

The list is `versions.json`, as the theme reads it. The newest is the highest release, and before the first the
highest build.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:\.dev(\d+))?")
_LEAD: Final = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/index.html">\n'


def this_version() -> str:
    """That of the project."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def write_list(folder: Path) -> None:
    """List the versions that the folder has, newest first."""
    names = sorted(filter(_VERSION.fullmatch, (each.name for each in folder.iterdir())), key=_rank, reverse=True)
    newest = next((name for name in names if ".dev" not in name), names[0])
    entries = [{"version": name, "title": name, "aliases": ["latest"] if name == newest else []} for name in names]
    (folder / "versions.json").write_text(json.dumps(entries, indent=2) + "\n")
    (folder / "index.html").write_text(_LEAD.format(newest))


def _rank(name: str) -> tuple[float, ...]:
    """A release comes after its builds."""
    found = _VERSION.fullmatch(name)
    assert found
    return tuple(float("inf") if part is None else int(part) for part in found.groups())
