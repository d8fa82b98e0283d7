"""The commands of docs/operations.md, run as they stand there."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, eventually

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
COMMANDS = [line.removeprefix("$ ") for line in PAGE.read_text().splitlines() if line.startswith("$ fila ")]


@pytest.fixture(scope="module")
def trouble(tmp_path_factory):
    """A broker with a queue on which a tenant waits for a limit, and one message has died."""
    folder = tmp_path_factory.mktemp("operations")
    (folder / "policy.lua").write_text("function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end")
    with ServerProcess(tmp_path_factory.mktemp("server")) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders", fairness_header="tenant", throttle_headers=["provider"], max_attempts=1)
        client.enqueue("orders", {"tenant": "acme"}, b"dies")
        with Inbox(client, "orders", on_message=lambda message: message.nack("cannot be read")):
            eventually(lambda: client.queue_stats("orders.dlq").summary.depth, "a dead letter")
        client.set_config("throttle.provider:aws", "rate=0.01,burst=1")
        for tenant in ("acme", "acme", "acme", "globex"):
            client.enqueue("orders", {"tenant": tenant, "provider": "aws"})
        with Inbox(client, "orders"):
            eventually(lambda: client.queue_stats("orders").summary.in_flight, "a delivery")
            yield server, folder


def test_there_are_commands():
    assert len(COMMANDS) >= 12


def test_every_command_works_and_says_what_the_page_promises(trouble):
    server, folder = trouble
    shown = {}
    for command in COMMANDS:
        args = shlex.split(command)[1:]
        result = subprocess.run(
            [sys.executable, "-m", "fila.cli.main", *args],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=folder,
            env={**os.environ, "FILA_ADDR": server.addr},
        )
        assert result.returncode == 0, (command, result.stderr)
        shown[command] = result.stdout
    assert "ENTITLED" in shown["fila queue inspect orders --sort oldest"]
    why = shown["fila explain orders --key acme"]
    assert "throttled" in why
    assert "[throttle.provider:aws]" in why
    assert "provider:aws" in shown["fila throttle list"]
    assert "acme" in shown["fila top orders --once"]
    assert "cannot be read" in shown["fila dlq peek orders.dlq"]
