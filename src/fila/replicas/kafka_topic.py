"""Questions to Kafka about the topic of a log, and what the topic must be to keep one.

librdkafka's client for questions keeps asking the leader it knows, with the epoch it knows, although the answer says
that both are of yesterday. So after an answer that is no answer another client is made, which knows nothing.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from fila.replicas.address import Address
from fila.replicas.kafka_client import PARTITION, Worker, settings
from fila.replicas.log import LogUnavailable, Unfit

COPIES: Final = 3
IN_SYNC: Final = 2
BATCH_BYTES: Final = 512
"""Room for the header of an entry's batch, which counts as part of it"""
TRY_S = 3.0
RETRY_S = 0.3
_KEPT = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
}
_OR_UNSAFE = "or say unsafe_one_copy=true for a log that may be lost"
_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.POLICY_VIOLATION,
}


class Topic:
    """The topic of a log, through a client that asks."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._problem = "no answer"
        self._refused = False
        self._worker = Worker()
        self._settings = settings(address, self._note)
        self._admin: AdminClient | None = None
        self._closed = False
        self.max_entry_bytes = 0
        """Known after `prepare`"""

    async def prepare(self) -> None:
        """Make the topic if there is none, and check it. Raises Unfit, LogUnavailable."""
        name = self._address.name
        try:
            found = await self._ask(lambda admin: admin.describe_topics(TopicCollection([name])))
        except _NoTopic:
            await self._make()
            found = await self._ask(lambda admin: admin.describe_topics(TopicCollection([name])), until_there=True)
        resource = ConfigResource(ResourceType.TOPIC, name)
        entries = await self._ask(lambda admin: admin.describe_configs([resource]), until_there=True)
        config = {key: entry.value for key, entry in entries.items()}
        self._check([len(partition.replicas) for partition in found.partitions], config)
        self.max_entry_bytes = int(config["max.message.bytes"]) - BATCH_BYTES

    async def first(self) -> int:
        """The first position that is kept. Raises LogUnavailable."""
        return await self._offset(OffsetSpec.earliest())

    async def end(self) -> int:
        """Behind the last entry that all copies in sync have. Raises LogUnavailable."""
        return await self._offset(OffsetSpec.latest())

    async def truncate(self, before: int) -> None:
        """Raises LogUnavailable."""
        place = TopicPartition(self._address.name, PARTITION, before)
        await self._ask(lambda admin: admin.delete_records([place]), until_there=True)

    async def close(self) -> None:
        """Whoever asks gets no answer."""
        self._closed = True
        last = self._worker.end(self._forget)
        if last is not None:
            await last

    def _forget(self) -> None:
        if self._admin is not None:
            self._admin.poll(0)  # hears of problems
        self._admin = None  # which ends it, and may take a moment

    async def _make(self) -> None:
        unsafe = self._address.unsafe_one_copy
        copies, in_sync = (1, 1) if unsafe else (COPIES, IN_SYNC)
        new = NewTopic(self._address.name, 1, copies, config=_KEPT | {"min.insync.replicas": str(in_sync)})
        await self._ask(lambda admin: admin.create_topics([new]))

    def _check(self, copies: list[int], config: dict[str, Any]) -> None:
        unsafe = self._address.unsafe_one_copy
        wrong = None
        if len(copies) != 1:
            wrong = f"it has {len(copies)} partitions and not 1"
        elif copies[0] < COPIES and not unsafe:
            wrong = f"it has {copies[0]} copies and not {COPIES}"
        elif int(config["min.insync.replicas"]) < IN_SYNC and not unsafe:
            wrong = f"min.insync.replicas is {config['min.insync.replicas']} and not {IN_SYNC}"
        elif bad := [key for key, value in _KEPT.items() if config[key] != value]:
            wrong = f"{bad[0]} is {config[bad[0]]} and not {_KEPT[bad[0]]}"
        if wrong is not None:
            raise Unfit(
                f"the topic {self._address.name} could lose what Kafka acknowledges: {wrong}; change that, {_OR_UNSAFE}"
            )

    async def _offset(self, what: OffsetSpec) -> int:
        place = TopicPartition(self._address.name, PARTITION)
        found = await self._ask(lambda admin: admin.list_offsets({place: what}), until_there=True)
        return int(found.offset)

    async def _ask(self, call: Callable[[AdminClient], dict[Any, "Future[Any]"]], *, until_there: bool = False) -> Any:
        """Ask for what may be done twice, again and again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._address.append_timeout_s
        while True:
            try:
                return await self._ask_once(call)
            except KafkaException as cause:
                error = cause.args[0]
                if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return None
                if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and not until_there:
                    raise _NoTopic from cause
                if error.code() in _REFUSED:
                    raise Unfit(f"Kafka: {error.str()}; change that, {_OR_UNSAFE}") from cause
                reason = error.str()
            except TimeoutError:
                reason = "no answer"
            await self._worker.run(self._forget)
            if self._refused:
                raise Unfit(f"Kafka refuses the connection: {self._problem}")
            if loop.time() > deadline:
                raise LogUnavailable(f"Kafka at {', '.join(self._address.servers)}: {reason}; {self._problem}")
            await asyncio.sleep(RETRY_S)

    async def _ask_once(self, call: Callable[[AdminClient], dict[Any, "Future[Any]"]]) -> Any:
        def ask() -> "Future[Any]":
            if self._closed:
                raise LogUnavailable("the log is closed")
            if self._admin is None:
                self._admin = AdminClient(self._settings)
            [future] = call(self._admin).values()
            return future

        future = await self._worker.run(ask)
        async with asyncio.timeout(min(TRY_S, self._address.append_timeout_s)):
            return await asyncio.wrap_future(future)

    def _note(self, error: KafkaError) -> None:
        self._problem = error.str()
        self._refused = error.code() in {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}  # noqa: SLF001  so named by librdkafka


class _NoTopic(Exception):
    """The topic is not there."""
