"""A client of Fila made from docs/protocol.md alone: grpcio, and code that is generated from proto/fila/v1.

Run as a program of its own (test_plain_client.py), so that nothing of our SDK is near it:
python plain_client.py ADDRESS QUEUE COUNT
"""

import random
import sys
import time
from collections import deque
from queue import SimpleQueue

import grpc
from google.rpc import status_pb2

from fila.v1 import admin_pb2, admin_pb2_grpc, errors_pb2, service_pb2, service_pb2_grpc

DETAILS = "grpc-status-details-bin"
WINDOW = 8
DEADLINE_S = 60
LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


def error_of(failure):
    """Errors: what the broker says of a refusal; None: the transport ended the call."""
    found = errors_pb2.Error()
    for key, value in failure.trailing_metadata() or ():
        if key == DETAILS and any(detail.Unpack(found) for detail in status_pb2.Status.FromString(value).details):
            return found
    return None


def was_lost(failure):
    error = error_of(failure)
    return failure.code() in LOST if error is None else error.retryable


class Backoff:
    """Retry, rule 1."""

    def __init__(self):
        self.limit_s = 0.01
        self.ends = time.monotonic() + DEADLINE_S

    def wait(self):
        assert time.monotonic() < self.ends, "the server is away for too long"
        time.sleep(random.uniform(0, self.limit_s))
        self.limit_s = min(1.0, self.limit_s * 2)


def exchange(open_stream, requests, take):
    """Produce, rules 2 to 4, and the same for Settle: answers in order, and all that have none are sent again."""
    waiting, backoff = deque(requests), Backoff()
    while waiting:
        outgoing, sent = SimpleQueue(), deque()
        stream = open_stream(iter(outgoing.get, None))
        try:
            while waiting or sent:
                while waiting and len(sent) < WINDOW:
                    sent.append(waiting.popleft())
                    outgoing.put(sent[-1])
                answer = next(stream)
                assert answer.sequence == sent[0].sequence
                take(sent.popleft(), answer)
                backoff = Backoff()
        except (grpc.RpcError, StopIteration) as failure:
            if isinstance(failure, grpc.RpcError) and not was_lost(failure):
                raise
            waiting.extendleft(reversed(sent))
            backoff.wait()
        finally:
            outgoing.put(None)
            stream.cancel()


def produce(hot, queue, payloads, producer):
    """The ids of the messages, in order."""
    batches = [
        service_pb2.EnqueueBatchRequest(
            queue=queue,
            producer_id=producer,
            sequence=sequence,
            messages=[service_pb2.EnqueueRequest(payload=payload)],
        )
        for sequence, payload in enumerate(payloads, 1)
    ]
    ids = []

    def take(_, answer):
        assert not answer.HasField("error"), answer.error
        ids.extend(result.message_id for result in answer.results)

    exchange(hot.EnqueueStream, batches, take)
    return ids


def settle(hot, queue, messages):
    """Ack messages. Settle: of an ack that may be sent twice, MESSAGE_GONE means that it is done."""
    requests = [
        service_pb2.SettleRequest(
            sequence=sequence,
            acks=[{"queue": queue, "lease_id": message.metadata.lease_id, "message_ids": [message.id]}],
        )
        for sequence, message in enumerate(messages, 1)
    ]
    failed = []

    def take(request, answer):
        kinds = [failure.error.kind for failure in answer.failures]
        if kinds and kinds != [errors_pb2.ERROR_KIND_MESSAGE_GONE]:
            failed.append(request.acks[0].message_ids[0])

    exchange(hot.Settle, requests, take)
    return failed


def consume(hot, queue, most):
    """Up to so many messages of one stream, with a goodbye: they stay ours, the rest goes back untouched."""
    outgoing = SimpleQueue()
    outgoing.put(service_pb2.ConsumeRequest(queue=queue, max_in_flight=most))
    stream = hot.Consume(iter(outgoing.get, None), timeout=DEADLINE_S)
    handed = []
    try:
        for response in stream:
            handed += response.messages[: most - len(handed)]
            outgoing.put(service_pb2.ConsumeRequest(handed=len(handed)))
            # Maybe fewer than asked for: none follows a message that comes alone until it is settled.
            if handed:
                break
        outgoing.put(None)  # half-close: stop, and let me finish
        for _ in stream:
            pass  # on its way when the server saw the end: it goes back
    except grpc.RpcError as failure:
        outgoing.put(None)
        if not was_lost(failure):
            raise
        return []  # what was handed has gone back
    return handed


def create(admin, queue):
    """Why a queue was not created, if it was not."""
    try:
        admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue), timeout=10)
    except grpc.RpcError as failure:
        return error_of(failure)
    return None


def main(address, queue, count):
    with grpc.insecure_channel(address) as channel:
        hot, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
        limits = hot.Describe(service_pb2.DescribeRequest(), timeout=10).limits
        assert limits.max_response_bytes <= 4 << 20, "raise the largest message that this client receives"
        assert create(admin, queue) is None
        assert create(admin, queue).kind == errors_pb2.ERROR_KIND_QUEUE_ALREADY_EXISTS
        print("ready", flush=True)
        ids = produce(hot, queue, [b"%d" % number for number in range(count)], f"plain-{random.getrandbits(64):x}")
        print("produced", len(ids), len(set(ids)), flush=True)
        done, backoff = set(), Backoff()
        while len(done) < count:
            messages = consume(hot, queue, min(10, count - len(done)))
            failed = settle(hot, queue, messages)
            done |= {message.id for message in messages} - set(failed)
            if messages:
                backoff = Backoff()
            else:
                backoff.wait()
        print("consumed", len(done), done == set(ids), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
