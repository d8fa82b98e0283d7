"""A second machine in a network namespace: a peer whose address is not one of loopback."""

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Neighbour:
    """A network namespace that reaches this machine at `host`."""

    namespace: str
    host: str

    def python(self, program, *arguments, timeout=60, env=None):
        """Run a program there. What it prints."""
        command = ["ip", "netns", "exec", self.namespace, sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True, env=env).stdout


@contextmanager
def neighbour():
    """Skips the test where a namespace cannot be made."""
    number = os.getpid() % 250
    namespace, ours, theirs = f"fila{os.getpid()}", f"fa{os.getpid()}", f"fb{os.getpid()}"
    host, guest = f"10.231.{number}.1", f"10.231.{number}.2"
    try:
        _ip("netns", "add", namespace)
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
        _ip("link", "set", theirs, "netns", namespace)
        _ip("addr", "add", f"{host}/30", "dev", ours)
        _ip("link", "set", ours, "up")
        _ip("-n", namespace, "addr", "add", f"{guest}/30", "dev", theirs)
        _ip("-n", namespace, "link", "set", theirs, "up")
        _ip("-n", namespace, "link", "set", "lo", "up")
    except (OSError, subprocess.CalledProcessError) as error:
        _remove(namespace, ours)
        pytest.skip(f"a network namespace cannot be made here: {getattr(error, 'stderr', '') or error}")
    try:
        yield Neighbour(namespace, host)
    finally:
        _remove(namespace, ours)


def _ip(*arguments):
    subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)


def _remove(namespace, link):
    for arguments in (("link", "del", link), ("netns", "del", namespace)):
        subprocess.run(["ip", *arguments], capture_output=True, check=False)
