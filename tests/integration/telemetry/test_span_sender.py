"""Spans on their way to a collector: OpenTelemetry's variables, a collector that is busy, and none at all."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from fila.telemetry.otlp import resource
from fila.telemetry.spans import SpanSender
from fila.telemetry.tracing import Note, Operation, Parent

NOTE = Note(Operation.ENQUEUE, Parent("1" * 32, ""), "orders", "id", "acme", 1, 2)


class Busy(trace_service_pb2_grpc.TraceServiceServicer):
    """Refuses so many calls, then takes them."""

    def __init__(self, refusals):
        self.refusals = refusals
        self.calls = []

    def Export(self, request, context):  # noqa: N802
        self.calls.append((request, dict(context.invocation_metadata())))
        if len(self.calls) <= self.refusals:
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def collector(refusals=0):
    server, service = grpc.server(ThreadPoolExecutor(1)), Busy(refusals)
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(service, server)
    service.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield service
    finally:
        server.stop(None).wait()


def send(endpoint, environ):
    sender = SpanSender(endpoint, resource("shop", "1", "0"), environ)
    try:
        return sender.send([NOTE])
    finally:
        sender.close()


def test_variables_of_opentelemetry_set_metadata_and_compression():
    environ = {
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=general,tenant=a%20b",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }
    with collector() as service:
        assert send(service.endpoint, environ)
        assert send(service.endpoint, environ | {"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=Traces"})
    (request, general), (_, traces) = service.calls
    [span] = request.resource_spans[0].scope_spans[0].spans
    assert (span.name, span.trace_id.hex()) == ("fila.enqueue", "1" * 32)
    assert (general["api-key"], general["tenant"]) == ("general", "a b")
    assert (traces["api-key"], traces.get("tenant")) == ("Traces", None)


def test_a_collector_that_is_busy_is_asked_again():
    with collector(refusals=1) as service:
        assert send(service.endpoint, {})
        assert len(service.calls) == 2


def test_a_collector_that_stays_away_is_told_by_the_result(monkeypatch):
    monkeypatch.setattr("fila.telemetry.spans.TIMEOUT_S", 0.2)
    with collector(refusals=100) as service:
        assert not send(service.endpoint, {})


def test_a_certificate_that_cannot_be_read_is_an_error(tmp_path):
    environ = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "none.pem")}
    with pytest.raises(OSError, match=r"none\.pem"):
        SpanSender("https://127.0.0.1:1", resource("shop", "1", "0"), environ)
