"""`fila top` on a terminal of 80x24, against a real server."""

import os
import signal
import termios

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.support import eventually
from tests.e2e.terminal import Terminal

INTERVAL = ("--interval", "0.1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("top")) as process:
        with Client(process.addr, timeout=30) as client:
            for name, count in (("big", 3), ("middle", 2), ("little", 1)):
                client.create_queue(name, fairness_header="tenant")
                for number in range(count):
                    client.enqueue(name, {"tenant": f"tenant-{number}"})
        yield process
        print(process.log)


@pytest.fixture
def top(shared):
    """Starts `fila top` on a terminal; ends it after the test."""
    started = []

    def start(*args, addr=shared.addr, **size):
        terminal = Terminal("top", *INTERVAL, *args, env={"FILA_ADDR": addr}, **size)
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        terminal.__exit__()


def lines_of(screen):
    return screen.replace("\x1b[K", "").split("\n")


def names(screen):
    """The queues in the lines of a screen."""
    known = {"big", "middle", "little"}
    return [word for line in screen.splitlines()[1:] for word in line.split()[:2] if word in known]


def test_q_quits_and_leaves_the_terminal_as_it_was(top):
    terminal = top()
    terminal.await_text("q quit")
    terminal.type("q")
    assert terminal.finish() == 0
    assert terminal.written.endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(terminal._ours) == terminal.settings


def test_an_interrupt_leaves_the_terminal_as_it_was(top):
    terminal = top()
    terminal.await_text("q quit")
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert termios.tcgetattr(terminal._ours) == terminal.settings
    assert "\x1b[?1049l" in terminal.written


def test_a_screen_fits_80_columns_and_24_lines(top):
    screen = top().await_screen(lambda shown: len(lines_of(shown)) == 24, "24 lines")
    assert max(map(len, lines_of(screen))) <= 80
    for word in ("QUEUE", "DEPTH", "OUT/S", "OLDEST", "CONSUMERS", "q quit"):
        assert word in screen
    assert names(screen)[:3] == ["big", "middle", "little"]


def test_a_key_sorts_and_others_choose_and_open_a_queue(top):
    terminal = top()
    terminal.await_text("sort: backlog")
    terminal.type("ssss")
    terminal.await_screen(lambda screen: names(screen)[:3] == ["big", "little", "middle"], "queues by name")
    terminal.type("s")
    terminal.await_screen(lambda screen: names(screen)[:3] == ["big", "middle", "little"], "queues by backlog")
    terminal.type("\x1b[B")
    terminal.await_text("> middle")
    terminal.type("\r")
    screen = terminal.await_text("2 fairness keys")
    assert screen.startswith("middle")
    assert "tenant-1" in screen
    terminal.type("ssss")
    terminal.await_text("sort: name")
    terminal.type("\x1b")
    terminal.await_text("> middle")


def test_a_queue_may_be_named_at_once(top):
    terminal = top("little")
    assert terminal.await_text("1 fairness keys").startswith("little")
    terminal.type("\x7f")
    terminal.await_text("> little")


def test_a_new_size_is_used_at_once(top):
    terminal = top()
    terminal.await_text("q quit")
    terminal.resize(120, 30)
    assert "RUNNABLE" in terminal.await_text("DELAYED")
    terminal.resize(40, 8)
    screen = terminal.await_screen(lambda shown: len(lines_of(shown)) == 8, "8 lines")
    assert max(map(len, lines_of(screen))) <= 40
    assert "q quit" in screen


def test_a_broker_that_goes_away_is_waited_for_and_keys_still_act(top, server):
    with Client(server.addr) as client:
        client.create_queue("orders")
    terminal = top("--timeout", "1", addr=server.addr)
    terminal.await_text("orders")
    server.kill()
    terminal.await_text("The broker does not answer. Trying again.")
    server.start()
    terminal.await_screen(lambda screen: "orders" in screen and "does not answer" not in screen, "the queue again")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        terminal.await_text("The broker does not answer. Trying again.")
        terminal.type("q")
        assert terminal.finish() == 0
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_a_queue_that_is_deleted_leads_back_to_all(top, server):
    with Client(server.addr) as client:
        client.create_queue("orders")
        client.create_queue("other")
        terminal = top(addr=server.addr)
        terminal.await_text("> orders")
        terminal.type("\r")
        terminal.await_text("0 fairness keys")
        client.delete_queue("orders")
        terminal.await_screen(lambda screen: 'Queue "orders" is gone.' in screen and "> other" in screen, "all queues")
        named = top("other", addr=server.addr)
        named.await_text("0 fairness keys")
        client.delete_queue("other")
        assert named.finish() == 1
        assert 'queue "other" does not exist' in named.written
        eventually(lambda: "\x1b[?1049l" in named.written, "the screen is left")


def test_a_terminal_without_screens_is_told_what_to_use():
    with Terminal("top", env={"TERM": "dumb"}) as terminal:
        assert terminal.finish() == 2
        assert "Use --once or --json instead" in " ".join(terminal.written.split())
