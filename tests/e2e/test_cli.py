"""The `fila` command as its users run it: a process of its own, against a real server."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
import uuid

import pytest

from fila.testing import ServerProcess


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server for all tests here; each uses queues of its own."""
    with ServerProcess(tmp_path_factory.mktemp("cli")) as process:
        yield process
        print(process.log)


@pytest.fixture
def name():
    """A queue name that no other test uses."""
    return f"queue-{uuid.uuid4().hex}"


@pytest.fixture
def environment(shared):
    return {**os.environ, "FILA_ADDR": shared.addr}


@pytest.fixture
def fila(environment):
    def run(*args, stdin=b""):
        command = [sys.executable, "-m", "fila.cli.main", *args]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60, env=environment)

    return run


def start(environment, *args):
    command = [sys.executable, "-m", "fila.cli.main", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def ids(result):
    return [json.loads(line)["id"] for line in result.stdout.splitlines()]


def test_the_life_of_a_queue(fila, name):
    created = fila("queue", "create", name, "--fairness-header", "tenant", "--visibility-timeout", "60000")
    assert (created.returncode, created.stdout.decode()) == (0, f'Created queue "{name}"\n')
    fila("enqueue", name, "one", "-H", "tenant=acme")
    fila("enqueue", name, "two", "-H", "tenant=zeta")
    listed = {each["name"]: each for each in json.loads(fila("queue", "list", "--json").stdout)}
    assert listed[name]["depth"] == 2
    inspected = fila("queue", "inspect", name).stdout.decode()
    assert "1 min" in inspected
    assert "acme" in inspected
    assert fila("queue", "delete", name).returncode == 2
    deleted = fila("queue", "delete", name, "--yes")
    assert deleted.stdout.decode() == f'Deleted queue "{name}" (2 messages)\n'
    assert fila("queue", "inspect", name).returncode == 1


def test_a_second_queue_of_the_same_name_is_refused(fila, name):
    fila("queue", "create", name)
    again = fila("queue", "create", name)
    assert again.returncode == 1
    assert again.stderr.decode() == f'Error: queue "{name}" already exists\n'


def test_a_queue_may_be_made_unless_it_exists_and_keeps_its_settings(fila, name):
    made = fila("queue", "create", name, "--if-not-exists", "--max-attempts", "3")
    again = fila("queue", "create", name, "--if-not-exists", "--max-attempts", "5", "--json")
    assert (made.returncode, made.stdout.decode()) == (0, f'Created queue "{name}"\n')
    assert (again.returncode, json.loads(again.stdout)) == (0, {"queue": name, "created": False})
    assert json.loads(fila("queue", "inspect", name, "--json").stdout)["config"]["max_attempts"] == 3


@pytest.mark.parametrize("args", [("queue", "inspect"), ("queue", "delete"), ("stats",), ("enqueue",), ("consume",)])
def test_an_unknown_queue_is_named(fila, args):
    result = fila(*args, "nowhere", stdin=b"x")
    assert result.returncode == 1
    assert result.stderr == b'Error: queue "nowhere" does not exist\n'


def test_no_broker_is_said_within_the_timeout(fila, tmp_path):
    absent = ServerProcess(tmp_path)
    addr = absent.addr
    started = time.monotonic()
    result = fila("--addr", addr, "--timeout", "2", "queue", "list")
    absent.close()
    assert result.returncode == 3
    said = f"no broker answers at {addr} (address from the command line). Is fila-server running?"
    assert result.stderr.decode() == f"Error: {said}\n"
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("answer,gone", [(b"n\n", False), (b"y\n", True)])
def test_on_a_terminal_a_queue_with_messages_is_deleted_only_after_a_yes(fila, name, environment, answer, gone):
    fila("queue", "create", name)
    fila("enqueue", name, "precious")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fila.cli.main", "queue", "delete", name]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        os.write(ours, answer)
        _, asked = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert b"holds 1 message. Delete it?" in asked
    assert process.returncode == (0 if gone else 1)
    assert fila("queue", "inspect", name).returncode == (1 if gone else 0)


def test_a_message_is_delivered_once_and_acked(fila, name):
    fila("queue", "create", name)
    sent = fila("enqueue", name, "hello", "-H", "tenant=acme").stdout.decode().strip()
    shown = fila("consume", name, "--count", "1").stdout.decode()
    assert shown.startswith(sent)
    assert "hello" in shown
    assert fila("consume", name, "--wait", "0.5").stdout == b""


def test_lines_become_messages_in_their_order(fila, name):
    fila("queue", "create", name)
    sent = fila("enqueue", name, "--lines", stdin=b"".join(b"%d\n" % number for number in range(2500)))
    assert len(set(sent.stdout.split())) == 2500
    lines = fila("consume", name, "--json", "--wait", "1").stdout.splitlines()
    assert [json.loads(line)["payload"] for line in lines] == [str(number) for number in range(2500)]


def test_what_is_not_acked_comes_back(fila, name):
    fila("queue", "create", name)
    fila("enqueue", name, "--lines", stdin=b"a\nb\n")
    first = fila("consume", name, "--count", "2", "--no-ack", "--json")
    second = fila("consume", name, "--count", "2", "--json")
    assert ids(first) == ids(second)
    assert [json.loads(line)["attempt_count"] for line in second.stdout.splitlines()] == [1, 1]


def test_bytes_survive_the_way_through(fila, name, tmp_path):
    fila("queue", "create", name)
    (tmp_path / "payload").write_bytes(bytes(range(256)))
    fila("enqueue", name, "--file", str(tmp_path / "payload"))
    shown = json.loads(fila("consume", name, "--count", "1", "--json").stdout)
    assert shown["payload_base64"].startswith("AAECAwQ")


def test_hostile_bytes_do_not_reach_the_terminal(fila, name):
    fila("queue", "create", name, "--fairness-header", "tenant")
    fila("enqueue", name, "\x1b]0;owned\x07\x1b[2J", "-H", "tenant=\x1b[31m")
    shown = fila("consume", name, "--count", "1").stdout
    assert b"\x1b" not in shown
    assert b"\\x1b[2J" in shown


def test_a_dedup_key_is_enqueued_once(fila, name):
    fila("queue", "create", name)
    first, second = (fila("enqueue", name, "x", "--dedup-key", "k").stdout for _ in range(2))
    assert first == second


def test_an_interrupt_ends_a_consumer_quietly(fila, name, environment):
    fila("queue", "create", name)
    fila("enqueue", name, "hello")
    consumer = start(environment, "consume", name)
    assert consumer.stdout.readline()
    time.sleep(0.3)
    consumer.send_signal(signal.SIGINT)
    _, errors = consumer.communicate(timeout=20)
    assert (consumer.returncode, errors) == (130, b"")


def test_a_reader_that_goes_away_ends_a_consumer_quietly_and_loses_nothing(fila, name, environment):
    fila("queue", "create", name)
    fila("enqueue", name, "--lines", stdin=(b"x" * 60_000 + b"\n") * 20)
    # One line nearly fills the pipe, so that no more than the next can be printed before the reader is gone.
    consumer = start(environment, "consume", name, "--json", "--max-in-flight", "1")
    read = json.loads(consumer.stdout.readline())["id"]
    consumer.stdout.close()
    assert consumer.wait(timeout=20) == 0
    assert consumer.stderr.read() == b""
    left = ids(fila("consume", name, "--json", "--wait", "1"))
    assert read not in left
    printed_but_unread = 20 - 1 - len(left)
    assert printed_but_unread <= 2
    consumer.stderr.close()


def test_a_consumer_waits_out_a_restart_of_the_broker(server):
    environment = {**os.environ, "FILA_ADDR": server.addr}

    def run(*args):
        command = [sys.executable, "-m", "fila.cli.main", *args]
        return subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment)

    run("queue", "create", "orders")
    consumer = start(environment, "consume", "orders", "--count", "2", "--json")
    run("enqueue", "orders", "before")
    first = json.loads(consumer.stdout.readline())["payload"]
    server.kill()
    server.start()
    run("enqueue", "orders", "after")
    out, errors = consumer.communicate(timeout=60)
    assert consumer.returncode == 0, errors
    assert {first, json.loads(out)["payload"]} <= {"before", "after"}
