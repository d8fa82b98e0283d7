"""Where a peer is, and why it cannot be reached."""

import os
import socket
import ssl
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from fila.wire.tls_errors import explain


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[host]:port`. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 0xFFFF:
        raise ValueError(f"{address!r} is not an address of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether a numeric address is one of this machine's own: 127.0.0.0/8, ::1, or IPv4's mapped into IPv6."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def reason_of(error: Exception) -> str:
    """In the words of the operating system: asyncio's own differ from loop to loop."""
    if isinstance(error, ssl.SSLError):
        return explain(error)
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return str(error) or "no answer in time"
