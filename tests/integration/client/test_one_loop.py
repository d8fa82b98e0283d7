"""Clients that block share one event loop in a thread: what callers, callbacks and finalizers may do to it."""

import gc
import signal
import subprocess
import sys
import threading

import pytest

from fila import Client

LONG = 60


@pytest.fixture
def client(server):
    with Client(server.addr, timeout=30) as client:
        client.create_queue("q")
        yield client
        client.delete_queue("q", force=True)


def on_the_loop(client, function):
    """What a function returns that is called on the thread of the loop, or the error that it raises."""
    outcome = []

    def call():
        try:
            outcome.append(function())
        except RuntimeError as error:
            outcome.append(error)
        called.set()

    called = threading.Event()
    client._thread.post(call)
    assert called.wait(LONG), "it waits for itself"
    return outcome[0]


def test_an_iterator_may_be_collected_on_the_thread_of_the_loop(client):
    """Where the garbage collector comes by is not up to us."""

    class Cycle:
        def __init__(self):
            self.itself = self
            self.pieces = client.read_queue("q")
            next(self.pieces)

    client.enqueue_many("q", [b"x" * 2000] * 3000)
    gc.disable()
    try:
        Cycle()
        assert isinstance(on_the_loop(client, gc.collect), int)
    finally:
        gc.enable()
    assert client.queue_stats("q").summary.depth == 3000


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.list_queues(),
        lambda client: client.enqueue_many("q", [b"x"]),
        lambda client: client.ack_many([]) or client.ack("q", "x"),
        lambda client: next(client.consume("q")),
    ],
)
def test_a_call_that_would_wait_for_itself_is_told(client, call):
    error = on_the_loop(client, lambda: call(client))
    assert isinstance(error, RuntimeError)
    assert "would never return" in str(error)


def test_a_client_may_be_closed_on_the_thread_of_the_loop(server):
    client = Client(server.addr)
    assert on_the_loop(client, client.close) is None


def test_progress_is_told_in_the_thread_that_asked(client):
    client.enqueue_many("q", [b"x"] * 30)
    told = []

    def progress(done):
        told.append((threading.get_ident(), done, client.queue_stats("q").summary.depth))

    assert client.purge("q", any_queue=True, rate=100, on_progress=progress) == 30
    assert {thread for thread, _, _ in told} == {threading.get_ident()}
    assert all(done + depth == 30 for _, done, depth in told)


def test_an_interrupt_stops_what_was_asked_for(client, server):
    client.enqueue_many("q", [b"x"] * 1000)
    program = f"""
from fila import Client
with Client({server.addr!r}, timeout=30) as client:
    try:
        client.purge("q", any_queue=True, rate=100, on_progress=lambda done: print(done, flush=True))
    except KeyboardInterrupt:
        print("interrupted", client.queue_stats("q").summary.depth, flush=True)
        input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as purging:
        purging.stdout.readline()
        purging.send_signal(signal.SIGINT)
        left = int(next(line for line in purging.stdout if line.startswith("interrupted")).split()[1])
        assert 0 < left < 1000
        threading.Event().wait(0.5)
        assert client.queue_stats("q").summary.depth == left
        purging.communicate("\n", timeout=LONG)


def test_an_interrupt_of_reading_is_an_interrupt(client, server):
    """It is not an error of the iterator that is closed then."""
    program = f"""
import os, signal, threading
from fila import Client
with Client({server.addr!r}, timeout=30) as client:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            for _ in client.read_queue("q"):
                pass
    except KeyboardInterrupt:
        print("interrupted", len(client.list_queues()) > 0)
"""
    client.enqueue_many("q", [b"x" * 2000] * 3000)
    ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=LONG)
    assert ended.stdout == "interrupted True\n"


def test_threads_that_share_a_consumer_all_get_on_and_all_end(client):
    consumer = client.consume("q", max_in_flight=1)
    taken, all_taken = [], threading.Event()

    def work():
        for message in consumer:
            message.ack()
            taken.append(message.payload)
            if len(taken) == 30:
                all_taken.set()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    client.enqueue_many("q", [b"%d" % n for n in range(30)])
    assert all_taken.wait(LONG)
    consumer.close()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_a_client_that_is_made_too_late_is_refused_and_does_no_harm(server):
    """By a daemon thread, while the process ends; the C library sleeps for as long as the exit status says."""
    program = f"""
import atexit, ctypes, sys, threading, time
libc = ctypes.CDLL(None)
libc.on_exit(libc.usleep, None)
gate, made = threading.Event(), threading.Event()
def late():
    gate.wait()
    try:
        Client({server.addr!r})
    except ClientClosedError as error:
        print(error, flush=True)
    made.set()
threading.Thread(target=late, daemon=True).start()
atexit.register(lambda: (gate.set(), made.wait(30)))
from fila import Client, ClientClosedError
sys.exit(500_000)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False, timeout=LONG
    )
    assert (ended.returncode, ended.stdout) == (500_000 % 256, "the process is ending\n")
