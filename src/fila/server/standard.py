"""The services that every gRPC tool knows: health checking and reflection."""

from collections.abc import AsyncIterator
from typing import Any

from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from fila.server.types import Context, Method
from fila.wire.stream import EOF


def health_methods(servicer: health.aio.HealthServicer) -> dict[str, Method]:
    read, write = health_pb2.HealthCheckRequest.FromString, health_pb2.HealthCheckResponse.SerializeToString
    checks: Any = servicer  # typed for a context of grpc.aio, of which it uses what ours has
    return {
        f"/{health.SERVICE_NAME}/Check": Method(checks.Check, read, write),
        f"/{health.SERVICE_NAME}/Watch": Method(checks.Watch, read, write, gives_stream=True),
    }


def reflection_methods(services: tuple[str, ...]) -> dict[str, Method]:
    """What those services, and this one, look like."""
    servicer: Any = reflection.aio.ReflectionServicer((*services, reflection.SERVICE_NAME))

    async def describe(_: object, context: Context) -> None:
        async for response in servicer.ServerReflectionInfo(_requests(context), context):
            await context.write(response)

    return {
        f"/{reflection.SERVICE_NAME}/ServerReflectionInfo": Method(
            describe,
            reflection_pb2.ServerReflectionRequest.FromString,
            reflection_pb2.ServerReflectionResponse.SerializeToString,
            takes_stream=True,
            gives_stream=True,
        )
    }


async def _requests(context: Context) -> AsyncIterator[Any]:
    while (request := await context.read()) is not EOF:
        yield request
