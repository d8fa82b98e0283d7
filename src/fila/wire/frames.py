"""Frames of HTTP/2 (RFC 9113): their numbers, their headers, and what is small enough to be written in one go."""

from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
DEFAULT_WINDOW: Final = 65_535
MAX_WINDOW: Final = (1 << 31) - 1
MIN_FRAME_BYTES: Final = 1 << 14
MAX_FRAME_BYTES: Final = (1 << 24) - 1
MAX_STREAM_ID: Final = (1 << 31) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

(
    NO_ERROR,
    PROTOCOL_ERROR,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    SETTINGS_TIMEOUT,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR,
    CONNECT_ERROR,
    ENHANCE_YOUR_CALM,
    INADEQUATE_SECURITY,
    HTTP_1_1_REQUIRED,
) = range(14)

_HEADER = Struct(">HBBBL")
_SETTING = Struct(">HL")
_TWO_NUMBERS = Struct(">LL")


class ConnectionFailed(Exception):
    """The peer broke the rules of the protocol, or asks for too much. The connection ends with `code`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def header(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    return _HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return header(len(payload), kind, flags, stream_id) + payload


def window_update(stream_id: int, size: int) -> bytes:
    return header(4, WINDOW_UPDATE, 0, stream_id) + size.to_bytes(4, "big")


def rst_stream(stream_id: int, code: int) -> bytes:
    return header(4, RST_STREAM, 0, stream_id) + code.to_bytes(4, "big")


def goaway(last_id: int, code: int, text: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, _TWO_NUMBERS.pack(last_id, code) + text.encode())


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join([_SETTING.pack(*each) for each in values.items()]))


def read_settings(payload: bytes) -> dict[int, int]:
    """The last value of each setting. Raises ConnectionFailed."""
    if len(payload) % _SETTING.size:
        raise ConnectionFailed(FRAME_SIZE_ERROR, "settings of a wrong length")
    return dict(_SETTING.iter_unpack(payload))


def unpadded(flags: int, payload: bytes) -> bytes:
    """What a DATA or HEADERS frame carries. Raises ConnectionFailed."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailed(PROTOCOL_ERROR, "more padding than frame")
    return payload[1 : len(payload) - payload[0]]
