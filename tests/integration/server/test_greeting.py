"""What every client may know of a server, and what a server without a cluster says of clusters."""

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2

from fila.v1 import admin_pb2, service_pb2
from tests.integration.server.conftest import refusal, take


async def test_limits_and_memory_are_those_that_hold(serve):
    async with serve(limits={"max_payload_bytes": 100, "max_batch_messages": 3}) as peer:
        await peer.create()
        told = await peer.hot.Describe(service_pb2.DescribeRequest())
        assert (told.limits.max_payload_bytes, told.limits.max_batch_messages) == (100, 3)
        assert (told.memory.producer_batches, told.memory.producer_ms) == (64, 600_000)
        assert service_pb2.FEATURE_CLAIMS in told.features
        assert service_pb2.FEATURE_PARTS not in told.features
        await peer.send(bytes(100))
        code, _ = await refusal(peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=bytes(101))))
        assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_client_that_takes_what_grpc_takes_by_default_receives_the_largest_message(serve):
    """A dead letter with the largest payload, headers and error texts, through a channel without options."""
    async with serve() as peer:
        await peer.create(max_attempts=3, fairness_header="h")
        limits = (await peer.hot.Describe(service_pb2.DescribeRequest())).limits
        assert limits.max_response_bytes <= 4 << 20
        headers = {"h": "k" * 255, "large": "x" * (limits.max_header_bytes - 400)}
        await peer.send(bytes(limits.max_payload_bytes), headers=headers)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{peer.server.port}") as plain:
            stub = type(peer.hot)(plain)
            stream = stub.Lease(service_pb2.LeaseRequest(queue="q"))
            for _ in range(3):
                (message,) = await take(stream, 1)
                await stub.Nack(
                    service_pb2.NackRequest(queue="q", message_id=message.id, error="\U0001f600" * 2000), timeout=30
                )
            (dead,) = await take(stub.Lease(service_pb2.LeaseRequest(queue="q.dlq")), 1)
            assert len(dead.payload) == limits.max_payload_bytes
            assert len(dead.metadata.dead_letter.attempts) == 3


async def test_a_server_without_a_cluster_is_a_map_of_one(serve):
    async with serve() as peer:
        found = (await peer.hot.GetClusterMap(service_pb2.GetClusterMapRequest())).map
        assert (found.version, list(found.owners), found.self) == (1, [0], 0)
        (member,) = found.members
        assert member.id
        assert member.address == ""


async def test_a_queue_in_parts_needs_a_cluster(serve):
    async with serve() as peer:
        await peer.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="whole", parts=1))
        code, said = await refusal(peer.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q", parts=2)))
        assert (code, "has no cluster" in said) == (grpc.StatusCode.UNIMPLEMENTED, True)
        assert (await peer.summary("whole")).parts == 1
        code, said = await refusal(peer.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q#0")))
        assert (code, "must not contain" in said) == (grpc.StatusCode.INVALID_ARGUMENT, True)


@pytest.mark.parametrize(
    "positions", [[{"journal": 1, "seq": 1}], [{"journal": 0, "seq": 1}, {"journal": 0, "seq": 2}]]
)
async def test_a_position_of_another_journal_is_refused(serve, positions):
    async with serve(journal={"enabled": True}) as peer:
        request = admin_pb2.ReadJournalRequest(positions=positions)
        with pytest.raises(grpc.aio.AioRpcError, match="has one journal, 0"):
            await peer.admin.ReadJournal(request).read()


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_describes_the_contract_and_itself(serve, version):
    """Tools of today ask for v1, older ones for v1alpha."""
    service = f"grpc.reflection.{version}.ServerReflection"
    async with serve() as peer:
        ask = peer.channel.stream_stream(
            f"/{service}/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )()
        for symbol, package in (("fila.v1.FilaService", "fila.v1"), (service, f"grpc.reflection.{version}")):
            await ask.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol))
            answer = await ask.read()
            files = map(FileDescriptorProto.FromString, answer.file_descriptor_response.file_descriptor_proto)
            assert package in {file.package for file in files}
        ask.cancel()
