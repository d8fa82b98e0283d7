"""How gRPC says in headers what is called, how a call ended, how long it may take, and what else it carries."""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from urllib.parse import unquote_to_bytes

from fila.wire import frames
from fila.wire.headers import Headers

Metadata = Sequence[tuple[str, str | bytes]]


class StatusCode(IntEnum):
    """How a call ended, by gRPC's numbers."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def of(cls, number: int) -> "StatusCode":
        """UNKNOWN for a number that gRPC does not have."""
        return cls(number) if number in _NUMBERS else cls.UNKNOWN


_NUMBERS = frozenset(StatusCode)

#: How much of a text with a status is sent. Peers limit headers to 8 KiB or more.
MAX_DETAILS_BYTES = 4096

#: A google.rpc.Status: the one of gRPC's own headers that belongs to whoever is called.
DETAILS = b"grpc-status-details-bin"

_MAX_STATUS_DIGITS = 3
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_MAX_TIMEOUT_NUMBER = 99_999_999  # eight digits
_TO_ESCAPE = re.compile(rb"[^\x20-\x24\x26-\x7e]")

#: What a stream that the peer reset, or a connection that it ended, means for a call: gRPC's own table.
_BY_RESET = {
    frames.REFUSED_STREAM: StatusCode.UNAVAILABLE,
    frames.CANCEL: StatusCode.CANCELLED,
    frames.ENHANCE_YOUR_CALM: StatusCode.RESOURCE_EXHAUSTED,
    frames.INADEQUATE_SECURITY: StatusCode.PERMISSION_DENIED,
}

#: What a proxy that does not speak gRPC may answer with.
_BY_HTTP = {
    b"400": StatusCode.INTERNAL,
    b"401": StatusCode.UNAUTHENTICATED,
    b"403": StatusCode.PERMISSION_DENIED,
    b"404": StatusCode.UNIMPLEMENTED,
    b"429": StatusCode.UNAVAILABLE,
    b"502": StatusCode.UNAVAILABLE,
    b"503": StatusCode.UNAVAILABLE,
    b"504": StatusCode.UNAVAILABLE,
}


class RpcError(Exception):
    """A call that ended with another status than OK."""

    def __init__(self, code: StatusCode, details: str = "", trailing_metadata: Metadata = ()) -> None:
        super().__init__(f"{code.name}: {details}")
        self._code = code
        self._details = details
        self._trailing_metadata = trailing_metadata

    def code(self) -> StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Metadata:
        return self._trailing_metadata


class TlsFailed(RpcError):
    """There is no secure connection, for a reason that asking again would not change."""

    def __init__(self, details: str) -> None:
        super().__init__(StatusCode.UNAVAILABLE, details)


class UnreadableResponse(RpcError):
    """The other side answered with bytes that mean nothing. Asking again would not help."""


def request_headers(path: str, authority: str, scheme: bytes = b"http") -> list[tuple[bytes, bytes]]:
    """What a call begins with."""
    return [
        (b":method", b"POST"),
        (b":scheme", scheme),
        (b":path", path.encode()),
        (b":authority", authority.encode()),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        (b"user-agent", b"fila-python"),
    ]


def write_status(code: StatusCode, details: str = "") -> list[tuple[bytes, bytes]]:
    headers = [(b"grpc-status", b"%d" % code)]
    if details:
        text = details.encode(errors="replace")[:MAX_DETAILS_BYTES]
        headers.append((b"grpc-message", _TO_ESCAPE.sub(lambda match: b"%%%02X" % match[0][0], text)))
    return headers


def read_status(headers: Headers) -> tuple[StatusCode, str]:
    """The status in the last headers of a call."""
    found = dict(headers)
    number = found.get(b"grpc-status")
    if number is None:
        http = found.get(b":status", b"200")
        code = StatusCode.UNKNOWN if http == b"200" else _BY_HTTP.get(http, StatusCode.UNKNOWN)
        return code, f"the call ended without a gRPC status (HTTP {http.decode(errors='replace')})"
    plain = number.isdigit() and len(number) <= _MAX_STATUS_DIGITS
    code = StatusCode.of(int(number)) if plain else StatusCode.UNKNOWN
    return code, unquote_to_bytes(found.get(b"grpc-message", b"")).decode(errors="replace")


def from_reset(code: int) -> RpcError:
    return RpcError(_BY_RESET.get(code, StatusCode.INTERNAL), f"the peer reset the stream (HTTP/2 error {code})")


def write_metadata(metadata: Iterable[tuple[str, str | bytes]]) -> list[tuple[bytes, bytes]]:
    return [
        (
            key.lower().encode(),
            base64.b64encode(value).rstrip(b"=") if isinstance(value, bytes) else value.encode(),
        )
        for key, value in metadata
    ]


def read_metadata(headers: Headers) -> Metadata:
    """What a peer added of its own. A value of a `-bin` key that is not base64 is left out."""
    metadata: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        if (name.startswith((b":", b"grpc-")) and name != DETAILS) or name in {b"te", b"content-type"}:
            continue
        key = name.decode(errors="replace")
        if not key.endswith("-bin"):
            metadata.append((key, value.decode(errors="replace")))
            continue
        try:
            metadata.extend(
                (key, base64.b64decode(part + b"=" * (-len(part) % 4), validate=True)) for part in value.split(b",")
            )
        except binascii.Error:
            continue
    return tuple(metadata)


def write_timeout(seconds: float) -> bytes:
    """A time from now, never shorter than asked for by more than a part in eight digits."""
    for unit, size in ((b"n", 1e-9), (b"u", 1e-6), (b"m", 1e-3), (b"S", 1.0), (b"M", 60.0), (b"H", 3600.0)):
        number = int(min(max(seconds, 0.0), 1e12) / size)
        if number <= _MAX_TIMEOUT_NUMBER:
            return b"%d%s" % (number, unit)
    return b"%dH" % _MAX_TIMEOUT_NUMBER


def read_timeout(value: bytes) -> float | None:
    """Seconds, or None for what is no timeout."""
    number, unit = value[:-1], value[-1:]
    if not number.isdigit() or len(number) > 8 or unit not in _UNITS:
        return None
    return int(number) * _UNITS[unit]
