"""`fila bench` against a real server: what it says is true, and nothing of it is left."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from fila import Client
from tests.e2e.support import eventually, fila
from tests.e2e.terminal import Terminal

SMALL = ("--messages", "1000", "--keys", "3")
ENDLESS = ("produce", "--messages", "1000000", "--batch", "1", "--time", "2m")


def queues(client):
    return {queue.name for queue in client.list_queues()}


@pytest.fixture
def running():
    """Starts a measurement that would run for long. Returns it when it sends, with its client processes."""
    started = []

    def run(server, client):
        before = queues(client)
        command = [sys.executable, "-m", "fila.cli.main", "bench", *ENDLESS]
        environment = {**os.environ, "FILA_ADDR": server.addr}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        started.append(process)
        name = eventually(lambda: next(iter(queues(client) - before), None), "a queue").removesuffix(".dlq")
        eventually(lambda: client.queue_stats(name).counters.enqueued, "messages")
        return process, name, psutil.Process(process.pid).children(recursive=True)

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_all_workloads_are_measured_and_the_queue_is_deleted(shared_server, client):
    before = queues(client)
    told = json.loads(fila(shared_server, "bench", *SMALL, "--producers", "2", "--consumers", "2", "--json"))
    assert [each["workload"] for each in told] == ["produce", "consume", "lifecycle", "latency"]
    for each in told:
        assert (each["messages"], each["complete"]) == (1000, True)
        assert each["messages_per_second"] == pytest.approx(1000 / each["seconds"])
        assert each["mib_per_second"] == pytest.approx(each["messages_per_second"] * 256 / 2**20)
        assert all(0 < spread["p50_ms"] <= spread["p99_ms"] for spread in each["latency"].values())
    assert [list(each["latency"]) for each in told] == [["call"], ["ack"], ["delivery"], ["enqueue", "delivery"]]
    assert queues(client) == before


def test_the_table_has_a_line_for_each_latency(shared_server):
    lines = fila(shared_server, "bench", "consume", "latency", *SMALL).splitlines()
    assert lines[0].split() == ["WORKLOAD", "MESSAGES", "MSG/S", "MIB/S", "P50", "P99", "LATENCY", "OF"]
    assert [(line.split()[0], line.split()[1], line.split()[-1]) for line in lines[1:]] == [
        ("consume", "1,000", "ack"),
        ("latency", "1,000", "enqueue"),
        ("latency", "1,000", "delivery"),
    ]


def test_a_queue_that_exists_is_not_touched(shared_server, client, queue):
    client.create_queue(queue)
    client.enqueue(queue, payload=b"precious")
    said = fila(shared_server, "bench", "produce", *SMALL, "--queue", queue, code=1)
    assert said == f'Error: queue "{queue}" already exists\n'
    assert client.queue_stats(queue).summary.depth == 1


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_deletes_the_queue_and_ends_all_processes(running, shared_server, client, number, code):
    process, name, children = running(shared_server, client)
    process.send_signal(number)
    assert (process.wait(60), process.stderr.read()) == (code, "")
    assert not {name, f"{name}.dlq"} & queues(client)
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_an_interrupt_on_a_terminal_does_too(shared_server, client):
    """There it reaches the client processes as well."""
    before = queues(client)
    with Terminal("bench", *ENDLESS, env={"FILA_ADDR": shared_server.addr}) as terminal:
        screen = terminal.await_text(" messages 0:")
        assert "produce" in screen
        terminal.type("\x03")
        assert terminal.finish() == 130
        assert "Traceback" not in terminal.written
    assert queues(client) == before


def test_client_processes_do_not_outlive_the_command(running, shared_server, client):
    process, name, children = running(shared_server, client)
    process.kill()
    assert not psutil.wait_procs(children, timeout=30)[1]
    client.delete_queue(name, force=True)


def test_a_workload_ends_when_its_time_is_over(shared_server):
    args = ("bench", "lifecycle", "--messages", "3000000", "--time", "0.5", "--json")
    [told] = json.loads(fila(shared_server, *args))
    assert not told["complete"]
    assert 0 < told["messages"] < 3_000_000


def test_a_queue_that_is_deleted_meanwhile_is_told(running, shared_server, client):
    process, name, _ = running(shared_server, client)
    client.delete_queue(name, force=True)
    assert process.wait(60) == 1
    said = process.stderr.read()
    assert f'queue "{name}" does not exist' in said
    assert said.count("\n") == 1


def test_a_queue_that_cannot_be_deleted_is_named(running, server):
    with Client(server.addr) as client:
        process, name, _ = running(server, client)
    server.kill()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 1
    assert f'queue "{name}" is left behind' in said
    assert f"Delete it with `fila queue delete {name} --yes --force`" in said
