"""The programs around the broker: consumers in their own processes, producers in threads. All use only the SDK."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.queues import SimpleQueue

from ledger import Delivered, Enqueued, Ledger, Tenant

from fila import Client, FilaError, OutgoingMessage

QUEUE = "jobs"
TENANT_HEADER = "tenant"
WEIGHT_HEADER = "weight"
BATCH = 1000
IN_FLIGHT = 16
RETRY_S = 0.05


@dataclass(frozen=True, slots=True)
class Received:
    """A consumer got these."""

    deliveries: Sequence[Delivered]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker answered the acks of these."""

    ids: Sequence[str]
    at: float


def work(addr: str, seconds_per_message: float, reports: "SimpleQueue[Received | Confirmed]") -> None:
    """A consumer: takes messages, works on them, acks them. It is never told that the broker was gone."""
    with Client(addr) as client:
        for batch in client.consume_batches(QUEUE, max_in_flight=IN_FLIGHT):
            now = time.monotonic()
            reports.put(Received([Delivered(each.id, each.headers[TENANT_HEADER], now) for each in batch]))
            time.sleep(seconds_per_message * len(batch))
            client.ack_many(batch)
            reports.put(Confirmed([each.id for each in batch], time.monotonic()))


def fill(client: Client, tenant: Tenant, ledger: Ledger) -> None:
    """Enqueues the tenant's backlog."""
    for chunk in _chunks(tenant.backlog):
        now = time.monotonic()
        messages = [OutgoingMessage(f"{tenant.name} {number}".encode(), _headers(tenant)) for number in chunk]
        ledger.enqueued += [Enqueued(each, tenant.name, now) for each in client.enqueue_many(QUEUE, messages)]


class QuietProducer:
    """Sends one message now and then, each after the one before was acknowledged or given up."""

    def __init__(self, client: Client, tenant: Tenant, ledger: Ledger, pause_s: float) -> None:
        self._client = client
        self._tenant = tenant
        self._ledger = ledger
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=tenant.name, daemon=True)
        self.refused = 0
        """Enqueues that the broker did not acknowledge. Nothing was promised for these."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Sends no more; returns when the last answer is in."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(random.uniform(0.5, 1.5) * self._pause_s):
            now = time.monotonic()
            try:
                message_id = self._client.enqueue(QUEUE, _headers(self._tenant), b"now and then")
            except FilaError:
                self.refused += 1
                self._stop.wait(RETRY_S)
            else:
                self._ledger.enqueued.append(Enqueued(message_id, self._tenant.name, now))


def _headers(tenant: Tenant) -> dict[str, str]:
    return {TENANT_HEADER: tenant.name, WEIGHT_HEADER: str(tenant.weight)}


def _chunks(total: int) -> Iterator[list[int]]:
    numbers = iter(range(total))
    while chunk := list(islice(numbers, BATCH)):
        yield chunk
