"""What breaks a client of the last release does not get past `make check`."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUF = ROOT / ".venv/node/node_modules"


@pytest.fixture
def copy(tmp_path):
    """The contract with its script, without buf."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/contract", tmp_path / "scripts")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    return tmp_path


def check(folder, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [folder / "scripts/contract"], env=kept | environment, capture_output=True, text=True, check=False
    )


def change(folder, before, after):
    file = folder / "proto/fila/v1/service.proto"
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")


def test_without_buf_it_is_skipped_with_one_line_and_fails_in_ci(copy):
    skipped = check(copy)
    assert (skipped.returncode, skipped.stderr.count("\n")) == (3, 1)
    assert "npm" in skipped.stderr
    assert check(copy, CI="1").returncode == 1


@pytest.mark.skipif(not BUF.exists(), reason="buf is not installed")
@pytest.mark.parametrize(
    "before, after, code",
    [
        ("  uint64 handed = 3;\n", "  uint64 handed = 3;\n  bool added = 100;\n", 0),
        ("  uint64 handed = 3;\n", "", 100),
        ("  uint64 handed = 3;\n", "  uint64 handed = 4;\n", 100),
        ("  uint64 handed = 3;\n", "  string handed = 3;\n", 100),
        ("  uint64 handed = 3;\n", "  uint64 Handed = 3;\n", 100),
    ],
    ids=["added", "removed", "renumbered", "of another type", "of another style"],
)
def test_only_additions_pass(copy, before, after, code):
    (copy / ".venv/node").mkdir(parents=True)
    (copy / ".venv/node/node_modules").symlink_to(BUF)
    change(copy, before, after)
    checked = check(copy)
    assert checked.returncode == code, checked.stdout + checked.stderr
