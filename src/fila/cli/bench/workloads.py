"""The workloads. Each has a queue and client processes of its own, which are gone when it ends, however it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from fila.cli.bench import clients
from fila.cli.bench.latencies import Spread
from fila.cli.bench.load import KEY_HEADER, MOST_PROBES, Job, Load, parts
from fila.cli.bench.processes import Clients, started, watch
from fila.cli.endpoint import Endpoint
from fila.client import Client, FilaError, QueueNotFoundError


class LeftBehind(Exception):
    """The queue could not be deleted. The text says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a workload."""

    workload: str
    messages: int
    size: int
    seconds: float
    latencies: dict[str, Spread | None]
    """By what they are of"""
    complete: bool
    """Whether all messages were through in time"""

    @property
    def per_second(self) -> float:
        return self.messages / self.seconds if self.seconds > 0 else 0.0

    @property
    def mib_per_second(self) -> float:
        return self.per_second * self.size / (1 << 20)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A signal that comes meanwhile has its effect afterwards."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in came[:1]:
            signal.raise_signal(first)


Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]
"""Shows a workload over so many messages. What it yields is called with how many are through."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Runs workloads against one broker. `client` makes and deletes the queue."""

    client: Client
    endpoint: Endpoint
    queue: str
    load: Load
    progress: Progress

    def run(self, names: Collection[str]) -> Generator[Measured, None, None]:
        """In the order of WORKLOADS. Raises ClientFailed, LeftBehind, FilaError."""
        if {"produce", "consume"} & set(names):
            with self._own_queue():
                filled = self._produce("produce" if "produce" in names else "fill")
                if "produce" in names:
                    yield filled
                if "consume" in names:
                    yield self._consume(filled.messages)
        if "lifecycle" in names:
            with self._own_queue():
                yield self._both("lifecycle", self.load)
        if "latency" in names:
            one_by_one = replace(
                self.load, messages=min(self.load.messages, MOST_PROBES), producers=1, consumers=1, batch=1
            )
            with self._own_queue():
                yield self._both("latency", one_by_one)

    @contextmanager
    def _own_queue(self) -> Iterator[None]:
        made = False
        try:
            with _uninterrupted():
                self.client.create_queue(self.queue, fairness_header=KEY_HEADER)
                made = True
            yield
        finally:
            if made:
                with _uninterrupted():
                    self._delete_queue()

    def _delete_queue(self) -> None:
        try:
            self.client.delete_queue(self.queue, force=True)
        except QueueNotFoundError:
            pass  # somebody else has deleted it
        except FilaError as error:
            hint = f"fila queue delete {self.queue} --yes --force"
            raise LeftBehind(f'queue "{self.queue}" is left behind: {error}. Delete it with `{hint}`') from error

    def _produce(self, name: str) -> Measured:
        producers = self._producers(self.load)
        with started(producers), self.progress(name, self.load.messages) as reach:
            complete = watch([producers], self.load.seconds, lambda: producers.ended, lambda: reach(producers.counted))
        called = Spread.of(outcome.calls for outcome in producers.outcomes)
        return self._measured(name, self.load, producers.outcomes, producers.outcomes, {"call": called}, complete)

    def _consume(self, expected: int) -> Measured:
        consumers = self._consumers(self.load)
        with started(consumers), self.progress("consume", expected) as reach:
            complete = watch(
                [consumers],
                self.load.seconds,
                lambda: consumers.counted >= expected,
                lambda: reach(consumers.counted),
            )
        acked = Spread.of(outcome.calls for outcome in consumers.outcomes)
        return self._measured("consume", self.load, consumers.outcomes, consumers.outcomes, {"ack": acked}, complete)

    def _both(self, name: str, load: Load) -> Measured:
        consumers, producers = self._consumers(load), self._producers(load)
        with started(consumers, producers), self.progress(name, load.messages) as reach:
            complete = watch(
                [producers, consumers],
                load.seconds,
                lambda: consumers.counted >= load.messages,
                lambda: reach(consumers.counted),
            )
        latencies = {"delivery": Spread.of(outcome.deliveries for outcome in consumers.outcomes)}
        if load.batch == 1:
            latencies = {"enqueue": Spread.of(outcome.calls for outcome in producers.outcomes)} | latencies
        return self._measured(name, load, producers.outcomes, consumers.outcomes, latencies, complete)

    def _producers(self, load: Load) -> Clients:
        shares = [share for share in parts(load.messages, load.producers) if share]
        return Clients(clients.produce, [Job(self.endpoint, self.queue, load, share) for share in shares])

    def _consumers(self, load: Load) -> Clients:
        return Clients(clients.consume, [Job(self.endpoint, self.queue, load, 0)] * load.consumers)

    def _measured(
        self,
        name: str,
        load: Load,
        first: Sequence[clients.Outcome],
        last: Sequence[clients.Outcome],
        latencies: dict[str, Spread | None],
        complete: bool,
    ) -> Measured:
        """From the start of the first ones to the end of the last ones, who have counted the messages."""
        seconds = max(each.ended for each in last) - min(each.began for each in first)
        return Measured(name, sum(each.messages for each in last), load.size, seconds, latencies, complete)
