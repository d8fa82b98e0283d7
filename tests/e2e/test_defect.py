"""A defect in the broker itself: it ends at once and loudly, and a restart recovers everything."""

import subprocess
import sys

import pytest

from fila import Client, FilaError
from fila.testing import ServerProcess
from tests.e2e.support import eventually

# A server whose engine fails as soon as a poisoned message is committed, after its memory has changed.
DEFECTIVE = """
import sys
from fila.broker import engine
from fila.broker.arrival import Arrival
from fila.server.main import main

commit = engine.Engine._commit

def failing(self, tick, now):
    commit(self, tick, now)
    if any("poison" in arrival.queue.name for arrival in tick.all(Arrival)):
        raise RuntimeError("a defect")

engine.Engine._commit = failing
sys.exit(main())
"""


def answers(client):
    try:
        return client.list_queues()
    except FilaError:
        return None


def test_a_defect_ends_the_server_and_a_restart_recovers(tmp_path):
    """The process exits with 70 and says why in its log; what was confirmed before is there afterwards."""
    with ServerProcess(tmp_path) as server:
        with Client(server.addr, timeout=10) as client:
            client.create_queue("good")
            client.create_queue("poison")
            kept = client.enqueue("good", {}, b"kept")
        server.stop()
        with subprocess.Popen(
            [sys.executable, "-c", DEFECTIVE, "--listen", server.addr, "--data-dir", str(server.data_dir)],
            stderr=subprocess.PIPE,
            text=True,
        ) as defective:
            try:
                with Client(server.addr, timeout=5) as client:
                    eventually(lambda: answers(client), "the defective server listens")
                    with pytest.raises(FilaError):
                        client.enqueue("poison", {}, b"x")
                _, log = defective.communicate(timeout=60)
            finally:
                defective.kill()
        assert defective.returncode == 70
        assert "a defect" in log
        server.start()
        with Client(server.addr, timeout=10) as client, client.consume("good") as consumer:
            message = next(consumer)
            assert message.id == kept
            message.ack()
