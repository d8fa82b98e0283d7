"""Spans to an OTLP collector. Runs in a thread of its own: nothing here touches the broker.

Notes become protobuf straight away. By way of the SDK's own span objects each would take several times as long,
of an interpreter that the broker needs.
"""

from collections.abc import Mapping, Sequence
from random import getrandbits
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, SpanFlags, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult

from fila.core.ledger import Wait
from fila.telemetry.otlp import SCOPE, TIMEOUT_S
from fila.telemetry.tracing import Note, Parent

NS_PER_MS = 1_000_000
_SAMPLED = 1
_FLAGS = _SAMPLED | SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
"""Sampled, and its parent is in another process."""


class _Exporter(OTLPSpanExporter):
    """The library's exporter (connection, retries, variables) for spans that are encoded already."""

    def _translate_data(self, data: Sequence[Any]) -> ExportTraceServiceRequest:
        (request,) = data
        assert isinstance(request, ExportTraceServiceRequest)
        return request


class SpanSender:
    """Sends what was noted to one collector."""

    def __init__(self, endpoint: str, source: Resource) -> None:
        self._exporter = _Exporter(endpoint, timeout=TIMEOUT_S)
        attributes = _attributes({name: str(value) for name, value in source.attributes.items()})
        self._resource = resource_pb2.Resource(attributes=attributes)

    def send(self, notes: list[Note]) -> bool:
        """Whether they got there. The library has logged why not."""
        spans = ScopeSpans(scope=InstrumentationScope(name=SCOPE.name), spans=[_span(note) for note in notes])
        request = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(resource=self._resource, scope_spans=[spans])]
        )
        sent: Any = [request]
        return self._exporter.export(sent) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()


def _span(note: Note) -> Span:
    fields = {
        "queue_id": note.queue,
        "msg_id": note.message_id,
        "fairness_key": note.fairness_key,
        "error.type": note.error,
    }
    return Span(
        trace_id=bytes.fromhex(note.parent.trace),
        span_id=(getrandbits(64) or 1).to_bytes(8, "big"),
        parent_span_id=bytes.fromhex(note.parent.span),
        flags=_FLAGS if note.parent.span else _SAMPLED,
        name=f"fila.{note.operation.value}",
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=note.began,
        end_time_unix_nano=max(note.began, note.ended),
        attributes=[*_attributes(fields), *_wait(note.wait)],
        links=[] if note.link is None else [_link(note.link)],
        status=Status(code=Status.STATUS_CODE_ERROR) if note.error else None,
    )


def _link(producer: Parent) -> Span.Link:
    return Span.Link(trace_id=bytes.fromhex(producer.trace), span_id=bytes.fromhex(producer.span), flags=_FLAGS)


def _attributes(fields: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=text)) for name, text in fields.items() if text]


def _wait(wait: Wait | None) -> list[KeyValue]:
    """Where the wait of a message went, in milliseconds. The parts sum up to the whole; those of 0 are left out."""
    if wait is None:
        return []
    parts = {
        "wait_ms": wait.whole,
        "wait.delay_ms": wait.delay,
        "wait.retry_ms": wait.retry,
        "wait.no_consumer_ms": wait.no_consumer,
        "wait.throttle_ms": sum(wait.throttle.values()),
        "wait.fair_share_ms": wait.fair_share,
    }
    return [KeyValue(key=name, value=AnyValue(double_value=ns / NS_PER_MS)) for name, ns in parts.items() if ns]
