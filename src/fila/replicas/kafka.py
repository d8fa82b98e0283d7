"""A log in a topic of Kafka with one partition, three copies, and two of them in sync at each append.

A position is an offset. They are consecutive, since nobody writes with transactions and nothing is compacted. Kafka
refuses no entry for standing elsewhere than its writer thinks: the rule by which members count entries sees to that.
"""

from collections.abc import AsyncGenerator
from typing import Self

from fila.replicas.address import Address
from fila.replicas.asking import Highest
from fila.replicas.kafka_reader import Reader
from fila.replicas.kafka_topic import Topic
from fila.replicas.kafka_writer import Writer
from fila.replicas.log import Entry, LogError, TooLong


class KafkaLog:
    """One topic."""

    def __init__(self, address: Address, topic: Topic) -> None:
        self._address = address
        self._topic = topic
        self._writer = Writer(address, topic.max_entry_bytes)
        self._readers: set[Reader] = set()
        self._highest = Highest()
        self._closed = False
        self.max_entry_bytes = topic.max_entry_bytes

    @classmethod
    async def open(cls, address: Address) -> Self:
        """Makes the topic if there is none. Raises BadAddress, Unfit, LogUnavailable."""
        topic = Topic(address)
        try:
            await topic.prepare()
        except LogError:
            await topic.close()
            raise
        return cls(address, topic)

    async def append(self, body: bytes, after: int) -> int:  # noqa: ARG002  Kafka takes it wherever it comes to stand
        """See ReplicatedLog."""
        if len(body) > self.max_entry_bytes:
            raise TooLong(f"an entry of {len(body)} bytes is longer than {self.max_entry_bytes}")
        position = await self._writer.append(body)
        self._highest.told(position)
        return position

    async def end(self) -> int:
        """See ReplicatedLog."""
        return await self._highest.end(self._topic.end, self._address.append_timeout_s)

    async def first(self) -> int:
        """See ReplicatedLog."""
        return await self._topic.first()

    async def truncate(self, before: int) -> None:
        """See ReplicatedLog. Not beyond the end, which Kafka refuses."""
        await self._topic.truncate(min(before, await self._topic.end()))

    async def read(self, start: int) -> AsyncGenerator[list[Entry], None]:
        """See ReplicatedLog."""
        if self._closed:
            return
        reader = Reader(self._address, self._topic)
        self._readers.add(reader)
        try:
            async for entries in reader.entries(start):
                self._highest.told(entries[-1].position)
                yield entries
        finally:
            self._readers.discard(reader)
            await reader.end()

    async def close(self) -> None:
        """See ReplicatedLog."""
        self._closed = True
        for reader in self._readers:
            reader.close()
        await self._writer.close()
        await self._topic.close()
