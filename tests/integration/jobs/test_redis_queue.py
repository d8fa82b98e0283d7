"""The Redis queue on the server's own clock, and how it is reached."""

import logging
import shutil
import subprocess
import threading
import time

import pytest

from fila.jobs import InvalidSettings, QueueSettings, QueueUnavailable, RedisQueue
from fila.jobs.redis.commands import QUEUE_SCRIPT
from fila.testing import RedisProcess
from tests.helpers.clock import ManualClock

LONG = 20.0


@pytest.fixture
def server_clock(monkeypatch):
    """The clock of the Redis server, as queues see it that go by it."""
    clock = ManualClock()

    def call(commands, command, *args):
        return commands.client.call(QUEUE_SCRIPT, commands._keys, command, round(clock() * 1000), *args)

    monkeypatch.setattr("fila.jobs.redis.commands.QueueCommands._call", call)
    return clock


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


def await_waiters(queue, count):
    while (
        int(queue._commands.client.command("INFO", "clients").decode().split("blocked_clients:")[1].split()[0]) < count
    ):
        time.sleep(0.01)


def start_waiters(queue, *timeouts):
    """Waiters who got their place in line in this order. Returns them, and what comes to them."""
    came, waiters = [], []
    for timeout in timeouts:
        waiters.append(threading.Thread(target=lambda left=timeout: came.append(queue.dequeue(left)), daemon=True))
        waiters[-1].start()
        await_waiters(queue, len(waiters))
    return waiters, came


@pytest.fixture
def patient_queue(make_queue, monkeypatch):
    """Who waits there looks again only when woken."""
    monkeypatch.setattr("fila.jobs.redis.queue._MAX_WAIT_SECONDS", 1000.0)
    return make_queue(lease_seconds=4000)


def test_who_is_woken_and_has_no_time_to_wait_wakes_another(patient_queue):
    (first, second), came = start_waiters(patient_queue, 2.0, 1000.0)
    patient_queue.enqueue("later", delay_seconds=2.5)
    first.join(LONG)
    second.join(LONG)
    assert [item and item.job for item in came] == [None, "later"]


def test_who_is_woken_and_leaves_with_a_job_wakes_another(patient_queue):
    (first, second), came = start_waiters(patient_queue, 1000.0, 1000.0)
    patient_queue.enqueue("first", delay_seconds=0.3)
    patient_queue.enqueue("second", delay_seconds=0.6)
    first.join(LONG)
    second.join(LONG)
    assert sorted(item.job for item in came) == ["first", "second"]


def test_who_is_woken_in_the_last_moment_wakes_another(patient_queue, monkeypatch):
    """A job may be there, and no time to look is left."""
    client = patient_queue._commands.client
    wait = client.wait

    def wait_too_long(key, seconds, unless):
        client.command("RPUSH", key, "1")
        took = wait(key, seconds, unless)
        time.sleep(seconds)
        return took

    monkeypatch.setattr(client, "wait", wait_too_long)
    assert patient_queue.dequeue(2.0) is None  # long enough to begin to wait, on a busy machine too
    assert client.command("LLEN", "fila:jobs:ready:wake") == 1


def test_jobs_that_become_ready_together_wake_as_many_as_wait(patient_queue, make_queue):
    """There is one token for all: who takes it and leaves jobs behind passes it on."""
    queue = patient_queue
    for n in range(3):
        queue.enqueue(n)
        queue.bury(queue.dequeue(LONG), "for now")
    came = []
    others = [make_queue(lease_seconds=4000) for _ in range(3)]
    waiters = [threading.Thread(target=lambda one=one: came.append(one.dequeue(2 * LONG).job)) for one in others]
    for waiter in waiters:
        waiter.start()
    await_waiters(queue, 3)
    assert queue.redrive() == 3
    for waiter in waiters:
        waiter.join(LONG)
    assert sorted(came) == [0, 1, 2]


def test_waiting_is_not_polling(make_queue, redis_server):
    """One look, then silence until something happens: a few commands, however long nothing does."""
    queue = make_queue(lease_seconds=60)

    def calls():
        info = queue._commands.client.command("INFO", "commandstats").decode()
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


def test_the_job_of_a_dead_worker_comes_back_while_the_others_are_busy(make_queue, server_clock):
    """However long they are at it before they ask for the next one: extending a claim is a sign of life too."""
    dead, alive = make_queue(lease_seconds=30.0), make_queue(lease_seconds=30.0)
    dead.enqueue("victim")
    assert dead.dequeue(0).job == "victim"
    came = []
    for n in range(3):
        alive.enqueue(n)
        item = alive.dequeue(0)
        came.append((item.job, item.attempt))
        for _ in range(2):
            server_clock.advance(10)
            alive.extend(item)
        alive.ack(item)
    assert came == [(0, 1), (1, 1), ("victim", 2)]


def test_an_outage_that_an_extended_claim_shows_first_ends_no_other_claim(make_queue, server_clock):
    busy, other = make_queue(lease_seconds=30.0), make_queue(lease_seconds=30.0)
    for queue in (busy, other):
        queue.enqueue("job")
    extended, done = busy.dequeue(0), busy.dequeue(0)
    server_clock.advance(31)
    busy.extend(extended)
    assert other.dequeue(0) is None
    busy.ack(done)
    busy.ack(extended)


def test_jobs_outlive_redis_and_process(make_queue, redis_server):
    make_queue().enqueue({"kept": True}, priority="high", correlation_id="c")
    redis_server.kill()
    redis_server.start()
    item = make_queue().dequeue(LONG)
    assert (item.job, item.correlation_id) == ({"kept": True}, "c")


@pytest.mark.parametrize(
    "record",
    [
        "{not json",
        "[" * 100_000,
        "[]",
        "{}",
        '{"job":5,"label":"normal","at":0}',
        '{"job":"1","label":5,"at":0}',
        '{"job":"1","label":"normal","at":"0"}',
        '{"job":"1","label":"normal","at":1%s}' % ("0" * 400),
        '{"job":"1","label":"normal","at":0,"correlation":[]}',
        '{"job":"1","label":"normal","at":0,"key":5}',
        '{"job":"1","label":"normal","at":0,"headers":[]}',
        '{"job":"1","label":"normal","at":0,"headers":{"a":1}}',
    ],
    ids=lambda record: record[:50],
)
def test_a_job_that_cannot_be_read_is_buried_and_holds_nobody_up(make_queue, record):
    queue = make_queue()
    broken = queue.enqueue("broken")
    queue.enqueue("fine")
    queue._commands.client.command("HSET", "fila:jobs:ready:jobs", broken.id, record)
    item = queue.dequeue(LONG)
    assert item.job == "fine"
    [dead] = queue.dead_letters()
    assert dead.item.id == broken.id
    assert "cannot be read" in dead.error


def test_a_job_that_cannot_be_read_is_buried_though_the_log_fails(make_queue, monkeypatch):
    queue = make_queue()
    broken = queue.enqueue("broken")
    queue._commands.client.command("HSET", "fila:jobs:ready:jobs", broken.id, "{not json")

    def fail(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr("fila.jobs.redis.commands.logger.exception", fail)
    with pytest.raises(OSError, match="no space"):
        queue.dequeue(LONG)
    assert [dead.item.id for dead in queue.dead_letters()] == [broken.id]


def test_a_key_that_somebody_else_uses_is_a_clear_error(make_queue):
    queue = make_queue()
    queue._commands.client.command("RPUSH", "fila:jobs:ready", "a plain list")
    with pytest.raises(QueueUnavailable, match="WRONGTYPE"):
        queue.enqueue(1)
    assert queue.redis_active is True


def test_a_job_that_was_taken_is_returned_though_the_depth_is_not_known(make_queue, monkeypatch):
    """Somebody else uses a key that only counting reads."""
    monkeypatch.setattr("fila.jobs.base._DEPTH_EVERY", 1)
    queue = make_queue()
    queue._commands.client.command("SET", "fila:jobs:ready:dead", "somebody else's")
    assert queue.enqueue("job").seq == 1


def test_the_keys_are_those_of_the_settings(make_queue):
    queue = make_queue(redis_ready_key="{mine}:now", redis_scheduled_key="{mine}:later")
    queue.enqueue(1)
    queue.enqueue(2, delay_seconds=100)
    keys = {key.decode() for key in queue._commands.client.command("KEYS", "*")}
    assert {"{mine}:now", "{mine}:later"} <= keys
    assert all(key.startswith("{mine}:") for key in keys)


def test_done_jobs_leave_nothing_behind(make_queue):
    queue = make_queue()
    for n in range(50):
        queue.enqueue(n)
        queue.ack(queue.dequeue(LONG))
    sizes = {
        name: queue._commands.client.command(command, f"fila:jobs:ready:{name}")
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


def test_a_closed_queue_leaves_no_connection_open(make_queue):
    """Neither that of who waited, nor that of who asks it once more."""
    queue, other = make_queue(), make_queue()
    waiters, came = start_waiters(queue, LONG, LONG)
    queue.close()
    for waiter in waiters:
        waiter.join(LONG)
    assert came == [None, None]
    assert queue.dequeue() is None
    until_alone = time.monotonic() + LONG
    while len(other._commands.client.command("CLIENT", "LIST").splitlines()) > 1:
        assert time.monotonic() < until_alone, "somebody else is connected"
        time.sleep(0.01)


def test_a_password_opens_the_queue_and_is_never_logged(tmp_path, caplog):
    with RedisProcess(tmp_path, password="s3cret-word") as server:
        settings = QueueSettings(use_redis=True, redis_url=server.url, on_outage="memory")
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
