"""A server that cannot do what it was told says so, names the culprit and leaves everything as it was."""

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.support import PATIENCE_S, contents, payloads, take


@pytest.fixture
def refused(tmp_path):
    """Start a server that is expected to refuse: returns its exit code and what it wrote."""

    def run(workdir=tmp_path, **settings):
        server = ServerProcess(workdir, **settings)
        already = len(server.log)
        try:
            return server.launch().wait(PATIENCE_S), server.log[already:]
        finally:
            server.close()

    return run


@pytest.fixture
def filled(server):
    """A running server with one queue of ten messages."""
    with Client(server.addr) as client:
        client.create_queue("orders")
        client.enqueue_many("orders", [b"payload %d" % number for number in range(10)])
    return server


def contents_of(folder):
    """Every file with what is in it, but for RocksDB's own log and the empty file it locks."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("LOG") and path.name != "LOCK"
    }


@pytest.mark.parametrize(
    "config, culprit",
    [
        ("[server\nlisten_addr = 1", "malformed TOML"),
        ("[server]\nlisten = 'x'", "unknown key server.listen"),
        ("[sever]\n", "unknown section 'sever'"),
        ("[storage]\ndurability = 'never'", "storage.durability = 'never'"),
        ("[scheduler]\nquantum = 0", "scheduler.quantum = 0"),
    ],
)
def test_a_configuration_file_that_is_not_understood(refused, config, culprit):
    """The server exits with code 2 and names file and key; no store is made."""
    code, log = refused(config=config)
    assert code == 2
    assert log.startswith("Error: ")
    assert culprit in log
    assert "fila.toml" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    "variable, value, culprit",
    [
        ("FILA_SERVER__PORT", "1", "unknown variable FILA_SERVER__PORT"),
        ("FILA_SCHEDULER__QUANTUM", "ten", "FILA_SCHEDULER__QUANTUM: scheduler.quantum = 'ten'"),
        ("FILA_SERVER__LISTEN_ADDR", "nowhere", "FILA_SERVER__LISTEN_ADDR: server.listen_addr = 'nowhere'"),
    ],
)
def test_a_variable_that_is_not_understood(refused, tmp_path, variable, value, culprit):
    """The server exits with code 2 and names the variable; no store is made."""
    code, log = refused(env={variable: value})
    assert code == 2
    assert culprit in log
    assert "Traceback" not in log
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("args, culprit", [(["--config", "absent.toml"], "absent.toml"), (["--port", "1"], "--port")])
def test_arguments_that_are_not_understood(refused, args, culprit):
    """The server exits with code 2 and names the argument."""
    code, log = refused(args=args)
    assert code == 2
    assert culprit in log
    assert "Traceback" not in log


def test_the_environment_overrides_the_file(tmp_path):
    """What a file says holds, unless a variable says otherwise."""
    config = "[scheduler]\nquantum = 7\nvisibility_timeout_ms = 7000\n"
    with (
        ServerProcess(tmp_path, config=config, env={"FILA_SCHEDULER__QUANTUM": "9"}) as server,
        Client(server.addr) as client,
    ):
        client.create_queue("orders")
        settings = client.queue_stats("orders").config
        assert (settings.quantum, settings.visibility_timeout_ms) == (9, 7000)


def test_a_second_server_on_the_same_data_is_refused(server, tmp_path_factory):
    """It exits with an error that says why; the first one does not notice."""
    with Client(server.addr) as client:
        client.create_queue("orders")
        client.enqueue("orders", None, b"job")
        second = ServerProcess(tmp_path_factory.mktemp("second"), args=["--data-dir", str(server.data_dir)])
        try:
            assert second.launch().wait(PATIENCE_S) == 1
            assert "in use by another fila-server" in second.log
            assert "Traceback" not in second.log
        finally:
            second.close()
        client.enqueue("orders", None, b"another")
        assert payloads(take(client, "orders", 2)) == [b"job", b"another"]


def test_a_port_that_is_in_use(server, refused, tmp_path_factory):
    """The server exits with an error that names the address."""
    code, log = refused(tmp_path_factory.mktemp("second"), args=["--listen", server.addr])
    assert code == 1
    assert server.addr in log
    assert "Traceback" not in log


def damage_format(data):
    (data / "FILA_FORMAT").write_text("banana\n")


def remove_format(data):
    (data / "FILA_FORMAT").unlink()


def damage_manifest(data):
    [manifest] = data.glob("MANIFEST-*")
    manifest.write_bytes(bytes(byte ^ 0xFF for byte in manifest.read_bytes()))


def damage_current(data):
    (data / "CURRENT").write_text("MANIFEST-999999\n")


def damage_payload(data):
    """One message in the middle, wherever the store keeps it: in its log after a kill, in a table after a stop."""
    [file] = [path for path in data.iterdir() if b"payload 5" in path.read_bytes()]
    file.write_bytes(file.read_bytes().replace(b"payload 5", b"PAYLOAD 5"))


@pytest.mark.parametrize(
    "end, damage",
    [
        ("stop", damage_format),
        ("stop", remove_format),
        ("stop", damage_manifest),
        ("kill", damage_current),
        ("kill", damage_payload),
        ("stop", damage_payload),
    ],
)
def test_a_damaged_store_is_left_as_it_is(filled, end, damage):
    """The server exits with an error that says so. Once the damage is undone, everything is there."""
    getattr(filled, end)()
    sound = contents_of(filled.data_dir)
    damage(filled.data_dir)
    before = contents_of(filled.data_dir)
    already = len(filled.log)
    assert filled.launch().wait(PATIENCE_S) == 1
    said = filled.log[already:]
    assert said.startswith("Error: ")
    assert str(filled.data_dir) in said
    assert "Traceback" not in said
    after = contents_of(filled.data_dir)
    # A damaged table is only found by reading it, which RocksDB does not do before it has begun a new manifest.
    kept = [path for path in before if path.suffix == ".sst"] if (end, damage) == ("stop", damage_payload) else before
    assert {path: after.get(path) for path in kept} == {path: before[path] for path in kept}
    for path, content in sound.items():
        if before.get(path) != content:
            path.write_bytes(content)
    filled.start()
    with Client(filled.addr) as client:
        assert payloads(take(client, "orders", 10)) == [b"payload %d" % number for number in range(10)]


def test_a_store_of_a_later_version_is_left_as_it_is(filled):
    """The server says which format it found, and the store still works with the right version."""
    filled.stop()
    format_file = filled.data_dir / "FILA_FORMAT"
    written = format_file.read_text()
    format_file.write_text("999\n")
    before = contents_of(filled.data_dir)
    already = len(filled.log)
    assert filled.launch().wait(PATIENCE_S) == 1
    assert "has format 999" in filled.log[already:]
    assert "Traceback" not in filled.log[already:]
    assert contents_of(filled.data_dir) == before
    format_file.write_text(written)
    filled.start()
    with Client(filled.addr) as client:
        assert contents(client, "orders") == (10, 0, 0)


def test_a_log_that_a_crash_cut_short_is_no_damage(filled):
    """Only the unfinished record at the end is dropped: what a kill leaves behind opens again."""
    filled.kill()
    log = max(filled.data_dir.glob("*.log"), key=lambda path: path.stat().st_size)
    log.write_bytes(log.read_bytes() + log.read_bytes()[:20])  # the beginning of one more record
    filled.start()
    with Client(filled.addr) as client:
        assert payloads(take(client, "orders", 10)) == [b"payload %d" % number for number in range(10)]


def test_a_data_directory_that_cannot_be_made(refused, tmp_path):
    """The server exits with an error that names it."""
    (tmp_path / "file").write_text("")
    code, log = refused(args=["--data-dir", str(tmp_path / "file" / "data")])
    assert code == 1
    assert str(tmp_path / "file") in log
    assert "Traceback" not in log
