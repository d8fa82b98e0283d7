"""What an ack may say when its connection breaks: success means that the message is gone for good.

A proxy loses either the request, so that the broker never hears of the ack, or the answer, so that it was carried out.
The client cannot tell one from the other and sends the ack again; meanwhile the broker has taken the messages of the
lost consumer back.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from fila import AckManyError, AsyncClient, Client, MessageNotFoundError
from fila.jobs import FilaSettings, LeaseLost, QueueSettings
from fila.jobs.broker.message import KEY, DeliveryRef
from fila.jobs.broker.queue import FilaQueue
from tests.e2e.support import PATIENCE_S, Inbox, contents, eventually, take
from tests.support.proxy import Proxy


@pytest.fixture
def proxy(shared_server):
    with Proxy(shared_server.addr) as proxy:
        yield proxy


class Acker:
    """A consumer behind the proxy that holds one message, and acks it on another thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._ack: Callable[[], object] = lambda: None
        self.message_id = ""

    def begin(self) -> "Future[object]":
        return self._pool.submit(self._ack)


class Single(Acker):
    """One request at a time, on a connection of its own."""

    def __init__(self, addr, queue):
        super().__init__()
        self.client = Client(addr, timeout=PATIENCE_S)
        self.client.enqueue(queue, payload=b"x")
        self.inbox = Inbox(self.client, queue)
        (message,) = self.inbox.wait(1)
        message.extend()  # so that the connection for settling stands
        self._ack, self.message_id = message.ack, message.id

    def close(self):
        self.inbox.close()
        self.client.close()


class Many(Single):
    """On the stream that all share."""

    def __init__(self, addr, queue):
        super().__init__(addr, queue)
        self._ack = self._ack_many

    def _ack_many(self):
        try:
            self.client.ack_many(self.inbox.messages[:1])
        except AckManyError as error:
            raise next(iter(error.failed.values())) from error


class Async(Acker):
    """An AsyncClient, on an event loop of its own."""

    def __init__(self, addr, queue):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self._ack = self.run(self.hold(addr, queue))

    async def hold(self, addr, queue):
        self.client = AsyncClient(addr, timeout=PATIENCE_S)
        await self.client.enqueue(queue, payload=b"x")
        self.consumer = self.client.consume(queue, auto_extend=False)
        message = await anext(self.consumer)
        self.message_id = message.id
        return lambda: self.run(message.ack())

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def close(self):
        self.run(self.consumer.aclose())
        self.run(self.client.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE_S)
        self.loop.close()


class Jobs(Acker):
    """A queue of jobs on the broker."""

    def __init__(self, addr, queue):
        super().__init__()
        self.queue = FilaQueue(QueueSettings(fila=FilaSettings(addr=addr, queue=queue, timeout=PATIENCE_S)))
        self.queue.enqueue({"task": "x"})
        self.item = self.queue.dequeue(PATIENCE_S)
        self.queue.extend(self.item)
        self._ack, self.message_id = self._ack_job, DeliveryRef.of(self.item).message_id

    def _ack_job(self):
        try:
            self.queue.ack(self.item)
        except LeaseLost as error:
            raise MessageNotFoundError(str(error)) from error

    def close(self):
        self.queue.close()


@pytest.fixture(params=[Single, Many, Async, Jobs], ids=["single", "many", "async", "jobs"])
def acker(request, client, proxy, queue):
    client.create_queue(queue, max_attempts=1, fairness_header=KEY)
    acker = request.param(proxy.addr, queue)
    yield acker
    proxy.mend()
    acker.close()


def lose_request(proxy, acker):
    """The broker never hears of the ack, and then the connection is gone."""
    proxy.swallows_requests = True
    ack = acker.begin()
    assert proxy.wait_until_swallowed(acker.message_id.encode(), PATIENCE_S)
    proxy.cut()
    return ack


def dies(client, queue):
    """The consumer's message comes back, and that was its last attempt. If the broker was not told in time that it was
    in hands, it counts none: then another consumer gives it up.
    """
    eventually(lambda: contents(client, queue)[1] == 0, "the end of the lease")
    if contents(client, queue) == (1, 0, 0):
        with Inbox(client, queue, on_message=lambda message: message.reject("lost")) as other:
            other.wait(1)
    eventually(lambda: contents(client, f"{queue}.dlq") == (1, 0, 0), "a dead letter")


def everywhere(client, queue):
    """How many messages exist, wherever they are."""
    return sum(sum(contents(client, name)[:2]) for name in (queue, f"{queue}.dlq"))


class TestAnAckWhoseRequestWasLost:
    def test_fails_when_the_message_is_among_the_dead_letters(self, client, queue, proxy, acker):
        ack = lose_request(proxy, acker)
        dies(client, queue)
        proxy.mend()
        with pytest.raises(MessageNotFoundError):
            ack.result(PATIENCE_S)
        assert contents(client, f"{queue}.dlq") == (1, 0, 0)

    def test_fails_when_the_message_was_sent_back_and_waits(self, client, queue, proxy, acker):
        ack = lose_request(proxy, acker)
        dies(client, queue)
        client.pause_queue(queue)
        assert client.redrive(f"{queue}.dlq") == 1
        proxy.mend()
        with pytest.raises(MessageNotFoundError):
            ack.result(PATIENCE_S)
        assert contents(client, queue) == (1, 0, 0)

    def test_fails_when_another_holds_the_message(self, client, queue, proxy, acker):
        ack = lose_request(proxy, acker)
        dies(client, queue)
        assert client.redrive(f"{queue}.dlq") == 1
        with Inbox(client, queue) as other:
            (held,) = other.wait(1)
            proxy.mend()
            with pytest.raises(MessageNotFoundError):
                ack.result(PATIENCE_S)
            assert everywhere(client, queue) == 1
            held.ack()

    def test_succeeds_when_another_has_acked_the_message(self, client, queue, proxy, acker):
        ack = lose_request(proxy, acker)
        dies(client, queue)
        take(client, f"{queue}.dlq", 1)
        proxy.mend()
        ack.result(PATIENCE_S)
        assert everywhere(client, queue) == 0


class TestAnAckWhoseAnswerWasLost:
    def test_succeeds_and_the_message_is_nowhere(self, client, queue, proxy, acker):
        proxy.swallows_answers = True
        ack = acker.begin()
        eventually(lambda: everywhere(client, queue) == 0, "the ack")
        proxy.cut()
        proxy.mend()
        ack.result(PATIENCE_S)
        assert everywhere(client, queue) == 0


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_the_truth_is_told_after_a_restart_too(server, queue, lost):
    with Client(server.addr, timeout=PATIENCE_S) as client, Proxy(server.addr) as proxy:
        client.create_queue(queue, max_attempts=1)
        acker = Single(proxy.addr, queue)
        if lost == "request":
            ack = lose_request(proxy, acker)
            dies(client, queue)
        else:
            proxy.swallows_answers = True
            ack = acker.begin()
            eventually(lambda: everywhere(client, queue) == 0, "the ack")
            proxy.cut()
        server.kill()
        server.start()
        proxy.mend()
        if lost == "request":
            with pytest.raises(MessageNotFoundError):
                ack.result(PATIENCE_S)
        else:
            ack.result(PATIENCE_S)
        assert everywhere(client, queue) == (lost == "request")
        acker.close()
