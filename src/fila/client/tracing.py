"""Trace context of messages, for programs that use OpenTelemetry.

The SDK does not import OpenTelemetry: a program that has not imported it has no spans. A message that is sent inside a
sampled span carries the W3C trace context of the span in its headers, and `Delivery.span` continues that trace.
"""

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

#: A longer tracestate is left out, since it travels with every message.
MAX_STATE = 512


def context_headers() -> dict[str, str]:
    """The trace context of the current span as headers; empty without a sampled span."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    context = trace.get_current_span().get_span_context()
    if not (context.is_valid and context.trace_flags.sampled):
        return {}
    headers = {TRACEPARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
    state = context.trace_state.to_header() if context.trace_state else ""
    if state and len(state) <= MAX_STATE:
        headers[TRACESTATE] = state
    return headers


def processing_span(queue: str, message_id: str, headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """A span for processing a message, as a child of the producer's span. Current inside `with`."""
    if "opentelemetry.trace" not in sys.modules:
        return nullcontext()
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return trace.get_tracer("fila").start_as_current_span(
        f"process {queue}",
        context=TraceContextTextMapPropagator().extract(headers),
        kind=trace.SpanKind.CONSUMER,
        attributes={
            "messaging.system": "fila",
            "messaging.operation.name": "process",
            "messaging.destination.name": queue,
            "messaging.message.id": message_id,
        },
    )
