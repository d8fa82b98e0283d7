"""What any gRPC tool finds without our SDK: health, reflection, status codes."""

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc


@pytest.fixture
def channel(shared_server):
    with grpc.insecure_channel(shared_server.addr) as channel:
        yield channel


@pytest.mark.parametrize("service", ["", "fila.v1.FilaService", "fila.v1.FilaAdmin"])
def test_the_server_says_that_it_is_healthy(channel, service):
    """As a whole and for each service."""
    health = health_pb2_grpc.HealthStub(channel)
    response = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=30)
    assert response.status == health_pb2.HealthCheckResponse.SERVING


def test_the_health_of_an_unknown_service(channel):
    """Is not known."""
    with pytest.raises(grpc.RpcError) as raised:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="fila.v1.Other"), timeout=30)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def reflect(channel, **request):
    requests = iter([reflection_pb2.ServerReflectionRequest(**request)])
    return next(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(requests, timeout=30))


def test_reflection_lists_the_services(channel):
    """A tool such as grpcurl finds what there is to call."""
    listed = reflect(channel, list_services="").list_services_response.service
    assert {service.name for service in listed} >= {
        "fila.v1.FilaService",
        "fila.v1.FilaAdmin",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


@pytest.mark.parametrize("symbol", ["fila.v1.FilaService", "fila.v1.FilaAdmin", "fila.v1.Message"])
def test_reflection_describes_what_can_be_called(channel, symbol):
    """The descriptor of a symbol comes with the file that defines it."""
    files = reflect(channel, file_containing_symbol=symbol).file_descriptor_response.file_descriptor_proto
    described = [descriptor_pb2.FileDescriptorProto.FromString(file) for file in files]
    defined = {f"{file.package}.{each.name}" for file in described for each in (*file.service, *file.message_type)}
    assert symbol in defined


def test_status_codes_of_the_contract(channel, queue):
    """Unary calls answer with the codes that the contract names, and a text that says what was wrong."""
    hot, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
    create = admin_pb2.CreateQueueRequest(name=queue)
    admin.CreateQueue(create, timeout=30)
    hot.Enqueue(service_pb2.EnqueueRequest(queue=queue), timeout=30)
    unknown = {"queue": queue, "message_id": "01900000-0000-7000-8000-000000000000"}
    cases = [
        (admin.CreateQueue, create, grpc.StatusCode.ALREADY_EXISTS),
        (admin.CreateQueue, admin_pb2.CreateQueueRequest(), grpc.StatusCode.INVALID_ARGUMENT),
        (admin.DeleteQueue, admin_pb2.DeleteQueueRequest(queue="nowhere"), grpc.StatusCode.NOT_FOUND),
        (admin.GetStats, admin_pb2.GetStatsRequest(queue="nowhere"), grpc.StatusCode.NOT_FOUND),
        (hot.Enqueue, service_pb2.EnqueueRequest(queue="nowhere"), grpc.StatusCode.NOT_FOUND),
        (hot.Enqueue, service_pb2.EnqueueRequest(queue=queue, delay_ms=-1), grpc.StatusCode.INVALID_ARGUMENT),
        (
            hot.Enqueue,
            service_pb2.EnqueueRequest(queue=queue, payload=bytes(4 << 20)),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (
            hot.EnqueueBatch,
            service_pb2.EnqueueBatchRequest(queue=queue, messages=[service_pb2.EnqueueRequest()] * 5001),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (hot.Ack, service_pb2.AckRequest(**unknown), grpc.StatusCode.NOT_FOUND),
        (hot.Nack, service_pb2.NackRequest(**unknown), grpc.StatusCode.NOT_FOUND),
        (hot.ExtendLease, service_pb2.ExtendLeaseRequest(**unknown), grpc.StatusCode.NOT_FOUND),
    ]
    for method, request, code in cases:
        with pytest.raises(grpc.RpcError) as raised:
            method(request, timeout=30)
        assert raised.value.code() == code
        assert raised.value.details()
    assert admin.GetStats(admin_pb2.GetStatsRequest(queue=queue), timeout=30).summary.depth == 1


def test_unary_calls_do_what_the_streams_do(channel, queue):
    """Enqueue, lease, extend, nack and ack with single calls, as a plain tool would make them."""
    hot, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
    admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue), timeout=30)
    sent = hot.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"job"), timeout=30).message_id
    stream = hot.Lease(service_pb2.LeaseRequest(queue=queue), timeout=60)
    [first] = next(stream).messages
    assert (first.id, first.payload, first.metadata.attempt_count) == (sent, b"job", 0)
    settled = {"queue": queue, "message_id": sent, "lease_id": first.metadata.lease_id}
    hot.ExtendLease(service_pb2.ExtendLeaseRequest(**settled), timeout=30)
    hot.Nack(service_pb2.NackRequest(**settled, error="failed"), timeout=30)
    [second] = next(stream).messages
    assert (second.id, second.metadata.attempt_count) == (sent, 1)
    hot.Ack(service_pb2.AckRequest(queue=queue, message_id=sent), timeout=30)
    stream.cancel()
    summary = admin.GetStats(admin_pb2.GetStatsRequest(queue=queue), timeout=30).summary
    assert (summary.depth, summary.in_flight) == (0, 0)
