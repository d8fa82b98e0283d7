"""One stream of a connection: the messages that come, the bytes that wait to go, and both flow-control windows."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from fila.wire.status import StatusCode
from fila.wire.stream_memory import StreamMemory

PREFIX_BYTES = 5
"""Before each message of gRPC: whether it is compressed, and its length."""

EOF: Final = object()
"""What reading gives when the other side has said everything."""

Buffer = bytes | memoryview

_SMALL_PART: Final = 1024
"""Smaller pieces of a message are put together as they come: apart they would take many times their size."""


class MessageRefused(Exception):
    """A message that is not accepted. Its stream ends with `code`."""

    def __init__(self, code: StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class MessageTooLarge(MessageRefused):
    """It is larger than this side takes."""


class Stream:
    """State of a stream. The connection changes it; calls read it, and say that they do not want more (`discard`)."""

    __slots__ = (
        "_have",
        "_need",
        "_parts",
        "_prefix",
        "awaits_window",
        "closed",
        "content_left",
        "discarding",
        "end_when_sent",
        "id",
        "in_transit",
        "local_closed",
        "max_message_bytes",
        "memory",
        "messages",
        "outgoing",
        "pulled",
        "recv_window",
        "remote_closed",
        "send_window",
        "unreturned",
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
        #: Bytes received that were not given back to the peer by WINDOW_UPDATE.
        self.unreturned = 0
        #: Bytes of the DATA frame that is coming: counted in the window, and not here yet.
        self.in_transit = 0
        #: What still comes is thrown away.
        self.discarding = False
        #: The reader says when it takes a message (`ClientCall.pull`): no more than a window of it comes before.
        self.pulled = False
        #: What is left of the content-length, if there was one.
        self.content_left: int | None = None
        #: The largest message that is accepted; None: as large as the connection accepts any.
        self.max_message_bytes: int | None = None
        #: Of a server that counts what it holds.
        self.memory: StreamMemory | None = None
        #: It has a response to make and no send window for it.
        self.awaits_window = False
        self.local_closed = False
        self.remote_closed = False
        #: Both sides have ended, or one has reset it: nothing can be sent any more.
        self.closed = False
        self._prefix = b""
        self._need = -1  # length of the message that is coming, -1 until its prefix is complete
        self._have = 0
        self._parts: list[bytes | bytearray] = []

    @property
    def mid_message(self) -> bool:
        return self._need >= 0 or bool(self._prefix)

    @property
    def coming(self) -> int:
        """The size of the message of which a part is here; 0 when there is none, or its length is not known yet."""
        return max(0, self._need)

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

    def stop_receiving(self) -> None:
        """Throw away what still comes. Messages that are here can be read."""
        self.discarding = True
        self._parts.clear()

    def discard(self) -> None:
        """Throw away what is here, what waits to be sent, and what still comes."""
        self.stop_receiving()
        self.messages.clear()
        self.outgoing.clear()


def _length_of(prefix: bytes, max_message_bytes: int) -> int:
    if prefix[0]:
        raise MessageRefused(StatusCode.UNIMPLEMENTED, "compressed messages are not supported")
    length = int.from_bytes(prefix[1:], "big")
    if length > max_message_bytes:
        text = f"the message has {length} bytes, {max_message_bytes} are allowed"
        raise MessageTooLarge(StatusCode.RESOURCE_EXHAUSTED, text)
    return length
