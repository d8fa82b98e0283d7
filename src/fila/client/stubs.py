"""The unary methods of a service, made from its descriptor.

Generated stubs do the same, but need grpcio, which the SDK uses for nothing else.
"""

from types import ModuleType, SimpleNamespace
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodDescriptorProto

from fila.wire.channel import Channel


def unary_methods(channel: Channel, module: ModuleType, service: str) -> Any:
    """An object with a method for each of the service's: `methods.Ack(request, timeout=5)`. Typed by its caller."""
    descriptor = module.DESCRIPTOR.services_by_name[service]
    methods = SimpleNamespace()
    for method in descriptor.methods:
        declared = MethodDescriptorProto()
        method.CopyToProto(declared)  # old releases of protobuf tell only here which methods stream
        if not (declared.client_streaming or declared.server_streaming):
            setattr(methods, method.name, _unary(channel, module, method))
    return methods


def _unary(channel: Channel, module: ModuleType, method: MethodDescriptor) -> Any:
    return channel.unary_unary(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=getattr(module, method.input_type.name).SerializeToString,
        response_deserializer=getattr(module, method.output_type.name).FromString,
    )
