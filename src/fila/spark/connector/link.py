"""Connections to brokers: one for each process and broker, shared by all tasks that run in it."""

import os
from functools import lru_cache

from fila.client import Client
from fila.spark.connector.options import Broker


def client_of(broker: Broker) -> Client:
    """A client that asks a broker which is away again and again, until its time is over."""
    return _client(os.getpid(), broker)


@lru_cache(maxsize=16)
def _client(_pid: int, broker: Broker) -> Client:
    # A forked worker must not use its parent's connection: hence the pid.
    return Client(broker.addr, timeout=broker.retry_ms / 1000)
