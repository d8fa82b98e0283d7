"""Spans to an OTLP collector. Runs in a thread of its own: nothing here touches the broker.

Notes are encoded as protobuf and sent by the stub of the OTLP service. The SDK's exporter takes only span objects of
the SDK, which cost several times as much time of an interpreter that the broker needs.
"""

import os
from collections.abc import Mapping
from random import getrandbits

import grpc
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, SpanFlags, Status
from opentelemetry.sdk.resources import Resource

from fila.core.ledger import Wait
from fila.telemetry.collector import open_channel, read_metadata
from fila.telemetry.otlp import SCOPE, TIMEOUT_S
from fila.telemetry.tracing import Note, Parent

log = structlog.get_logger(__name__)

NS_PER_MS = 1_000_000
_SAMPLED = 1
_FLAGS = _SAMPLED | SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
"""Sampled, and its parent is in another process."""


class SpanSender:
    """Sends what was noted to one collector."""

    def __init__(self, endpoint: str, source: Resource, environ: Mapping[str, str] = os.environ) -> None:
        self._endpoint = endpoint
        self._channel = open_channel(endpoint, environ)
        self._stub = TraceServiceStub(self._channel)  # type: ignore[no-untyped-call] # generated without types
        self._metadata = read_metadata(environ)
        attributes = _attributes({name: str(value) for name, value in source.attributes.items()})
        self._resource = resource_pb2.Resource(attributes=attributes)

    def send(self, notes: list[Note]) -> bool:
        """Whether they got there. If not, the log says why."""
        spans = ScopeSpans(scope=InstrumentationScope(name=SCOPE.name), spans=[_span(note) for note in notes])
        request = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(resource=self._resource, scope_spans=[spans])]
        )
        try:
            self._stub.Export(request, timeout=TIMEOUT_S, metadata=self._metadata)
        except grpc.RpcError as error:
            log.warning("spans could not be sent", endpoint=self._endpoint, spans=len(notes), status=error.code().name)
            return False
        return True

    def close(self) -> None:
        self._channel.close()


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
