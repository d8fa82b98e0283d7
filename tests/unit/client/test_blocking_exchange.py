"""Single requests of a blocking client, sent and answered in the thread of their caller."""

import asyncio
import gc
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from fila import (
    Client,
    ClientClosedError,
    FailedPreconditionError,
    FilaTimeoutError,
    InternalError,
    InvalidArgumentError,
    MessageNotFoundError,
    OverloadedError,
)
from fila.client import blocking_exchange
from fila.wire.status import RpcError, StatusCode
from tests.helpers.scripted_broker import ScriptedBroker, serving


@pytest.fixture
def broker():
    """A broker on a loop in another thread."""
    ready = threading.Event()
    broker = ScriptedBroker()

    async def main():
        broker.loop, broker.stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(broker) as broker.addr:
            ready.set()
            await broker.stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    ready.wait()
    yield broker
    broker.loop.call_soon_threadsafe(broker.stop.set)
    thread.join()


@pytest.fixture
def client(broker):
    with Client(broker.addr, timeout=30) as client:
        yield client


class Nobody:
    """Stands for the thread of the event loop where nothing may be handed to it."""

    def check(self):
        pass

    def post(self, *_):
        raise AssertionError("not sent directly")


@pytest.fixture
def no_streams(client):
    """Fails a test in which a request goes to the event loop."""
    client._thread, thread = Nobody(), client._thread
    yield
    client._thread = thread


@pytest.mark.usefixtures("no_streams")
@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_a_message_whose_request_or_answer_is_lost_is_enqueued_once(broker, client, loss):
    client.enqueue("q", payload=b"first")
    broker.script.extend([loss, loss])
    assert client.enqueue("q", payload=b"second") == "id-2"
    assert broker.enqueued == [b"first", b"second"]
    assert broker.sequences == [1, 2, 2, 2]


@pytest.mark.usefixtures("no_streams")
def test_a_message_that_the_broker_may_have_forgotten_is_not_sent_again(broker, client, monkeypatch):
    """Its connection was lost an hour ago, of which the machine may have slept the most; an ack may be repeated."""
    clock = iter([0.0])
    monkeypatch.setattr(blocking_exchange, "since_boot", lambda: next(clock, 3600.0))
    broker.script.append("lose answer")
    with pytest.raises(FailedPreconditionError) as raised:
        client.enqueue("q", payload=b"x")
    assert raised.value.kind == "stale_sequence"
    assert broker.sequences == [1]
    clock = iter([0.0])
    broker.held.add("a")
    broker.script.append("lose answer")
    client.ack("q", "a")


@pytest.mark.usefixtures("no_streams")
def test_an_ack_whose_answer_is_lost_counts_as_done(broker, client):
    broker.held.add("a")
    broker.script.append("lose answer")
    client.ack("q", "a")
    assert broker.acked == ["a"]
    with pytest.raises(MessageNotFoundError):
        client.ack("q", "a")


@pytest.mark.usefixtures("no_streams")
@pytest.mark.parametrize("refusal", ["overloaded", "quota"])
def test_what_may_have_been_carried_out_keeps_its_number_when_it_is_refused_for_a_while(broker, client, refusal):
    """Under another number it would be enqueued twice, and the ack would not count as done."""
    broker.script.extend(["lose answer", refusal, "lose request", refusal])
    began = time.monotonic()
    assert client.enqueue("q", payload=b"x") == "id-1"
    assert broker.enqueued == [b"x"]
    assert broker.sequences == [1, 1, 1, 1, 1]
    assert refusal != "quota" or time.monotonic() - began >= 2.0, "each time the broker asks for a second"
    broker.held.add("a")
    broker.script.extend(["lose answer", refusal])
    client.ack("q", "a")
    assert broker.acked == ["a"]


@pytest.mark.usefixtures("no_streams")
def test_a_refusal_of_what_was_never_sent_before_is_told_at_once(broker, client):
    broker.script.append("overloaded")
    with pytest.raises(OverloadedError, match="too much waits"):
        client.enqueue("q")
    assert client.enqueue("q") == "id-1"
    assert broker.sequences == [1, 2]


def test_what_is_refused_until_its_deadline_may_or_may_not_have_been_carried_out(broker):
    broker.script.extend(["lose answer", *["overloaded"] * 1000])
    with Client(broker.addr, timeout=1) as client:
        with pytest.raises(FilaTimeoutError, match="too much waits"):
            client.enqueue("q", payload=b"x")
        broker.script.clear()
        assert client.enqueue("q", payload=b"y") == "id-2"
    assert broker.enqueued == [b"x", b"y"]


def test_an_ack_that_never_left_is_not_taken_for_one_that_did(broker):
    """Only what was sent before may have been carried out before."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addr = f"127.0.0.1:{taken.getsockname()[1]}"

    async def later():
        await asyncio.sleep(0.2)
        async with serving(broker, addr):
            await broker.stop.wait()

    with Client(addr, timeout=30) as client:
        asyncio.run_coroutine_threadsafe(later(), broker.loop)
        with pytest.raises(MessageNotFoundError):
            client.ack("q", "never held")


def test_what_timed_out_is_not_sent_again(broker):
    with Client(broker.addr, timeout=2) as client:
        client.enqueue("q", payload=b"a")
        broker.script.append("ignore")
        with pytest.raises(FilaTimeoutError, match="within 2 s"):
            client.enqueue("q", payload=b"b")
        assert client.enqueue("q", payload=b"c") == "id-3"
        assert broker.enqueued == [b"a", b"b", b"c"]
        assert broker.sequences == [1, 2, 3]


def test_without_a_broker_it_ends_in_time_and_says_why():
    with Client("127.0.0.1:1", timeout=0.3) as client:
        with pytest.raises(FilaTimeoutError, match=r"0\.3 s \(.*refused"):
            client.enqueue("q")
        with pytest.raises(FilaTimeoutError):
            client.ack("q", "x")


def test_a_server_that_greets_and_never_answers_is_not_waited_for_beyond_the_deadline():
    """Also when it sends a byte now and then."""
    ended = threading.Event()

    def drip(listener):
        while not ended.is_set():
            connection, _ = listener.accept()
            with connection:
                try:
                    while not ended.wait(0.05):
                        connection.sendall(b"\0")
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        addr = f"127.0.0.1:{listener.getsockname()[1]}"
        with Client(addr, timeout=0.5) as client:
            began = time.monotonic()
            with pytest.raises(FilaTimeoutError):
                client.enqueue("q")
            assert time.monotonic() - began < 10
        ended.set()
        socket.create_connection(listener.getsockname()).close()
        thread.join()


@pytest.mark.usefixtures("no_streams")
def test_what_is_refused_is_raised_and_the_next_goes_through(broker, client):
    broker.script.append("refuse")
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        client.enqueue("q")
    assert client.enqueue("q") == "id-1"


@pytest.mark.usefixtures("no_streams")
def test_an_answer_that_makes_no_sense_is_an_error_of_its_own_request(broker, client, monkeypatch):
    answer = broker._enqueue
    monkeypatch.setattr(broker, "_enqueue", lambda request: type(answer(request))(sequence=request.sequence))
    with pytest.raises(InternalError, match="0 results for 1 message"):
        client.enqueue("q")
    monkeypatch.setattr(broker, "_enqueue", lambda request: type(answer(request))(sequence=request.sequence - 1))
    with pytest.raises(InternalError, match="the answer to batch 2 names batch 1"):
        client.enqueue("q")
    monkeypatch.undo()
    assert client.enqueue("q") == "id-3"


@pytest.mark.usefixtures("no_streams")
def test_an_ack_is_not_sent_on_a_call_that_has_ended(broker, client):
    """It would count as sent before, and a message that is gone as acked by it."""
    broker.held.add("a")
    client.ack("q", "a")
    client._settles._connection._end(RpcError(StatusCode.UNAVAILABLE, "came with the last answer"))
    with pytest.raises(MessageNotFoundError):
        client.ack("q", "never held")


@pytest.mark.parametrize("addr", ["nonsense", "localhost:99999", "nobody.invalid:1"])
def test_an_address_that_is_none_is_told_in_time(addr):
    with Client(addr, timeout=0.3) as client, pytest.raises(FilaTimeoutError, match="cannot connect"):
        client.enqueue("q")


@pytest.mark.parametrize("timeout", [1e10, float("inf")])
def test_any_timeout_will_do(broker, timeout):
    with Client(broker.addr, timeout=timeout) as client:
        assert client.enqueue("q") == "id-1"


def test_closing_reaches_a_caller_who_connects():
    """Also one whose server takes the connection and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"127.0.0.1:{silent.getsockname()[1]}", timeout=60)
        outcomes = []

        def enqueue():
            try:
                client.enqueue("q")
            except ClientClosedError as error:
                outcomes.append(error)

        caller = threading.Thread(target=enqueue)
        caller.start()
        taken = silent.accept()
        client.close()
        caller.join(10)
        taken[0].close()
        assert len(outcomes) == 1


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_client_that_nobody_refers_to_leaves_nothing_open(broker):
    client = Client(broker.addr)
    client.enqueue("q")
    client.itself = client
    sockets = client._enqueues
    del client
    gc.collect()
    assert sockets._connection is None


def test_a_handler_of_signals_may_settle_while_it_interrupts_that(broker, client):
    """What it interrupts may hold the lock of the leases that are kept."""
    held = client._session.in_flight
    held.add("owner", "q", "lease", ["a", "b"])
    broker.held.update("ab")
    with held._lock:
        client.ack("q", "a", "lease")
    assert len(held) == 1


@pytest.mark.usefixtures("no_streams")
def test_large_messages_pass_the_windows(broker, client):
    assert client.enqueue("q", payload=bytes(3 << 20)) == "id-1"
    assert len(broker.enqueued[0]) == 3 << 20


def wait_for(broker):
    """Until it has enqueued something."""
    deadline = time.monotonic() + 30
    while not broker.enqueued:
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def run_script(body, addr):
    """A program of its own, which has a client."""
    program = f"import os\nfrom fila import Client, ClientClosedError\nclient = Client({addr!r}, timeout=30)\n{body}"
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE, text=True)


def test_after_an_interrupt_a_late_answer_is_nobody_elses(broker):
    broker.script.append("ignore")
    with run_script(
        """
try:
    client.enqueue("q", payload=b"interrupted")
except KeyboardInterrupt:
    print(client.enqueue("q", payload=b"after"))
""",
        broker.addr,
    ) as program:
        wait_for(broker)
        program.send_signal(signal.SIGINT)
        assert program.stdout.read() == "id-2\n"
    assert broker.enqueued == [b"interrupted", b"after"]


def test_a_second_caller_does_not_wait_for_the_first(broker, client):
    broker.script.append("ignore")
    outcomes = []

    def slow():
        try:
            client.enqueue("q", payload=b"slow")
        except ClientClosedError as error:
            outcomes.append(error)

    first = threading.Thread(target=slow)
    first.start()
    wait_for(broker)
    assert client.enqueue("q", payload=b"quick") == "id-2"
    client.close()
    first.join(5)
    assert len(outcomes) == 1


def test_a_connection_that_ended_while_nobody_looked_is_made_anew_before_it_is_used(broker, client, monkeypatch):
    """So that no request is lost on it, which would have to be sent again."""
    client.enqueue("q")
    monkeypatch.setattr("fila.client.blocking_exchange._IDLE_S", 0.0)
    client._enqueues._connection.interrupt()
    assert client.enqueue("q") == "id-2"
    assert broker.sequences == [1, 2]


def test_settling_where_one_works_ends_the_care_for_a_lease(broker, client):
    broker.loop.call_soon_threadsafe(broker.to_deliver.put_nowait, ["a", "b"])
    with client.consume("q") as messages:
        next(messages).ack()
        assert len(client._session.in_flight) == 1


def test_a_child_process_is_told_and_leaves_its_parents_connection_alone(broker):
    with run_script(
        """
print(client.enqueue("q"), flush=True)
if not os.fork():
    for call in (lambda: client.enqueue("q"), lambda: client.enqueue_many("q", [b"x"]), client.list_queues):
        try:
            call()
        except ClientClosedError as error:
            print(error)
    client.close()
    del client
else:
    os.wait()
    print(client.enqueue("q"))
    client.close()
""",
        broker.addr,
    ) as program:
        said = program.stdout.read().splitlines()
    told = "the client belongs to the parent process: make a new client after the fork"
    assert said == ["id-1", told, told, told, "id-2"]
    assert broker.sequences == [1, 2]


def test_timers_do_not_go_off_when_the_interpreter_is_gone(broker):
    """The C library sleeps at the end of the program for as many microseconds as its exit status says."""
    with run_script(
        """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.on_exit(libc.usleep, None)
loop = client._thread._loop
loop.call_soon_threadsafe(loop.call_later, 0.3, print)
client.close()
del client
time.sleep(0.1)
sys.exit(900_000)
""",
        broker.addr,
    ) as program:
        assert program.wait(30) == 900_000 % 256


def test_what_a_program_does_with_its_client_at_its_very_end(broker):
    """What was registered after the import of fila works; what was registered before is told, and does not wait."""
    program = f"""
import atexit
def last():
    for call in (client.list_queues, lambda: client.enqueue_many("q", [b"x"]), lambda: client.ack("q", "x")):
        try:
            call()
        except ClientClosedError as error:
            print(error)
    client.close()
atexit.register(last)
from fila import Client, ClientClosedError
atexit.register(lambda: print(client.enqueue_many("q", [b"x"])))
client = Client({broker.addr!r}, timeout=30)
"""
    ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert ended.stdout.splitlines() == ["['id-1']", *["the process is ending"] * 3]
