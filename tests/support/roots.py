"""Root folders of a small Debian without Python, in which installed programs run as on another machine.

`debootstrap` makes one, once; each test gets a copy. A command in it sees the files of that root alone. The network is
that of the machine, so that tests reach what listens on loopback.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

SUITE = "bookworm"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
}


class Root:
    """One root folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def reach_the_network(self) -> dict[str, str]:
        """Names are resolved as on the machine, and its certificates count: what pip has to be told of them."""
        shutil.copy("/etc/resolv.conf", self.folder / "etc/resolv.conf")
        shutil.copy(CERTIFICATES, self.folder / "tmp/certificates.crt")
        return {"PIP_CERT": "/tmp/certificates.crt", "PIP_RETRIES": "10"}

    def command(self, *words: str | Path) -> list[str]:
        """The command line that runs the words inside, for programs that are started and watched."""
        return ["chroot", str(self.folder), *map(str, words)]

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Runs the words inside. What they print is in the result, whatever their exit code."""
        env = {**ENVIRONMENT, **(env or {})}
        return subprocess.run(self.command(*words), check=False, capture_output=True, text=True, env=env, timeout=110)

    def output(self, *words: str | Path, env: Mapping[str, str] | None = None) -> str:
        """What the words print. Fails when they do."""
        done = self.run(*words, env=env)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


def make_root(folder: Path) -> None:
    """A small Debian in a folder, for copies."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("needs root and debootstrap: apt-get install debootstrap")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", SUITE, str(partial)], check=False, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout[-2000:]
    assert not list(partial.glob("usr/bin/python*")), "the programs must not find a Python"
    partial.rename(folder)


def copy_root(source: Path, folder: Path) -> Root:
    """A root of a test's own. Hard links would let one test change the files of another."""
    subprocess.run(["cp", "-a", str(source), str(folder)], check=True)
    return Root(folder)
