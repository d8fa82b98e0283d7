"""Bytes to frames. Knows how frames are laid out and in which order they may come; not what they mean.

Rules of this file:
- A connection begins with the preface (a client's), and the first frame is SETTINGS.
- A DATA frame is not kept until it is complete: its bytes are given out as they come. All other frames are small, and
  given out whole. A frame that is longer than the limit ends the connection (FRAME_SIZE_ERROR).
- A header block is given out whole, with its CONTINUATION frames. It is limited in bytes and in frames (CONTINUATION
  flood, CVE-2024-27316), and nothing may come between its frames.
- Each frame is a unit of work. When `max_work_units` are done, the rest waits: `has_backlog`, and `read` goes on with
  it, also without data. Nothing of `data` itself is kept: its buffer may be used again.
"""

from collections.abc import Iterator
from typing import Final, NoReturn

from fila.wire import frames
from fila.wire.frames import ConnectionFailed
from fila.wire.headers import READ_FACTOR
from fila.wire.limits import Limits
from fila.wire.stream import Buffer

_MAX_CONTINUATIONS: Final = 16
_MAX_CONTROL_BYTES: Final = frames.MIN_FRAME_BYTES

MORE_DATA: Final = -1
"""Stands for the kind of a frame: a further piece of the DATA frame before it."""

Frame = tuple[int, int, int, Buffer, int, int]
"""Kind, flags, stream, payload without padding; of a DATA frame also how many bytes of it count in the flow-control
windows, and how many of them are still to come."""


class FrameReader:
    """The receiving half of the frame layer of one connection."""

    def __init__(self, limits: Limits, *, server: bool) -> None:
        self.work_units = 0
        self.max_work_units = 1 << 62
        self.has_backlog = False
        self._max_frame_bytes = limits.max_frame_bytes
        self._max_block_bytes = limits.max_header_bytes * READ_FACTOR
        longest = min(self._max_block_bytes + _MAX_CONTROL_BYTES, limits.max_frame_bytes)  # beyond it, it says why
        self._longest = {
            frames.DATA: limits.max_frame_bytes,
            frames.HEADERS: longest,
            frames.CONTINUATION: longest,
        }
        self._rest = bytearray()
        self._wanted = len(frames.PREFACE)
        self._preface_seen = not server
        self._settings_seen = False
        #: Of the DATA frame that is coming.
        self._data_left = 0
        self._data_flags = 0
        self._data_stream = 0
        #: The header block that is coming: its stream, the flags of its HEADERS, its bytes.
        self._block: tuple[int, int, bytearray] | None = None
        self._continuations = 0

    def read(self, data: Buffer) -> Iterator[Frame]:
        """The frames in what arrived. Raises ConnectionFailed."""
        self.has_backlog = False
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data = bytes(self._rest)
            self._rest.clear()
        at, end = 0, len(data)
        read_header = frames.HEADER.unpack_from
        if not self._preface_seen:
            if not self._read_preface(data):
                return
            at = len(frames.PREFACE)
        if self._data_left and end:
            at = min(end, self._data_left)
            self._data_left -= at
            yield MORE_DATA, self._data_flags, self._data_stream, data[:at], 0, self._data_left
        while end - at >= frames.HEADER_BYTES:
            self.work_units += 1
            if self.work_units > self.max_work_units:
                self.has_backlog = True
                self._keep(data, at, 0)
                return
            high, low, kind, flags, stream_id = read_header(data, at)
            length = high << 8 | low
            stream_id &= frames.MAX_STREAM_ID
            at += frames.HEADER_BYTES
            if kind == frames.DATA and not flags & frames.PADDED:
                if (
                    self._block is not None
                    or not self._settings_seen
                    or not stream_id
                    or length > self._max_frame_bytes
                ):
                    self._refuse_data(length)
                stop = min(end, at + length)
                self._data_left = left = length - (stop - at)
                if left:
                    self._data_flags, self._data_stream = flags, stream_id
                yield kind, flags, stream_id, data[at:stop], length, left
                at = stop
                continue
            if length > self._longest.get(kind, _MAX_CONTROL_BYTES):
                raise ConnectionFailed(frames.FRAME_SIZE_ERROR, f"a frame of {length} bytes is too large")
            if at + length > end:
                self._keep(data, at - frames.HEADER_BYTES, frames.HEADER_BYTES + length)
                return
            payload = bytes(data[at : at + length])
            at += length
            yield from self._read_whole(kind, flags, stream_id, payload)
        if at < end:
            self._keep(data, at, frames.HEADER_BYTES)

    def _keep(self, data: Buffer, at: int, wanted: int) -> None:
        self._rest += data[at:]
        self._wanted = wanted

    def _read_preface(self, data: Buffer) -> bool:
        """Whether all of it is here. Raises ConnectionFailed for anything else than a preface."""
        beginning = bytes(data[: len(frames.PREFACE)])
        if not frames.PREFACE.startswith(beginning):
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "this is not HTTP/2: the connection preface is missing")
        if len(beginning) < len(frames.PREFACE):
            self._keep(data, 0, len(frames.PREFACE))
            return False
        self._preface_seen = True
        return True

    def _refuse_data(self, length: int) -> NoReturn:
        if length > self._max_frame_bytes:
            raise ConnectionFailed(frames.FRAME_SIZE_ERROR, f"a DATA frame of {length} bytes is too large")
        raise ConnectionFailed(frames.PROTOCOL_ERROR, "a DATA frame is not allowed here")

    def _read_whole(self, kind: int, flags: int, stream_id: int, payload: bytes) -> Iterator[Frame]:
        if self._block is not None and kind != frames.CONTINUATION:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a header block is interrupted: CONTINUATION is missing")
        if kind == frames.SETTINGS:
            self._settings_seen = True
        elif not self._settings_seen:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "the first frame must be SETTINGS")
        if kind == frames.DATA:
            if not stream_id:
                self._refuse_data(len(payload))
            yield kind, flags, stream_id, frames.unpadded(flags, payload), len(payload), 0
        elif kind == frames.HEADERS:
            yield from self._read_headers(flags, stream_id, frames.unpadded(flags, payload))
        elif kind == frames.CONTINUATION:
            yield from self._read_continuation(flags, stream_id, payload)
        else:
            if kind == frames.PRIORITY:
                frames.check_priority(stream_id, payload)
            yield kind, flags, stream_id, payload, 0, 0

    def _read_headers(self, flags: int, stream_id: int, payload: bytes) -> Iterator[Frame]:
        if not stream_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "HEADERS without a stream")
        block = payload[frames.PRIORITY_BYTES :] if flags & frames.HAS_PRIORITY else payload
        if len(block) > self._max_block_bytes:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many bytes of headers")
        if flags & frames.END_HEADERS:
            yield frames.HEADERS, flags, stream_id, block, 0, 0
        else:
            self._block = (stream_id, flags, bytearray(block))
            self._continuations = 0

    def _read_continuation(self, flags: int, stream_id: int, payload: bytes) -> Iterator[Frame]:
        if self._block is None or self._block[0] != stream_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "CONTINUATION without HEADERS before it")
        _, first_flags, block = self._block
        block += payload
        self._continuations += 1
        if len(block) > self._max_block_bytes or self._continuations > _MAX_CONTINUATIONS:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many bytes or CONTINUATION frames of headers")
        if flags & frames.END_HEADERS:
            self._block = None
            yield frames.HEADERS, first_flags, stream_id, bytes(block), 0, 0
