"""A store that is removed under a running server: the server says so and ends, and promises nothing."""

import shutil
import stat

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.support import eventually


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "busy"])
def test_a_server_whose_store_was_removed_ends_and_does_not_promise_recovery(tmp_path, idle):
    server = ServerProcess(tmp_path)
    try:
        server.start()
        with Client(server.addr, timeout=30) as client:
            client.create_queue("q")
            client.enqueue("q", None, b"x")
            shutil.rmtree(server.data_dir)
            if not idle:
                with pytest.raises(Exception):  # noqa: B017 - whatever a client meets when its server ends
                    for _ in range(1_000_000):
                        client.enqueue("q", None, b"x", timeout=5)
            eventually(lambda: not server.running, "the server has ended")
        assert server._process.returncode == 1
        assert "was removed or replaced while the server was running" in server.log
        assert "a restart recovers everything" not in server.log
    finally:
        server.close()


def test_the_files_of_a_server_are_for_its_owner_alone(tmp_path):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("q")
        client.enqueue("q", None, b"x")
        assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in server.data_dir.iterdir()} == {0o600}
        server.stop()
        (server.data_dir / "FILA_FORMAT").chmod(0o644)
        server.start()
        assert "others could read the store" in server.log
        assert stat.S_IMODE((server.data_dir / "FILA_FORMAT").stat().st_mode) == 0o600
