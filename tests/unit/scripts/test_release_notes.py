import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "release" / "notes"
CHANGELOG = """# Changelog

## [Unreleased]

- coming

## [1.2.0] - 2030-01-02

### Added

- this

## [1.1.0] - 2029-01-02

- that
"""


@pytest.fixture
def notes(tmp_path):
    """Runs the script in a repository at version 1.2.0."""
    (tmp_path / "release").mkdir()
    shutil.copy(SCRIPT, tmp_path / "release")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)

    def run(version, package="1.2.0"):
        (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{package}"\n')
        command = [tmp_path / "release" / "notes", version]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_notes_are_the_section_of_that_version_alone(notes):
    result = notes("1.2.0")
    assert result.stdout.split() == ["###", "Added", "-", "this"]
    assert result.returncode == 0


def test_a_version_other_than_the_package_is_refused(notes):
    result = notes("1.1.0")
    assert (result.returncode, result.stderr) == (1, "notes: pyproject.toml is not at version 1.1.0\n")


def test_a_version_without_notes_is_refused(notes):
    result = notes("1.3.0", package="1.3.0")
    assert (result.returncode, result.stderr) == (1, "notes: CHANGELOG.md says nothing about 1.3.0\n")
