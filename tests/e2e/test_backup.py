"""Backups of a server that works, is killed, and is brought back from them, with real processes."""

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from fila import Client, OutgoingMessage
from fila.core.errors import StoreBusy, StoreCorrupt, StoreUnusable
from fila.storage.backup import make_backup, read_backup
from fila.storage.folder import RESTORE
from fila.storage.format import FORMAT, ROCKSDB, note_format
from fila.storage.restore import restore_backup
from fila.storage.rocks import RocksStorage
from fila.testing import ServerProcess
from tests.e2e.support import eventually, take
from tests.support.disks import small_disk_at
from tests.support.pages import ROOT, Shell, blocks, environment

PAGE = ROOT / "docs" / "backup.md"
COMMAND = [sys.executable, "-m", "fila.server.main"]


def store_command(*args, code=0, cwd=None):
    done = subprocess.run(
        [*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=100, check=False, cwd=cwd
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_backup_under_load_holds_all_that_was_confirmed_and_nothing_that_was_acked(tmp_path):
    """Messages go in and out while three backups are made; the server is killed; the last one comes back elsewhere."""
    config = "[storage]\nwrite_buffer_bytes = 1_000_000\n"  # so that files come and go all the time
    confirmed, acked, stop = set(), set(), threading.Event()
    with ServerProcess(tmp_path, config=config) as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("kept", fairness_header="tenant")
            client.create_queue("flow", fairness_header="tenant")

            def produce():
                with Client(server.addr, timeout=30) as own:
                    number = 0
                    while not stop.is_set():
                        bodies = [(f"{number + i}:".encode()).ljust(2000, b"x") for i in range(100)]
                        for name in ("kept", "flow"):
                            results = own.enqueue_many(
                                name, [OutgoingMessage(b, {"tenant": str(i % 7)}) for i, b in enumerate(bodies)]
                            )
                            if name == "kept":
                                confirmed.update(str(each) for each in results)
                        number += 100
                        stop.wait(0.1)  # what is sent has to be taken out again at the end

            def consume():
                with Client(server.addr, timeout=30) as own:
                    for message in own.consume("flow", max_in_flight=200):
                        message.ack()
                        acked.add(message.id)
                        if stop.is_set():
                            break

            threads = [threading.Thread(target=work, daemon=True) for work in (produce, consume)]
            for thread in threads:
                thread.start()
            for name in ("one", "two", "three"):
                eventually(lambda: len(confirmed) >= 3_000 and len(acked) >= 1_000, "messages")
                before, gone = set(confirmed), set(acked)
                told = store_command("backup", "--data-dir", server.data_dir, "--to", tmp_path / "backups" / name)
                assert "shared" in told
                if name != "three":
                    goal = len(confirmed) + 1_500
                    eventually(lambda goal=goal: len(confirmed) >= goal, "more messages")
            stop.set()
            for thread in threads:
                thread.join(30)
        server.kill()
    for name in ("one", "two", "three"):
        assert "is whole" in store_command("check", "--data-dir", tmp_path / "backups" / name)
    told = store_command("restore", "--from", tmp_path / "backups" / "three", "--data-dir", tmp_path / "new" / "data")
    assert "is whole" in told
    with ServerProcess(tmp_path / "new") as server, Client(server.addr, timeout=30) as client:
        there = client.queue_stats("kept").summary.depth
        kept = {message.id for message in take(client, "kept", there)}
        assert len(kept) == there, "an id came twice"
        assert before <= kept
        left = client.queue_stats("flow").summary
        flow = {message.id for message in take(client, "flow", left.depth + left.in_flight)}
        assert not flow & gone
        new = client.enqueue("kept", {"tenant": "a"}, b"later")
        assert str(new) not in kept | confirmed
    assert "is whole" in store_command("check", "--data-dir", tmp_path / "backups" / "three"), "a restore changes it"


def test_what_is_no_backup_or_no_place_for_one_is_refused(tmp_path):
    with ServerProcess(tmp_path) as server:
        assert "in use" in store_command("check", "--data-dir", server.data_dir, code=1)
        inside = server.data_dir / "backup"
        assert "is inside" in store_command("backup", "--data-dir", server.data_dir, "--to", inside, code=1)
        assert not inside.exists()
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "file").write_text("mine")
        full = tmp_path / "full"
        assert "not empty" in store_command("backup", "--data-dir", server.data_dir, "--to", full, code=1)
        store_command("backup", "--data-dir", server.data_dir, "--to", tmp_path / "b")
        assert "not empty" in store_command("restore", "--from", tmp_path / "b", "--data-dir", server.data_dir, code=1)
    assert "no store" in store_command("backup", "--data-dir", tmp_path / "none", "--to", tmp_path / "c", code=1)
    (tmp_path / "b" / "FILA_BACKUP").unlink()
    assert "not a finished backup" in store_command(
        "restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "d", code=1
    )
    assert not (tmp_path / "c").exists()
    assert not (tmp_path / "d").exists()


def test_a_backup_that_lost_a_file_is_refused(tmp_path):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        client.enqueue("orders", {}, b"x")
        store_command("backup", "--data-dir", server.data_dir, "--to", tmp_path / "b")
    next((tmp_path / "b").glob("*.log")).unlink()
    assert "damaged" in store_command("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "d", code=1)
    assert "damaged" in store_command("check", "--data-dir", tmp_path / "b", code=1)


KILLED = """
import os, signal, sys
from pathlib import Path
from fila.storage import backup, restore
calls = iter(range(1000))
def progress(*_):
    if next(calls) == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
work = {"make_backup": backup.make_backup, "restore_backup": restore.restore_backup}[sys.argv[1]]
work(Path(sys.argv[2]), Path(sys.argv[3]), progress)
"""


def killed(work, source, to, at):
    done = subprocess.run([sys.executable, "-c", KILLED, work, source, to, str(at)], timeout=60, check=False)
    assert done.returncode == -9


def test_what_is_killed_in_the_middle_is_no_backup_and_no_store_and_the_next_try_works(tmp_path):
    with ServerProcess(tmp_path, config="[storage]\nwrite_buffer_bytes = 1_000_000\n") as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("orders")
            client.enqueue_many("orders", [bytes([n % 251]) * 10_000 for n in range(1_000)])
            eventually(lambda: len(list(server.data_dir.glob("*.sst"))) > 2, "files")
            for at in (0, 2):
                killed("make_backup", server.data_dir, tmp_path / "b", at)
                assert not (tmp_path / "b").exists()
                refused = store_command(
                    "restore", "--from", tmp_path / "b.unfinished", "--data-dir", tmp_path / "d", code=1
                )
                assert "not a finished backup" in refused
            assert len(list(server.data_dir.glob("backup.pins.*"))) == 1, "the second let go of what the first held"
            store_command("backup", "--data-dir", server.data_dir, "--to", tmp_path / "b")
            assert not list(server.data_dir.glob("backup.pins.*"))
            client.enqueue("orders", {}, b"the server has not noticed")
            killed("make_backup", server.data_dir, tmp_path / "never", 1)
        server.kill()
        server.start()
        assert not list(server.data_dir.glob("backup.pins.*")), "a start lets go of what a killed backup held"
        server.stop()
    for at in (0, 2):
        killed("restore_backup", tmp_path / "b", tmp_path / "new" / "data", at)
        assert not (tmp_path / "new" / "data").exists()
    told = store_command("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "new" / "data")
    assert "2 queues, 1000 messages" in told
    with ServerProcess(tmp_path / "new") as server, Client(server.addr, timeout=30) as client:
        assert client.queue_stats("orders").summary.depth == 1_000


def test_a_backup_under_way_is_left_alone_by_another_one_and_by_a_start(tmp_path):
    with ServerProcess(tmp_path) as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("orders")
            client.enqueue("orders", {}, b"x")
        began, go_on = threading.Event(), threading.Event()

        def wait(*_):
            began.set()
            go_on.wait(60)

        slow = threading.Thread(target=make_backup, args=(server.data_dir, tmp_path / "slow", wait))
        slow.start()
        assert began.wait(30)
        store_command("backup", "--data-dir", server.data_dir, "--to", tmp_path / "fast")
        server.restart()
        go_on.set()
        slow.join(60)
    for name in ("slow", "fast"):
        assert "is whole" in store_command("check", "--data-dir", tmp_path / name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with five messages and a backup of it."""
    folder = tmp_path_factory.mktemp("made")
    with ServerProcess(folder) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        client.enqueue_many("orders", [b"x"] * 5)
        store_command("backup", "--data-dir", server.data_dir, "--to", folder / "b")
    return folder


@pytest.fixture
def backup(made, tmp_path):
    """A copy of it, beside a copy of the store."""
    shutil.copytree(made / "data", tmp_path / "source")
    return shutil.copytree(made / "b", tmp_path / "b")


def restored(backup, to, **options):
    return store_command("restore", "--from", backup, "--data-dir", to, **options)


def test_a_backup_comes_back_to_a_mounted_disk(tmp_path, backup):
    """As the data folder of a container is; an empty file system may have a folder of its own."""
    with small_disk_at(tmp_path / "disk") as disk:
        (disk / "lost+found").mkdir()
        assert "5 messages" in restored(backup, disk)
        assert (disk / "lost+found").exists()
        RocksStorage(disk).close()


def test_a_backup_goes_to_a_folder_on_a_disk_and_not_to_the_disk_itself(tmp_path, backup):
    with small_disk_at(tmp_path / "disk") as disk:
        source = tmp_path / "source"
        assert "name a folder in it" in store_command("backup", "--data-dir", source, "--to", disk, code=1)
        assert not list(disk.iterdir())
        store_command("backup", "--data-dir", source, "--to", disk / "monday")


def test_a_folder_may_be_named_as_the_one_we_are_in(tmp_path, backup):
    for name in ("to", "again"):
        (tmp_path / name).mkdir()
    store_command("restore", "--from", backup, "--data-dir", ".", cwd=tmp_path / "to")
    store_command("backup", "--data-dir", tmp_path / "to", "--to", ".", cwd=tmp_path / "again")
    assert "5 messages" in store_command("check", "--data-dir", tmp_path / "again")


KILLED_AT_RENAME = """
import os, signal, sys
from pathlib import Path
from fila.storage import restore
calls, rename = iter(range(1000)), Path.rename
def killed(*args):
    if next(calls) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(*args)
Path.rename = killed
restore.restore_backup(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_restore_to_a_folder_that_is_killed_is_no_store_and_the_next_one_works(tmp_path, backup):
    to = tmp_path / "to"
    to.mkdir()

    def check_refused():
        with pytest.raises(StoreUnusable, match="is not finished"):
            RocksStorage(to)
        assert "is not finished" in store_command("check", "--data-dir", to, code=1)

    killed("restore_backup", backup, to, 2)
    check_refused()
    done = subprocess.run([sys.executable, "-c", KILLED_AT_RENAME, backup, to, "3"], timeout=60, check=False)
    assert done.returncode == -9
    check_refused()
    (to / "mine").write_text("x")
    assert "not empty" in restored(backup, to, code=1)
    (to / "mine").unlink()
    assert "5 messages" in restored(backup, to)
    assert not (to / RESTORE).exists()


def test_a_restore_that_fails_leaves_an_empty_folder(tmp_path, backup):
    (tmp_path / "to").mkdir()

    def fail(*_):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        restore_backup(backup, tmp_path / "to", fail)
    assert not list((tmp_path / "to").iterdir())


def test_a_backup_in_which_a_server_has_worked_is_a_store_and_no_backup(tmp_path, backup):
    backup.rename(tmp_path / "data")
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        assert len(take(client, "orders", 5)) == 5
    assert "whole" in store_command("check", "--data-dir", server.data_dir)
    assert "not a finished backup" in restored(server.data_dir, tmp_path / "d", code=1)


def test_what_a_backup_says_of_itself_is_read_with_what_a_later_version_adds(backup):
    file = backup / "FILA_BACKUP"
    told = json.loads(file.read_text())
    file.write_text(json.dumps(told | {"added": "later"}))
    assert asdict(read_backup(backup)) == told
    for wrong in ("", "[]", "{}", json.dumps(told | {"files": "many"})):
        file.write_text(wrong)
        with pytest.raises(StoreCorrupt, match="cannot be read"):
            read_backup(backup)


def test_two_backups_with_one_name_are_not_mixed(tmp_path, backup):
    source = tmp_path / "source"

    def second(*_):
        with pytest.raises(StoreBusy, match="under way"):
            make_backup(source, tmp_path / "same")

    make_backup(source, tmp_path / "same", second)
    assert "5 messages" in store_command("check", "--data-dir", tmp_path / "same")


def test_no_backup_says_that_its_entries_are_migrated_when_they_are_not(tmp_path, backup):
    """A migration ends while files are copied: the format that is noted then would speak for the logs of before."""
    source = tmp_path / "source"
    note_format(source, ROCKSDB, FORMAT - 1)
    with pytest.raises(StoreBusy, match="migrated"):
        make_backup(source, tmp_path / "c", lambda *_: note_format(source, ROCKSDB, FORMAT))
    assert not list(tmp_path.glob("c*"))


INTERRUPTED = """
import signal, sys
from fila.server import store_commands
store_commands._bytes_done = lambda _: lambda *_: signal.raise_signal(signal.SIGINT)
sys.exit(store_commands.run("backup", sys.argv[1:]))
"""


def test_an_interrupted_backup_says_so_and_leaves_nothing(tmp_path, backup):
    source = tmp_path / "source"
    command = [sys.executable, "-c", INTERRUPTED, "--data-dir", source, "--to", tmp_path / "c"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip()) == (130, "Interrupted")
    assert not list(tmp_path.glob("c*"))
    assert not list(source.glob("backup.pins.*"))


def on_terminal(*args):
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen([*COMMAND, *map(str, args)], stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert running.wait(60) == 0
    return shown.decode()


def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        client.enqueue_many("orders", [b"x" * 100] * 20_000)
        shown = on_terminal("backup", "--data-dir", server.data_dir, "--to", tmp_path / "b")
        assert re.search(r"\rcopied|\x1b\[Kcopied \d+ of \d+ MiB", shown)
        quiet = store_command("backup", "--data-dir", server.data_dir, "--to", tmp_path / "c")
        assert "\x1b" not in quiet
        assert len(quiet.splitlines()) == 1
    assert re.search(r"checking messages: [\d,]+ entries", on_terminal("check", "--data-dir", tmp_path / "b"))
    shown = on_terminal("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "d")
    assert re.search(r"restored \d+ of \d+ MiB", shown)
    assert "is whole" in shown


def test_the_page_does_what_it_says(tmp_path):
    """Its blocks are run in turn, on folders of our own; what it says between them is done here."""
    with ServerProcess(tmp_path) as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("orders")
            client.enqueue_many("orders", [b"x"] * 42)
        page = PAGE.read_text().replace("/var/lib/fila", str(server.data_dir))
        made, restored = (
            block for block in blocks(page.replace("/backup/fila", str(tmp_path / "backups"))) if block.kind == "sh"
        )
        programs = str(Path(sys.executable).parent)
        with Shell(tmp_path, environment() | {"PATH": f"{programs}:/usr/bin:/bin"}) as shell:
            shell.check(made)
            with Client(server.addr, timeout=30) as client:
                client.enqueue("orders", {}, b"after the backup")
            server.stop()
            server.data_dir.rename(tmp_path / "old")
            shell.check(restored)
        server.start()
        with Client(server.addr, timeout=30) as client:
            assert client.queue_stats("orders").summary.depth == 42


@pytest.mark.parametrize("command", ["backup", "restore", "check"])
def test_help_has_an_example(command):
    assert f"fila-server {command} --" in store_command(command, "--help")
