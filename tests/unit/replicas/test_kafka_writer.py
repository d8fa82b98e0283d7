"""What an append to Kafka says when it fails. The broker is the one that librdkafka brings along for tests."""

import asyncio
import ctypes
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, cimpl

from fila.replicas.address import parse
from fila.replicas.kafka_writer import Writer
from fila.replicas.log import InDoubt, LogUnavailable

PRODUCE = 0
"""What the protocol calls it by"""
MAX_BYTES = 1000


class Brokers:
    """The cluster of librdkafka's tests, on loopback."""

    def __init__(self, library, handle):
        self._library = library
        self._cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(ctypes.c_void_p(handle), 1))

    @property
    def address(self):
        return parse(
            f"kafka://{self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()}/log", {"kafka": 9092}
        )

    def refuse_appends(self, *errors):
        """The next ones, each with an error."""
        codes = (ctypes.c_int * len(errors))(*errors)
        push = self._library.rd_kafka_mock_push_request_errors_array
        push(self._cluster, ctypes.c_int16(PRODUCE), ctypes.c_size_t(len(errors)), codes)

    def end(self):
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)


@contextmanager
def running_brokers():
    library = ctypes.CDLL(cimpl.__file__)
    for made in (library.rd_kafka_new, library.rd_kafka_mock_cluster_new):
        made.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    handle = library.rd_kafka_new(0, None, ctypes.create_string_buffer(512), ctypes.c_size_t(512))
    brokers = Brokers(library, handle)
    try:
        yield brokers
    finally:
        brokers.end()
        library.rd_kafka_destroy(ctypes.c_void_p(handle))


@pytest.fixture
def brokers():
    with running_brokers() as found:
        yield found


@pytest.mark.parametrize(
    "errors",
    [
        [KafkaError.TOPIC_AUTHORIZATION_FAILED],
        [KafkaError.MSG_SIZE_TOO_LARGE],
        [KafkaError.REQUEST_TIMED_OUT, KafkaError.TOPIC_AUTHORIZATION_FAILED],
    ],
)
def test_what_a_broker_refuses_is_in_doubt_since_an_earlier_try_may_stand(brokers, errors):
    async def play():
        writer = Writer(brokers.address, MAX_BYTES)
        try:
            assert await writer.append(b"one") == 0
            brokers.refuse_appends(*errors)
            with pytest.raises(InDoubt):
                await writer.append(b"two")
            assert await writer.append(b"three") == 1
        finally:
            await writer.close()

    asyncio.run(play())


def test_what_is_never_handed_to_a_broker_was_not_appended(brokers):
    async def play():
        writer = Writer(brokers.address, MAX_BYTES)
        try:
            with pytest.raises(LogUnavailable):
                await writer.append(bytes(4 << 20))
            assert await writer.append(b"one") == 0
        finally:
            await writer.close()

    asyncio.run(play())
