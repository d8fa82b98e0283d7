"""Puts telemetry together: reading the figures, Prometheus and OTLP, and the pages for probes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol, TypeVar

import structlog

from fila.broker.broker import Broker
from fila.config import TelemetryConfig
from fila.metrics import prometheus
from fila.metrics.http import Page, PageServer, Refuse, Wrap, plain, serve_everyone
from fila.metrics.metric import Samples
from fila.telemetry import catalog
from fila.telemetry.loop_watchdog import LoopWatchdog
from fila.telemetry.process import ProcessWatch
from fila.telemetry.tracing import Note, Tracer
from fila.telemetry.watch import Bounds, Watch

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = structlog.get_logger(__name__)


class Sender(Protocol):
    """Holds a connection to a collector."""

    def close(self) -> None: ...


T = TypeVar("T")
S = TypeVar("S", bound=Sender)

SPANS_S = 1.0
"""How often spans go to the collector."""
LAST_EXPORT_S = 3.0
"""How long a stop waits for the last figures to reach the collector."""


class Telemetry:
    """Watches one broker. Does nothing at all while the configuration names neither a collector nor an address."""

    def __init__(
        self,
        config: TelemetryConfig,
        broker: Broker,
        instance: str,
        turns: LoopWatchdog,
        refuse: Refuse = serve_everyone,
        wrap: Wrap | None = None,
    ) -> None:
        self._config = config
        self._broker = broker
        self._instance = instance
        self._turns = turns
        pages = {"/metrics": self._metrics, "/healthz": self._healthy, "/readyz": self._ready}
        self._pages = PageServer(pages, refuse)
        self._wrap = wrap
        self._thread = ThreadPoolExecutor(1, "telemetry")
        """Where figures are written out and sent, so that messages do not wait for it"""
        self._looking = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._exports: set[asyncio.Task[None]] = set()
        self._senders: list[Sender] = []
        self._watch: Watch | None = None
        self._process = ProcessWatch()
        self._scrape: asyncio.Task[Page] | None = None
        self.serving = False
        """Set by the server once clients can reach it."""
        self.prometheus_port = 0
        traces = config.otlp_endpoint and config.traces
        self.tracer = Tracer(broker.state, config.own_traces_per_second) if traces else None
        """Notes spans; None when nobody wants them."""

    async def start(self) -> None:
        """Raises OSError when the address cannot be used."""
        config = self._config
        if not (config.otlp_endpoint or config.prometheus_listen):
            return
        broker = self._broker
        bounds = Bounds(config.top_queues, config.top_keys, config.top_throttles)
        self._watch = Watch(broker.state, broker.load, broker.now, bounds)
        if config.prometheus_listen:
            self.prometheus_port = await self._pages.listen(config.prometheus_listen, self._wrap)
            log.info("serving metrics", address=config.prometheus_listen, port=self.prometheus_port)
        if config.otlp_endpoint:
            self._exports.add(asyncio.create_task(self._export_metrics()))
            if self.tracer is not None:
                self._exports.add(asyncio.create_task(self._export_spans(self.tracer)))
            log.info("sending telemetry", endpoint=config.otlp_endpoint)

    async def stop(self) -> None:
        """Send the last figures and spans, then stop."""
        await self._pages.close()
        self._stopping.set()
        if self._exports:
            _, late = await asyncio.wait(self._exports, timeout=LAST_EXPORT_S)
            for export in late:
                export.cancel()
        for sender in self._senders:
            sender.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> Samples:
        """Collect samples in short steps; messages go on between them."""
        assert self._watch is not None
        samples: Samples = {}
        async with self._looking:
            began = monotonic_ns()
            for _ in self._watch.steps(samples):
                self._turns.ended("look", began, _describe_look)
                await asyncio.sleep(0)
                began = monotonic_ns()
            self._turns.ended("look", began, _describe_look)
            self._turns.collect(samples)
            self._process.collect(samples)
        noted, dropped = (self.tracer.noted, self.tracer.dropped) if self.tracer else (0, 0)
        samples[catalog.SPANS] = [(("noted",), noted), (("dropped",), dropped)]
        return samples

    async def _metrics(self) -> Page:
        """The page. Requests that come while it is made share it."""
        if self._scrape is None or self._scrape.done():
            self._scrape = asyncio.create_task(self._render())
        return await asyncio.shield(self._scrape)

    async def _render(self) -> Page:
        samples = await self._look()
        return Page(await self._apart(partial(prometheus.render, samples)), content_type=prometheus.CONTENT_TYPE)

    async def _healthy(self) -> Page:
        return plain(HTTPStatus.SERVICE_UNAVAILABLE if self._broker.failed.done() else HTTPStatus.OK)

    async def _ready(self) -> Page:
        if not (self.serving and self._broker.ready):
            return plain(HTTPStatus.SERVICE_UNAVAILABLE)
        refusal = self._broker.store.refusal()
        # Whoever takes it out of service takes it from the consumers, who make room.
        return plain(HTTPStatus.OK) if refusal is None else Page(f"ok for consumers: {refusal}\n".encode())

    async def _export_metrics(self) -> None:
        def make() -> Callable[[Samples], bool]:
            from fila.telemetry.otlp import MetricSender  # takes a while to load, and many do without

            return self._opened(MetricSender(self._config.otlp_endpoint, self._source())).send

        send = await self._apart(make)
        async for _ in self._beats(self._config.metrics_interval_ms / 1000):
            samples = await self._look()
            await self._try(partial(send, samples))

    async def _export_spans(self, tracer: Tracer) -> None:
        def make() -> Callable[[list[Note]], bool]:
            from fila.telemetry.spans import SpanSender  # as above

            return self._opened(SpanSender(self._config.otlp_endpoint, self._source())).send

        try:
            send = await self._apart(make)
        except OSError as error:
            log.error("spans are not sent: a file for TLS cannot be read", error=str(error))  # noqa: TRY400  says it all
            return
        async for _ in self._beats(SPANS_S):
            notes = tracer.take()
            if notes:
                await self._try(partial(send, notes))

    def _source(self) -> "Resource":
        from fila.telemetry.otlp import resource

        return resource(self._config.service_name, self._instance, version("fila"))

    def _opened(self, sender: S) -> S:
        self._senders.append(sender)
        return sender

    async def _beats(self, seconds: float) -> AsyncIterator[None]:
        """Yield after every interval, and a last time when the server stops."""
        last = False
        while not last:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)
            last = self._stopping.is_set()
            yield

    async def _try(self, send: Callable[[], bool]) -> None:
        try:
            await self._apart(send)
        except Exception:
            log.exception("telemetry could not be sent")

    async def _apart(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _describe_look() -> str:
    return "a step of a look for metrics"
