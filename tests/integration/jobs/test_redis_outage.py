"""Redis goes away and comes back: nothing is lost, nothing is run twice by the switch."""

import logging
import threading
import time
from collections import Counter

import pytest

from fila.jobs import QueueClosed, QueueFull, QueueUnavailable
from fila.jobs.events import RedisSeen

LONG = 20.0


def until(condition, seconds=LONG):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def break_log(monkeypatch, module):
    """Nothing can be logged there, at any level. Returns what was tried."""
    tried = []

    def fail(record):
        tried.append(record.getMessage())
        raise OSError("no space left on device")

    monkeypatch.setattr(f"fila.jobs.redis.{module}.logger.isEnabledFor", lambda _: True)
    monkeypatch.setattr(f"fila.jobs.redis.{module}.logger.handle", fail)
    return tried


def drain(queue):
    jobs = []
    while (item := queue.dequeue(0.2)) is not None:
        queue.ack(item)
        jobs.append(item.job)
    return jobs


class Workers:
    """Threads that run jobs of one queue, counting them."""

    def __init__(self, queue, runs, threads=2):
        self.queue, self.runs, self.stop = queue, runs, threading.Event()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self):
        while not self.stop.is_set():
            item = self.queue.dequeue(0.1)
            if item is not None:
                self.runs.append(item.job)
                time.sleep(0.001)
                self.queue.ack(item)

    def join(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(LONG)
            assert not thread.is_alive()


def test_jobs_taken_while_redis_is_away_move_to_it_in_order(redis_server, make_queue):
    queue = make_queue()
    queue.enqueue("before")
    redis_server.kill()
    for n in range(450):
        queue.enqueue(n)
    queue.enqueue("urgent", priority="high")
    queue.enqueue("later", delay_seconds=1000)
    assert queue.snapshot()["redis_active"] is False
    assert queue.snapshot()["depth"] == 452
    redis_server.start()
    until(lambda: queue.redis_active)
    other = make_queue()
    assert drain(other) == ["urgent", "before", *range(450)]
    seen = other.snapshot()
    assert (seen["ready"], seen["scheduled"], seen["claimed"], seen["redis_active"]) == (0, 1, 0, True)


def test_the_queue_says_loudly_that_redis_is_away_and_back(redis_server, make_queue, caplog):
    seen = []
    queue = make_queue(hooks=[seen.append])
    queue.enqueue(1)
    with caplog.at_level(logging.WARNING):
        redis_server.kill()
        queue.enqueue(2)
        redis_server.start()
        until(lambda: "Redis is back" in caplog.text)
    texts = [(record.levelname, record.getMessage()) for record in caplog.records]
    lossy = "jobs go to memory, and are lost if this process ends during the outage"
    assert ("ERROR", f"Redis is unavailable: {lossy}") in texts
    assert ("WARNING", "Redis is back") in texts
    assert seen == [RedisSeen(healthy=False), RedisSeen(healthy=True)]


def test_a_log_that_fails_keeps_nobody_from_redis(redis_server, make_queue, monkeypatch):
    """Neither what is owed, nor who watches for its return, nor who waits on memory meanwhile."""
    seen, came = [], []
    queue, other = make_queue(hooks=[seen.append]), make_queue()
    queue.enqueue("done")
    done = queue.dequeue(LONG)
    redis_server.kill()
    with monkeypatch.context() as broken:
        tried = break_log(broken, "queue")
        queue.ack(done)
        until(lambda: tried.count("Redis is still unavailable") > 1)
        waiter = threading.Thread(target=lambda: came.append(queue.dequeue(2 * LONG)), daemon=True)
        waiter.start()
        redis_server.start()
        until(lambda: queue.redis_active and "Redis is back" in tried)
    other.enqueue("from Redis")
    waiter.join(LONG)
    assert [item.job for item in came] == ["from Redis"]
    assert other.snapshot()["claimed"] == 1
    assert seen == [RedisSeen(healthy=False), RedisSeen(healthy=True)]


def test_a_settlement_that_came_too_late_is_owed_once_though_the_log_fails(redis_server, make_queue, monkeypatch):
    queue, other = make_queue(redis_health_check_interval=1000), make_queue()
    queue.enqueue("purged")
    item = queue.dequeue(LONG)
    redis_server.kill()
    queue.ack(item)
    redis_server.start()
    other.purge()
    break_log(monkeypatch, "outage")
    assert queue._try_to_end_outage() is False
    assert queue._try_to_end_outage() is True


def test_jobs_that_redis_refuses_stay_here(redis_server, make_queue):
    """It is there and can be written to, but somebody else uses the key."""
    queue, other = make_queue(redis_health_check_interval=1000), make_queue()
    redis_server.kill()
    queue.enqueue("kept")
    redis_server.start()
    other._commands.client.command("SET", "fila:jobs:ready", "somebody else's")
    assert queue._try_to_end_outage() is False
    assert queue.snapshot()["depth"] == 1
    other._commands.client.command("DEL", "fila:jobs:ready")
    assert queue._try_to_end_outage() is True
    assert drain(other) == ["kept"]


def test_closing_gives_back_connections_though_the_log_fails(redis_server, make_queue, monkeypatch):
    queue, closed = make_queue(), []
    redis_server.kill()
    queue.enqueue("lost")
    close = queue._commands.client.close
    with monkeypatch.context() as broken:
        break_log(broken, "queue")
        broken.setattr(queue._commands.client, "close", lambda: (close(), closed.append(True)))
        with pytest.raises(OSError, match="no space"):
            queue.close()
    assert closed == [True]


def test_work_goes_on_in_memory(redis_server, make_queue):
    queue = make_queue()
    assert queue.dequeue(0) is None
    redis_server.kill()
    queue.enqueue("low", priority="low")
    queue.enqueue("high", priority="high")
    assert drain(queue) == ["high", "low"]


def test_who_waits_on_redis_goes_on_in_memory(redis_server, make_queue):
    queue, came = make_queue(), []
    waiter = threading.Thread(target=lambda: came.append(queue.dequeue(LONG)))
    waiter.start()
    time.sleep(0.2)
    redis_server.kill()
    queue.enqueue("from memory")
    waiter.join(LONG)
    assert [item.job for item in came] == ["from memory"]


def test_who_waits_on_memory_goes_on_in_redis(redis_server, make_queue):
    queue, other, came = make_queue(), make_queue(), []
    redis_server.kill()
    assert queue.health_check() is False
    waiter = threading.Thread(target=lambda: came.append(queue.dequeue(LONG)))
    waiter.start()
    redis_server.start()
    other.enqueue("from Redis")
    waiter.join(LONG)
    assert [item.job for item in came] == ["from Redis"]


def test_a_job_done_while_redis_is_away_is_not_done_again(redis_server, make_queue):
    """Its claim would have ended during the outage; the others wait until its worker can say that it is done."""
    queue = make_queue(lease_seconds=1.0, redis_health_check_interval=0.5)
    other = make_queue(lease_seconds=1.0)
    queue.enqueue("once")
    item = queue.dequeue(LONG)
    redis_server.kill()
    queue.ack(item)
    assert queue.redis_active is False
    time.sleep(1.1)
    redis_server.start()
    assert other.dequeue(2.5) is None
    assert other.snapshot()["claimed"] == 0


def test_a_job_claimed_in_memory_and_retried_after_the_return_is_in_redis(redis_server, make_queue):
    queue, other = make_queue(), make_queue()
    redis_server.kill()
    made = queue.enqueue("again")
    buried = queue.enqueue("never again")
    again, never = queue.dequeue(LONG), queue.dequeue(LONG)
    redis_server.start()
    until(lambda: queue.redis_active)
    queue.retry(again)
    queue.bury(never, "no")
    item = other.dequeue(LONG)
    assert (item.job, item.id, item.attempt) == ("again", made.id, 2)
    assert [(dead.item.id, dead.error) for dead in other.dead_letters()] == [(buried.id, "no")]
    assert queue.snapshot()["claimed"] == 1


def test_a_job_whose_worker_went_silent_in_memory_comes_back_through_redis(redis_server, make_queue):
    queue, other = make_queue(lease_seconds=0.5), make_queue(lease_seconds=0.5)
    redis_server.kill()
    made = queue.enqueue("again")
    assert queue.dequeue(LONG).id == made.id
    redis_server.start()
    until(lambda: queue.redis_active)
    time.sleep(0.6)
    assert queue.dequeue(LONG).attempt == 2
    assert other.snapshot()["claimed"] == 1


def test_an_enqueue_that_was_not_answered_is_neither_lost_nor_doubled(redis_server, make_queue):
    """Frozen, Redis carries out what it was sent when it thaws; the producer cannot know, and sends it again."""
    producer, worker, runs = make_queue(), make_queue(), []
    producer.enqueue("warm up")
    assert drain(worker) == ["warm up"]
    with redis_server.frozen():
        producer.enqueue("uncertain")
        assert producer.dequeue(0.1) is None, "it may be in Redis, so it must not run from memory"
    workers = Workers(worker, runs)
    until(lambda: producer.redis_active and not producer.snapshot()["depth"])
    time.sleep(0.3)
    workers.join()
    assert runs == ["uncertain"]


def test_refuse_means_refuse(redis_server, make_queue):
    queue = make_queue(on_outage="refuse")
    queue.enqueue("kept")
    with redis_server.frozen():
        with pytest.raises(QueueUnavailable) as first:
            queue.enqueue("unanswered")
        assert first.value.outcome_unknown
        with pytest.raises(QueueUnavailable) as second:
            queue.enqueue("refused")
        assert not second.value.outcome_unknown
        assert queue.dequeue(0.1) is None
    until(lambda: queue.redis_active)
    assert drain(queue)[0] == "kept"


def test_memory_is_bounded_while_redis_is_away(redis_server, make_queue):
    queue = make_queue(max_in_memory=2)
    redis_server.kill()
    queue.enqueue(1)
    queue.enqueue(2)
    with pytest.raises(QueueFull, match="max_in_memory"):
        queue.enqueue(3)


def test_a_redis_that_cannot_be_written_to_is_away(redis_server, make_queue):
    queue, probe = make_queue(), make_queue()
    probe._commands.client.command("CONFIG", "SET", "maxmemory", "1")
    queue.enqueue("while full")
    assert queue.redis_active is False
    time.sleep(0.2)
    assert queue.redis_active is False
    probe._commands.client.command("CONFIG", "SET", "maxmemory", "0")
    until(lambda: queue.redis_active)
    assert drain(queue) == ["while full"]


def test_closing_while_redis_is_away_says_what_is_lost(redis_server, make_queue, caplog):
    queue = make_queue()
    redis_server.kill()
    queue.enqueue("lost")
    queue.close()
    assert [record.jobs_lost for record in caplog.records if hasattr(record, "jobs_lost")] == [1]


def test_a_closed_queue_does_not_spin_when_redis_is_gone(redis_server, make_queue):
    queue = make_queue()
    queue.enqueue(1)
    queue.close()
    redis_server.kill()
    assert queue.dequeue(LONG) is None
    with pytest.raises(QueueClosed):
        queue.enqueue(2)


def test_a_lost_script_cache_is_refilled(redis_server, make_queue):
    queue = make_queue()
    queue.enqueue(1)
    queue._commands.client.command("SCRIPT", "FLUSH")
    queue.enqueue(2)
    assert drain(queue) == [1, 2]


def test_stopped_and_started_under_load(redis_server, make_queue):
    """One producer works off its own memory during an outage, one does not, and others only work, each as a process of
    its own would; Redis is killed, and frozen for shorter and for longer than half a lease.
    """
    count, runs = 600, []
    producers = [make_queue(), make_queue()]
    workers = [Workers(queue, runs) for queue in (producers[0], make_queue(), make_queue())]

    def produce(queue, start):
        for n in range(start, count, 2):
            queue.enqueue(n)
            time.sleep(0.01)

    threads = [threading.Thread(target=produce, args=(queue, start)) for start, queue in enumerate(producers)]
    for thread in threads:
        thread.start()
    for frozen in (0.5, 2.0):
        time.sleep(0.2)
        redis_server.kill()
        time.sleep(0.2)
        redis_server.start()
        time.sleep(0.2)
        with redis_server.frozen():
            time.sleep(frozen)
    for thread in threads:
        thread.join(LONG)
    until(lambda: len(runs) >= count)
    time.sleep(0.3)
    for worker in workers:
        worker.join()
    assert Counter(runs) == dict.fromkeys(range(count), 1)
    until(lambda: all(queue.redis_active for queue in producers))
    seen = producers[0].snapshot()
    assert (seen["depth"], seen["claimed"]) == (0, 0)
