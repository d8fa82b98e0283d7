"""A server for each test, and a table of what the attacks cost at the end of a run."""

import os
import threading
from dataclasses import dataclass, field

import pytest

from fila.testing import ServerProcess
from tests.hostile.support import MIB, Canary, Growth, canary_alone, watched

COLUMNS = (
    "attack",
    "how much",
    "memory, MiB over idle",
    "canary calls",
    "failed",
    "p99 alone, ms",
    "p99 during the attack, ms",
)
FIGURES = "figures"
LOWEST = 19


@pytest.fixture
def server():
    with ServerProcess() as process:
        yield process


def _set_priority(niceness):
    """Of this thread and those that it starts: an attacker is on another machine, and takes no processor from the
    server. Only root may take it back.
    """
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


@dataclass
class Attack:
    """One attack on a server, with a canary beside it. Used as a context manager around what the peers do."""

    server: ServerProcess
    name: str
    amount: str
    figures: list
    canary: Canary = field(init=False)
    growth: Growth = field(init=False)

    def __enter__(self):
        self.alone = canary_alone(self.server.addr)
        self._watch = watched(self.server.pid)
        self.canary = Canary(self.server.addr)
        self.canary.__enter__()
        self.growth = self._watch.__enter__()
        _set_priority(LOWEST)
        return self

    def __exit__(self, *error):
        _set_priority(0)
        self._watch.__exit__(*error)
        self.canary.__exit__(*error)
        health = self.canary.health
        row = (
            self.name,
            self.amount,
            f"{self.growth.most / MIB:.0f}",
            str(health.calls),
            str(health.failed),
            f"{self.alone.p99_ms:.1f}",
            f"{health.p99_ms:.1f}",
        )
        self.figures.append((FIGURES, row))

    @property
    def delay_ms(self):
        """How much longer the canary's slowest hundredth took beside the attack."""
        return self.canary.health.p99_ms - self.alone.p99_ms


@pytest.fixture
def attack(server, request):
    """`with attack("name", "how much") as run: ...`; then look at run.growth.most, run.canary.health, run.delay_ms."""
    return lambda name, amount: Attack(server, name, amount, request.node.user_properties)


def pytest_terminal_summary(terminalreporter):
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    rows = [row for report in reports if report.when == "call" for key, row in report.user_properties if key == FIGURES]
    if rows:
        terminalreporter.section("what the attacks cost")
        for row in [COLUMNS, ("---",) * len(COLUMNS), *rows]:
            terminalreporter.write_line("| " + " | ".join(row) + " |")
