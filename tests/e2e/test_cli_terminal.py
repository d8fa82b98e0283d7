"""The command on a terminal of 80 columns: ids can be copied, and what cannot be taken back is asked for."""

import pytest

from fila import Client, OutgoingMessage
from fila.testing import ServerProcess
from tests.e2e.terminal import Terminal

WIDTH = 80
SCRIPT = "function on_enqueue(message) return { fairness_key = message.headers.tenant } end"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a message that failed, with long words in each of its fields, and one that waits."""
    with ServerProcess(tmp_path_factory.mktemp("terminal"), config="[journal]\nenabled = true\n") as process:
        with Client(process.addr, timeout=30) as client:
            client.create_queue("orders-of-a-queue", fairness_header="tenant", script=SCRIPT)
            message = OutgoingMessage(b"p" * 300, {"tenant": "tenant-with-a-long-name"})
            client.enqueue_many("orders-of-a-queue", [message, message])
            with client.consume("orders-of-a-queue", max_in_flight=1) as messages:
                next(messages).reject("a long error " * 20)
        yield process
        print(process.log)


@pytest.fixture
def shown(server):
    def run(*args):
        with Terminal(*args, env={"FILA_ADDR": server.addr}, columns=WIDTH) as terminal:
            code = terminal.finish()
            assert code == 0, terminal.written
            return terminal.screen()

    return run


@pytest.fixture
def ids(server):
    """Of the message that failed, and of the one that waits."""
    with Client(server.addr, timeout=30) as client:
        return [client.peek(queue).messages[0].id for queue in ("orders-of-a-queue.dlq", "orders-of-a-queue")]


@pytest.mark.parametrize(
    "args",
    [
        ("dlq", "peek", "orders-of-a-queue.dlq"),
        ("dlq", "show", "orders-of-a-queue.dlq", "{dead}"),
        ("journal", "tail"),
        ("hook", "test", "--queue", "orders-of-a-queue", "--next", "1"),
        ("explain", "orders-of-a-queue"),
        ("consume", "orders-of-a-queue", "--count", "1", "--no-ack"),
    ],
    ids=lambda args: args[0],
)
def test_no_id_is_cut_or_broken(shown, ids, args):
    dead, waiting = ids
    screen = shown(*(arg.format(dead=dead) for arg in args))
    found = [(line, each) for line in screen.splitlines() for each in ids if each in line]
    assert found, screen
    assert all(line.index(each) + len(each) <= WIDTH for line, each in found)
    assert dead[:9] not in screen.replace(dead, "").replace(waiting, "")  # nor the beginning of one that is broken


def test_a_row_that_is_too_wide_for_a_table_is_a_block(shown, ids):
    lines = shown("dlq", "peek", "orders-of-a-queue.dlq").splitlines()
    assert lines[0] == ids[0]
    assert lines[1].startswith("  age ")
    assert all(line.startswith("  ") and len(line) <= WIDTH for line in lines[1:4])


def test_a_narrow_table_stays_one(shown):
    lines = shown("queue", "list").splitlines()
    assert lines[0].split() == ["NAME", "DEPTH", "IN", "FLIGHT", "DELAYED", "KEYS", "CONSUMERS", "STATE"]


ANSWERS = {"yes": "y\n", "no": "n\n", "nothing": "\n", "the end": "\x04"}


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_cannot_be_taken_back_is_done_only_after_a_yes(server, answer):
    with Client(server.addr, timeout=30) as client:
        client.ensure_queue("asked")
        client.enqueue("asked.dlq", payload=b"x")
        before = client.queue_stats("asked").summary.depth
        held = client.queue_stats("asked.dlq").summary.depth
        with Terminal("redrive", "asked.dlq", env={"FILA_ADDR": server.addr}) as terminal:
            terminal.await_text(f"Move {held} message")
            terminal.await_text("[y/N]: ")
            terminal.type(ANSWERS[answer])
            code = terminal.finish()
        done = answer == "yes"
        assert (code == 0) == done, terminal.written
        assert client.queue_stats("asked").summary.depth == before + (held if done else 0)
