"""Traces through the broker, when the program uses OpenTelemetry.

The SDK does not load it: a program that has not done so itself has no span to go on with. A message that is sent while
a sampled span is current carries the span's W3C trace context in its headers; `Delivery.span` goes on with it.
"""

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

#: A longer state is left out: the header is for a few vendors' marks, and travels with every message.
MAX_STATE = 512


def context_headers() -> dict[str, str]:
    """The trace context of the caller's span as headers; none without a sampled span."""
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
    """A span for the work on a message, current inside `with`, as a child of the producer's."""
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
