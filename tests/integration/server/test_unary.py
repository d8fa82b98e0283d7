"""Each call that has one answer."""

import asyncio
import uuid

import grpc
import pytest
from google.rpc import status_pb2
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from fila.client import AsyncClient
from fila.internal import wire_pb2
from fila.v1 import admin_pb2, errors_pb2, service_pb2
from tests.integration.server.conftest import eventually, refusal, take


def read_details(error):
    """The details of a status, as gRPC's own helper reads them (grpc_status.rpc_status, which knows no asyncio)."""
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    status = status_pb2.Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    return status


class TestEnqueue:
    async def test_a_message_arrives_as_it_was_sent(self, serve):
        async with serve() as peer:
            await peer.create(fairness_header="tenant", weight_header="weight")
            headers = {"tenant": "acme", "weight": "7", "": "", "ü": "€\x00"}
            sent = await peer.send(b"\x00\xff payload", headers=headers, priority=3)
            (message,) = await take(peer.lease(), 1)
            assert message.id == sent
            assert uuid.UUID(sent).version == 7
            assert dict(message.headers) == headers
            assert message.payload == b"\x00\xff payload"
            metadata = message.metadata
            assert (metadata.fairness_key, metadata.weight, metadata.priority) == ("acme", 7, 3)
            assert (metadata.queue_id, metadata.attempt_count, metadata.cost) == ("q", 0, 1)
            assert metadata.lease_id
            enqueued, leased = message.timestamps.enqueued_at, message.timestamps.leased_at
            assert 0 <= leased.ToNanoseconds() - enqueued.ToNanoseconds() < 30_000_000_000

    async def test_ids_grow_in_the_order_of_enqueueing(self, serve):
        async with serve() as peer:
            await peer.create()
            ids = [await peer.send() for _ in range(20)] + await peer.send_many(50)
            assert ids == sorted(set(ids))

    async def test_a_delayed_message_comes_later(self, serve):
        async with serve() as peer:
            await peer.create()
            delayed, direct = await peer.send(delay_ms=100), await peer.send()
            assert [message.id for message in await take(peer.lease(), 2)] == [direct, delayed]

    async def test_a_dedup_key_names_the_first_message(self, serve):
        async with serve() as peer:
            await peer.create()
            assert await peer.send(dedup_key="k") == await peer.send(dedup_key="k")
            assert (await peer.summary()).depth == 1

    @pytest.mark.parametrize(
        "request_, code, text",
        [
            ({"queue": "nowhere"}, StatusCode.NOT_FOUND, 'queue "nowhere" does not exist'),
            ({"queue": ""}, StatusCode.NOT_FOUND, 'queue "" does not exist'),
            ({"delay_ms": -1}, StatusCode.INVALID_ARGUMENT, "delay_ms must be from 0 to"),
            ({"priority": 256}, StatusCode.INVALID_ARGUMENT, "priority must be from 0 to 255"),
            ({"priority": -1}, StatusCode.INVALID_ARGUMENT, "priority must be from 0 to 255"),
            ({"payload": b"x" * 101}, StatusCode.INVALID_ARGUMENT, "the payload has 101 bytes, 100 are allowed"),
            ({"headers": {"a": "", "b": "", "c": ""}}, StatusCode.INVALID_ARGUMENT, "there are 3 headers"),
            ({"headers": {"a": "x" * 200}}, StatusCode.INVALID_ARGUMENT, "the headers must not exceed 50 bytes"),
            ({"dedup_key": "x" * 256}, StatusCode.INVALID_ARGUMENT, "dedup_key must not exceed 255 bytes"),
        ],
    )
    async def test_what_is_refused_gets_a_code_and_a_reason(self, serve, request_, code, text):
        limits = {"max_payload_bytes": 100, "max_headers": 2, "max_header_bytes": 50}
        async with serve(limits=limits) as peer:
            await peer.create()
            call = peer.hot.Enqueue(service_pb2.EnqueueRequest(**({"queue": "q"} | request_)))
            refused, details = await refusal(call)
            assert refused is code
            assert details.startswith(text)
            assert (await peer.summary()).depth == 0

    async def test_a_name_of_any_length_is_answered_in_a_few_words(self, serve):
        async with serve() as peer:
            code, details = await refusal(peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="x" * 1_000_000)))
            assert code is StatusCode.NOT_FOUND
            assert len(details) < 300
            code, details = await refusal(
                peer.hot.Ack(service_pb2.AckRequest(queue="q" * 90_000, message_id="i" * 90_000))
            )
            assert code is StatusCode.NOT_FOUND
            assert len(details) < 500

    async def test_a_payload_of_the_largest_size_goes_through_and_one_byte_more_does_not(self, serve):
        async with serve() as peer:
            await peer.create()
            payload = bytes((4 << 20) - (256 << 10))
            await peer.send(payload)
            code, details = await refusal(
                peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=payload + b"x"))
            )
            assert code is StatusCode.INVALID_ARGUMENT
            assert details == "the payload has 3932161 bytes, 3932160 are allowed"
            (message,) = await take(peer.lease(), 1)
            assert message.payload == payload

    async def test_a_request_that_is_larger_than_any_batch_is_refused_and_the_server_goes_on(self, serve):
        async with serve() as peer:
            await peer.create()
            code, _ = await refusal(peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=bytes(17 << 20))))
            assert code is StatusCode.INVALID_ARGUMENT
            await peer.send()


class TestEnqueueBatch:
    async def test_each_message_succeeds_or_fails_by_itself(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.create("r")
            messages = [
                service_pb2.EnqueueRequest(queue="q"),
                service_pb2.EnqueueRequest(queue="nowhere"),
                service_pb2.EnqueueRequest(queue="q", delay_ms=-1),
                service_pb2.EnqueueRequest(),
            ]
            request = service_pb2.EnqueueBatchRequest(messages=messages, queue="r", sequence=9)
            response = await peer.hot.EnqueueBatch(request)
            assert [bool(result.message_id) for result in response.results] == [True, False, False, True]
            assert [result.error.code for result in response.results] == [0, 5, 3, 0]
            assert response.results[1].error.message == 'queue "nowhere" does not exist'
            assert response.sequence == 9
            assert ((await peer.summary("q")).depth, (await peer.summary("r")).depth) == (1, 1)

    async def test_a_batch_that_is_sent_again_is_answered_in_the_same_words(self, serve):
        async with serve() as peer:
            await peer.create()
            messages = [service_pb2.EnqueueRequest(queue=queue) for queue in ("q", "nowhere", "q")]
            request = service_pb2.EnqueueBatchRequest(messages=messages, producer_id="p", sequence=1)
            first, again = [await peer.hot.EnqueueBatch(request) for _ in range(2)]
            assert [result.duplicate for result in again.results] == [True, False, True]
            for result in again.results:
                result.duplicate = False
            assert again == first
            assert (await peer.summary()).depth == 2

    @pytest.mark.parametrize(
        "batch, code, text",
        [
            (
                {"messages": [service_pb2.EnqueueRequest()] * 4},
                StatusCode.INVALID_ARGUMENT,
                "the batch has 4 messages, 3 are allowed",
            ),
            (
                {"producer_id": "p"},
                StatusCode.INVALID_ARGUMENT,
                "a batch with a producer_id needs a sequence of at least 1",
            ),
            (
                {"producer_id": "p" * 65, "sequence": 1},
                StatusCode.INVALID_ARGUMENT,
                "producer_id must not exceed 64 bytes",
            ),
        ],
    )
    async def test_a_batch_is_refused_as_a_whole(self, serve, batch, code, text):
        async with serve(limits={"max_batch_messages": 3}) as peer:
            await peer.create()
            request = service_pb2.EnqueueBatchRequest(queue="q", **batch)
            assert await refusal(peer.hot.EnqueueBatch(request)) == (code, text)
            assert (await peer.summary()).depth == 0

    async def test_bytes_that_are_no_message_are_refused(self, serve):
        async with serve() as peer:
            await peer.create()
            encoded = wire_pb2.EncodedEnqueueBatch(messages=[b"\x1a\x84\x80\x80\x80\x80\x00abc"], queue="q")
            call = peer.channel.unary_unary("/fila.v1.FilaService/EnqueueBatch")(encoded.SerializeToString())
            code, details = await refusal(call)
            assert code is StatusCode.INVALID_ARGUMENT
            assert "is not valid protobuf" in details

    async def test_an_old_batch_is_refused(self, serve):
        async with serve() as peer:
            await peer.create()
            for sequence in (5, 4):
                call = peer.hot.EnqueueBatch(service_pb2.EnqueueBatchRequest(producer_id="p", sequence=sequence))
                if sequence == 5:
                    await call
            assert (await refusal(call))[0] is StatusCode.FAILED_PRECONDITION


class TestSettlingOneMessage:
    async def test_ack_nack_and_extend_work_with_the_lease_of_the_message(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send()
            stream = peer.lease()
            (first,) = await take(stream, 1)
            lease = {"queue": "q", "message_id": first.id, "lease_id": first.metadata.lease_id}
            await peer.hot.ExtendLease(service_pb2.ExtendLeaseRequest(**lease, extend_ms=60_000))
            await peer.hot.Nack(service_pb2.NackRequest(**lease, error="not now"))
            (second,) = await take(stream, 1)
            assert second.id == first.id
            assert second.metadata.attempt_count == 1
            assert second.metadata.lease_id != first.metadata.lease_id
            code, details = await refusal(peer.hot.Ack(service_pb2.AckRequest(**lease)))
            assert code is StatusCode.NOT_FOUND
            assert "lease has ended" in details
            await peer.hot.Ack(service_pb2.AckRequest(queue="q", message_id=first.id))
            code, details = await refusal(peer.hot.Ack(service_pb2.AckRequest(queue="q", message_id=first.id)))
            assert code is StatusCode.NOT_FOUND
            assert "not leased" in details

    @pytest.mark.parametrize("method", ["Ack", "Nack", "ExtendLease"])
    @pytest.mark.parametrize("queue, text", [("q", "message no-such-id is not leased"), ("nowhere", 'queue "nowhere"')])
    async def test_what_is_not_held_is_not_found(self, serve, method, queue, text):
        async with serve() as peer:
            await peer.create()
            request = getattr(service_pb2, f"{method}Request")(queue=queue, message_id="no-such-id")
            code, details = await refusal(getattr(peer.hot, method)(request))
            assert code is StatusCode.NOT_FOUND
            assert text in details

    async def test_a_negative_time_is_refused(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send()
            (message,) = await take(peer.lease(), 1)
            nack = service_pb2.NackRequest(queue="q", message_id=message.id, delay_ms=-1)
            extend = service_pb2.ExtendLeaseRequest(queue="q", message_id=message.id, extend_ms=-1)
            for call in (peer.hot.Nack(nack), peer.hot.ExtendLease(extend)):
                assert (await refusal(call))[0] is StatusCode.INVALID_ARGUMENT


class TestAdmin:
    async def test_a_queue_is_created_listed_described_and_deleted(self, serve):
        async with serve() as peer:
            for name in ("b", "a", "ü"):
                await peer.create(name, quantum=9)
            listed = await peer.admin.ListQueues(admin_pb2.ListQueuesRequest())
            assert [queue.name for queue in listed.queues] == ["a", "a.dlq", "b", "b.dlq", "ü", "ü.dlq"]
            await peer.send_many(3, queue="a")
            stats = await peer.admin.GetStats(admin_pb2.GetStatsRequest(queue="a"))
            assert (stats.summary.depth, stats.counters.enqueued) == (3, 3)
            assert stats.config.quantum == stats.scheduler.quantum == 9
            assert stats.config.visibility_timeout_ms == 30_000
            assert stats.created_at.ToSeconds() > 1_700_000_000
            assert [key.fairness_key for key in stats.keys] == ["default"]
            deleted = await peer.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue="a"))
            assert deleted.messages_deleted == 3
            listed = await peer.admin.ListQueues(admin_pb2.ListQueuesRequest())
            assert [queue.name for queue in listed.queues] == ["b", "b.dlq", "ü", "ü.dlq"]

    @pytest.mark.parametrize(
        "name, config, code",
        [
            ("taken", {}, StatusCode.ALREADY_EXISTS),
            ("", {}, StatusCode.INVALID_ARGUMENT),
            ("n" * 256, {}, StatusCode.INVALID_ARGUMENT),
            ("a\nb", {}, StatusCode.INVALID_ARGUMENT),
            ("a", {"quantum": 0}, StatusCode.INVALID_ARGUMENT),
            ("a", {"visibility_timeout_ms": 0}, StatusCode.INVALID_ARGUMENT),
        ],
    )
    async def test_a_queue_that_cannot_be_is_refused(self, serve, name, config, code):
        async with serve() as peer:
            await peer.create("taken")
            assert (await refusal(peer.create(name, **config)))[0] is code

    @pytest.mark.parametrize(
        "method, request_", [("DeleteQueue", "DeleteQueueRequest"), ("GetStats", "GetStatsRequest")]
    )
    async def test_an_unknown_queue_is_not_found(self, serve, method, request_):
        async with serve() as peer:
            call = getattr(peer.admin, method)(getattr(admin_pb2, request_)(queue="nowhere"))
            assert await refusal(call) == (StatusCode.NOT_FOUND, 'queue "nowhere" does not exist')

    async def test_settings_of_a_live_queue_change_and_stay_changed(self, serve):
        async with serve() as peer:
            await peer.create(quantum=9, max_attempts=3)
            change = admin_pb2.QueueConfig(
                max_attempts=5, retry_jitter=0.5, throttle_headers={"names": ["b", "a", "b"]}
            )
            updated = await peer.admin.UpdateQueue(admin_pb2.UpdateQueueRequest(queue="q", config=change))
        async with serve() as peer:
            stats = await peer.admin.GetStats(admin_pb2.GetStatsRequest(queue="q"))
            assert stats.config == updated.config
            told = (stats.config.quantum, stats.config.max_attempts, stats.config.retry_jitter)
            assert told == (9, 5, 0.5)
            assert list(stats.config.throttle_headers.names) == ["a", "b"]

    @pytest.mark.parametrize(
        "config",
        [
            {"retry_backoff": 0.5},
            {"retry_backoff": float("nan")},
            {"retry_jitter": 1.5},
            {"max_attempts": 1_000_001},
            {"script_timeout_ms": 0},
            {"script_memory_bytes": 1},
            {"throttle_headers": {"names": [""]}},
            {"throttle_headers": {"names": ["x" * 256]}},
            {"throttle_headers": {"names": [str(n) for n in range(33)]}},
            {"cost_header": "x" * 256},
        ],
    )
    async def test_settings_that_cannot_be_are_refused(self, serve, config):
        async with serve() as peer:
            await peer.create()
            before = await peer.admin.GetStats(admin_pb2.GetStatsRequest(queue="q"))
            request = admin_pb2.UpdateQueueRequest(queue="q", config=admin_pb2.QueueConfig(**config))
            assert (await refusal(peer.admin.UpdateQueue(request)))[0] is StatusCode.INVALID_ARGUMENT
            assert await peer.admin.GetStats(admin_pb2.GetStatsRequest(queue="q")) == before

    async def test_runtime_settings_are_set_listed_removed_and_kept(self, serve):
        async with serve() as peer:
            for key, value in (("b.x", "1"), ("a", "ü"), ("b.y", "")):
                await peer.admin.SetConfig(admin_pb2.SetConfigRequest(key=key, value=value))
            await peer.admin.SetConfig(admin_pb2.SetConfigRequest(key="b.x", value="2"))
        async with serve() as peer:
            listed = await peer.admin.ListConfig(admin_pb2.ListConfigRequest(prefix="b."))
            assert [(entry.key, entry.value) for entry in listed.entries] == [("b.x", "2"), ("b.y", "")]
            assert listed.total_count == 2
            assert (await peer.admin.GetConfig(admin_pb2.GetConfigRequest(key="a"))).value == "ü"
            for existed in (True, False):
                answer = await peer.admin.DeleteConfig(admin_pb2.DeleteConfigRequest(key="a"))
                assert answer.existed is existed
            told = await refusal(peer.admin.GetConfig(admin_pb2.GetConfigRequest(key="a")))
            assert told == (StatusCode.NOT_FOUND, 'config key "a" is not set')

    async def test_a_call_that_needs_little_takes_no_large_request(self, serve):
        """It is refused by its length, before it has come."""
        async with serve() as peer:
            for call, request in (
                (peer.admin.Peek, admin_pb2.PeekRequest(queue="q" * (600 << 10))),
                (peer.hot.Ack, service_pb2.AckRequest(queue="q" * (300 << 10))),
            ):
                code, said = await refusal(call(request))
                assert code is StatusCode.INVALID_ARGUMENT
                assert "are allowed" in said

    async def test_queues_and_settings_are_listed_in_pages_that_the_sdk_goes_through(self, serve):
        async with serve() as peer:
            for name in "abc":
                await peer.create(name)
                await peer.admin.SetConfig(admin_pb2.SetConfigRequest(key=name, value="x" * 10))
            queues, settings, cursor, count = [], [], "", 0
            while cursor or not queues:
                page = await peer.admin.ListQueues(admin_pb2.ListQueuesRequest(limit=4, cursor=cursor))
                queues, cursor, count = [*queues, *(queue.name for queue in page.queues)], page.cursor, count + 1
            assert (queues, count) == (["a", "a.dlq", "b", "b.dlq", "c", "c.dlq"], 2)
            while cursor or not settings:
                page = await peer.admin.ListConfig(admin_pb2.ListConfigRequest(limit=2, cursor=cursor))
                assert page.total_count == 3
                settings, cursor = [*settings, *(entry.key for entry in page.entries)], page.cursor
            assert settings == ["a", "b", "c"]
            for number in range(100):
                value = "x" * 16_384
                await peer.admin.SetConfig(admin_pb2.SetConfigRequest(key=f"{number:03}", value=value))
            async with AsyncClient(f"127.0.0.1:{peer.server.port}") as client:
                assert [queue.name for queue in await client.list_queues()] == queues
                listed = await client.list_config()
                assert list(listed) == [*(f"{number:03}" for number in range(100)), "a", "b", "c"]

    @pytest.mark.parametrize(
        "key, value, code",
        [
            ("", "x", StatusCode.INVALID_ARGUMENT),
            ("a\nb", "x", StatusCode.INVALID_ARGUMENT),
            ("a" * 301, "x", StatusCode.INVALID_ARGUMENT),
            ("a", "x" * 16_385, StatusCode.INVALID_ARGUMENT),
        ],
    )
    async def test_a_runtime_setting_that_cannot_be_is_refused(self, serve, key, value, code):
        async with serve() as peer:
            request = admin_pb2.SetConfigRequest(key=key, value=value)
            assert (await refusal(peer.admin.SetConfig(request)))[0] is code
            assert not (await peer.admin.ListConfig(admin_pb2.ListConfigRequest())).entries

    async def test_as_many_keys_are_told_as_were_asked_for(self, serve):
        async with serve() as peer:
            await peer.create(fairness_header="tenant")
            for number in range(30):
                await peer.send(headers={"tenant": str(number)})
            for asked, told in ((0, 20), (7, 7), (1000, 30)):
                stats = await peer.admin.GetStats(admin_pb2.GetStatsRequest(queue="q", max_keys=asked))
                assert len(stats.keys) == told
                assert stats.summary.active_keys == 30


class TestForAnyTool:
    async def test_health_is_told_for_the_server_and_each_service(self, serve):
        async with serve() as peer:
            health = health_pb2_grpc.HealthStub(peer.channel)
            for service in ("", "fila.v1.FilaService", "fila.v1.FilaAdmin"):
                response = await health.Check(health_pb2.HealthCheckRequest(service=service))
                assert response.status == health_pb2.HealthCheckResponse.SERVING

    async def test_reflection_names_the_services(self, serve):
        async with serve() as peer:
            stub = reflection_pb2_grpc.ServerReflectionStub(peer.channel)
            call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
            response = await call.read()
            names = {service.name for service in response.list_services_response.service}
            assert {"fila.v1.FilaService", "fila.v1.FilaAdmin"} <= names

    async def test_an_unknown_method_is_unimplemented(self, serve):
        async with serve() as peer:
            call = peer.channel.unary_unary("/fila.v1.FilaService/Nothing")(b"")
            assert (await refusal(call))[0] is StatusCode.UNIMPLEMENTED

    async def test_every_refusal_has_details_that_any_client_can_read(self, serve):
        """So that a client can tell what the broker said from what happened to the connection."""
        async with serve() as peer:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await peer.send(queue="nowhere")
            status, error = read_details(refused.value), errors_pb2.Error()
            (detail,) = status.details
            assert detail.type_url == "type.googleapis.com/fila.v1.Error"
            assert detail.Unpack(error)
            assert (status.code, error.code) == (5, 5)
            assert error.kind == errors_pb2.ERROR_KIND_QUEUE_NOT_FOUND


async def test_a_deadline_that_passes_harms_nobody(serve):
    async with serve() as peer:
        await peer.create()
        calls = [peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="q"), timeout=0.000001) for _ in range(20)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        late = [outcome for outcome in outcomes if isinstance(outcome, grpc.aio.AioRpcError)]
        assert {error.code() for error in late} == {StatusCode.DEADLINE_EXCEEDED}
        await peer.send()

        async def answers():
            return (await peer.summary()).depth >= 1

        await eventually(answers)
