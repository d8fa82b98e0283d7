"""Every SDK has the same examples, and its README links to them."""

import os
import re

import pytest

from sdks.conformance.__main__ import DOCS, LANGUAGES, SDKS
from sdks.conformance.examples import EXAMPLES, main

SUFFIXES = {"python": "py", "go": "go", "javascript": "mjs", "rust": "rs", "java": "java", "ruby": "rb"}


def programs(sdk):
    """By the names that the table of examples has: CamelCase is Java's, and Go has a folder for each program."""
    found = {}
    for path in (SDKS / sdk / "examples").rglob(f"*.{SUFFIXES[sdk]}"):
        name = path.parent.name if path.name == "main.go" else path.stem
        found[re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()] = path.relative_to(SDKS / sdk)
    return found


@pytest.mark.parametrize("sdk", LANGUAGES)
def test_every_sdk_has_every_example_and_runs_it_by_its_name(sdk):
    found = programs(sdk)
    assert set(EXAMPLES) <= set(found)
    assert os.access(SDKS / sdk / "example", os.X_OK)
    for name in EXAMPLES:
        assert f"[{name}]({found[name]})" in (SDKS / sdk / "README.md").read_text()
    assert f"(../sdks/{sdk}/examples)" in (DOCS / "sdks.md").read_text()


def test_no_example_goes_unrun():
    others = {name for sdk in LANGUAGES for name in programs(sdk)} - set(EXAMPLES)
    assert others == {"quickstart", "main_test"}, "the quickstart of Go has a test of its own"


def test_unknown_languages_are_refused():
    assert main(["cobol"]) == 2
