"""What a release consists of, built once from this tree, or taken from the folder that FILA_DIST names.

Run by `make test-release`, one after another: each test uses what the build left, and some chroot.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.roots import SUITE, copy_root, make_root

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.timeout(1200))  # the first one builds


def script(name, *arguments, **options):
    """Runs a script of the repository. What it prints is shown when the test fails."""
    command = [str(ROOT / name), *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, **options)
    print(done.stdout, done.stderr)
    return done


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """The folder of a release: programs of this platform, wheels, checksums."""
    given = os.environ.get("FILA_DIST")
    folder = Path(given).resolve() if given else tmp_path_factory.mktemp("dist")
    if not given:
        for name in ("release/programs", "release/wheels"):
            assert script(name, folder).returncode == 0
    assert script("release/checksums", folder).returncode == 0
    return folder


@pytest.fixture(scope="session")
def bare_root():
    """A Debian without Python, never changed: copies are. Kept until `make clean`."""
    folder = ROOT / "build" / "roots" / SUITE
    if not folder.exists():
        make_root(folder)
    return folder


@pytest.fixture
def root(bare_root, tmp_path):
    """A Debian of the test's own."""
    return copy_root(bare_root, tmp_path / "root")


@pytest.fixture(scope="session")
def programs(dist, tmp_path_factory):
    """The programs as a folder, as packages contain them."""
    [archive] = dist.glob("fila-*.tar.gz")
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder / archive.name.removesuffix(".tar.gz")
