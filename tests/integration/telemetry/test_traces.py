"""One trace shows a message's way from the producer through the broker to the consumer."""

import subprocess
import sys

import grpc
import pytest

from fila import Client
from fila.testing import ServerProcess
from fila.v1 import service_pb2, service_pb2_grpc
from tests.helpers.telemetry import eventually

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"

# A program of its own, because a process has one tracer provider for its whole life.
PROGRAM = """
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from fila import Client, OutgoingMessage

collector, broker = sys.argv[1:]
provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(collector)))
trace.set_tracer_provider(provider)
with Client(broker, timeout=30) as client:
    client.create_queue("orders", fairness_header="tenant")
    with trace.get_tracer("shop").start_as_current_span("checkout"):
        client.enqueue("orders", {"tenant": "acme"}, b"one")
        client.enqueue_many("orders", [OutgoingMessage(b"two", {"tenant": "acme"}), b"three"])
    client.enqueue("orders", {"tenant": "acme"}, b"untraced")
    with client.consume("orders") as consumer:
        for _, message in zip(range(4), consumer):
            if message.payload == b"two":
                message.nack("no", delay_ms=60_000)
            else:
                with message.span():
                    client.ack("orders", message.id, message.lease_id)
"""


def attributes(span):
    return {one.key: one.value.string_value for one in span.attributes}


@pytest.fixture
def traced(collector, tmp_path):
    with ServerProcess(tmp_path, config=f'[telemetry]\notlp_endpoint = "{collector.endpoint}"\n') as server:
        yield server
        print(server.log)


def test_one_trace_shows_producer_broker_and_consumer(collector, traced):
    subprocess.run([sys.executable, "-c", PROGRAM, collector.endpoint, traced.addr], check=True, timeout=60)

    def whole():
        spans = [(service, span) for service, span in collector.spans if span.trace_id == root.trace_id]
        return spans if len([span for service, span in spans if service == "fila"]) == 9 else None

    (root,) = [span for _, span in collector.spans if span.name == "checkout"]
    spans = eventually(whole, "nine spans of the broker")
    names = sorted((service, span.name) for service, span in spans)
    assert names == [
        *[("fila", "fila.ack")] * 2,
        *[("fila", "fila.enqueue")] * 3,
        *[("fila", "fila.lease")] * 3,
        ("fila", "fila.nack"),
        ("shop", "checkout"),
        *[("shop", "process orders")] * 2,
    ]
    assert all(span.parent_span_id == root.span_id for _, span in spans if span.name != "checkout")
    broker = [span for service, span in spans if service == "fila"]
    assert all(attributes(span)["queue_id"] == "orders" and attributes(span)["msg_id"] for span in broker)
    assert {attributes(span)["fairness_key"] for span in broker} == {"acme", "default"}
    assert len({attributes(span)["msg_id"] for span in broker}) == 3
    assert len({span.span_id for span in broker}) == 9
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in broker)
    for span in broker:
        waits = {one.key: one.value.double_value for one in span.attributes if one.key.startswith("wait")}
        whole = waits.pop("wait_ms", None)
        assert (whole is not None) == (span.name == "fila.lease")
        assert sum(waits.values()) == pytest.approx(whole or 0)


def unary(server, metadata, **fields):
    with grpc.insecure_channel(server.addr) as channel:
        stub = service_pb2_grpc.FilaServiceStub(channel)
        return stub.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=b"x", **fields), metadata=metadata)


def delivered(client):
    with client.consume("q") as consumer:
        message = next(iter(consumer))
        message.ack()
    return message


def test_the_trace_of_a_call_is_kept_with_its_message(collector, traced):
    with Client(traced.addr, timeout=30) as client:
        client.create_queue("q")
        answer = unary(traced, [("traceparent", f"00-{TRACE}-{SPAN}-01")], headers={"a": "b"})
        message = delivered(client)
    assert message.headers == {"a": "b", "traceparent": f"00-{TRACE}-{SPAN}-01"}
    assert message.payload == b"x"
    spans = eventually(lambda: collector.spans if len(collector.spans) == 3 else None, "three spans")
    assert {span.name for _, span in spans} == {"fila.enqueue", "fila.lease", "fila.ack"}
    assert {(span.trace_id.hex(), span.parent_span_id.hex()) for _, span in spans} == {(TRACE, SPAN)}
    assert {attributes(span)["msg_id"] for _, span in spans} == {answer.message_id}


@pytest.mark.parametrize(
    "metadata, headers",
    [
        ([("traceparent", f"00-{TRACE}-{SPAN}-00")], {"traceparent": f"00-{TRACE}-{SPAN}-00"}),
        ([("traceparent", f"00-{'0' * 32}-{SPAN}-01")], {}),
        ([("traceparent", f"ff-{TRACE}-{SPAN}-01")], {}),
        ([("traceparent", f"00-{TRACE}-{SPAN}-01-and-more")], {}),
        ([("traceparent", "")], {}),
        ([], {}),
    ],
)
def test_a_trace_that_is_not_sampled_or_no_trace_makes_no_span(collector, traced, metadata, headers):
    with Client(traced.addr, timeout=30) as client:
        client.create_queue("q")
        unary(traced, metadata)
        assert delivered(client).headers == headers
    assert traced.stop() == 0
    assert collector.spans == []


def test_a_message_keeps_its_own_trace(collector, traced):
    own = f"00-{TRACE}-{'1' * 16}-01"
    with Client(traced.addr, timeout=30) as client:
        client.create_queue("q")
        unary(traced, [("traceparent", f"00-{TRACE}-{SPAN}-01")], headers={"traceparent": own})
        assert delivered(client).headers == {"traceparent": own}


def test_a_message_with_no_room_for_another_header_is_taken_as_it_is(collector, traced):
    headers = {str(number): "x" for number in range(64)}
    with Client(traced.addr, timeout=30) as client:
        client.create_queue("q")
        unary(traced, [("traceparent", f"00-{TRACE}-{SPAN}-01")], headers=headers)
        assert delivered(client).headers == headers
