"""TLS handshakes of a server: one step in a turn of the event loop, and not too many at a time.

A handshake holds about as much memory as a hundred idle connections and costs a signature, whoever asks for it. Peers
that begin many and end none only wait for each other: beyond `MOST` the oldest handshake ends, of the address that has
most of them.
"""

from collections.abc import Callable
from typing import Final

from fila.wire.time_slice import RoundRobin
from fila.wire.tls_layer import TlsLayer

MOST: Final = 1_000

OnFailed = Callable[[str, Exception], None]
"""Told of a handshake that failed: the address of the peer, and why."""


def ignore_failure(_address: str, _failure: Exception) -> None:
    """For servers that nobody watches."""


class Handshakes:
    """The handshakes under way, by address, oldest first."""

    def __init__(self, slices: RoundRobin, on_failed: OnFailed = ignore_failure, most: int = MOST) -> None:
        self._slices = slices
        self._on_failed = on_failed
        self._most = most
        self._by_address: dict[str, dict[TlsLayer, None]] = {}
        self._address_of: dict[TlsLayer, str] = {}

    def begin(self, layer: TlsLayer, address: str) -> None:
        self._by_address.setdefault(address, {})[layer] = None
        self._address_of[layer] = address
        if len(self._address_of) > self._most:
            most = max(self._by_address.values(), key=len)
            next(iter(most)).abort()

    def step(self, run: Callable[[], bool]) -> None:
        """Have the next step of a handshake taken when it is its turn."""
        self._slices.add(run)

    def end(self, layer: TlsLayer, failure: Exception | None) -> None:
        address = self._address_of.pop(layer, None)
        if address is None:
            return
        same = self._by_address[address]
        del same[layer]
        if not same:
            del self._by_address[address]
        if failure is not None:
            self._on_failed(address, failure)
