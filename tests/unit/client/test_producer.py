"""How enqueues become numbered batches."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client.encoding import MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, Chunk, OutgoingMessage, encode
from fila.client.errors import InternalError, QueueNotFoundError
from fila.client.producer import Enqueue, EnqueueCodec
from fila.client.reply import ThreadReply
from fila.v1 import errors_pb2, service_pb2


def enqueue(chunk: Chunk) -> Enqueue:
    return Enqueue(ThreadReply(), 1.0, chunk)


def request(batch) -> service_pb2.EnqueueBatchRequest:
    return service_pb2.EnqueueBatchRequest.FromString(batch.data)


def response(*results: str | int) -> bytes:
    made = service_pb2.EnqueueBatchResponse(sequence=1)
    for result in results:
        if isinstance(result, str):
            made.results.add(message_id=result)
        else:
            made.results.add(error={"kind": result})
    return made.SerializeToString()


chunks = st.builds(Chunk, st.just(b""), st.integers(1, MAX_BATCH_MESSAGES), st.sampled_from(["", "a", "b"]))


@given(st.lists(chunks, max_size=20))
def test_all_that_waits_leaves_in_order_numbered_from_one(waiting):
    enqueues = [enqueue(chunk) for chunk in waiting]
    gathered, codec, batches = deque(enqueues), EnqueueCodec("p"), []
    while (batch := codec.make_batch(gathered)) is not None:
        batches.append(batch)
    assert [each for batch in batches for each in batch.waiters] == enqueues
    assert [request(batch).sequence for batch in batches] == list(range(1, len(batches) + 1))
    for batch in batches:
        assert sum(each.chunk.count for each in batch.waiters) <= MAX_BATCH_MESSAGES
        assert {each.chunk.queue for each in batch.waiters} - {""} <= {request(batch).queue}


def test_concurrent_enqueues_to_several_queues_share_a_batch():
    gathered = deque(enqueue(encode(queue, OutgoingMessage(b"x"))) for queue in "abc")
    batch = EnqueueCodec("p").make_batch(gathered)
    assert [message.queue for message in request(batch).messages] == ["a", "b", "c"]
    assert request(batch).producer_id == "p"


def test_a_batch_is_bounded_in_bytes():
    gathered = deque(enqueue(Chunk(b"\0" * (MAX_BATCH_BYTES // 2 + 1), 1)) for _ in range(2))
    codec = EnqueueCodec("p")
    assert len(codec.make_batch(gathered).waiters) == 1
    assert len(gathered) == 1


def test_who_gave_up_before_sending_is_not_sent():
    given_up, waiting = enqueue(Chunk(b"", 1)), enqueue(Chunk(b"", 1))
    given_up.fail(InternalError("gave up"))
    assert EnqueueCodec("p").make_batch(deque([given_up, waiting])).waiters == [waiting]
    assert EnqueueCodec("p").make_batch(deque([given_up])) is None


def test_each_caller_gets_the_results_of_its_own_messages():
    first, second = enqueue(Chunk(b"", 2)), enqueue(Chunk(b"", 1))
    codec = EnqueueCodec("p")
    batch = codec.make_batch(deque([first, second]))
    codec.answer(batch, response("id-1", errors_pb2.ERROR_KIND_QUEUE_NOT_FOUND, "id-3"))
    assert first.reply.result()[0] == "id-1"
    assert isinstance(first.reply._result[1], QueueNotFoundError)
    assert second.reply.result() == ["id-3"]


def test_an_answer_that_does_not_fit_the_question_fails_all():
    waiting = enqueue(Chunk(b"", 2))
    codec = EnqueueCodec("p")
    codec.answer(codec.make_batch(deque([waiting])), response("id-1"))
    with pytest.raises(InternalError, match="1 results for 2 messages"):
        waiting.reply.result()
