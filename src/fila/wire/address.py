"""Where a peer is, and why it cannot be reached."""

import os
import socket


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[host]:port`. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 0xFFFF:
        raise ValueError(f"{address!r} is not an address of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def reason_of(error: Exception) -> str:
    """In the words of the operating system: asyncio's own differ from loop to loop."""
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return str(error) or "no answer in time"
