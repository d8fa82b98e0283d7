"""SETTINGS: what this side announces, and what the peer has announced."""

from typing import Final

from fila.wire import frames
from fila.wire.frames import ConnectionFailed
from fila.wire.limits import Limits

_MAX_SETTINGS: Final = 64

ACKNOWLEDGEMENT: Final = frames.frame(frames.SETTINGS, frames.ACK, 0)


def connection_preface(limits: Limits, *, server: bool) -> list[bytes]:
    """What each side says first: SETTINGS, and a WINDOW_UPDATE for the connection, which has no setting."""
    values = {
        frames.INITIAL_WINDOW_SIZE: limits.stream_window,
        frames.MAX_FRAME_SIZE: limits.max_frame_bytes,
        frames.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
    }
    if server:
        values[frames.MAX_CONCURRENT_STREAMS] = limits.max_streams
    else:
        values[frames.ENABLE_PUSH] = 0
    window = frames.window_update(0, limits.connection_window - frames.DEFAULT_WINDOW)
    return [*([] if server else [frames.PREFACE]), frames.settings(values), window]


class PeerSettings:
    """The settings of the peer: HTTP/2's defaults until its first SETTINGS frame."""

    __slots__ = ("initial_window", "max_frame_bytes", "max_streams", "received")

    def __init__(self, *, server: bool) -> None:
        #: Whether its first SETTINGS came.
        self.received = False
        self.initial_window = frames.DEFAULT_WINDOW
        self.max_frame_bytes = frames.MIN_FRAME_BYTES
        #: How many streams a client may have open. A server opens none.
        self.max_streams = 0 if server else 100

    def update(self, payload: bytes) -> int:
        """Take a SETTINGS frame. Returns by how much the window of each open stream grows, which may be less than 0.

        Raises ConnectionFailed.
        """
        values = frames.read_settings(payload)
        if len(values) > _MAX_SETTINGS:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many settings in one SETTINGS frame")
        window = values.get(frames.INITIAL_WINDOW_SIZE, self.initial_window)
        if window > frames.MAX_WINDOW:
            raise ConnectionFailed(frames.FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE is too large")
        max_frame_bytes = values.get(frames.MAX_FRAME_SIZE, self.max_frame_bytes)
        if not frames.MIN_FRAME_BYTES <= max_frame_bytes <= frames.MAX_FRAME_BYTES:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is out of range")
        if values.get(frames.ENABLE_PUSH, 0) > 1:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is neither 0 nor 1")
        grown, self.initial_window = window - self.initial_window, window
        self.max_frame_bytes = max_frame_bytes
        unlimited = self.max_streams if self.received else frames.MAX_STREAM_ID
        self.max_streams = values.get(frames.MAX_CONCURRENT_STREAMS, unlimited)
        self.received = True
        return grown
