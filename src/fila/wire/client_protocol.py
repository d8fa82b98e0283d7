"""A client's connection on an event loop."""

from collections.abc import Callable
from typing import Protocol

from fila.wire.client_connection import ClientConnection
from fila.wire.protocol import Call, Http2Protocol


class Cancellable(Call, Protocol):
    """A call, as its connection knows it."""

    def cancel(self) -> bool: ...


class ClientProtocol(Http2Protocol):
    """One connection of a channel. `on_change` is called when another call may begin; `on_lost` when it is gone."""

    connection: ClientConnection
    calls: dict[int, "Cancellable"]  # type: ignore[assignment]

    def __init__(
        self,
        connection: ClientConnection,
        buffer: memoryview,
        keepalive: tuple[float, float],
        on_change: Callable[[], None],
        on_lost: Callable[["ClientProtocol"], None],
    ) -> None:
        super().__init__(connection, buffer, keepalive)
        self._on_change = on_change
        self._on_lost = on_lost
        #: What ended the connection, if it was not one of the two sides.
        self.lost_by: Exception | None = None

    def cancel_calls(self) -> None:
        for call in list(self.calls.values()):
            call.cancel()

    def call_ended(self, stream_id: int) -> None:
        self.calls.pop(stream_id, None)
        self._on_change()

    def _peer_changed(self) -> None:
        self._on_change()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_by = exc
        super().connection_lost(exc)
        self._on_lost(self)
