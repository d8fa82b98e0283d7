"""Connections to brokers: one for each process and broker, shared by all tasks that run in it."""

import os
import time
from functools import lru_cache

from fila.client import Client
from fila.client.backoff import Backoff
from fila.spark.options import Broker


def client_of(broker: Broker) -> Client:
    """A client that asks a broker which is away again and again, until its time is over."""
    return _client(os.getpid(), broker)


@lru_cache(maxsize=16)
def _client(_pid: int, broker: Broker) -> Client:
    # A forked worker must not use its parent's connection: hence the pid.
    return Client(broker.addr, timeout=broker.retry_ms / 1000, tls=broker.tls, api_key_file=broker.key_file or None)


class RetryDeadline:
    """How long to retry an unreachable broker, where the client itself does not retry."""

    def __init__(self, broker: Broker) -> None:
        self._deadline = time.monotonic() + broker.retry_ms / 1000
        self._backoff = Backoff()

    def wait(self) -> bool:
        """Wait a little, longer each time. False, at once, when that would be too long."""
        wait_s = self._backoff.next_wait_s()
        if time.monotonic() + wait_s > self._deadline:
            return False
        time.sleep(wait_s)
        return True
