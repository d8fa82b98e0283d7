"""The methods of a worker for its clients: each call is served here or passed on, as the table of ways says.

What arrives from other workers does not come through here: it is served where it arrives.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from fila.cluster.forwarding import Forwarding, refuse
from fila.cluster.gathering import GATHER
from fila.cluster.placement import shard_of
from fila.cluster.routes import LEADER, ROUTES, Route, Way
from fila.core.errors import BrokerError, Unsupported
from fila.server.spread import gather
from fila.server.status import Row, row_of, text_of, write_details
from fila.server.types import Method, ServerCall
from fila.v1 import errors_pb2 as pb
from fila.wire.status import RpcError, StatusCode

_NOT_CONFIRMED: Final = Row(pb.ERROR_KIND_UNSPECIFIED, StatusCode.UNAVAILABLE)
"""Of a change that some workers have not made yet. Not to be made again: a second key would be another one."""


class Here(NamedTuple):
    """Which worker this is, and its way to the others."""

    worker: int
    workers: int
    forwarding: Forwarding


def routed(methods: Mapping[str, Method], here: Here) -> dict[str, Method]:
    """All methods of our services by their paths. Raises KeyError for one that has no way."""
    return {path: _routed(path, ROUTES[path], method, here) for path, method in methods.items()}


def _routed(path: str, route: Route, method: Method, here: Here) -> Method:
    match route.way:
        case Way.HERE | Way.SPLIT:
            return method
        case Way.REFUSED:
            return _refusing(method, route.why_not)
        case Way.EACH:
            return _with(method, _ask_each(path, method, here))
        case Way.FIRST_REQUEST:
            return _with(method, _route_talk(path, route, method, here))
        case Way.QUEUE | Way.LEADER:
            return _with(method, _route(path, route, method, here))


def _with(method: Method, handler: Callable[[Any, ServerCall], Awaitable[Any]]) -> Method:
    """The same method in bytes: whoever serves it decodes and encodes."""
    return replace(method, handler=handler, read=_as_it_is, write=_as_it_is)


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def _refusing(method: Method, why_not: str) -> Method:
    async def handle(_: Any, call: ServerCall) -> None:
        await _refuse(call, Unsupported(why_not))

    return _with(method, handle)


async def _refuse(call: ServerCall, error: BrokerError) -> None:
    row, text = row_of(error), text_of(error)
    await call.abort(row.code, text, write_details(row, text))


def _worker_of(route: Route, request: Any, here: Here) -> int:
    """Who answers a request. Raises Unsupported."""
    if isinstance(request, BrokerError):  # it is refused, and that is done here
        return here.worker
    queue = route.queue(request)
    return LEADER if queue is None else shard_of(queue, here.workers)


def _route(path: str, route: Route, method: Method, here: Here) -> Callable[[bytes, ServerCall], Awaitable[Any]]:
    async def handle(raw: bytes, call: ServerCall) -> Any:
        request = call.decoded(method, raw)
        try:
            worker = _worker_of(route, request, here)
        except Unsupported as error:
            return await _refuse(call, error)
        if worker != here.worker and method.gives_stream:
            return await here.forwarding.pass_responses(worker, path, raw, call)
        if worker != here.worker:
            return await here.forwarding.pass_on(worker, path, raw, call)
        if method.gives_stream:
            call.serve_as(method)
            return await method.handler(request, call)
        return method.write(await method.handler(request, call))

    return handle


def _route_talk(path: str, route: Route, method: Method, here: Here) -> Callable[[Any, ServerCall], Awaitable[None]]:
    async def handle(_: Any, call: ServerCall) -> None:
        first = await call.peek()
        worker = here.worker if first is None else _worker_of(route, call.decoded(method, first), here)
        if worker == here.worker:
            call.serve_as(method)
            await method.handler(None, call)
        else:
            await here.forwarding.pass_talk(worker, path, call)

    return handle


def _ask_each(path: str, method: Method, here: Here) -> Callable[[bytes, ServerCall], Awaitable[bytes]]:
    others = [worker for worker in range(here.workers) if worker != here.worker]

    async def handle(raw: bytes, call: ServerCall) -> bytes:
        request = call.decoded(method, raw)
        responses = [method.write(await method.handler(request, call))]
        try:
            responses += await gather(here.forwarding.ask(worker, path, raw, call) for worker in others)
        except RpcError as error:
            await refuse(call, error)
        return GATHER[path](request, responses)

    return handle


def confirmed(methods: Mapping[str, Method], confirm: Callable[[], Awaitable[list[int]]]) -> dict[str, Method]:
    """The methods of worker 0: what changes for all workers is answered when all have it."""
    return {
        path: _confirmed(method, confirm) if ROUTES[path].way is Way.LEADER else method
        for path, method in methods.items()
    }


def _confirmed(method: Method, confirm: Callable[[], Awaitable[list[int]]]) -> Method:
    async def handle(request: Any, call: ServerCall) -> Any:
        response = await method.handler(request, call)
        behind = await confirm()
        if behind:
            named = ", ".join(f"worker {each}" for each in behind)
            text = f"the change is made, but not on all workers yet: it will reach {named} later"
            await call.abort(_NOT_CONFIRMED.code, text, write_details(_NOT_CONFIRMED, text))
        return response

    return replace(method, handler=handle)
