"""Members of a cluster that do not have the queues: they name the one that does, or pass calls on to it.

The server has no cluster yet; its contract does (docs/protocol.md, Clusters), and SDKs keep it from the beginning.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import grpc

from fila.internal.wire_pb2 import RpcStatus
from fila.v1 import errors_pb2

_TEXT = "another member has the queue"

#: The behaviour of a stream: requests as bytes and the context of the call give responses as bytes.
Handler = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


class Member(grpc.GenericRpcHandler):
    """A server of gRPC that knows no queues. `asked` has the names of the methods that were called."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.asked: list[str] = []
        self._server = grpc.server(ThreadPoolExecutor(32))
        self._server.add_generic_rpc_handlers((self,))
        self.addr = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method
        self.asked.append(method.rpartition("/")[2])
        return grpc.stream_stream_rpc_method_handler(self.handler(method))

    def handler(self, method: str) -> Handler:
        raise NotImplementedError

    def _trailers(self) -> tuple[tuple[str, str], ...]:
        return (("fila-owner", self.owner), ("fila-map", "7"))


class Refusing(Member):
    """Ends every call with NOT_OWNER and the trailer `fila-owner`."""

    def handler(self, method: str) -> Handler:
        del method
        return self._refuse

    def _refuse(self, _: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        status = RpcStatus(code=14, message=_TEXT)
        status.details.add().Pack(errors_pb2.Error(code=14, kind=errors_pb2.ERROR_KIND_NOT_OWNER, retryable=True))
        context.set_trailing_metadata((*self._trailers(), ("grpc-status-details-bin", status.SerializeToString())))
        context.abort(grpc.StatusCode.UNAVAILABLE, _TEXT)
        yield b""  # which makes it a stream


class Passing(Member):
    """Passes every call on to the owner, and says so at the end of its answer."""

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._channel.close()

    def __enter__(self) -> Self:
        self._channel = grpc.insecure_channel(self.owner)
        return super().__enter__()

    def handler(self, method: str) -> Handler:
        call = self._channel.stream_stream(method, None, None)

        def passing(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            given = [(key, value) for key, value in context.invocation_metadata() if key == "authorization"]
            answer = call(requests, metadata=given)
            context.add_callback(answer.cancel)
            context.send_initial_metadata(answer.initial_metadata())
            try:
                yield from answer
            except grpc.RpcError:
                context.set_code(answer.code())
                context.set_details(answer.details())
            context.set_trailing_metadata((*(answer.trailing_metadata() or ()), *self._trailers()))

        return passing
