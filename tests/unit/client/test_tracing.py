"""The SDK's side of traces, with and without OpenTelemetry."""

import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from fila.client.encoding import OutgoingMessage, encode, encode_all
from fila.client.tracing import MAX_STATE, context_headers
from fila.v1.service_pb2 import EnqueueBatchRequest

TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
HEADER = f"00-{TRACE:032x}-{SPAN:016x}-01"


def within(flags=1, state=None):
    context = SpanContext(TRACE, SPAN, is_remote=False, trace_flags=TraceFlags(flags), trace_state=state)
    return trace.use_span(NonRecordingSpan(context))


def messages(chunk):
    return EnqueueBatchRequest.FromString(chunk.frames).messages


def test_without_a_span_there_is_no_context():
    assert context_headers() == {}


def test_a_sampled_span_is_the_context_and_one_that_is_not_is_none():
    with within():
        assert context_headers() == {"traceparent": HEADER}
    with within(flags=0):
        assert context_headers() == {}


def test_the_state_goes_along_unless_it_is_too_long():
    with within(state=TraceState([("vendor", "mark")])):
        assert context_headers()["tracestate"] == "vendor=mark"
    with within(state=TraceState([(f"vendor{number}", "m" * 200) for number in range(MAX_STATE // 200 + 1)])):
        assert "tracestate" not in context_headers()


def test_messages_carry_the_context_besides_their_headers():
    with within():
        (one,) = messages(encode("q", OutgoingMessage(b"x", {"a": "b"})))
        (chunk,) = encode_all("q", [b"y", OutgoingMessage(b"z", {"a": "b"})])
    assert (dict(one.headers), one.payload, one.queue) == ({"a": "b", "traceparent": HEADER}, b"x", "q")
    assert [dict(message.headers) for message in messages(chunk)] == [
        {"traceparent": HEADER},
        {"a": "b", "traceparent": HEADER},
    ]


def test_a_message_that_brings_a_context_keeps_it():
    with within():
        (one,) = messages(encode("q", OutgoingMessage(b"x", {"traceparent": "mine"})))
    assert dict(one.headers) == {"traceparent": "mine"}


@pytest.mark.parametrize(
    "statement", ["import fila.client.encoding", "import fila.client.message", "import fila.client"]
)
def test_the_sdk_does_not_load_opentelemetry(statement):
    program = f"{statement}; import sys; sys.exit('opentelemetry.trace' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_without_opentelemetry_a_span_is_nothing():
    program = "from fila.client.tracing import processing_span as s\nwith s('q', 'id', {}) as span: assert span is None"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
