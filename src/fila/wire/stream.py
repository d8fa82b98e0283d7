"""One stream of a connection: the messages that come, the bytes that wait to go, and both windows."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from fila.wire.headers import Headers
from fila.wire.room import Waiting
from fila.wire.status import StatusCode

PREFIX_BYTES = 5
"""Before each message of gRPC: whether it is compressed, and its length."""

EOF: Final = object()
"""What reading gives when the other side has said everything."""

Buffer = bytes | memoryview

_SMALL_PART: Final = 1024
"""Smaller pieces of a message are put together as they come: apart they would take many times their size."""


class MessageRefused(Exception):
    """A message that is not taken. Its stream ends with `code`."""

    def __init__(self, code: StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Stream:
    """State of a stream. Whoever has calls derives from it and is told through the methods at the end."""

    __slots__ = (
        "_have",
        "_need",
        "_parts",
        "_prefix",
        "announced",
        "deaf",
        "debt",
        "end_when_sent",
        "held",
        "id",
        "in_hand",
        "local_closed",
        "max_message_bytes",
        "messages",
        "outgoing",
        "promised",
        "recv_window",
        "remote_closed",
        "reserved",
        "send_window",
        "unsent",
        "waiting",
        "waits",
    )

    def __init__(self) -> None:
        self.id = 0
        #: Complete messages that nobody has read yet.
        self.messages: deque[bytes] = deque()
        #: What is to be sent as soon as the windows allow.
        self.outgoing: deque[memoryview] = deque()
        self.end_when_sent = False
        self.send_window = 0
        self.recv_window = 0
        #: Bytes received that the peer has not been given back as window.
        self.debt = 0
        #: What still comes is thrown away.
        self.deaf = False
        #: What is left of the content-length, if there was one.
        self.announced: int | None = None
        #: The largest message that is taken; None: as large as the connection takes any.
        self.max_message_bytes: int | None = None
        #: Of a server: bytes that are held for it, all in all; of them, those that are still to come, those of the
        #: request that is worked on, and those of a response that is being made.
        self.held = 0
        self.reserved = 0
        self.in_hand = 0
        self.promised = 0
        #: And those of responses of which something is not sent.
        self.unsent = 0
        self.waiting: Waiting | None = None
        #: It has something to send and no room for it.
        self.waits = False
        self.local_closed = False
        self.remote_closed = False
        self._prefix = b""
        self._need = -1  # length of the message that is coming, -1 until its prefix is complete
        self._have = 0
        self._parts: list[bytes | bytearray] = []

    @property
    def mid_message(self) -> bool:
        return self._need >= 0 or bool(self._prefix)

    @property
    def missing(self) -> int:
        """Bytes of the message that is coming; 0 when none is, or its length is not known yet."""
        return self._need - self._have if self._need >= 0 else 0

    def feed(self, piece: Buffer, max_message_bytes: int) -> bool:
        """Take what a DATA frame carries. Returns whether a message became complete. Raises MessageRefused."""
        size = len(piece)
        if self._need < 0 and not self._prefix and size >= PREFIX_BYTES and not piece[0]:
            length = int.from_bytes(piece[1:PREFIX_BYTES], "big")
            if length + PREFIX_BYTES == size and length <= max_message_bytes:  # nearly every small message
                self.messages.append(bytes(piece[PREFIX_BYTES:]))
                return True
        return self._feed_slowly(piece, max_message_bytes)

    def _feed_slowly(self, piece: Buffer, max_message_bytes: int) -> bool:
        at, size, complete = 0, len(piece), False
        while at < size or self._have == self._need:
            if self._need < 0:
                missing = PREFIX_BYTES - len(self._prefix)
                self._prefix += bytes(piece[at : at + missing])
                at += missing
                if len(self._prefix) < PREFIX_BYTES:
                    break
                self._need = _length_of(self._prefix, max_message_bytes)
            part = bytes(piece[at : at + self._need - self._have])
            at += len(part)
            if part:
                self._keep(part)
                self._have += len(part)
            if self._have == self._need:
                first = self._parts[0] if len(self._parts) == 1 else None
                self.messages.append(first if isinstance(first, bytes) else b"".join(self._parts))
                self._prefix, self._need, self._have, self._parts = b"", -1, 0, []
                complete = True
        return complete

    def _keep(self, part: bytes) -> None:
        last = self._parts[-1] if self._parts else None
        if len(part) >= _SMALL_PART:
            self._parts.append(part)
        elif isinstance(last, bytearray):
            last += part
        else:
            self._parts.append(bytearray(part))

    def take_outgoing(self, size: int) -> Iterator[memoryview]:
        """The next bytes to send, in pieces."""
        while size:
            piece = self.outgoing.popleft()
            if len(piece) > size:
                self.outgoing.appendleft(piece[size:])
                piece = piece[:size]
            size -= len(piece)
            yield piece

    def forget(self) -> None:
        """Nobody wants what is here, nor what still comes."""
        self.deaf = True
        self.messages.clear()
        self.outgoing.clear()
        self._parts.clear()

    def got_headers(self, headers: Headers, end: bool) -> None:
        """Headers came on a stream that is open: those of an answer, or trailers."""

    def readable(self) -> None:
        """There is a message, or the peer has ended its side."""

    def writable(self) -> None:
        """All that waited to be sent has been handed on, or there is room for what waited to be made."""

    def granted(self) -> None:
        """There is room for what it waited for, and something to be told to the peer."""

    def refused(self, error: MessageRefused) -> None:
        """The peer sent a message that is not taken."""

    def lost(self, code: int | None, text: str) -> None:
        """The peer reset the stream with `code`; None: the connection is gone."""


def _length_of(prefix: bytes, max_message_bytes: int) -> int:
    if prefix[0]:
        raise MessageRefused(StatusCode.UNIMPLEMENTED, "compressed messages are not taken")
    length = int.from_bytes(prefix[1:], "big")
    if length > max_message_bytes:
        text = f"the message has {length} bytes, {max_message_bytes} are allowed"
        raise MessageRefused(StatusCode.RESOURCE_EXHAUSTED, text)
    return length
