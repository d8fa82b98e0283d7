"""Everything that watches a server, put together: the look, its two exits, and the pages for probes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar

import structlog

from fila.broker.broker import Broker
from fila.config import TelemetryConfig
from fila.telemetry import prometheus
from fila.telemetry.http import Page, Pages, plain
from fila.telemetry.samples import Samples
from fila.telemetry.watch import Bounds, Watch

if TYPE_CHECKING:
    from fila.telemetry.otlp import MetricSender

log = structlog.get_logger(__name__)

T = TypeVar("T")

LAST_EXPORT_S = 3.0
"""How long a stop waits for the last figures to reach the collector."""


class Telemetry:
    """Watches one broker. Does nothing at all while the configuration names neither a collector nor an address."""

    def __init__(self, config: TelemetryConfig, broker: Broker, instance: str) -> None:
        self._config = config
        self._broker = broker
        self._instance = instance
        self._pages = Pages({"/metrics": self._metrics, "/healthz": self._healthy, "/readyz": self._ready})
        self._thread = ThreadPoolExecutor(1, "telemetry")
        """Where figures are written out and sent, so that messages do not wait for it"""
        self._looking = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._exporting: asyncio.Task[None] | None = None
        self._sender: MetricSender | None = None
        self._watch: Watch | None = None
        self.prometheus_port = 0

    async def start(self) -> None:
        """Raises OSError when the address cannot be had."""
        config = self._config
        if not (config.otlp_endpoint or config.prometheus_listen):
            return
        broker = self._broker
        bounds = Bounds(config.top_queues, config.top_keys, config.top_throttles)
        self._watch = Watch(broker.state, broker.load, broker.now, bounds)
        if config.prometheus_listen:
            self.prometheus_port = await self._pages.listen(config.prometheus_listen)
            log.info("serving metrics", address=config.prometheus_listen, port=self.prometheus_port)
        if config.otlp_endpoint:
            self._exporting = asyncio.create_task(self._export())
            log.info("sending telemetry", endpoint=config.otlp_endpoint)

    async def stop(self) -> None:
        """Send what there is to the collector, and be done."""
        await self._pages.close()
        self._stopping.set()
        if self._exporting is not None:
            await asyncio.wait({self._exporting}, timeout=LAST_EXPORT_S)
            self._exporting.cancel()
        if self._sender is not None:
            self._sender.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> Samples:
        """A look at the broker, between whose steps messages go on."""
        assert self._watch is not None
        samples: Samples = {}
        async with self._looking:
            for _ in self._watch.steps(samples):
                await asyncio.sleep(0)
        return samples

    async def _metrics(self) -> Page:
        samples = await self._look()
        return Page(await self._apart(partial(prometheus.render, samples)), content_type=prometheus.CONTENT_TYPE)

    async def _healthy(self) -> Page:
        return plain(HTTPStatus.SERVICE_UNAVAILABLE if self._broker.failed.done() else HTTPStatus.OK)

    async def _ready(self) -> Page:
        return plain(HTTPStatus.OK if self._broker.ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def _export(self) -> None:
        self._sender = await self._apart(self._make_sender)
        last = False
        while not last:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._config.metrics_interval_ms / 1000)
            last = self._stopping.is_set()
            await self._send(self._sender)

    def _make_sender(self) -> "MetricSender":
        from fila.telemetry.otlp import MetricSender, resource  # takes a while to load, and many do without

        source = resource(self._config.service_name, self._instance, version("fila"))
        return MetricSender(self._config.otlp_endpoint, source)

    async def _send(self, sender: "MetricSender") -> None:
        samples = await self._look()
        try:
            await self._apart(partial(sender.send, samples))
        except Exception:
            log.exception("metrics could not be sent")

    async def _apart(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
