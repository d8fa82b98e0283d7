"""Installed programs, wherever they are: `fila-server` is started, and `fila` asked until the broker answers."""

import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fila.testing import ServerProcess

LONG = 60

#: Fairness, storage and the command line in four commands: what each prints, in order.
ROUND_TRIP = (
    ("queue create orders --fairness-header tenant", "orders"),
    ("enqueue orders 'an order' -H tenant=acme", ""),
    ("consume orders --count 1", "an order"),
    ("stats orders", "orders"),
)


def output(command: Sequence[str | Path], env: Mapping[str, str], folder: Path | None = None) -> str:
    """What the command prints. Fails with all of it when the command does."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@contextmanager
def broker(
    server: Sequence[str | Path], fila: Sequence[str | Path], env: Mapping[str, str], folder: Path
) -> Iterator[dict[str, str]]:
    """Runs the server's command, in which {addr} becomes a free port. Yields the environment in which `fila` finds it.

    A broker that does not end by itself on SIGINT, without an error, fails the test.
    """
    holder = ServerProcess(folder)  # never started: it keeps a port free for us
    found = {**env, "FILA_ADDR": holder.addr}
    command = [str(part).replace("{addr}", holder.addr) for part in server]
    process = subprocess.Popen(command, cwd=folder, env=found)
    try:
        _wait_until_reached(process, [str(part) for part in fila], found)
        yield found
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0
    finally:
        process.kill()
        process.wait()
        holder.close()


def _wait_until_reached(process: "subprocess.Popen[bytes]", fila: Sequence[str], env: Mapping[str, str]) -> None:
    deadline = time.monotonic() + LONG
    while subprocess.run([*fila, "queue", "list"], env=env, check=False, capture_output=True, timeout=LONG).returncode:
        assert process.poll() is None, "the broker ended"
        assert time.monotonic() < deadline, "the broker does not answer"


def round_trip(fila: Sequence[str | Path], env: Mapping[str, str]) -> None:
    """A message goes through the broker by the command line."""
    for arguments, expected in ROUND_TRIP:
        assert expected in output([*fila, *shlex.split(arguments)], env)
