"""The Redis queue on the server's own clock, and how it is reached."""

import logging
import shutil
import subprocess
import threading
import time

import pytest

from fila.jobs import InvalidSettings, QueueSettings, QueueUnavailable, RedisQueue
from fila.testing import RedisProcess

LONG = 20.0


def test_who_waits_gets_a_delayed_job_when_it_is_due(make_queue):
    queue, other = make_queue(), make_queue()
    came = []
    waiter = threading.Thread(target=lambda: came.append(queue.dequeue(LONG)))
    waiter.start()
    time.sleep(0.1)
    other.enqueue("soon", delay_seconds=0.3)
    waiter.join(LONG)
    assert came[0].job == "soon"
    assert time.time() >= came[0].ready_at - 0.05


def test_jobs_that_become_ready_together_wake_as_many_as_wait(make_queue, monkeypatch):
    """There is one token for all: who takes it and leaves jobs behind passes it on."""
    monkeypatch.setattr("fila.jobs.redis.queue._MAX_WAIT_SECONDS", 1000.0)
    queue = make_queue(lease_seconds=4000)
    for n in range(3):
        queue.enqueue(n)
        queue.bury(queue.dequeue(LONG), "for now")
    came = []
    others = [make_queue(lease_seconds=4000) for _ in range(3)]
    waiters = [threading.Thread(target=lambda one=one: came.append(one.dequeue(2 * LONG).job)) for one in others]
    for waiter in waiters:
        waiter.start()
    while int(queue._remote.link.command("INFO", "clients").decode().split("blocked_clients:")[1].split()[0]) < 3:
        time.sleep(0.01)
    assert queue.redrive() == 3
    for waiter in waiters:
        waiter.join(LONG)
    assert sorted(came) == [0, 1, 2]


def test_waiting_is_not_polling(make_queue, redis_server):
    """One look, then silence until something happens: a few commands, however long nothing does."""
    queue = make_queue(lease_seconds=60)

    def calls():
        info = queue._remote.link.command("INFO", "commandstats").decode()
        [line] = [line for line in info.splitlines() if line.startswith("cmdstat_evalsha:")]
        return int(line.partition("calls=")[2].partition(",")[0])

    queue.enqueue("load the script")
    queue.ack(queue.dequeue(LONG))
    before = calls()
    assert queue.dequeue(1.5) is None
    assert calls() - before <= 3


def test_a_claim_ends_with_its_lease_and_not_before(make_queue):
    queue, other = make_queue(lease_seconds=1.0), make_queue(lease_seconds=1.0)
    queue.enqueue("job")
    item = queue.dequeue(LONG)
    queue.extend(item)
    assert other.dequeue(0.3) is None
    assert other.dequeue(LONG).attempt == 2


def test_jobs_outlive_redis_and_process(make_queue, redis_server):
    make_queue().enqueue({"kept": True}, priority="high", correlation_id="c")
    redis_server.kill()
    redis_server.start()
    item = make_queue().dequeue(LONG)
    assert (item.job, item.correlation_id) == ({"kept": True}, "c")


def test_a_job_that_cannot_be_read_is_buried_and_holds_nobody_up(make_queue):
    queue = make_queue()
    broken = queue.enqueue("broken")
    queue.enqueue("fine")
    queue._remote.link.command("HSET", "affiliate:ready_queue:jobs", broken.id, "{not json")
    item = queue.dequeue(LONG)
    assert item.job == "fine"
    [dead] = queue.dead_letters()
    assert dead.item.id == broken.id
    assert "cannot be read" in dead.error


def test_a_job_that_cannot_be_read_is_buried_though_the_log_fails(make_queue, monkeypatch):
    queue = make_queue()
    broken = queue.enqueue("broken")
    queue._remote.link.command("HSET", "affiliate:ready_queue:jobs", broken.id, "{not json")

    def fail(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr("fila.jobs.redis.remote.logger.exception", fail)
    with pytest.raises(OSError, match="no space"):
        queue.dequeue(LONG)
    assert [dead.item.id for dead in queue.dead_letters()] == [broken.id]


def test_a_key_that_somebody_else_uses_is_a_clear_error(make_queue):
    queue = make_queue()
    queue._remote.link.command("RPUSH", "affiliate:ready_queue", "a plain list")
    with pytest.raises(QueueUnavailable, match="WRONGTYPE"):
        queue.enqueue(1)
    assert queue.redis_active is True


def test_the_keys_are_those_of_the_settings(make_queue):
    queue = make_queue(redis_ready_key="{mine}:now", redis_scheduled_key="{mine}:later")
    queue.enqueue(1)
    queue.enqueue(2, delay_seconds=100)
    keys = {key.decode() for key in queue._remote.link.command("KEYS", "*")}
    assert {"{mine}:now", "{mine}:later"} <= keys
    assert all(key.startswith("{mine}:") for key in keys)


def test_done_jobs_leave_nothing_behind(make_queue):
    queue = make_queue()
    for n in range(50):
        queue.enqueue(n)
        queue.ack(queue.dequeue(LONG))
    sizes = {
        name: queue._remote.link.command(command, f"affiliate:ready_queue:{name}")
        for name, command in {
            "jobs": "HLEN",
            "state": "HLEN",
            "claims": "ZCARD",
            "taken": "ZCARD",
            "wake": "LLEN",
        }.items()
    }
    assert sizes["jobs"] == sizes["state"] == sizes["claims"] == 0
    assert sizes["taken"] <= 1
    assert sizes["wake"] <= 1


def test_a_password_opens_the_queue_and_is_never_logged(tmp_path, caplog):
    with RedisProcess(tmp_path, password="s3cret-word") as server:
        settings = QueueSettings(use_redis=True, redis_url=server.url)
        queue = RedisQueue(settings)
        queue.enqueue("let in")
        assert queue.dequeue(LONG).job == "let in"
        assert "s3cret-word" not in repr(settings) + settings.redis_url_redacted
        with caplog.at_level(logging.DEBUG):
            stranger = RedisQueue(QueueSettings(use_redis=True, redis_url=server.url.replace("s3cret", "wr0ng")))
            assert stranger.health_check() is False
            server.kill()
            queue.enqueue("in memory")
            queue.close()
            stranger.close()
    assert caplog.records
    for record in caplog.records:
        assert "s3cret-word" not in str(record.__dict__)
        assert "wr0ng-word" not in str(record.__dict__)


def test_a_url_that_cannot_be_is_refused_without_repeating_it():
    with pytest.raises(InvalidSettings) as refused:
        RedisQueue(QueueSettings(use_redis=True, redis_url="redis://:hush@host:notaport/0"))
    assert "hush" not in str(refused.value)
    with pytest.raises(InvalidSettings, match="redis_url"):
        QueueSettings(use_redis=True, redis_url="http://localhost")


def test_tls_with_a_certificate_that_is_checked(tmp_path):
    openssl = shutil.which("openssl")
    assert openssl is not None
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            *subject,
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    with RedisProcess(tmp_path) as plain:
        tls = ["--tls-port", str(plain.port), "--port", "0", "--tls-cert-file", str(certificate)]
        tls += ["--tls-key-file", str(key), "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"]
        plain.kill()
        process = subprocess.Popen(
            ["redis-server", *tls, "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL
        )
        try:
            address = plain.url.replace("redis://", "rediss://")
            queue = RedisQueue(QueueSettings(use_redis=True, redis_url=f"{address}?ssl_ca_certs={certificate}"))
            deadline = time.monotonic() + LONG
            while not queue.health_check() and time.monotonic() < deadline:
                time.sleep(0.05)
            while not queue.redis_active and time.monotonic() < deadline:
                time.sleep(0.05)
            queue.enqueue("sealed")
            assert queue.snapshot()["redis_active"] is True
            assert queue.dequeue(LONG).job == "sealed"
            stranger = RedisQueue(QueueSettings(use_redis=True, redis_url=address))
            assert stranger.health_check() is False, "a certificate that nobody vouches for is refused"
            queue.close()
            stranger.close()
        finally:
            process.kill()
            process.wait()
