"""Frames that concern a connection and no stream: PING, and the acknowledgements of SETTINGS."""

from typing import Final

from fila.wire import frames
from fila.wire.flood import FloodGuard
from fila.wire.frames import ConnectionFailed
from fila.wire.stream import Buffer

CONNECTION_FRAMES: Final = {frames.SETTINGS: "SETTINGS", frames.PING: "PING", frames.GOAWAY: "GOAWAY"}


class Control:
    """Which PINGs and SETTINGS of ours were answered."""

    def __init__(self, floods: FloodGuard, out: list[Buffer]) -> None:
        self._floods = floods
        self._out = out
        self._pings = 0
        #: Answers to our PINGs.
        self.ping_acks = 0
        self._settings_acknowledged = False

    def ping(self) -> None:
        self._pings += 1
        self._out.append(frames.frame(frames.PING, 0, 0, bytes(frames.PING_BYTES)))

    def on_ping(self, flags: int, payload: bytes, *, free: bool) -> None:
        """Answer a PING. One that is not `free` counts as flood. Raises ConnectionFailed."""
        if len(payload) != frames.PING_BYTES:
            raise ConnectionFailed(frames.FRAME_SIZE_ERROR, "PING of a wrong length")
        if flags & frames.ACK:
            self._on_ping_ack()
            return
        if not free:
            self._floods.count_control("PINGs")
        self._out.append(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_ping_ack(self) -> None:
        if self.ping_acks >= self._pings:
            self._floods.count_control("answers to no PING")
        else:
            self.ping_acks += 1

    def on_settings_ack(self, payload: bytes) -> None:
        """Raises ConnectionFailed."""
        if payload:
            raise ConnectionFailed(frames.FRAME_SIZE_ERROR, "an acknowledgement of SETTINGS with a payload")
        if self._settings_acknowledged:
            self._floods.count_control("acknowledgements of SETTINGS")
        self._settings_acknowledged = True
