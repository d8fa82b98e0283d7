"""Programs in Go: a machine without Go skips their tests, and CI fails them."""

import os
import shutil

import pytest

from scripts import go_tool


def compiler():
    go = shutil.which("go")
    return go if go is not None else missing("Go is not installed")


def program(package, version):
    """A program of the module proxy, built once."""
    try:
        return go_tool.build(package, version)
    except RuntimeError as error:
        return missing(str(error))


def missing(reason):
    """Skip, with the reason; what is skipped everywhere is tested nowhere, so CI fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
