"""Header blocks (HPACK, RFC 7541).

What we write uses no compression state: the same headers are always the same bytes, so they can be kept. What we read
may use all of HPACK. A block of the form in which we write is read without the decoder and remembered, for it neither
uses nor changes the decoder's table.
"""

from collections.abc import Iterable
from functools import lru_cache

from hpack import Decoder, HPACKError

from fila.wire import frames
from fila.wire.frames import ConnectionFailed

Headers = tuple[tuple[bytes, bytes], ...]

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
    length -= _LONG
    while length > 0x7F:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    out.append(length)


class HeaderDecoder:
    """Reads the header blocks of one connection, in their order."""

    def __init__(self, max_bytes: int) -> None:
        self._decoder = Decoder(max_header_list_size=max_bytes)
        self._max_bytes = max_bytes

    def decode(self, block: bytes) -> Headers:
        """Raises ConnectionFailed: after a block that cannot be read, no later one can be."""
        if len(block) <= _REMEMBERED_BYTES:
            known = _read_plain(block)
            if known is not None:
                if _list_size(known) > self._max_bytes:
                    raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many headers")
                return known
        try:
            return tuple([(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)])
        except HPACKError as error:
            raise ConnectionFailed(frames.COMPRESSION_ERROR, f"headers cannot be read: {error}") from error


@lru_cache(maxsize=256)
def _read_plain(block: bytes) -> Headers | None:
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
    return tuple(headers)


def _list_size(headers: Headers) -> int:
    return sum(len(name) + len(value) + _HEADER_OVERHEAD for name, value in headers)
