"""Spans to an OTLP collector. Runs in a thread of its own: nothing here touches the broker."""

from random import getrandbits

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from fila.telemetry.otlp import SCOPE, TIMEOUT_S
from fila.telemetry.tracing import Note

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class SpanSender:
    """Sends what was noted to one collector."""

    def __init__(self, endpoint: str, source: Resource) -> None:
        self._exporter = OTLPSpanExporter(endpoint, timeout=TIMEOUT_S)
        self._resource = source

    def send(self, notes: list[Note]) -> bool:
        """Whether they got there. The library has logged why not."""
        return self._exporter.export([self._span(note) for note in notes]) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()

    def _span(self, note: Note) -> ReadableSpan:
        trace_id = int(note.parent.trace, 16)
        attributes = {"queue_id": note.queue, "msg_id": note.message_id, "fairness_key": note.fairness_key}
        if note.error:
            attributes["error.type"] = note.error
        return ReadableSpan(
            f"fila.{note.operation.value}",
            SpanContext(trace_id, getrandbits(64) or 1, is_remote=False, trace_flags=_SAMPLED),
            SpanContext(trace_id, int(note.parent.span, 16), is_remote=True, trace_flags=_SAMPLED),
            self._resource,
            {name: value for name, value in attributes.items() if value},
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if note.error else StatusCode.UNSET),
            start_time=note.began,
            end_time=note.ended,
            instrumentation_scope=SCOPE,
        )
