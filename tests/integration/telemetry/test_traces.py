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
    """Traces what others trace, and nothing else."""
    config = f'[telemetry]\notlp_endpoint = "{collector.endpoint}"\nown_traces_per_second = 0\n'
    with ServerProcess(tmp_path, config=config) as server:
        yield server
        print(server.log)


@pytest.fixture
def curious(collector, tmp_path):
    """Traces by itself, as a server does unless it is told otherwise."""
    with ServerProcess(tmp_path, config=f'[telemetry]\notlp_endpoint = "{collector.endpoint}"\n') as server:
        yield server


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


def stub_of(server):
    channel = grpc.insecure_channel(server.addr)
    return channel, service_pb2_grpc.FilaServiceStub(channel)


def context(number, flags="01"):
    """The metadata of a caller with a trace of its own."""
    return [("traceparent", f"00-{number:032x}-{number:016x}-{flags}")]


def by_name(collector, count):
    spans = eventually(lambda: collector.spans if len(collector.spans) >= count else None, f"{count} spans")
    assert len(spans) == count
    return {span.name: span for _, span in spans}


def takes_and_settles(traced, settle, lease_context, settle_context):
    """An untraced message is leased and settled by calls with these contexts. Returns its id."""
    channel, stub = stub_of(traced)
    with channel, Client(traced.addr, timeout=30) as client:
        client.create_queue("q", fairness_header="tenant")
        message_id = client.enqueue("q", {"tenant": "acme"})
        leases = stub.Lease(service_pb2.LeaseRequest(queue="q", max_in_flight=1), metadata=lease_context)
        message = next(iter(leases)).messages[0]
        lease_id = message.metadata.lease_id
        settle(stub, message_id, lease_id, settle_context)
        leases.cancel()
    return message_id


def ack(stub, message_id, lease_id, metadata):
    stub.Ack(service_pb2.AckRequest(queue="q", message_id=message_id, lease_id=lease_id), metadata=metadata)


def nack(stub, message_id, lease_id, metadata):
    request = service_pb2.NackRequest(queue="q", message_id=message_id, lease_id=lease_id, delay_ms=60_000)
    stub.Nack(request, metadata=metadata)


def settle_ack(stub, message_id, lease_id, metadata):
    group = service_pb2.AckGroup(queue="q", message_ids=[message_id], lease_id=lease_id)
    (answer,) = stub.Settle(iter([service_pb2.SettleRequest(sequence=1, acks=[group])]), metadata=metadata)
    assert not answer.failures


def settle_nack(stub, message_id, lease_id, metadata):
    request = service_pb2.NackRequest(queue="q", message_id=message_id, lease_id=lease_id, delay_ms=60_000)
    (answer,) = stub.Settle(iter([service_pb2.SettleRequest(sequence=1, nacks=[request])]), metadata=metadata)
    assert not answer.failures


@pytest.mark.parametrize(
    "settle,name", [(ack, "fila.ack"), (nack, "fila.nack"), (settle_ack, "fila.ack"), (settle_nack, "fila.nack")]
)
def test_what_a_traced_call_leases_and_settles_is_in_its_trace(collector, traced, settle, name):
    """Also when nobody traced the message before, unary and on streams."""
    message_id = takes_and_settles(traced, settle, context(7), context(8))
    spans = by_name(collector, 2)
    for operation, number in (("fila.lease", 7), (name, 8)):
        span = spans[operation]
        assert (int.from_bytes(span.trace_id, "big"), int.from_bytes(span.parent_span_id, "big")) == (number, number)
        shown = attributes(span)
        assert (shown["queue_id"], shown["msg_id"], shown["fairness_key"]) == ("q", message_id, "acme")
        assert not span.links


@pytest.mark.parametrize("settle", [ack, settle_nack])
def test_a_caller_that_is_not_sampled_makes_no_span(collector, traced, settle):
    takes_and_settles(traced, settle, context(7, "00"), context(8, "00"))
    assert traced.stop() == 0
    assert collector.spans == []


def test_what_a_traced_stream_enqueues_is_in_its_trace_unless_the_message_says_otherwise(collector, traced):
    channel, stub = stub_of(traced)
    with channel, Client(traced.addr, timeout=30) as client:
        client.create_queue("q")
        own = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        messages = [
            service_pb2.EnqueueRequest(payload=b"x"),
            service_pb2.EnqueueRequest(payload=b"x", headers=own),
        ]
        request = service_pb2.EnqueueBatchRequest(queue="q", messages=messages, sequence=1)
        (answer,) = stub.EnqueueStream(iter([request]), metadata=context(9))
        assert len(answer.results) == 2
    spans = eventually(lambda: collector.spans if len(collector.spans) == 2 else None, "two spans")
    assert {span.name for _, span in spans} == {"fila.enqueue"}
    assert {span.trace_id.hex() for _, span in spans} == {f"{9:032x}", TRACE}


def test_a_traced_consumer_of_a_traced_message_links_to_its_producer(collector, traced):
    channel, stub = stub_of(traced)
    with channel, Client(traced.addr, timeout=30) as client:
        client.create_queue("q")
        message_id = client.enqueue("q", {"traceparent": f"00-{TRACE}-{SPAN}-01"})
        leases = stub.Lease(service_pb2.LeaseRequest(queue="q"), metadata=context(7))
        ack(stub, message_id, next(iter(leases)).messages[0].metadata.lease_id, context(7))
        leases.cancel()
    spans = by_name(collector, 3)
    assert spans["fila.enqueue"].trace_id.hex() == TRACE
    for name in ("fila.lease", "fila.ack"):
        assert int.from_bytes(spans[name].trace_id, "big") == 7
        (link,) = spans[name].links
        assert (link.trace_id.hex(), link.span_id.hex()) == (TRACE, SPAN)


def test_what_nobody_traces_is_traced_by_the_broker(collector, curious):
    """A trace for each operation, for a client that knows nothing of traces."""
    with Client(curious.addr, timeout=30) as client:
        client.create_queue("q", fairness_header="tenant")
        ids = [client.enqueue("q", {"tenant": "acme"}) for _ in range(2)]
        with client.consume("q") as messages:
            next(messages).ack()
            next(messages).nack("no", delay_ms=60_000)
    spans = eventually(lambda: collector.spans if len(collector.spans) == 6 else None, "six spans")
    names = [span.name for _, span in spans]
    assert sorted(names) == ["fila.ack", "fila.enqueue", "fila.enqueue", "fila.lease", "fila.lease", "fila.nack"]
    assert {span.parent_span_id for _, span in spans} == {b""}
    assert len({span.trace_id for _, span in spans}) == 6
    for _, span in spans:
        shown = attributes(span)
        assert (shown["queue_id"], shown["fairness_key"]) == ("q", "acme")
        assert shown["msg_id"] in ids


@pytest.mark.parametrize("settle", [ack, settle_nack])
def test_a_broker_that_traces_by_itself_leaves_out_whom_others_do_not_sample(collector, curious, settle):
    takes_and_settles(curious, settle, context(7, "00"), context(8, "00"))
    assert curious.stop() == 0
    assert [span.name for _, span in collector.spans] == ["fila.enqueue"]
