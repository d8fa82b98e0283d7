"""What the headers of a request ask for: a method and a deadline; or why it cannot be served."""

import re
from collections.abc import Mapping
from typing import Final

from fila.wire import status
from fila.wire.headers import Headers, encode
from fila.wire.method import Method
from fila.wire.status import StatusCode

_METHOD_NOT_ALLOWED: Final = encode([(b":status", b"405"), (b"allow", b"POST"), (b"content-length", b"0")])
_UNSUPPORTED_MEDIA_TYPE: Final = encode([(b":status", b"415"), (b"content-length", b"0")])
_CONTENT_TYPE: Final = re.compile(rb"application/grpc(\+proto)?(;.*)?")


class NotGrpc(Exception):
    """A request of HTTP that is no call of gRPC. It is answered with these headers."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer


class RequestRefused(Exception):
    """A call that cannot be served. It ends with `code`."""

    def __init__(self, code: StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def read_request(headers: Headers, methods: Mapping[bytes, Method]) -> tuple[Method, float | None]:
    """The method, and in how many seconds the caller stops waiting. Raises NotGrpc or RequestRefused."""
    found = dict(headers)
    if found.get(b":method") != b"POST":
        raise NotGrpc(_METHOD_NOT_ALLOWED)
    if _CONTENT_TYPE.fullmatch(found.get(b"content-type", b"")) is None:
        raise NotGrpc(_UNSUPPORTED_MEDIA_TYPE)
    method = methods.get(found.get(b":path", b""))
    if method is None:
        raise RequestRefused(StatusCode.UNIMPLEMENTED, "the method does not exist")
    if found.get(b"grpc-encoding", b"identity") != b"identity":
        raise RequestRefused(StatusCode.UNIMPLEMENTED, "compressed messages are not supported")
    timeout = found.get(b"grpc-timeout")
    if timeout is None:
        return method, None
    timeout_s = status.read_timeout(timeout)
    if timeout_s is None:
        raise RequestRefused(StatusCode.INTERNAL, "grpc-timeout cannot be read")
    return method, timeout_s
