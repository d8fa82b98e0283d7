"""A client that was made from docs/protocol.md alone keeps its promises through connections that lose answers."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.support.proxy import Proxy

ROOT = Path(__file__).parents[2]
COUNT = 600


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Code of the contract, and of nothing else."""
    folder = tmp_path_factory.mktemp("generated")
    files = sorted(map(str, (ROOT / "proto/fila/v1").glob("*.proto")))
    out = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", *out, *files], check=True)
    (folder / "fila/__init__.py").write_text("")
    return folder


@pytest.mark.parametrize("cuts", [0, 6])
def test_a_plain_client_enqueues_once_and_acks_all(generated, cuts):
    with ServerProcess() as server, Proxy(server.addr) as proxy:
        program = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("plain_client.py"), proxy.addr, "orders", str(COUNT)],
            env=os.environ | {"PYTHONPATH": str(generated)},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert program.stdout.readline() == "ready\n"
            for _ in range(cuts):
                proxy.swallows_answers = True  # what is done now is answered to nobody
                time.sleep(0.1)
                proxy.cut()
                proxy.mend()
                time.sleep(0.2)
            said, _ = program.communicate(timeout=90)
        finally:
            program.kill()
            program.wait()
        assert said == f"produced {COUNT} {COUNT}\nconsumed {COUNT} True\n"
        with Client(server.addr) as client:
            stats = client.queue_stats("orders")
        assert (stats.counters.enqueued, stats.summary.depth, stats.summary.in_flight) == (COUNT, 0, 0)
