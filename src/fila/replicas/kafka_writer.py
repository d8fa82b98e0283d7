"""Appending to a topic of Kafka.

The producer numbers what it sends, so a broker drops what it sends twice. It is not exactly once: a message whose
answer does not come may stand. And librdkafka tries again by itself, so an error tells of the last try alone: what was
handed to it is in doubt after any error. After anything but an answer another producer is made, since one may be left
in a fatal state; the old one is told to give up what it still has. What it has sent already may come to stand later.
"""

import asyncio
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fila.replicas.address import Address
from fila.replicas.kafka_client import PARTITION, Worker, settings
from fila.replicas.log import InDoubt, LogUnavailable

REQUEST_TIMEOUT_MS = 4_000
POLL_S = 0.5
ROOM: Final = 1 << 20


class Writer:
    """One producer after the other."""

    def __init__(self, address: Address, max_entry_bytes: int) -> None:
        self._address = address
        self._config = settings(address, lambda _: None) | {
            "acks": "all",
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": 0,
            "compression.type": "none",
            "message.max.bytes": max_entry_bytes + ROOM,
            "message.timeout.ms": max(1, int(address.append_timeout_s * 1000)),
            "request.timeout.ms": REQUEST_TIMEOUT_MS,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 500,
        }
        self._sender: _Sender | None = None
        self._ending: set[asyncio.Future[object]] = set()
        self._turn = asyncio.Lock()
        self._closed = False

    async def append(self, body: bytes) -> int:
        """The offset. Raises InDoubt, LogUnavailable."""
        async with self._turn:
            if self._closed:
                raise LogUnavailable("the log is closed")
            if self._sender is None:
                self._sender = _Sender(self._config)
            done = False
            try:
                error, offset = await self._sender.send(self._address.name, body)
                done = error is None
            finally:
                if not done:
                    self._give_up()
        if error is None:
            return offset
        raise InDoubt(f"Kafka: {error.str()}")

    async def close(self) -> None:
        """An append that waits for its answer is in doubt."""
        self._closed = True
        self._give_up()
        while self._ending:
            await asyncio.wait(self._ending)

    def _give_up(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            ending = sender.end()
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


class _Sender:
    """A producer and its thread."""

    def __init__(self, config: dict[str, object]) -> None:
        self._worker = Worker()
        self._producer: Producer | None = Producer(config)
        self._answers: list[tuple[KafkaError | None, int]] = []

    async def send(self, topic: str, body: bytes) -> tuple[KafkaError | None, int]:
        """What became of it: an error, or its offset. Raises LogUnavailable when it was not even begun."""

        def wait() -> tuple[KafkaError | None, int]:
            producer = self._producer
            assert producer is not None
            self._answers.clear()
            try:
                producer.produce(topic, body, partition=PARTITION, on_delivery=self._note)
            except KafkaException as cause:
                raise LogUnavailable(f"Kafka: {cause.args[0].str()}") from cause
            while not self._answers:
                producer.poll(POLL_S)
            return self._answers[0]

        return await self._worker.run(wait)

    def end(self) -> "asyncio.Future[object]":
        """From any state, and without waiting."""
        if self._producer is not None:
            self._producer.purge(blocking=False)
        ending = self._worker.end(self._forget)
        assert ending is not None, "a sender ends once"
        return ending

    def _forget(self) -> None:
        self._producer = None  # which ends it, and may take a moment

    def _note(self, error: KafkaError | None, message: Message) -> None:
        self._answers.append((error, message.offset() or 0))
