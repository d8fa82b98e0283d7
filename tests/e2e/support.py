"""What the end-to-end tests share: consumers that keep what they were given, waiting for a condition, the command."""

import os
import subprocess
import sys
import threading
import time

PATIENCE_S = 30
"""How long something may take that should happen at once: a busy machine is slow, a broken broker waits for ever."""

CLOCKS_S = 0.05
"""How far the clock of a test and that of the server may drift apart during a test."""


def eventually(condition, what, timeout=PATIENCE_S):
    """Wait until `condition()` is true, and return what it returned."""
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.01)
    return result


class Inbox:
    """A consumer on a thread of its own. Keeps every message with the time of its arrival, settles nothing by itself.

    Leases are not extended unless asked for, so that what is held comes back when its time is over.
    """

    def __init__(self, client, queue, *, max_in_flight=100, auto_extend=False, on_message=None):
        self.messages = []
        self.arrived_at = []
        self.error = None
        self._on_message = on_message
        self._consumer = client.consume(queue, max_in_flight=max_in_flight, auto_extend=auto_extend)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, count, timeout=PATIENCE_S):
        """The first `count` messages, as soon as they are here."""
        eventually(lambda: len(self.messages) >= count or self.error, f"{count} messages", timeout)
        if len(self.messages) < count:
            raise self.error
        return self.messages[:count]

    def close(self):
        self._consumer.close()
        self._thread.join(PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self):
        try:
            for message in self._consumer:
                self.arrived_at.append(time.monotonic())
                if self._on_message is not None:
                    self._on_message(message)
                self.messages.append(message)
        except Exception as error:  # noqa: BLE001 - raised where somebody waits
            self.error = error


def take(client, queue, count, *, max_in_flight=100):
    """Lease, ack and return so many messages, in the order of delivery."""
    taken = []

    def ack(message):
        if len(taken) < count:
            message.ack()
            taken.append(message)

    with Inbox(client, queue, max_in_flight=max_in_flight, on_message=ack) as inbox:
        inbox.wait(count)
    return taken


def payloads(messages):
    return [message.payload for message in messages]


def contents(client, queue):
    """How many messages a queue holds: those that wait (delayed ones included), those held, those delayed."""
    summary = client.queue_stats(queue).summary
    return summary.depth, summary.in_flight, summary.delayed


def fila(server, *args, key=None, code=0, env=None):
    """Run the command line. Returns what it prints; stderr with a failure."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    given |= {"FILA_ADDR": server.addr} | ({} if key is None else {"FILA_API_KEY": key}) | (env or {})
    command = [sys.executable, "-m", "fila.cli.main", *args]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout
