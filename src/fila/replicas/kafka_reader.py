"""Reading a topic of Kafka: one consumer with an assigned partition, in no group, that keeps no offsets."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from fila.replicas.address import Address
from fila.replicas.kafka_client import PARTITION, Worker, settings
from fila.replicas.kafka_topic import Topic
from fila.replicas.log import Entry, LogUnavailable, Truncated

READ_ENTRIES: Final = 500
READ_BYTES: Final = 4 << 20
WAIT_S = 0.2
RETRY_S = 0.1
_REFUSED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.SASL_AUTHENTICATION_FAILED}


class Reader:
    """One reader."""

    def __init__(self, address: Address, topic: Topic) -> None:
        self._address = address
        self._topic = topic
        self._worker = Worker()
        self._closed = False
        self._consumer: Consumer | None = Consumer(
            settings(address, lambda _: None)
            | {
                "group.id": "fila",  # which librdkafka wants, and nobody joins
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 100,
                "max.partition.fetch.bytes": READ_BYTES,
                "queued.max.messages.kbytes": 2 * READ_BYTES >> 10,
                "check.crcs": True,
            }
        )

    async def entries(self, start: int) -> AsyncGenerator[list[Entry], None]:
        """From a position on, until the reader is closed. Raises Truncated, LogUnavailable."""
        await self._begin(start)
        while not self._closed:
            entries, error = await self._worker.run(self._poll)
            for index, entry in enumerate(entries):
                if entry.position != start + index:
                    await self._missing(start + index)
                    entries, error = entries[:index], None
                    break
            if entries:
                start += len(entries)
                yield entries
            if error is not None and not self._closed:
                await self._understand(error, start)

    def close(self) -> None:
        """Whoever waits for entries gets no more."""
        self._closed = True

    async def end(self) -> None:
        """Let go of the connection."""
        self._closed = True
        last = self._worker.end(self._forget)
        if last is not None:
            await last

    async def _begin(self, start: int) -> None:
        place = TopicPartition(self._address.name, PARTITION, start)

        def assign() -> None:
            if self._consumer is not None:
                self._consumer.assign([place])

        await self._worker.run(assign)

    def _poll(self) -> tuple[list[Entry], KafkaError | None]:
        consumer = self._consumer
        if consumer is None:
            return [], None
        try:
            first = consumer.poll(WAIT_S)
            messages: list[Message] = [] if first is None else [first, *consumer.consume(READ_ENTRIES, 0)]
        except KafkaException as cause:
            return [], cause.args[0]
        entries: list[Entry] = []
        for message in messages:
            if (error := message.error()) is not None:
                return entries, error
            entries.append(Entry(message.offset() or 0, message.value() or b""))
        return entries, None

    async def _understand(self, error: KafkaError, start: int) -> None:
        if error.code() in _REFUSED or error.fatal():
            raise LogUnavailable(f"Kafka: {error.str()}")
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001  so named by librdkafka
            await self._missing(start)
        await asyncio.sleep(RETRY_S)

    async def _missing(self, start: int) -> None:
        """There is no entry at a position: it has gone, or is still to come, or is not to be seen at the moment."""
        try:
            first = await self._topic.first()
        except LogUnavailable:
            first = 0
        if first > start:
            raise Truncated(first)
        await self._begin(start)

    def _forget(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
