"""Metrics to an OTLP collector.

The samples of a look are put into OpenTelemetry's data model as they are. Its instruments are not used: they would
count a second time what the broker has counted, and none of them reads a histogram from outside.

Runs in a thread of its own: nothing here touches the broker.
"""

import time
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import export as model
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from fila.metrics.metric import Distribution, Metric, MetricType, Samples, Value

TIMEOUT_S = 10.0
SCOPE = InstrumentationScope("fila")
_CUMULATIVE = model.AggregationTemporality.CUMULATIVE


def resource(service_name: str, instance: str, version: str) -> Resource:
    """What tells this server from others. `OTEL_RESOURCE_ATTRIBUTES` may add to it."""
    return Resource.create({"service.name": service_name, "service.instance.id": instance, "service.version": version})


class MetricSender:
    """Sends samples to one collector."""

    def __init__(self, endpoint: str, source: Resource) -> None:
        self._exporter = OTLPMetricExporter(endpoint, timeout=TIMEOUT_S)
        self._resource = source
        self._began = time.time_ns()

    def send(self, samples: Samples) -> bool:
        """Whether it got there. The library has logged why not."""
        metrics = [self._exported(metric, values, time.time_ns()) for metric, values in samples.items() if values]
        scope = model.ScopeMetrics(SCOPE, metrics, "")
        data = model.MetricsData([model.ResourceMetrics(self._resource, [scope], "")])
        return self._exporter.export(data) is model.MetricExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()

    def _exported(self, metric: Metric, values: list[tuple[tuple[str, ...], Value]], now: int) -> model.Metric:
        numbers: list[model.NumberDataPoint] = []
        spreads: list[model.HistogramDataPoint] = []
        for texts, value in values:
            labels = dict(zip(metric.labels, texts, strict=True))
            if isinstance(value, Distribution):
                spreads.append(self._spread(labels, value, now))
            else:
                numbers.append(model.NumberDataPoint(labels, self._began, now, value))
        match metric.type:
            case MetricType.COUNTER:
                data: model.DataT = model.Sum(numbers, _CUMULATIVE, is_monotonic=True)
            case MetricType.GAUGE:
                data = model.Gauge(numbers)
            case MetricType.HISTOGRAM:
                data = model.Histogram(spreads, _CUMULATIVE)
        return model.Metric(metric.name, metric.help, metric.unit, data)

    def _spread(self, labels: dict[str, str], value: Distribution, now: int) -> model.HistogramDataPoint:
        count = sum(value.counts)
        unknown: Any = None  # least and greatest may be missing in OTLP, if not in the model's types
        return model.HistogramDataPoint(
            labels, self._began, now, count, value.total, value.counts, value.bounds, unknown, unknown
        )
