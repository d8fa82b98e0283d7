"""Streams: answers in order, credit, and what happens when one side stops."""

import asyncio

import grpc
import psutil
import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, errors_pb2, service_pb2
from tests.integration.server.conftest import WAIT_S, eventually, refusal, take


async def read(stream):
    return await asyncio.wait_for(stream.read(), WAIT_S)


async def end_of(stream):
    """The status with which a stream ends."""
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        while await read(stream) is not grpc.aio.EOF:
            pass
        raise AssertionError("the stream ended without a status")
    return ended.value.code(), ended.value.details()


class TestEnqueueStream:
    async def test_batches_are_answered_in_their_order(self, serve):
        async with serve() as peer:
            await peer.create()
            stream = peer.hot.EnqueueStream()
            for sequence in range(1, 51):
                messages = [service_pb2.EnqueueRequest(payload=b"%d" % sequence)] * (sequence % 4)
                await stream.write(
                    service_pb2.EnqueueBatchRequest(messages=messages, queue="q", producer_id="p", sequence=sequence)
                )
            await stream.done_writing()
            answers = [await read(stream) for _ in range(50)]
            assert [answer.sequence for answer in answers] == list(range(1, 51))
            assert [len(answer.results) for answer in answers] == [sequence % 4 for sequence in range(1, 51)]
            ids = [result.message_id for answer in answers for result in answer.results]
            assert ids == sorted(ids)
            assert await read(stream) is grpc.aio.EOF
            assert await stream.code() is StatusCode.OK

    async def test_a_message_that_is_refused_does_not_end_the_stream(self, serve):
        async with serve() as peer:
            await peer.create()
            stream = peer.hot.EnqueueStream()
            for queue in ("q", "nowhere", "q"):
                await stream.write(
                    service_pb2.EnqueueBatchRequest(messages=[service_pb2.EnqueueRequest()], queue=queue)
                )
            codes = [(await read(stream)).results[0].error.code for _ in range(3)]
            assert codes == [0, 5, 0]
            stream.cancel()

    async def test_a_batch_that_is_refused_is_answered_with_its_number_and_the_stream_goes_on(self, serve):
        async with serve(limits={"max_batch_messages": 10}) as peer:
            await peer.create()
            stream = peer.hot.EnqueueStream()
            one = service_pb2.EnqueueRequest(payload=bytes(200_000))
            for sequence, count, producer in ((1, 11, "p"), (2, 1, "p" * 65), (3, 1, "p"), (0, 1, "p"), (4, 1, "p")):
                await stream.write(
                    service_pb2.EnqueueBatchRequest(
                        messages=[one] * count, queue="q", producer_id=producer, sequence=sequence
                    )
                )
            answers = [await read(stream) for _ in range(5)]
            kinds = [errors_pb2.ErrorKind.Name(answer.error.kind).removeprefix("ERROR_KIND_") for answer in answers]
            assert [answer.sequence for answer in answers] == [1, 2, 3, 0, 4]
            assert kinds == ["TOO_LARGE", "TOO_LARGE", "UNSPECIFIED", "INVALID_ARGUMENT", "UNSPECIFIED"]
            assert [len(answer.results) for answer in answers] == [0, 0, 1, 0, 1]
            assert "the batch has" in answers[0].error.message
            assert (await peer.summary()).depth == 2
            stream.cancel()

    async def test_a_batch_that_is_refused_unseen_is_answered_with_its_number(self, serve):
        """One with so many messages that decoding them would take long."""
        async with serve(limits={"max_batch_messages": 10}) as peer:
            stream = peer.channel.stream_stream(
                "/fila.v1.FilaService/EnqueueStream",
                request_serializer=bytes,
                response_deserializer=service_pb2.EnqueueBatchResponse.FromString,
            )()
            number = service_pb2.EnqueueBatchRequest(sequence=9).SerializeToString()
            message = service_pb2.EnqueueBatchRequest(messages=[{"payload": bytes(40_000)}]).SerializeToString()
            await stream.write(message * 30 + number)
            answer = await read(stream)
            assert (answer.sequence, answer.error.kind) == (9, errors_pb2.ERROR_KIND_TOO_LARGE)
            await stream.write(b"\x0a\x00" * (600 << 10) + number)  # not worth looking through
            assert (await end_of(stream))[0] is StatusCode.INVALID_ARGUMENT

    @pytest.mark.parametrize("method", ["EnqueueStream", "Settle"])
    async def test_response_headers_come_at_once(self, serve, method):
        """Some libraries return from opening a stream only when they have these."""
        async with serve() as peer:
            stream = getattr(peer.hot, method)()
            await asyncio.wait_for(stream.initial_metadata(), WAIT_S)
            stream.cancel()


class TestAProducerIdThatIsUsedAgain:
    def batch(self, *payloads, **headers):
        messages = [service_pb2.EnqueueRequest(payload=each, headers=headers) for each in payloads]
        return service_pb2.EnqueueBatchRequest(queue="q", messages=messages, producer_id="p", sequence=1)

    async def test_with_the_same_messages_is_answered_again(self, serve):
        async with serve() as peer:
            await peer.create()
            first = await peer.hot.EnqueueBatch(self.batch(b"a", b"b", x="1", y="2"))
            again = await peer.hot.EnqueueBatch(self.batch(b"a", b"b", y="2", x="1"))
            assert [result.message_id for result in again.results] == [result.message_id for result in first.results]
            assert [result.duplicate for result in (*first.results, *again.results)] == [False, False, True, True]
            assert (await peer.summary()).depth == 2

    @pytest.mark.parametrize(
        "other", [((b"a", b"c"), {}), ((b"a",), {}), ((b"a", b"b"), {"x": "1"}), ((b"a", b"b"), {"x": "1", "y": "2"})]
    )
    async def test_with_other_messages_is_refused_and_enqueues_nothing(self, serve, other):
        payloads, headers = other
        async with serve() as peer:
            await peer.create()
            await peer.hot.EnqueueBatch(self.batch(b"a", b"b"))
            stream = peer.hot.EnqueueStream()
            await stream.write(self.batch(*payloads, **headers))
            answer = await read(stream)
            assert (answer.sequence, answer.error.kind) == (1, errors_pb2.ERROR_KIND_SEQUENCE_REUSED)
            assert 'batch 1 of producer "p" had other messages' in answer.error.message
            assert (await peer.summary()).depth == 2
            stream.cancel()

    async def test_by_a_later_incarnation_enqueues_and_shuts_the_earlier_out(self, serve):
        async with serve() as peer:
            await peer.create()
            stream = peer.hot.EnqueueStream()
            for epoch in (1, 2, 1):
                batch = self.batch(b"a")
                batch.producer_epoch = epoch
                await stream.write(batch)
            answers = [await read(stream) for _ in range(3)]
            assert [len(answer.results) for answer in answers] == [1, 1, 0]
            assert answers[2].error.kind == errors_pb2.ERROR_KIND_PRODUCER_FENCED
            assert (await peer.summary()).depth == 2
            stream.cancel()

    async def test_a_dedup_key_that_was_used_before_is_a_duplicate(self, serve):
        async with serve() as peer:
            await peer.create(dedup_window_ms=60_000)
            request = service_pb2.EnqueueRequest(queue="q", dedup_key="k")
            first, again = [await peer.hot.Enqueue(request) for _ in range(2)]
            assert (first.message_id, first.duplicate, again.duplicate) == (again.message_id, False, True)


class TestSettle:
    async def test_each_settlement_succeeds_or_fails_by_itself(self, serve):
        async with serve() as peer:
            await peer.create()
            ids = await peer.send_many(4)
            await take(peer.lease(max_in_flight=4), 4)
            stream = peer.hot.Settle()
            await stream.write(
                service_pb2.SettleRequest(
                    sequence=1,
                    acks=[service_pb2.AckGroup(queue="q", message_ids=[ids[0], "unknown", ids[1]])],
                    nacks=[service_pb2.NackRequest(queue="q", message_id=ids[2], delay_ms=60_000)],
                    extends=[service_pb2.ExtendGroup(queue="q", message_ids=[ids[3], ids[0]])],
                )
            )
            await stream.write(
                service_pb2.SettleRequest(
                    sequence=2, acks=[service_pb2.AckGroup(queue="q", message_ids=[ids[3]], lease_id="wrong")]
                )
            )
            first, second = await read(stream), await read(stream)
            assert (first.sequence, second.sequence) == (1, 2)
            assert [failure.message_id for failure in first.failures] == ["unknown", ids[0]]
            assert {failure.error.code for failure in first.failures} == {StatusCode.NOT_FOUND.value[0]}
            assert [failure.message_id for failure in second.failures] == [ids[3]]
            assert {failure.error.kind for failure in first.failures} == {errors_pb2.ERROR_KIND_MESSAGE_GONE}
            assert second.failures[0].error.kind == errors_pb2.ERROR_KIND_LEASE_ENDED
            summary = await peer.summary()
            assert (summary.depth, summary.delayed, summary.in_flight) == (1, 1, 1)
            stream.cancel()

    async def test_a_request_that_is_refused_is_answered_with_its_number_and_the_stream_goes_on(self, serve):
        async with serve(limits={"max_batch_messages": 2}) as peer:
            await peer.create()
            stream = peer.hot.Settle()
            for sequence, ids in ((5, ["a", "b", "c"]), (6, ["a"])):
                group = service_pb2.AckGroup(queue="q", message_ids=ids)
                await stream.write(service_pb2.SettleRequest(sequence=sequence, acks=[group]))
            first, second = await read(stream), await read(stream)
            assert (first.sequence, first.error.kind) == (5, errors_pb2.ERROR_KIND_TOO_LARGE)
            assert (second.sequence, len(second.failures), second.HasField("error")) == (6, 1, False)
            stream.cancel()


async def attempts(peer):
    """How often each message of the queue was tried, in order."""
    page = await peer.admin.Peek(admin_pb2.PeekRequest(queue="q"))
    return [message.message.metadata.attempt_count for message in page.messages]


class TestConsume:
    async def begin(self, peer, **first):
        stream = peer.hot.Consume()
        await stream.write(service_pb2.ConsumeRequest(queue="q", **first))
        return stream

    async def test_credit_can_be_raised_and_lowered_while_the_stream_is_open(self, serve):
        async with serve() as peer:
            await peer.create()
            ids = await peer.send_many(10)
            stream = await self.begin(peer, max_in_flight=2)
            held = await take(stream, 2)
            await stream.write(service_pb2.ConsumeRequest(max_in_flight=5))
            held += await take(stream, 3)
            await stream.write(service_pb2.ConsumeRequest(max_in_flight=4))
            settled = [service_pb2.AckRequest(queue="q", message_id=message.id) for message in held]
            await peer.hot.Ack(settled[0])  # it still holds 4
            await peer.hot.Ack(settled[1])
            (sixth,) = await take(stream, 1)
            assert [message.id for message in (*held, sixth)] == ids[:6]
            assert (await peer.summary()).in_flight == 4
            stream.cancel()

    async def test_without_credit_nothing_comes_until_there_is_some(self, serve):
        async with serve() as peer:
            await peer.create()
            stream = await self.begin(peer, max_in_flight=0)
            await peer.send_many(3)
            assert (await peer.summary()).in_flight == 0
            await stream.write(service_pb2.ConsumeRequest(max_in_flight=1))
            assert len(await take(stream, 1)) == 1
            assert (await peer.summary()).in_flight == 1
            stream.cancel()

    async def test_too_much_credit_ends_the_stream(self, serve):
        async with serve(limits={"max_in_flight": 10}) as peer:
            await peer.create()
            stream = await self.begin(peer)
            await stream.write(service_pb2.ConsumeRequest(max_in_flight=11))
            assert await end_of(stream) == (StatusCode.INVALID_ARGUMENT, "max_in_flight must not exceed 10")

    async def test_stopping_lets_the_application_finish_and_gives_back_the_rest_without_an_attempt(self, serve):
        """Half-closing the stream: what was handed stays leased and can be acked, the rest is there for others."""
        async with serve() as peer:
            await peer.create(visibility_timeout_ms=3_600_000)
            await peer.send_many(5)
            stream = await self.begin(peer)
            messages = await take(stream, 5)
            await stream.write(service_pb2.ConsumeRequest(handed=2))
            await stream.done_writing()
            assert await read(stream) is grpc.aio.EOF
            assert await stream.code() is StatusCode.OK
            assert (await peer.summary()).in_flight == 2
            for message in messages[:2]:
                lease_id = message.metadata.lease_id
                await peer.hot.Ack(service_pb2.AckRequest(queue="q", message_id=message.id, lease_id=lease_id))
            assert await attempts(peer) == [0, 0, 0]

    async def test_cancelling_costs_what_was_never_touched_no_attempt(self, serve):
        async with serve() as peer:
            await peer.create(visibility_timeout_ms=3_600_000)
            await peer.send_many(3)
            stream = await self.begin(peer)
            await take(stream, 3)
            stream.cancel()

            async def back():
                return (await peer.summary()).in_flight == 0

            await eventually(back)
            assert await attempts(peer) == [0, 0, 0]


class TestLease:
    async def test_no_more_is_delivered_than_may_be_in_flight(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send_many(20)
            stream = peer.lease(max_in_flight=5)
            messages = await take(stream, 5)
            assert len(messages) == 5
            assert (await peer.summary()).in_flight == 5
            await peer.hot.Ack(service_pb2.AckRequest(queue="q", message_id=messages[0].id))
            (sixth,) = await take(stream, 1)
            assert sixth.id not in {message.id for message in messages}
            assert (await peer.summary()).in_flight == 5

    async def test_nothing_asked_for_means_a_hundred(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send_many(150)
            stream = peer.lease(max_in_flight=0)
            assert len(await take(stream, 100)) == 100
            assert (await peer.summary()).in_flight == 100

    async def test_an_unknown_queue_and_too_much_credit_are_refused(self, serve):
        async with serve(limits={"max_in_flight": 10}) as peer:
            await peer.create()
            assert (await end_of(peer.lease("nowhere", max_in_flight=1)))[0] is StatusCode.NOT_FOUND
            code, details = await end_of(peer.lease(max_in_flight=11))
            assert (code, details) == (StatusCode.INVALID_ARGUMENT, "max_in_flight must not exceed 10")

    async def test_two_consumers_share_and_never_get_the_same_message(self, serve):
        async with serve() as peer:
            await peer.create()
            streams = [peer.lease(max_in_flight=100) for _ in range(2)]

            async def both_joined():
                return (await peer.summary()).consumers == 2

            await eventually(both_joined)
            ids = await peer.send_many(40)
            taken = [{message.id for message in await take(stream, 20)} for stream in streams]
            assert taken[0] | taken[1] == set(ids)
            assert not taken[0] & taken[1]

    async def test_what_a_consumer_holds_goes_back_at_once_when_it_cancels(self, serve):
        async with serve() as peer:
            await peer.create(visibility_timeout_ms=3_600_000)
            ids = await peer.send_many(3)
            gone = peer.lease()
            await take(gone, 3)
            gone.cancel()
            again = await take(peer.lease(), 3)
            assert [message.id for message in again] == ids
            assert {message.metadata.attempt_count for message in again} == {1}

    async def test_what_a_consumer_holds_goes_back_at_once_when_its_connection_breaks(self, serve):
        async with serve() as peer:
            await peer.create(visibility_timeout_ms=3_600_000)
            await peer.send_many(3)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{peer.server.port}") as channel:
                stub = type(peer.hot)(channel)
                stream = stub.Lease(service_pb2.LeaseRequest(queue="q"))
                await take(stream, 3)
            assert len(await take(peer.lease(), 3)) == 3

    async def test_an_expired_lease_is_delivered_again_and_its_late_ack_refused(self, serve):
        async with serve() as peer:
            await peer.create(visibility_timeout_ms=50)
            await peer.send()
            stream = peer.lease()
            (first,) = await take(stream, 1)
            (second,) = await take(stream, 1)
            assert second.id == first.id
            assert second.metadata.attempt_count >= 1
            late = service_pb2.AckRequest(queue="q", message_id=first.id, lease_id=first.metadata.lease_id)
            assert (await refusal(peer.hot.Ack(late)))[0] is StatusCode.NOT_FOUND

    async def test_deleting_the_queue_ends_the_stream(self, serve):
        async with serve() as peer:
            await peer.create()
            stream = peer.lease()
            await peer.send()
            await take(stream, 1)
            await peer.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue="q"))
            assert await end_of(stream) == (StatusCode.NOT_FOUND, 'queue "q" does not exist')

    async def test_a_large_delivery_comes_in_pieces_that_can_be_received(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send_many(12, bytes(1 << 20))
            stream, sizes, count = peer.lease(), [], 0
            while count < 12:
                response = await read(stream)
                count += len(response.messages)
                sizes.append(response.ByteSize())
            assert max(sizes) < 4 << 20


class TestASlowConsumer:
    async def test_does_not_grow_the_memory_of_the_server(self, serve):
        """It is handed one grant, and of that only as much as the connection takes is read from the store."""
        async with serve() as peer:
            await peer.create()
            payload = bytes(60_000)  # just small enough to be read together with others
            for _ in range(16):
                await peer.send_many(200, payload)  # 190 MB in all
            process = psutil.Process()
            before = process.memory_info().rss
            slow = peer.lease(max_in_flight=3000)
            await slow.initial_metadata()

            async def leased():
                return (await peer.summary()).in_flight >= 1000

            await eventually(leased)
            for _ in range(20):
                await asyncio.sleep(0.02)
                await peer.summary()  # the server goes on serving others
                assert process.memory_info().rss - before < 40 << 20
            slow.cancel()

    async def test_does_not_keep_others_from_what_is_left(self, serve):
        async with serve() as peer:
            await peer.create()
            slow = peer.lease(max_in_flight=10)
            await slow.initial_metadata()
            await peer.send_many(70, bytes(200_000))
            fast = peer.lease(max_in_flight=100)
            assert len(await take(fast, 60)) >= 60
            slow.cancel()


async def test_a_broker_with_too_much_waiting_says_so(serve):
    async with serve(scheduler={"max_queued_commands": 1}) as peer:
        await peer.create()
        broker = peer.server._broker
        broker._scheduled = True  # as if a tick were always about to begin
        calls = [asyncio.ensure_future(peer.send_many(10)) for _ in range(20)]
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        while len(waiting) > 1:
            more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        broker._scheduled = False
        broker._schedule()
        assert len(await waiting.pop()) == 10
        assert {
            (one.exception().code(), "too many requests are waiting" in one.exception().details()) for one in done
        } == {(StatusCode.RESOURCE_EXHAUSTED, True)}
        assert (await peer.summary()).depth == 10
