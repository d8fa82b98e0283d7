"""What no handler saw does not die, whatever becomes of the consumer that had prefetched it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fila.jobs.broker.queue import FilaQueue
from fila.jobs.settings import FilaSettings, QueueSettings
from tests.e2e.support import contents, eventually

DOOMED = Path(__file__).with_name("doomed.py")
RESTARTS = 40
"""More than are needed: with 16 handlers it takes a few to find out which message it is."""

SIZES = [
    pytest.param(prefetch, handlers, marks=[pytest.mark.slow] * (handlers > 1))
    for handlers in (1, 16)
    for prefetch in (1, 100, 4000)
]
sizes = pytest.mark.parametrize("prefetch, handlers", SIZES)


def worker(server, queue, prefetch, handlers, way):
    command = [sys.executable, str(DOOMED), server.addr, queue, str(prefetch), str(handlers), way]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def work_until_empty(client, server, queue, *arguments):
    """Start the worker again whenever it has died, until nothing is left to do."""
    for _ in range(RESTARTS):
        process = worker(server, queue, *arguments)
        try:
            while process.poll() is None:
                if contents(client, queue) == (0, 0, 0):
                    return
                time.sleep(0.02)
        finally:
            process.kill()
            process.wait()
    raise AssertionError("the worker died too often")


def send(client, queue, **settings):
    client.create_queue(queue, **settings)
    client.enqueue_many(queue, [b"poison" if number == 7 else b"%d" % number for number in range(50)])


def test_an_iterator_that_is_kept_keeps_only_what_was_handed_out(client, queue):
    """Leaving the loop does not end it while somebody refers to it. What it had prefetched goes to others in time."""
    client.create_queue(queue, visibility_timeout_ms=1000)
    client.enqueue_many(queue, [b"x"] * 50)
    kept = client.consume(queue)
    for message in kept:
        mine = message
        break
    with client.consume(queue) as second:
        got = [next(second) for _ in range(49)]
    assert mine.id not in {each.id for each in got}
    assert {each.attempt_count for each in got} == {0}
    time.sleep(2)  # it is still extended
    mine.ack()
    eventually(lambda: contents(client, queue) == (49, 0, 0), "the others are back")
    assert next(kept).attempt_count == 1, "it goes on when it is asked again"


@sizes
def test_leaving_does_not_count_as_an_attempt(client, shared_server, queue, prefetch, handlers):
    """Twice "consume, ack one, leave" with two attempts allowed: nothing is dead, and nothing was tried."""
    client.create_queue(queue, max_attempts=2)
    client.enqueue_many(queue, [b"x"] * 50)
    for _ in range(2):
        assert worker(shared_server, queue, prefetch, handlers, "leave").wait(60) == 0
    left = 50 - 2 * handlers
    eventually(lambda: contents(client, queue) == (left, 0, 0), "all that was not acked is back")
    assert contents(client, f"{queue}.dlq") == (0, 0, 0)
    waiting = client.peek(queue, limit=100).messages
    assert [message.attempt_count for message in waiting] == [0] * left


@sizes
@pytest.mark.parametrize("way", ["raise", "kill"])
def test_poison_dies_alone(client, shared_server, queue, prefetch, handlers, way):
    """A message whose handler raises and ends the worker, or that kills it, dies of that; all others are handled."""
    send(client, queue, max_attempts=3)
    work_until_empty(client, shared_server, queue, prefetch, handlers, way)
    assert [message.payload for message in client.peek(f"{queue}.dlq", payload_bytes=100).messages] == [b"poison"]
    assert client.queue_stats(queue).counters.acked == 49


@sizes
def test_a_job_that_kills_its_worker_dies_alone(client, shared_server, queue, prefetch, handlers):
    """Also when workers run many jobs at once, and each is given up after two attempts."""
    jobs = FilaQueue(QueueSettings(fila=FilaSettings(addr=shared_server.addr, queue=queue, timeout=30)))
    for number in range(50):
        jobs.enqueue("poison" if number == 7 else str(number))
    work_until_empty(client, shared_server, queue, prefetch, handlers, "job")
    assert [dead.item.job for dead in jobs.dead_letters()] == ["poison"]
    jobs.close()
    assert client.queue_stats(queue).counters.acked == 49
