"""Looking at messages, sending them back, removing them, and pausing, over the wire."""

import pytest
from grpc import StatusCode

from fila.broker import operators
from fila.server import browse
from fila.v1 import admin_pb2 as pb
from fila.v1 import messages_pb2, service_pb2
from tests.integration.server.conftest import refusal, take


async def kill(peer, count, queue="q", error="boom", **message):
    """Enqueue messages and let them die; their ids."""
    ids = [await peer.send(b"payload %d" % number, queue, **message) for number in range(count)]
    stream = peer.lease(queue, count)
    for held in await take(stream, count):
        nack = service_pb2.NackRequest(queue=queue, message_id=held.id, error=error, lease_id=held.metadata.lease_id)
        await peer.hot.Nack(nack)
    stream.cancel()
    return ids


async def peek(peer, queue="q.dlq", **request):
    """All pages of a look."""
    messages, cursor = [], ""
    while True:
        page = await peer.admin.Peek(pb.PeekRequest(queue=queue, cursor=cursor, **request))
        messages += page.messages
        cursor = page.cursor
        if not cursor:
            return messages


def ids_of(messages):
    return [one.message.id for one in messages]


class TestPeek:
    async def test_shows_a_dead_letter_whole_and_takes_nothing(self, serve):
        async with serve() as peer:
            await peer.create(max_attempts=1, fairness_header="tenant", throttle_headers=pb.HeaderNames(names=["api"]))
            (letter,) = await kill(peer, 1, headers={"tenant": "acme", "api": "x"}, priority=3)
            (seen,) = await peek(peer, payload_bytes=4)
            metadata = seen.message.metadata
            assert seen.message.id == letter
            assert (seen.message.payload, seen.payload_size) == (b"payl", 9)
            assert dict(seen.message.headers) == {"tenant": "acme", "api": "x"}
            assert (metadata.fairness_key, metadata.priority, metadata.queue_id) == ("acme", 3, "q.dlq")
            assert (metadata.attempt_count, list(metadata.throttle_keys), metadata.lease_id) == (1, ["api:x"], "")
            assert (metadata.dead_letter.source_queue, metadata.dead_letter.reason) == (
                "q",
                messages_pb2.DEAD_LETTER_REASON_MAX_ATTEMPTS,
            )
            assert [one.error for one in metadata.dead_letter.attempts] == ["boom"]
            assert seen.state == pb.MESSAGE_STATE_READY
            assert not seen.HasField("until")
            assert (await peer.summary("q.dlq")).depth == 1
            (without,) = await peek(peer)
            assert (without.message.payload, without.payload_size) == (b"", 9)

    async def test_shows_live_messages_with_state_and_attempts(self, serve):
        async with serve() as peer:
            await peer.create()
            held = await peer.send(b"x")
            delayed = await peer.send(b"x", delay_ms=60_000)
            stream = peer.lease("q", 1)
            (first,) = await take(stream, 1)
            await peer.hot.Nack(service_pb2.NackRequest(queue="q", message_id=first.id, error="no luck"))
            await take(stream, 1)
            leased, waiting = await peek(peer, "q")
            assert (leased.message.id, leased.state) == (held, pb.MESSAGE_STATE_LEASED)
            assert [(one.attempt, one.kind, one.error) for one in leased.attempts] == [
                (1, messages_pb2.ATTEMPT_END_NACKED, "no luck")
            ]
            assert leased.HasField("until")
            assert (waiting.message.id, waiting.state) == (delayed, pb.MESSAGE_STATE_DELAYED)
            assert waiting.until.ToNanoseconds() > leased.message.timestamps.enqueued_at.ToNanoseconds()

    async def test_filters(self, serve):
        async with serve() as peer:
            await peer.create(max_attempts=1, fairness_header="tenant")
            old = await kill(peer, 2, error="Upstream TIMEOUT", headers={"tenant": "a", "kind": "mail"})
            new = await kill(peer, 2, error="bad input", headers={"tenant": "b", "kind": ""})

            async def found(**chosen):
                return ids_of(await peek(peer, filter=pb.MessageFilter(**chosen)))

            assert await found() == [*old, *new]
            assert await found(headers=[pb.HeaderMatch(name="kind")]) == [*old, *new]
            assert await found(headers=[pb.HeaderMatch(name="kind", value="")]) == new
            assert await found(headers=[pb.HeaderMatch(name="kind", value="mail"), pb.HeaderMatch(name="no")]) == []
            assert await found(fairness_key="a") == old
            assert await found(fairness_key="") == []
            assert await found(error="timeout") == old
            assert await found(max_age_ms=600_000) == [*old, *new]
            assert await found(min_age_ms=600_000) == []
            assert await found(states=[pb.MESSAGE_STATE_READY]) == [*old, *new]
            assert await found(states=[pb.MESSAGE_STATE_LEASED]) == []
            assert await found(message_ids=[new[0], old[1], "nonsense"]) == [old[1], new[0]]
            assert await found(message_ids=["nonsense"]) == []

    async def test_goes_page_by_page_in_both_directions(self, serve):
        async with serve() as peer:
            await peer.create()
            ids = await peer.send_many(25)
            assert ids_of(await peek(peer, "q", limit=10)) == ids
            assert ids_of(await peek(peer, "q", limit=7, newest_first=True)) == ids[::-1]
            page = await peer.admin.Peek(pb.PeekRequest(queue="q", limit=10))
            assert len(page.messages) == 10

    async def test_ends_a_page_that_grows_large_or_took_long(self, serve, monkeypatch):
        async with serve() as peer:
            await peer.create()
            ids = [await peer.send(b"x" * 1000) for _ in range(20)]
            monkeypatch.setattr(browse, "PAGE_BYTES", 5000)
            page = await peer.admin.Peek(pb.PeekRequest(queue="q", payload_bytes=1000))
            assert 1 < len(page.messages) < 6
            assert ids_of(await peek(peer, "q", payload_bytes=1000)) == ids
            monkeypatch.setattr(operators, "EFFORT_A_CALL", 30)
            page = await peer.admin.Peek(
                pb.PeekRequest(queue="q", filter=pb.MessageFilter(headers=[pb.HeaderMatch(name="x")]))
            )
            assert (list(page.messages), page.cursor != "") == ([], True)
            assert ids_of(await peek(peer, "q")) == ids

    @pytest.mark.parametrize(
        "request_, code, words",
        [
            ({"queue": "nowhere"}, StatusCode.NOT_FOUND, 'queue "nowhere" does not exist'),
            ({"cursor": "xyz"}, StatusCode.INVALID_ARGUMENT, "invalid cursor: pass the cursor of an earlier response"),
            (
                {"cursor": "g" * 16},
                StatusCode.INVALID_ARGUMENT,
                "invalid cursor: pass the cursor of an earlier response",
            ),
            (
                {"cursor": "٣" * 16},
                StatusCode.INVALID_ARGUMENT,
                "invalid cursor: pass the cursor of an earlier response",
            ),
            ({"filter": pb.MessageFilter(states=[77])}, StatusCode.INVALID_ARGUMENT, "states must be"),
            ({"filter": pb.MessageFilter(message_ids=["x"] * 1001)}, StatusCode.INVALID_ARGUMENT, "message_ids"),
            ({"filter": pb.MessageFilter(headers=[pb.HeaderMatch()] * 33)}, StatusCode.INVALID_ARGUMENT, "headers"),
        ],
    )
    async def test_refuses_nonsense(self, serve, request_, code, words):
        async with serve() as peer:
            await peer.create()
            status, text = await refusal(peer.admin.Peek(pb.PeekRequest(**({"queue": "q"} | request_))))
            assert (status, words in text) == (code, True), text


class TestRedrive:
    async def test_moves_so_many_oldest_first_as_the_contract_says(self, serve):
        async with serve() as peer:
            await peer.create(max_attempts=1)
            ids = await kill(peer, 5)
            response = await peer.admin.Redrive(pb.RedriveRequest(dlq_queue="q.dlq", count=2))
            assert response.redriven == 2
            messages = await take(peer.lease(), 2)
            assert [one.id for one in messages] == ids[:2]
            assert [one.metadata.attempt_count for one in messages] == [0, 0]
            response = await peer.admin.Redrive(pb.RedriveRequest(dlq_queue="q.dlq"))
            assert (response.redriven, response.cursor) == (3, "")
            counters = (await peer.admin.GetStats(pb.GetStatsRequest(queue="q"))).counters
            assert (counters.dead_lettered, counters.redriven) == (5, 5)

    async def test_counts_what_it_would_move(self, serve):
        async with serve() as peer:
            await peer.create(max_attempts=1)
            await kill(peer, 3, error="a")
            await kill(peer, 2, error="b")
            chosen = pb.MessageFilter(error="b")
            request = pb.RedriveRequest(dlq_queue="q.dlq", dry_run=True, filter=chosen)
            assert (await peer.admin.Redrive(request)).redriven == 2
            assert (await peer.summary("q.dlq")).depth == 5
            request.dry_run = False
            assert (await peer.admin.Redrive(request)).redriven == 2
            assert [one.error for m in await peek(peer) for one in m.message.metadata.dead_letter.attempts] == ["a"] * 3

    async def test_in_bounded_calls_ends_though_what_was_moved_dies_again(self, serve, monkeypatch):
        monkeypatch.setattr(operators, "EFFORT_A_CALL", 20)
        monkeypatch.setattr(operators, "MOVED_AT_ONCE", 5)
        async with serve() as peer:
            await peer.create(max_attempts=1)
            await kill(peer, 30)
            cursor, moved, calls = "", 0, 0
            while calls == 0 or cursor:
                request = pb.RedriveRequest(dlq_queue="q.dlq", bounded=True, cursor=cursor)
                response = await peer.admin.Redrive(request)
                moved += response.redriven
                cursor, calls = response.cursor, calls + 1
                stream = peer.lease()
                for held in await take(stream, response.redriven):
                    await peer.hot.Nack(service_pb2.NackRequest(queue="q", message_id=held.id))
                stream.cancel()
            assert (moved, calls > 1) == (30, True)
            assert (await peer.summary("q.dlq")).depth == 30

    async def test_lets_others_work_meanwhile(self, serve, monkeypatch):
        monkeypatch.setattr(operators, "MOVED_AT_ONCE", 1)
        async with serve() as peer:
            await peer.create(max_attempts=1)
            await kill(peer, 200)
            await peer.create("other")
            moving = peer.admin.Redrive(pb.RedriveRequest(dlq_queue="q.dlq"))
            stream = peer.lease("other")
            await peer.send(b"x", "other")
            await take(stream, 1)
            assert (await moving).redriven == 200

    async def test_refuses(self, serve):
        async with serve() as peer:
            await peer.create()
            assert await refusal(peer.admin.Redrive(pb.RedriveRequest(dlq_queue="q"))) == (
                StatusCode.INVALID_ARGUMENT,
                '"q" is not a dead-letter queue',
            )
            code, _ = await refusal(peer.admin.Redrive(pb.RedriveRequest(dlq_queue="no.dlq")))
            assert code is StatusCode.NOT_FOUND
            chosen = pb.MessageFilter(states=[pb.MESSAGE_STATE_LEASED])
            code, text = await refusal(peer.admin.Redrive(pb.RedriveRequest(dlq_queue="q.dlq", filter=chosen)))
            assert (code, text) == (
                StatusCode.INVALID_ARGUMENT,
                "states must be ready or delayed: messages that a consumer holds cannot be moved",
            )


class TestPurge:
    async def test_removes_what_is_meant(self, serve):
        async with serve() as peer:
            await peer.create(max_attempts=1)
            ids = await kill(peer, 3)
            chosen = pb.MessageFilter(message_ids=[ids[1]])
            assert (await peer.admin.Purge(pb.PurgeRequest(queue="q.dlq", filter=chosen))).purged == 1
            assert ids_of(await peek(peer)) == [ids[0], ids[2]]
            assert (await peer.admin.Purge(pb.PurgeRequest(queue="q.dlq", dry_run=True))).purged == 2
            assert (await peer.admin.Purge(pb.PurgeRequest(queue="q.dlq", count=1))).purged == 1
            assert ids_of(await peek(peer)) == [ids[2]]

    async def test_of_any_other_queue_wants_to_be_meant(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send_many(3)
            code, text = await refusal(peer.admin.Purge(pb.PurgeRequest(queue="q")))
            assert (code, '"q" is not a dead-letter queue' in text) == (StatusCode.INVALID_ARGUMENT, True)
            assert (await peer.admin.Purge(pb.PurgeRequest(queue="q", any_queue=True))).purged == 3


class TestPause:
    async def test_holds_over_a_restart(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.admin.PauseQueue(pb.PauseQueueRequest(queue="q"))
            await peer.send(b"x")
        async with serve() as peer:
            assert (await peer.summary()).paused
            (listed, graves) = (await peer.admin.ListQueues(pb.ListQueuesRequest())).queues
            assert (listed.paused, graves.paused) == (True, False)
            stream = peer.lease()
            why = await peer.admin.Explain(pb.ExplainRequest(queue="q"))
            assert why.reasons[0].code == pb.WAIT_CAUSE_PAUSED
            await peer.admin.ResumeQueue(pb.ResumeQueueRequest(queue="q"))
            (message,) = await take(stream, 1)
            assert message.payload == b"x"
            assert not (await peer.summary()).paused

    async def test_of_no_queue_is_refused(self, serve):
        async with serve() as peer:
            code, _ = await refusal(peer.admin.PauseQueue(pb.PauseQueueRequest(queue="no")))
            assert code is StatusCode.NOT_FOUND
