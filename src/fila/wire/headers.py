"""Header blocks (HPACK, RFC 7541).

What we write uses no compression state: the same headers are always the same bytes, so they can be kept. What we read
may use all of HPACK. A block of the form in which we write is read without the decoder and remembered, for it neither
uses nor changes the decoder's table.
"""

import logging
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from hpack import Decoder, HPACKError, OversizedHeaderListError

from fila.wire import frames
from fila.wire.frames import ConnectionFailed
from fila.wire.varint import write_varint

# At DEBUG it tells every header that it decodes: keys, metadata, texts of errors. An application that turns on the logs
# of all its libraries does not ask for that.
for _name in ("hpack.hpack", "hpack.table"):
    logging.getLogger(_name).disabled = True

Headers = tuple[tuple[bytes, bytes], ...]

#: So many times the headers that a call may have are still read, so that the connection outlives the call. A larger
#: block ends the connection.
READ_FACTOR: Final = 4
_LIST_FACTOR: Final = 16  # what they may grow to when they are decompressed

#: Entries of HPACK's static table that are whole headers of ours.
_STATIC = {
    (b":method", b"POST"): 0x83,
    (b":scheme", b"http"): 0x86,
    (b":scheme", b"https"): 0x87,
    (b":status", b"200"): 0x88,
}
_STATIC_BY_BYTE = {byte: entry for entry, byte in _STATIC.items()}

_LITERAL = 0x00  # a header whose name is spelled out and that no table keeps
_LONG = 0x7F  # a length from here on takes more than one byte; 0x80 and up are Huffman coded
_REMEMBERED_BYTES = 1024
_HEADER_OVERHEAD = 32  # as HPACK counts the size of a list of headers


_PSEUDO: Final = frozenset([b":method", b":scheme", b":path", b":authority"])
_NEEDED: Final = frozenset([b":method", b":scheme", b":path"])
_OF_CONNECTION: Final = frozenset([b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"])
_LENGTH_DIGITS: Final = 19
_UPPER: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Block(NamedTuple):
    """Headers that came, and what there is to know of them."""

    headers: Headers
    size: int
    """As HPACK counts it: the bytes of names and values, and 32 for each"""

    @property
    def begins_request(self) -> bool:
        """Whether there are pseudo-headers, which trailers do not have."""
        return bool(self.headers) and self.headers[0][0][:1] == b":"

    @property
    def fault(self) -> str:
        """Why no request may begin so (RFC 9113, 8.2 and 8.3); empty when it may."""
        return _fault_of(self.headers)


@lru_cache(maxsize=256)
def _fault_of(headers: Headers) -> str:
    seen: set[bytes] = set()
    regular = False
    for name, value in headers:
        if name[:1] == b":":
            if regular or name in seen or name not in _PSEUDO or (name == b":path" and not value):
                return "a pseudo-header is unknown, empty, repeated or after a regular header"
            seen.add(name)
            continue
        regular = True
        if fault := _fault_in(name, value):
            return fault
    return "" if seen >= _NEEDED else "a pseudo-header is missing"


def fault_of_trailers(headers: Headers) -> str:
    """Why no request may end so; empty when it may."""
    for name, value in headers:
        if name[:1] == b":":
            return "a pseudo-header in trailers"
        if fault := _fault_in(name, value):
            return fault
    return ""


def _fault_in(name: bytes, value: bytes) -> str:
    if not name or not _UPPER.isdisjoint(name):
        return "a header name is empty or has upper-case letters"
    if name in _OF_CONNECTION or (name == b"te" and value != b"trailers"):
        return "a header belongs to a connection of HTTP/1.1"
    if name == b"content-length" and not (value.isdigit() and len(value) <= _LENGTH_DIGITS):
        return "content-length is not a number"
    return ""


def encode(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    out = bytearray()
    for entry in headers:
        static = _STATIC.get(entry)
        if static is not None:
            out.append(static)
            continue
        out.append(_LITERAL)
        for text in entry:
            _write_length(out, len(text))
            out += text
    return bytes(out)


def _write_length(out: bytearray, length: int) -> None:
    if length < _LONG:
        out.append(length)
        return
    out.append(_LONG)
    out += write_varint(length - _LONG)


class HeaderDecoder:
    """Reads the header blocks of one connection, in their order."""

    def __init__(self, max_bytes: int) -> None:
        self._decoder = Decoder(max_header_list_size=max_bytes * _LIST_FACTOR)

    def decode(self, block: bytes) -> Block:
        """Raises ConnectionFailed: after a block that cannot be read, no later one can be."""
        if len(block) <= _REMEMBERED_BYTES:
            known = _read_plain(block)
            if known is not None:
                return known
        try:
            found = tuple([(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)])
        except OversizedHeaderListError as error:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "the decompressed headers are too large") from error
        except HPACKError as error:
            raise ConnectionFailed(
                frames.COMPRESSION_ERROR, f"the header block cannot be decoded (HPACK): {error}"
            ) from error
        return Block(found, _list_size(found))


@lru_cache(maxsize=256)
def _read_plain(block: bytes) -> Block | None:
    """The headers of a block in the form of `encode`, all texts short. None for any other."""
    headers: list[tuple[bytes, bytes]] = []
    at, end = 0, len(block)
    while at < end:
        if block[at] != _LITERAL:
            entry = _STATIC_BY_BYTE.get(block[at])
            if entry is None:
                return None
            headers.append(entry)
            at += 1
            continue
        texts: list[bytes] = []
        at += 1
        for _ in range(2):
            if at >= end or block[at] >= _LONG:
                return None
            stop = at + 1 + block[at]
            if stop > end:
                return None
            texts.append(block[at + 1 : stop])
            at = stop
        headers.append((texts[0], texts[1]))
    found = tuple(headers)
    return Block(found, _list_size(found))


def _list_size(headers: Headers) -> int:
    return sum(len(name) + len(value) + _HEADER_OVERHEAD for name, value in headers)
