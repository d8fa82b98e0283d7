"""The programs around the broker: consumers in their own processes, producers in threads. All use only the SDK."""

import queue
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.queues import SimpleQueue

from examples.demo.ledger import Delivered, Enqueued, Ledger, Tenant
from fila import AckManyError, Client, ConsumeMessage, FilaError, FilaTimeoutError, OutgoingMessage

QUEUE = "jobs"
TENANT_HEADER = "tenant"
WEIGHT_HEADER = "weight"
BATCH = 1000
IN_FLIGHT = 16
RETRY_S = 0.05
POLL_S = 0.005
STOP_S = 0.2


@dataclass(frozen=True, slots=True)
class Received:
    """A consumer got these."""

    deliveries: Sequence[Delivered]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker answered the acks of these."""

    ids: Sequence[str]


def work(addr: str, seconds_per_message: float, reports: "SimpleQueue[Received | Confirmed]") -> None:
    """A consumer: takes messages, works on them, acks them. It is never told that the broker was gone."""
    stopped = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the demonstration, which then ends us
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())  # a report is never cut in two
    with Client(addr) as client:
        arrived: queue.SimpleQueue[Sequence[ConsumeMessage]] = queue.SimpleQueue()
        threading.Thread(target=_receive, args=(client, arrived, reports), daemon=True).start()
        while not stopped.is_set():
            with suppress(queue.Empty):
                batch = arrived.get(timeout=STOP_S)
                time.sleep(seconds_per_message * len(batch))
                reports.put(Confirmed(_ack(client, batch)))


def _receive(
    client: Client,
    arrived: "queue.SimpleQueue[Sequence[ConsumeMessage]]",
    reports: "SimpleQueue[Received | Confirmed]",
) -> None:
    """In a thread of its own, so that the picture shows a message when it is here."""
    for batch in client.consume_batches(QUEUE, max_in_flight=IN_FLIGHT):
        reports.put(Received([Delivered(each.id, each.headers[TENANT_HEADER]) for each in batch]))
        arrived.put(batch)


def _ack(client: Client, batch: Sequence[ConsumeMessage]) -> list[str]:
    """The ids whose ack the broker confirmed. For the others it may have been too late, or the answer was lost."""
    try:
        client.ack_many(batch)
    except AckManyError as error:
        return [each.id for each in batch if each.id not in error.failed]
    except FilaTimeoutError:
        return []
    return [each.id for each in batch]


def fill(client: Client, tenant: Tenant, ledger: Ledger) -> None:
    """Enqueues the tenant's backlog."""
    for chunk in _chunks(tenant.backlog):
        messages = [OutgoingMessage(f"{tenant.name} {number}".encode(), _headers(tenant)) for number in chunk]
        ledger.enqueued += [Enqueued(each, tenant.name) for each in client.enqueue_many(QUEUE, messages)]


class QuietProducer:
    """Sends one message now and then, each after the one before was delivered."""

    def __init__(self, client: Client, tenant: Tenant, ledger: Ledger, pause_s: float) -> None:
        self._client = client
        self._tenant = tenant
        self._ledger = ledger
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=tenant.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Sends no more."""
        self._stop.set()

    def join(self) -> None:
        """Returns when the last answer is in."""
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(random.uniform(0.5, 1.5) * self._pause_s):
            try:
                message_id = self._client.enqueue(QUEUE, _headers(self._tenant), b"now and then")
            except FilaError:  # not acknowledged: nothing was promised, so there is nothing to prove
                self._stop.wait(RETRY_S)
            else:
                self._ledger.enqueued.append(Enqueued(message_id, self._tenant.name))
                while message_id not in self._ledger.received and not self._stop.wait(POLL_S):
                    pass


def _headers(tenant: Tenant) -> dict[str, str]:
    return {TENANT_HEADER: tenant.name, WEIGHT_HEADER: str(tenant.weight)}


def _chunks(total: int) -> Iterator[list[int]]:
    numbers = iter(range(total))
    while chunk := list(islice(numbers, BATCH)):
        yield chunk
