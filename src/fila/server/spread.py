"""Batches whose messages may be in queues of several workers: each worker has its part done, and the answers are put
together.

Rules of this file:
- A batch that is one worker's goes there as it came. The parts of another are made in the same way by every worker, so
  that one which is sent again is recognised wherever it comes in: it has the same producer, number and messages.
- Requests of a stream are answered one after the other, as on one worker, so messages of one fairness key keep their
  order.
- What one worker refuses as a whole is refused message by message when others have done their part: the response says
  what became of each.
- When a worker is away, the call ends with UNAVAILABLE. The caller sends the batch again, and the workers that have
  done their part answer as they did.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from fila.broker.commands import Incoming
from fila.cluster.forwarding import DETAILS, Forwarding, refuse
from fila.cluster.peers import translated
from fila.cluster.placement import shard_of
from fila.core.errors import BrokerError
from fila.internal import wire_pb2
from fila.server import message_codec
from fila.server.access import Access
from fila.server.service import FilaService
from fila.server.status import read_details, write_error
from fila.server.streams import ENDING, Encode, RefusedRequest, Reply, Talk
from fila.server.types import Methods, ServerCall
from fila.v1 import service_pb2 as pb
from fila.wire.client_call import ClientCall
from fila.wire.status import RpcError, StatusCode
from fila.wire.stream import EOF

_HOT: Final = "/fila.v1.FilaService/"


class Kept(NamedTuple):
    """A request, and the bytes it came in."""

    raw: bytes
    request: Any


class OtherStreams:
    """The streams to other workers that one stream of a caller needs, opened when they are."""

    def __init__(self, forwarding: Forwarding, path: str, call: ServerCall) -> None:
        self._forwarding = forwarding
        self._path = path
        self._call = call
        self._open: dict[int, ClientCall] = {}
        self._asking: set[asyncio.Task[None]] = set()

    async def ask(self, worker: int, request: bytes) -> bytes:
        """The response of a worker. Raises RpcError."""
        there = self._open.get(worker)
        if there is None:
            there = self._open[worker] = self._forwarding.talk(worker, self._path, self._call)
        try:
            await there.write(request)
            response = await there.read()
        except RpcError as error:
            raise translated(f"worker {worker}", error, DETAILS) from error
        if response is EOF:
            raise translated(f"worker {worker}", RpcError(StatusCode.UNAVAILABLE, "it has ended the stream"), DETAILS)
        return bytes(response)

    def begin(self, answer: Awaitable[None]) -> None:
        """Have an answer made. It ends with the stream."""
        task = asyncio.ensure_future(answer)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    @property
    def only_one(self) -> int | None:
        """The worker that all requests went to, as far as they were passed on."""
        return next(iter(self._open)) if len(self._open) == 1 else None

    def close(self) -> None:
        for task in list(self._asking):
            task.cancel()
        for there in self._open.values():
            there.cancel()


class SpreadService(FilaService):
    """The handlers of a worker for its clients: of batches, which may be for several workers."""

    forwarding: Forwarding
    worker: int
    workers: int

    def spread(self, forwarding: Forwarding, worker: int, workers: int) -> None:
        self.forwarding, self.worker, self.workers = forwarding, worker, workers

    def _of(self, queue: str) -> int:
        return shard_of(queue, self.workers)

    # Enqueue.

    async def enqueue_batch(self, kept: Kept, call: ServerCall) -> bytes:  # type: ignore[override]
        batch: message_codec.Batch = kept.request
        messages = self._read_batch(batch.request)
        workers = {self._of(message.queue) for message in messages} or {self.worker}
        if workers == {self.worker}:
            return await super().enqueue_batch(batch, call)
        path = _HOT + "EnqueueBatch"
        if len(workers) == 1:
            return await self.forwarding.pass_on(workers.pop(), path, kept.raw, call)

        refusals: list[BrokerError | RpcError] = []

        async def ask(worker: int, part: bytes) -> bytes:
            try:
                if worker == self.worker:
                    return await super(SpreadService, self).enqueue_batch(message_codec.receive_batch(part), call)
                return await self.forwarding.ask(worker, path, part, call)
            except (BrokerError, RpcError) as error:
                refusal = (
                    write_error(error) if isinstance(error, BrokerError) else read_details(error.trailing_metadata())
                )
                if refusal is None or StatusCode(refusal.code) in ENDING:
                    raise
                refusals.append(error)
                return pb.EnqueueBatchResponse(error=refusal).SerializeToString()

        try:
            response = await self._in_parts(batch, messages, ask)
            if len(refusals) == len(workers):  # nobody has done anything
                raise refusals[0]
        except RpcError as error:
            await refuse(call, error)
        return response

    async def enqueue_stream(self, _: object, call: ServerCall) -> None:
        access, caller = self._gate.of(call), self._caller(call)
        streams = OtherStreams(self.forwarding, _HOT + "EnqueueStream", call)
        take = partial(self._take_spread, caller, access, streams)
        await self._serve(call, streams, Talk(take, lambda kept: kept.request.request.sequence, _refuse_batch))

    def _take_spread(self, caller: Any, access: Access, streams: OtherStreams, kept: Kept, reply: Reply) -> None:
        batch: message_codec.Batch = kept.request
        messages = self._read_batch(batch.request)
        workers = {self._of(message.queue) for message in messages} or {self.worker}
        if workers == {self.worker}:
            self._take_messages(caller, access, batch, messages, reply)
        elif len(workers) == 1:
            streams.begin(_answer(reply, streams.ask(workers.pop(), kept.raw)))
        else:

            async def ask(worker: int, part: bytes) -> bytes:
                if worker != self.worker:
                    return await streams.ask(worker, part)
                here = message_codec.receive_batch(part)
                return await _done_here(
                    partial(self._take_batch, caller, access, here),
                    lambda error: message_codec.write_refused(here.request.sequence, error),
                )

            streams.begin(_answer(reply, self._in_parts(batch, messages, ask)))

    async def _in_parts(
        self,
        batch: message_codec.Batch,
        messages: Sequence[Incoming],
        ask: Callable[[int, bytes], Awaitable[bytes]],
    ) -> bytes:
        """The response of a batch for several workers. Raises RpcError."""
        request = batch.request
        places: dict[int, list[int]] = {}
        for place, message in enumerate(messages):
            places.setdefault(self._of(message.queue), []).append(place)
        parts = [
            wire_pb2.EncodedEnqueueBatch(
                messages=[request.messages[place] for place in mine],
                producer_id=request.producer_id,
                sequence=request.sequence,
                queue=request.queue,
                producer_epoch=request.producer_epoch,
            ).SerializeToString()
            for mine in places.values()
        ]
        answers = await gather(ask(worker, part) for worker, part in zip(places, parts, strict=True))
        results: list[pb.EnqueueResult] = [pb.EnqueueResult()] * len(messages)
        for mine, answer in zip(places.values(), answers, strict=True):
            response = pb.EnqueueBatchResponse.FromString(answer)
            refused = pb.EnqueueResult(error=response.error) if response.HasField("error") else None
            for at, place in enumerate(mine):
                results[place] = response.results[at] if refused is None else refused
        return pb.EnqueueBatchResponse(results=results, sequence=request.sequence).SerializeToString()

    # Settle.

    async def settle(self, _: object, call: ServerCall) -> None:
        access, caller = self._gate.of(call), self._caller(call)
        streams = OtherStreams(self.forwarding, _HOT + "Settle", call)
        take = partial(self._settle_spread, caller, access, streams)
        await self._serve(call, streams, Talk(take, lambda kept: kept.request.sequence, _refuse_settle))

    def _settle_spread(self, caller: Any, access: Access, streams: OtherStreams, kept: Kept, reply: Reply) -> None:
        request: pb.SettleRequest = kept.request
        self._check_settle(request)
        queues = {each.queue for each in request.acks} | {each.queue for each in request.nacks}
        queues |= {each.queue for each in request.extends}
        workers = {self._of(queue) for queue in queues} or {self.worker}
        if workers == {self.worker}:
            self._settle_batch(caller, access, request, lambda encode, answer: reply(_in_bytes(encode), answer))
        elif len(workers) == 1:
            streams.begin(_answer(reply, streams.ask(workers.pop(), kept.raw)))
        else:
            streams.begin(_answer(reply, self._settle_in_parts(caller, access, streams, request, workers)))

    async def _settle_in_parts(
        self, caller: Any, access: Access, streams: OtherStreams, request: pb.SettleRequest, workers: Iterable[int]
    ) -> bytes:
        parts = {worker: pb.SettleRequest(sequence=request.sequence) for worker in workers}
        for ack in request.acks:
            parts[self._of(ack.queue)].acks.append(ack)
        for nack in request.nacks:
            parts[self._of(nack.queue)].nacks.append(nack)
        for extend in request.extends:
            parts[self._of(extend.queue)].extends.append(extend)

        async def ask(worker: int, part: pb.SettleRequest) -> bytes:
            if worker != self.worker:
                return await streams.ask(worker, part.SerializeToString())

            def take(reply: Reply) -> None:
                self._settle_batch(caller, access, part, lambda encode, answer: reply(_in_bytes(encode), answer))

            return await _done_here(take, lambda error: pb.SettleResponse(error=write_error(error)).SerializeToString())

        answers = await gather(ask(worker, part) for worker, part in parts.items())
        failures: list[pb.SettleFailure] = []
        for part, answer in zip(parts.values(), answers, strict=True):
            response = pb.SettleResponse.FromString(answer)
            failures += response.failures
            if response.HasField("error"):
                failures += [
                    pb.SettleFailure(queue=queue, message_id=message_id, error=response.error)
                    for queue, message_id in _named(part)
                ]
        return pb.SettleResponse(sequence=request.sequence, failures=failures).SerializeToString()

    # Both.

    async def _serve(self, call: ServerCall, streams: OtherStreams, talk: Talk) -> None:
        try:
            await self._streams.serve(call, talk)
            if streams.only_one is not None:
                call.set_trailing_metadata(self.forwarding.trailers(streams.only_one, call))
        except RpcError as error:
            await refuse(call, error)
        finally:
            streams.close()


async def gather(answers: Iterable[Awaitable[bytes]]) -> list[bytes]:
    """All of them. When one fails, the others are done before the failure is told: nothing goes on unseen."""
    done = await asyncio.gather(*answers, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return [each for each in done if not isinstance(each, BaseException)]


async def _answer(reply: Reply, answer: Awaitable[bytes]) -> None:
    """Reply with what another worker answers, or with how it has ended the stream."""
    try:
        response = await answer
    except asyncio.CancelledError:
        raise
    except BrokerError as refusal:
        reply(_as_it_is, refusal)
    except Exception as error:  # noqa: BLE001  # whatever it is, it ends this stream and no other
        reply(_raise, error)
    else:
        reply(_as_it_is, response)


async def _done_here(ask: Callable[[Reply], None], write_refused: Callable[[BrokerError], bytes]) -> bytes:
    """The response of this worker to its part. Raises BrokerError for what ends a stream."""
    done: asyncio.Future[tuple[Encode, Any]] = asyncio.get_running_loop().create_future()

    def reply(encode: Encode, answer: Any) -> None:
        if not done.done():
            done.set_result((encode, answer))

    try:
        ask(reply)
        encode, answer = await done
        if isinstance(answer, BrokerError):
            raise answer
        return bytes(encode(answer))
    except BrokerError as refusal:
        if _ends(refusal):
            raise
        return write_refused(refusal)


def _ends(refusal: BrokerError) -> bool:
    return StatusCode(write_error(refusal).code) in ENDING


def _named(part: pb.SettleRequest) -> list[tuple[str, str]]:
    """All messages of a request."""
    named = [(group.queue, each) for group in part.acks for each in group.message_ids]
    named += [(group.queue, each) for group in part.extends for each in group.message_ids]
    return named + [(nack.queue, nack.message_id) for nack in part.nacks]


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def _raise(error: Exception) -> bytes:
    raise error


def _in_bytes(encode: Encode) -> Encode:
    return lambda answer: encode(answer).SerializeToString()


def _refuse_batch(sequence: int, error: BrokerError) -> bytes:
    return message_codec.write_refused(sequence, error)


def _refuse_settle(sequence: int, error: BrokerError) -> bytes:
    return pb.SettleResponse(sequence=sequence, error=write_error(error)).SerializeToString()


def keeping(methods: Methods) -> Methods:
    """The methods of batches, whose handlers are given the bytes too, and give bytes."""
    return {
        name: replace(method, read=partial(_keep, method.read), write=_as_it_is)
        if name in {"EnqueueBatch", "EnqueueStream", "Settle"}
        else method
        for name, method in methods.items()
    }


def _keep(read: Callable[[bytes], Any], raw: bytes) -> Any:
    request = read(raw)
    return request if isinstance(request, BrokerError | RefusedRequest) else Kept(raw, request)
