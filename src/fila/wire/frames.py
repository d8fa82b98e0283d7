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
PING_BYTES: Final = 8
MAX_REASON_BYTES: Final = 256
"""How much of a reason in GOAWAY is read."""
PRIORITY_BYTES: Final = 5

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

HEADER: Final = Struct(">HBBBL")
"""Length in two parts, kind, flags, stream."""
_SETTING = Struct(">HL")
_TWO_NUMBERS = Struct(">LL")


class ConnectionFailed(Exception):
    """The peer broke the rules of the protocol, or asks for too much. The connection ends with `code`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def header(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    return HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream_id)


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
    """The last value of each setting of a SETTINGS frame. Raises ConnectionFailed."""
    if len(payload) % _SETTING.size:
        raise ConnectionFailed(FRAME_SIZE_ERROR, "SETTINGS of a wrong length")
    return dict(_SETTING.iter_unpack(payload))


def read_window_update(payload: bytes) -> int:
    """By how much a window grows. Raises ConnectionFailed."""
    size = _read_number(payload, "WINDOW_UPDATE") & MAX_WINDOW
    if not size:
        raise ConnectionFailed(PROTOCOL_ERROR, "WINDOW_UPDATE with an increment of 0")
    return size


def read_rst_stream(payload: bytes) -> int:
    """The code. Raises ConnectionFailed."""
    return _read_number(payload, "RST_STREAM")


def _read_number(payload: bytes, name: str) -> int:
    if len(payload) != 4:
        raise ConnectionFailed(FRAME_SIZE_ERROR, f"{name} of a wrong length")
    return int.from_bytes(payload, "big")


def read_goaway(payload: bytes) -> tuple[int, int, str]:
    """The last stream that the peer has seen, its reason as a code and in words. Raises ConnectionFailed."""
    if len(payload) < _TWO_NUMBERS.size:
        raise ConnectionFailed(PROTOCOL_ERROR, "GOAWAY of a wrong length")
    last_id, code = _TWO_NUMBERS.unpack_from(payload)
    return last_id & MAX_STREAM_ID, code, payload[_TWO_NUMBERS.size :][:MAX_REASON_BYTES].decode(errors="replace")


def check_priority(stream_id: int, payload: bytes) -> None:
    """PRIORITY has no effect, and still has rules. Raises ConnectionFailed."""
    if not stream_id:
        raise ConnectionFailed(PROTOCOL_ERROR, "PRIORITY without a stream")
    if len(payload) != PRIORITY_BYTES:
        raise ConnectionFailed(FRAME_SIZE_ERROR, "PRIORITY of a wrong length")


def unpadded(flags: int, payload: bytes) -> bytes:
    """What a DATA or HEADERS frame carries. Raises ConnectionFailed."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailed(PROTOCOL_ERROR, "more padding than frame")
    return payload[1 : len(payload) - payload[0]]
