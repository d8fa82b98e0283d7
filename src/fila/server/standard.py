"""The services that every gRPC tool knows: health checking and reflection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf import descriptor_pool, text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from fila.server.types import Method, ServerCall, SmallMethod
from fila.wire.status import StatusCode
from fila.wire.stream import EOF

Status = Any
"""A number of health_pb2's, which has no types."""

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


class Health:
    """The status of each service (grpc.health.v1). Whoever watches one is told of changes, and let go at the end."""

    def __init__(self, *services: str) -> None:
        self._statuses: dict[str, Status] = {}
        for service in ("", *services):
            self._statuses[service] = _SERVING
        self._changed: set[asyncio.Future[None]] = set()
        self._stopped = False

    def set(self, service: str, status: Status) -> None:
        """Say how a service is. After `stop` that stays as it is."""
        if not self._stopped:
            self._statuses[service] = status
            self._tell()

    def stop(self) -> None:
        """Nothing is served any more: those who watch are told so, and their calls end."""
        self._stopped = True
        for service in self._statuses:
            self._statuses[service] = _NOT_SERVING
        self._tell()

    async def check(self, request: health_pb2.HealthCheckRequest, call: ServerCall) -> health_pb2.HealthCheckResponse:
        status = self._statuses.get(request.service)
        if status is None:
            await call.abort(StatusCode.NOT_FOUND, "the service does not exist")
        return health_pb2.HealthCheckResponse(status=status)

    async def watch(self, request: health_pb2.HealthCheckRequest, call: ServerCall) -> None:
        told = None
        while True:
            status = self._statuses.get(request.service, _UNKNOWN)
            if status != told:
                told = status
                await call.write(health_pb2.HealthCheckResponse(status=status))
            elif self._stopped:
                await call.abort(StatusCode.UNAVAILABLE, "the server is shutting down")
            else:
                await self._change()

    async def _change(self) -> None:
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.add(changed)
        try:
            await changed
        finally:
            self._changed.discard(changed)

    def _tell(self) -> None:
        for changed in self._changed:
            if not changed.done():
                changed.set_result(None)


def health_methods(services: Health) -> dict[str, Method]:
    read, write = health_pb2.HealthCheckRequest.FromString, health_pb2.HealthCheckResponse.SerializeToString
    return {
        f"/{health.SERVICE_NAME}/Check": SmallMethod(services.check, read, write),
        f"/{health.SERVICE_NAME}/Watch": SmallMethod(services.watch, read, write, gives_stream=True, standing=True),
    }


def reflection_methods(services: tuple[str, ...]) -> dict[str, Method]:
    """What those services, and this one, look like. Version 1 is the one of gRPC's tools today, with the same messages
    under another name; older ones ask for v1alpha.
    """
    names = (reflection.SERVICE_NAME, _describe_reflection())
    servicer: Any = reflection.aio.ReflectionServicer((*services, *names))

    async def describe(_: object, call: ServerCall) -> None:
        async for response in servicer.ServerReflectionInfo(_requests(call), call):
            await call.write(response)

    return {
        f"/{name}/ServerReflectionInfo": SmallMethod(
            describe,
            reflection_pb2.ServerReflectionRequest.FromString,
            reflection_pb2.ServerReflectionResponse.SerializeToString,
            takes_stream=True,
            gives_stream=True,
            standing=True,
        )
        for name in names
    }


def _describe_reflection() -> str:
    """Make version 1 known, of which grpcio-reflection has no description. Returns the name of its service."""
    described = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(described)
    text = text_format.MessageToString(described).replace("v1alpha", "v1")
    descriptor_pool.Default().AddSerializedFile(text_format.Parse(text, FileDescriptorProto()).SerializeToString())
    return str(reflection.SERVICE_NAME).replace("v1alpha", "v1")


async def _requests(call: ServerCall) -> AsyncIterator[Any]:
    while (request := await call.read()) is not EOF:
        yield request
