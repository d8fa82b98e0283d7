"""One HTTP/2 connection as a state machine: bytes in, bytes out, no I/O.

Rules of this file:
- `receive` takes what arrived and the time; what is to be written gathers in `out`. Streams are told what happened to
  them by their methods, in the middle of `receive`.
- What the peer gets wrong ends the whole connection with GOAWAY (`closed`). No gRPC library does any of it.
- **A peer cannot make us hold much.** It has a window for each stream and gets room back only for what was read. For a
  message that is larger than that, a client gives its server room as it comes; a server gives its client room for all
  of it, when the whole server has that room (`room`), and counts every byte that it holds.
- **A peer cannot keep us busy for nothing.** What costs it little and us something has a budget: pings that do not
  follow what we sent, settings, resets, empty frames. Header blocks are limited in bytes and in frames.
- A DATA frame is not kept until it is complete: its bytes go to their message as they come.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from fila.wire import frames
from fila.wire.budget import Budget
from fila.wire.frames import ConnectionFailed
from fila.wire.headers import READ_FACTOR, Block, HeaderDecoder, Headers, fault_of_trailers
from fila.wire.lane import CALL_UNITS
from fila.wire.room import Account, Waiting
from fila.wire.status import StatusCode
from fila.wire.stream import PREFIX_BYTES, Buffer, MessageRefused, Stream

_MAX_CONTINUATIONS: Final = 16
_MAX_CONTROL_BYTES: Final = frames.MIN_FRAME_BYTES
_MAX_SETTINGS: Final = 64
_HEADER_BYTES_A_UNIT: Final = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What this side allows the other."""

    max_message_bytes: int = 16 << 20
    max_streams: int = 1000
    #: All headers of a call together, compressed or not.
    max_header_bytes: int = 16 << 10
    stream_window: int = 4 << 20
    connection_window: int = 16 << 20
    #: Larger frames are fewer frames.
    max_frame_bytes: int = 1 << 20


#: What an open call is counted as, besides its headers and messages.
CALL_BYTES: Final = 4 << 10

#: What is written in one go, before others have their turn; a single message may be larger.
MAX_OUT_BYTES: Final = 1 << 20


class Connection:
    """Both roles. A client opens streams; a server makes one for each request by `accept`."""

    def __init__(self, limits: Limits, accept: Callable[[Headers], Stream] | None = None) -> None:
        self._limits = limits
        self._accept = accept
        self.streams: dict[int, Stream] = {}
        self.out: list[Buffer] = []
        #: The transport takes nothing at the moment.
        self.paused = False
        #: Nothing is received or sent any more: close when `out` is written.
        self.closed = False
        self.failure: ConnectionFailed | None = None
        #: No new streams: the peer is going away, or we are.
        self.draining = False
        self.peer_max_streams = 100 if accept is None else 0
        self.ready = False
        self.pongs = 0
        #: Work since the owner last set it to 0, how much of it is done in one go, and whether more is here than that:
        #: then `receive` goes on with it, also without data.
        self.units = 0
        self.most_units = 1 << 62
        self.behind = False
        #: Of a server: what is held for this connection.
        self.account: Account | None = None
        #: Bytes of messages in `out`, and whether something waits for these to be written.
        self.out_bytes = 0
        self.hungry = False
        #: Called when there is something to write although nothing was received or sent.
        self.on_news: Callable[[], None] = _nothing
        #: Bytes that were written and that the peer has not read, and called when it is not waited for any longer.
        self.unread = 0
        self.on_given_up: Callable[[], None] = _nothing
        #: For a client: called after the peer has changed what may be opened, and when a stream has ended.
        self.on_change: Callable[[], None] = _nothing

        self._headers = HeaderDecoder(limits.max_header_bytes)
        longest_block = limits.max_header_bytes * READ_FACTOR + _MAX_CONTROL_BYTES  # beyond it, it says why
        self._longest = {
            frames.DATA: limits.max_frame_bytes,
            frames.HEADERS: min(longest_block, limits.max_frame_bytes),
            frames.CONTINUATION: min(longest_block, limits.max_frame_bytes),
        }
        self._rest = bytearray()
        self._want = len(frames.PREFACE)
        self._greeted = accept is None
        self._data: Stream | None = None
        self._data_left = 0
        self._data_ends = False
        self._block: tuple[int, int, bytearray] | None = None
        self._continuations = 0
        #: Streams with something to send and a window of their own for it, in turn.
        self._blocked: dict[Stream, None] = {}
        self._pump = False
        self._last_id = 0
        self._next_id = 1
        self._send_window = frames.DEFAULT_WINDOW
        self._recv_window = limits.connection_window
        self._debt = 0
        self._peer_stream_window = frames.DEFAULT_WINDOW
        self._peer_max_frame = frames.MIN_FRAME_BYTES
        self._now = 0.0
        self._pings = 0
        self._acknowledged = False
        # Pings that probe bandwidth follow what we send, and are free; resets are cancelled calls.
        self._spoke = False
        self._chatter = Budget(200, 50)
        self._resets = Budget(2000, 500)
        self._given_way = Budget(200, 20)
        self._greet()

    def _greet(self) -> None:
        limits = self._limits
        settings = {
            frames.INITIAL_WINDOW_SIZE: limits.stream_window,
            frames.MAX_FRAME_SIZE: limits.max_frame_bytes,
            frames.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
        }
        if self._accept is None:
            self.out.append(frames.PREFACE)
            settings[frames.ENABLE_PUSH] = 0
        else:
            settings[frames.MAX_CONCURRENT_STREAMS] = limits.max_streams
        self.out.append(frames.settings(settings))
        self.out.append(frames.window_update(0, limits.connection_window - frames.DEFAULT_WINDOW))

    # What arrives.

    def receive(self, data: Buffer, now: float) -> None:
        """Take what arrived. Nothing of `data` is kept: its buffer may be used again."""
        if self.closed:
            return
        self._now = now
        self.behind = False
        try:
            if self._rest:
                self._rest += data
                if len(self._rest) < self._want:
                    return
                data = bytes(self._rest)
                self._rest.clear()
            self._read(data)
            if self._pump:
                self.pump()
        except ConnectionFailed as failure:
            self.fail(failure)

    def _read(self, data: Buffer) -> None:
        at, end = 0, len(data)
        if not self._greeted:
            if end < len(frames.PREFACE) or data[: len(frames.PREFACE)] != frames.PREFACE:
                if not frames.PREFACE.startswith(bytes(data[: len(frames.PREFACE)])):
                    raise ConnectionFailed(frames.PROTOCOL_ERROR, "this is not HTTP/2")
                self._keep(data, 0, len(frames.PREFACE))
                return
            self._greeted, at = True, len(frames.PREFACE)
        if self._data_left:
            at = self._read_data(data, 0, end)
        while end - at >= frames.HEADER_BYTES:
            self.units += 1
            if self.units > self.most_units:
                self._keep(data, at, 0)
                self.behind = True
                return
            word = int.from_bytes(data[at : at + frames.HEADER_BYTES], "big")
            length, kind, flags, stream_id = (
                word >> 48,
                word >> 40 & 0xFF,
                word >> 32 & 0xFF,
                word & frames.MAX_STREAM_ID,
            )
            if kind == frames.DATA and not flags & frames.PADDED:
                self._begin_data(stream_id, flags, length, length)
                at = self._read_data(data, at + frames.HEADER_BYTES, end)
                continue
            if length > self._longest.get(kind, _MAX_CONTROL_BYTES):
                raise ConnectionFailed(frames.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
            stop = at + frames.HEADER_BYTES + length
            if stop > end:
                break
            self._read_frame(kind, flags, stream_id, bytes(data[at + frames.HEADER_BYTES : stop]))
            at = stop
        if at < end:
            complete = end - at >= frames.HEADER_BYTES
            length = int.from_bytes(data[at : at + 3], "big") if complete else 0
            self._keep(data, at, frames.HEADER_BYTES + length)

    def _keep(self, data: Buffer, at: int, want: int) -> None:
        self._rest += data[at:]
        self._want = want

    def _begin_data(self, stream_id: int, flags: int, length: int, counted: int) -> None:
        """The header of a DATA frame, of which so many bytes count in the windows."""
        if self._block is not None or not self.ready or not stream_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "data where none may be")
        if counted > self._limits.max_frame_bytes:
            raise ConnectionFailed(frames.FRAME_SIZE_ERROR, f"a frame of {counted} bytes")
        self._recv_window -= counted
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
        elif stream.remote_closed:
            raise ConnectionFailed(frames.STREAM_CLOSED, "data after the end of its stream")
        else:
            stream.recv_window -= counted
        if self._recv_window < 0 or (stream is not None and stream.recv_window < 0):
            raise ConnectionFailed(frames.FLOW_CONTROL_ERROR, "more data than there was window for")
        ends = bool(flags & frames.END_STREAM)
        if not length and not ends:
            self._spend(self._chatter, "empty frames")
        if stream is not None and stream.announced is not None:
            stream.announced -= length
        self._data, self._data_left, self._data_ends = stream, length, ends
        padding = counted - length
        if padding:
            self._owe(stream, padding)
            self._pay(stream, padding)

    def _read_data(self, data: Buffer, at: int, end: int) -> int:
        """As much of the DATA frame as is here. Returns where it stopped."""
        stop = min(end, at + self._data_left)
        size, stream = stop - at, self._data
        self._data_left -= size
        if stream is not None and stream.id not in self.streams:
            stream = None  # it has ended since the frame began
        if size:
            if stream is None or stream.deaf:
                self._owe(stream, size)
                self._pay(stream, size)
            else:
                self._feed(stream, data if size == len(data) else data[at:stop], size)
        if not self._data_left:
            self._data = None
            if self._data_ends and stream is not None and stream.id in self.streams:
                self._end_remote(stream)
        return stop

    def _feed(self, stream: Stream, piece: Buffer, size: int) -> None:
        idle = not stream.messages
        self._owe(stream, size)
        account = self.account
        if account is not None:
            self._hold_coming(account, stream, size)
            self._pay_connection(size)
        try:
            complete = stream.feed(piece, stream.max_message_bytes or self._limits.max_message_bytes)
        except MessageRefused as error:
            if account is None:
                self._pay_connection(stream.debt)
            self._pay_stream(stream, stream.debt)
            stream.refused(error)
            stream.forget()
            return
        if complete:
            stream.readable()
        elif idle:
            self._make_way(stream)
        if account is not None and account.over:
            account.room.relieve(account)

    def _end_remote(self, stream: Stream) -> None:
        if stream.announced:
            self._refuse_malformed(stream, "content-length is not the length of the content")
            return
        stream.remote_closed = True
        if stream.local_closed:
            self._drop(stream)
        if stream.mid_message and not stream.deaf:
            stream.refused(MessageRefused(StatusCode.INTERNAL, "the stream ended inside a message"))
            stream.forget()
        stream.readable()

    def _read_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if self._block is not None and kind != frames.CONTINUATION:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a frame inside a block of headers")
        if not self.ready and kind != frames.SETTINGS:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "the first frame must be SETTINGS")
        if kind == frames.DATA:
            content = frames.unpadded(flags, payload)
            self._begin_data(stream_id, flags, len(content), len(payload))
            self._read_data(content, 0, len(content))
        elif kind == frames.HEADERS:
            content = frames.unpadded(flags, payload)
            self._read_block(stream_id, flags, content[5:] if flags & frames.HAS_PRIORITY else content)
        elif kind == frames.CONTINUATION:
            self._read_continuation(stream_id, flags, payload)
        elif kind == frames.WINDOW_UPDATE:
            self._read_window_update(stream_id, payload)
        elif kind == frames.RST_STREAM:
            self._read_reset(stream_id, payload)
        elif kind == frames.SETTINGS:
            self._read_settings(stream_id, flags, payload)
        elif kind == frames.PING:
            self._read_ping(stream_id, flags, payload)
        elif kind == frames.GOAWAY:
            self._read_goaway(stream_id, payload)
        elif kind == frames.PUSH_PROMISE:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "nothing may be pushed")
        else:
            self._spend(self._chatter, "frames without effect")

    def _read_block(self, stream_id: int, flags: int, block: bytes) -> None:
        if not stream_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "headers without a stream")
        if len(block) > self._limits.max_header_bytes * READ_FACTOR:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many headers")
        if flags & frames.END_HEADERS:
            self._read_headers(stream_id, flags, block)
        else:
            self._block = (stream_id, flags, bytearray(block))
            self._continuations = 0

    def _read_continuation(self, stream_id: int, flags: int, payload: bytes) -> None:
        if self._block is None or self._block[0] != stream_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "headers that continue nothing")
        _, first_flags, block = self._block
        block += payload
        self._continuations += 1
        if len(block) > self._limits.max_header_bytes * READ_FACTOR or self._continuations > _MAX_CONTINUATIONS:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many headers")
        if flags & frames.END_HEADERS:
            self._block = None
            self._read_headers(stream_id, first_flags, bytes(block))

    def _read_headers(self, stream_id: int, flags: int, block: bytes) -> None:
        came = self._headers.decode(block)  # also those that nobody wants: they belong to the state of the decoder
        ends = bool(flags & frames.END_STREAM)
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._read_more_headers(stream, came, ends)
        elif self._accept is None or stream_id <= self._last_id:
            self._check_not_idle(stream_id)
        else:
            self._accept_stream(stream_id, came, ends)

    def _read_more_headers(self, stream: Stream, came: Block, ends: bool) -> None:
        """Those of an answer, or trailers."""
        if stream.remote_closed or (self._accept is not None and not ends):
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "headers in the middle of a stream")
        if self._accept is not None and (fault := fault_of_trailers(came.headers)):
            self._refuse_malformed(stream, fault)
            return
        if came.size > self._limits.max_header_bytes:
            stream.refused(self._too_many(came))
            stream.forget()
        else:
            stream.got_headers(came.headers, ends)
        if ends and stream.id in self.streams:
            self._end_remote(stream)

    def _accept_stream(self, stream_id: int, came: Block, ends: bool) -> None:
        assert self._accept is not None
        if not stream_id % 2:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a stream with a number of ours")
        self._last_id = stream_id
        self.units += CALL_UNITS + came.size // _HEADER_BYTES_A_UNIT
        refused = self.draining or len(self.streams) >= self._limits.max_streams
        if refused or came.fault:
            self._spend(self._resets, "streams that are refused")
            code = frames.REFUSED_STREAM if refused else frames.PROTOCOL_ERROR
            self.out.append(frames.rst_stream(stream_id, code))
            return
        if came.size > self._limits.max_header_bytes:
            self._spend(self._resets, "headers beyond the limit")
            stream = self._accept(())
            self._add(stream, stream_id)
            stream.refused(self._too_many(came))
            return
        stream = self._accept(came.headers)
        if self.account is not None:
            self._hold(stream, CALL_BYTES + came.size)
        stream.announced = next((int(value) for name, value in came.headers if name == b"content-length"), None)
        self._add(stream, stream_id)
        if ends:
            self._end_remote(stream)
        if self.account is not None and self.account.over:
            self.account.room.relieve(self.account)

    def _too_many(self, came: Block) -> MessageRefused:
        text = f"the metadata has {came.size} bytes, {self._limits.max_header_bytes} are allowed"
        return MessageRefused(StatusCode.RESOURCE_EXHAUSTED, text)

    def _refuse_malformed(self, stream: Stream, fault: str) -> None:
        self._spend(self._resets, "malformed requests")
        self.reset(stream, frames.PROTOCOL_ERROR)
        stream.lost(frames.PROTOCOL_ERROR, fault)

    def _add(self, stream: Stream, stream_id: int) -> None:
        stream.id = stream_id
        stream.send_window = self._peer_stream_window
        stream.recv_window = self._limits.stream_window
        self.streams[stream_id] = stream

    def _read_window_update(self, stream_id: int, payload: bytes) -> None:
        size = int.from_bytes(payload, "big") & frames.MAX_WINDOW
        if len(payload) != 4:
            raise ConnectionFailed(frames.FRAME_SIZE_ERROR, "a window of a wrong length")
        if not size:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a window that does not grow")
        self._pump = True
        if not stream_id:
            self._send_window = _grown(self._send_window, size)
        elif (stream := self.streams.get(stream_id)) is not None:
            stream.send_window = _grown(stream.send_window, size)
            self._unblock(stream)
        else:
            self._check_not_idle(stream_id)

    def _read_reset(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFailed(frames.FRAME_SIZE_ERROR, "a reset of a wrong length")
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
        if self._accept is not None:
            self._spend(self._resets, "resets")
        if stream is not None:
            self._drop(stream)
            stream.lost(int.from_bytes(payload, "big"), "")

    def _read_settings(self, stream_id: int, flags: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            if payload:
                raise ConnectionFailed(frames.FRAME_SIZE_ERROR, "an acknowledgement that says something")
            if self._acknowledged:
                self._spend(self._chatter, "acknowledgements of nothing")
            self._acknowledged = True
            return
        self._spend(self._chatter, "settings")
        values = frames.read_settings(payload)
        if len(values) > _MAX_SETTINGS:
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many settings")
        window = values.get(frames.INITIAL_WINDOW_SIZE, self._peer_stream_window)
        if window > frames.MAX_WINDOW:
            raise ConnectionFailed(frames.FLOW_CONTROL_ERROR, "a window that is too large")
        max_frame = values.get(frames.MAX_FRAME_SIZE, self._peer_max_frame)
        if not frames.MIN_FRAME_BYTES <= max_frame <= frames.MAX_FRAME_BYTES:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a frame size that cannot be")
        more, self._peer_stream_window = window - self._peer_stream_window, window
        if more:
            for stream in self.streams.values():
                stream.send_window = _grown(stream.send_window, more)
                self._unblock(stream)
        self._peer_max_frame = max_frame
        self.peer_max_streams = values.get(
            frames.MAX_CONCURRENT_STREAMS, self.peer_max_streams if self.ready else frames.MAX_STREAM_ID
        )
        self.ready = self._pump = True
        self.out.append(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self.on_change()

    def _read_ping(self, stream_id: int, flags: int, payload: bytes) -> None:
        if stream_id or len(payload) != 8:
            code = frames.PROTOCOL_ERROR if stream_id else frames.FRAME_SIZE_ERROR
            raise ConnectionFailed(code, "a ping that is none")
        if flags & frames.ACK:
            if self.pongs >= self._pings:
                self._spend(self._chatter, "answers to no ping")
            else:
                self.pongs += 1
            return
        if not self._spoke:
            self._spend(self._chatter, "pings")
        self._spoke = False
        self.out.append(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _read_goaway(self, stream_id: int, payload: bytes) -> None:
        if stream_id or len(payload) < 8:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a farewell that is none")
        self._spend(self._chatter, "farewells")
        self.draining = True
        last_id = int.from_bytes(payload[:4], "big") & frames.MAX_STREAM_ID
        if self._accept is None:
            for stream in [each for each in self.streams.values() if each.id > last_id]:
                self._drop(stream)
                stream.lost(None, "the server is going away")
        self.on_change()

    def _check_not_idle(self, stream_id: int) -> None:
        """What comes on a stream that has ended is late and harmless; what comes on one that never was is not."""
        highest = self._next_id - 1 if self._accept is None else self._last_id
        if not stream_id or stream_id > highest:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a frame on a stream that was not opened")

    def _spend(self, budget: Budget, what: str) -> None:
        if not budget.spend(self._now):
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, f"too many {what}")

    # What the peer may send.

    def _owe(self, stream: Stream | None, size: int) -> None:
        if stream is not None:
            stream.debt += size

    def _pay(self, stream: Stream | None, size: int) -> None:
        """Give room back, to be told to the peer when it is worth a frame."""
        self._pay_stream(stream, size)
        self._pay_connection(size)

    def _pay_stream(self, stream: Stream | None, size: int) -> None:
        if stream is not None:
            stream.debt -= size
            window = self._limits.stream_window
            coming = self._data_left if self._data is stream else 0  # counted, and not here yet
            room = window - stream.recv_window - stream.debt - coming
            if room * 2 >= window and not stream.remote_closed:
                stream.recv_window += room
                self.out.append(frames.window_update(stream.id, room))

    def _pay_connection(self, size: int) -> None:
        self._debt += size
        if self._debt * 4 >= self._limits.connection_window:
            self._recv_window += self._debt
            self.out.append(frames.window_update(0, self._debt))
            self._debt = 0

    def read(self, stream: Stream) -> bytes | None:
        """The next message of a stream, if one is here."""
        if not stream.messages:
            return None
        message = stream.messages.popleft()
        if stream.id not in self.streams:
            return message
        if self.account is not None:
            self.release(stream)
            stream.in_hand = size = len(message) + PREFIX_BYTES
            self._pay_stream(stream, min(stream.debt, size))
            if not stream.messages:
                self._make_way(stream)
        elif stream.debt:
            # After the last one, all is due: the rest is a part of a message that may be larger than the window.
            self._pay(stream, min(stream.debt, len(message) + PREFIX_BYTES) if stream.messages else stream.debt)
        return message

    # What is held for the peer of a server.

    def _hold(self, stream: Stream, size: int) -> None:
        assert self.account is not None
        stream.held += size
        self.account.take(size)

    def _free(self, stream: Stream, size: int) -> None:
        if size and self.account is not None:
            stream.held -= size
            self.account.give(size)

    def _hold_coming(self, account: Account, stream: Stream, size: int) -> None:
        """Bytes that came, for some of which there was room already."""
        if stream.reserved:
            known = min(stream.reserved, size)
            stream.reserved -= known
            size -= known
            if not stream.reserved:
                account.reservations -= 1
        if size:
            self._hold(stream, size)

    def release(self, stream: Stream) -> None:
        """The request that was read last is answered."""
        self._free(stream, stream.in_hand)
        stream.in_hand = 0

    def _make_way(self, stream: Stream) -> None:
        """Room for the message that is coming: it may be larger than the window."""
        account = self.account
        if account is None:
            self._pay(stream, stream.debt)
            return
        coming = self._data_left if self._data is stream else 0
        if stream.waiting is None and not stream.reserved and stream.missing > stream.recv_window + coming:
            stream.waiting = Waiting(account, stream.missing, self._now, lambda: self._let_come(stream, told=True))
            if account.room.reserve(stream.waiting):
                self._let_come(stream)

    def _let_come(self, stream: Stream, *, told: bool = False) -> None:
        account, waiting = self.account, stream.waiting
        assert account is not None
        assert waiting is not None
        stream.waiting = None
        stream.reserved = min(waiting.size, stream.missing)
        stream.held += waiting.size
        self._free(stream, waiting.size - stream.reserved)
        if not stream.reserved:
            account.reservations -= 1
            return
        coming = self._data_left if self._data is stream else 0
        more = stream.missing - stream.recv_window - coming
        if more > 0:
            stream.recv_window += more
            self.out.append(frames.window_update(stream.id, more))
        if told:
            stream.granted()

    def promise(self, stream: Stream, size: int) -> bool:
        """Room for a response that is going to be made. If there is none, `granted` is called when there is."""
        if self.account is None or stream.promised or stream.id not in self.streams:
            return True
        if stream.waiting is not None:
            return False
        stream.waiting = Waiting(self.account, size, self._now, lambda: self._promised(stream, told=True))
        if not self.account.room.reserve(stream.waiting):
            return False
        self._promised(stream)
        return True

    def _promised(self, stream: Stream, *, told: bool = False) -> None:
        assert stream.waiting is not None
        stream.promised, stream.waiting = stream.waiting.size, None
        stream.held += stream.promised
        if told:
            stream.granted()

    def keep_promise(self, stream: Stream) -> None:
        """The response is there, or will not be."""
        if stream.promised and self.account is not None:
            self.account.reservations -= 1
            self._free(stream, stream.promised)
            stream.promised = 0

    def give_way(self) -> bool:
        """End the call that holds most, or the connection when what it does not read is more than that."""
        stream = max(self.streams.values(), key=attrgetter("held"), default=None)
        if self.closed:
            return False
        if self.unread > (0 if stream is None else stream.held):
            self.close("the peer does not read")
            self.on_given_up()
            return True
        if stream is None or not stream.held:
            return False
        if not self._given_way.spend(self._now):
            self.fail(ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many bytes are held for this connection"))
            self.on_news()
            return True
        stream.refused(MessageRefused(StatusCode.RESOURCE_EXHAUSTED, "too many bytes are held for this peer"))
        self.reset(stream, frames.ENHANCE_YOUR_CALM)
        stream.forget()
        return True

    def can_send(self, stream: Stream) -> bool:
        """Whether a response would be on its way at once, at least in part. If not, `writable` says when it may."""
        if (
            self._send_window > 0
            and stream.send_window > 0
            and self.out_bytes < MAX_OUT_BYTES
            and not (self.paused or stream.outgoing)
        ):
            return True
        stream.waits = True
        self.hungry = self.hungry or self.out_bytes >= MAX_OUT_BYTES
        if stream.send_window > 0:
            self._blocked[stream] = None
        return False

    # What is sent.

    def open(self, stream: Stream, block: bytes) -> None:
        """Begin a call. Look at `ready`, `draining` and `peer_max_streams` before."""
        self._add(stream, self._next_id)
        self._next_id += 2
        if self._next_id > frames.MAX_STREAM_ID:
            self.draining = True  # all numbers are used up
        self.send_headers(stream, block)

    def send_headers(self, stream: Stream, block: bytes, *, end: bool = False) -> None:
        """Headers, or trailers with `end`. They must not be sent while a message waits."""
        self._spoke = True
        most = frames.MIN_FRAME_BYTES  # what every peer takes
        first, rest = block[:most], block[most:]
        flags = (frames.END_STREAM if end else 0) | (0 if rest else frames.END_HEADERS)
        self.out.append(frames.frame(frames.HEADERS, flags, stream.id, first))
        while rest:
            first, rest = rest[:most], rest[most:]
            flags = 0 if rest else frames.END_HEADERS
            self.out.append(frames.frame(frames.CONTINUATION, flags, stream.id, first))
        if end:
            self._end_local(stream)

    def send_message(self, stream: Stream, message: bytes, *, end: bool = False) -> bool:
        """Whether all of it is on its way. If not, the rest follows as the peer allows, and `writable` says so."""
        length = len(message)
        size = length + PREFIX_BYTES
        if (
            size <= self._send_window
            and size <= stream.send_window
            and size <= self._peer_max_frame
            and not (self.paused or stream.outgoing)
        ):
            self._spoke = True
            self._send_window -= size
            stream.send_window -= size
            self.out_bytes += size
            flags = frames.END_STREAM if end else 0
            self.out.append(frames.header(size, frames.DATA, flags, stream.id) + b"\0" + length.to_bytes(4, "big"))
            self.out.append(message)
            if end:
                self._end_local(stream)
            return True
        stream.outgoing.append(memoryview(b"\0" + length.to_bytes(4, "big")))
        if message:
            stream.outgoing.append(memoryview(message))
        stream.end_when_sent = end
        self._blocked[stream] = None
        account = self.account
        if account is not None:
            stream.unsent += size
            self._hold(stream, size)
        self.pump()
        if account is not None and account.over:
            account.room.relieve(account)
        return not stream.outgoing

    def end(self, stream: Stream) -> None:
        """Nothing more is sent on the stream."""
        if stream.outgoing:
            stream.end_when_sent = True
        elif not stream.local_closed:
            self.out.append(frames.header(0, frames.DATA, frames.END_STREAM, stream.id))
            self._end_local(stream)

    def pump(self) -> None:
        """Send what waits, as far as the windows allow, one stream after the other.

        A stream whose own window is used up is not looked at again before that grows.
        """
        self._pump = False
        for stream in list(self._blocked):
            if self.paused or self._send_window <= 0:
                return
            if stream not in self._blocked:
                continue  # one that was told something has looked after it
            if self.account is not None and self.out_bytes >= MAX_OUT_BYTES:
                self.hungry = True
                return
            if not stream.outgoing:
                del self._blocked[stream]
                if stream.waits and stream.send_window > 0:
                    stream.waits = False
                    stream.writable()
                continue
            sent = self._send_waiting(stream)
            if not stream.outgoing:
                del self._blocked[stream]
                if stream.end_when_sent:
                    self._end_local(stream)
                stream.writable()
            elif stream.send_window <= 0:
                del self._blocked[stream]
            elif sent:  # the next in turn is another
                del self._blocked[stream]
                self._blocked[stream] = None

    def _unblock(self, stream: Stream) -> None:
        if stream.outgoing or stream.waits:
            self._blocked[stream] = None

    def _send_waiting(self, stream: Stream) -> bool:
        waiting = sum(map(len, stream.outgoing))
        room = min(self._send_window, stream.send_window, waiting)
        if self.account is not None and room > MAX_OUT_BYTES - self.out_bytes:
            room, self.hungry = MAX_OUT_BYTES - self.out_bytes, True
        if room <= 0:
            return False
        self._spoke = True
        self._send_window -= room
        stream.send_window -= room
        self.out_bytes += room
        waiting -= room
        while room:
            size = min(room, self._peer_max_frame)
            room -= size
            ends = stream.end_when_sent and not room and not waiting
            self.out.append(frames.header(size, frames.DATA, frames.END_STREAM if ends else 0, stream.id))
            pieces = stream.take_outgoing(size)
            # A view would keep all of its message until the peer has read this part of it.
            self.out.extend(pieces if self.account is None else map(bytes, pieces))
        if not waiting:
            self._free(stream, stream.unsent)
            stream.unsent = 0
        return True

    def _end_local(self, stream: Stream) -> None:
        stream.local_closed = True
        if stream.remote_closed:
            self._drop(stream)

    def reset(self, stream: Stream, code: int) -> None:
        """End both sides of a stream at once. A stream that has ended stays as it is."""
        if self.streams.get(stream.id) is stream:
            self.out.append(frames.rst_stream(stream.id, code))
            self._drop(stream)

    def ping(self) -> None:
        self._pings += 1
        self.out.append(frames.frame(frames.PING, 0, 0, bytes(8)))

    def go_away(self) -> None:
        """Take no new streams; those that are open may end."""
        self.draining = True
        self.out.append(frames.goaway(self._last_id, frames.NO_ERROR))

    def fail(self, failure: ConnectionFailed) -> None:
        """End the connection for a reason."""
        self.failure = failure
        self.out.append(frames.goaway(self._last_id, failure.code, str(failure)))
        self.close(str(failure))

    def close(self, text: str) -> None:
        """The connection is gone, and all its streams with it."""
        self.closed = self.draining = True
        lost = list(self.streams.values())
        self.streams.clear()
        self._blocked.clear()
        for stream in lost:
            stream.outgoing.clear()
            if self.account is not None:
                self._forget_held(stream)
            stream.lost(None, text)
        self.on_change()

    def _drop(self, stream: Stream) -> None:
        """The stream has ended. Messages that are here can still be read."""
        self.streams.pop(stream.id, None)
        self._blocked.pop(stream, None)
        stream.outgoing.clear()
        if self.account is not None:
            self._forget_held(stream)
        elif stream.debt:
            debt, stream.debt = stream.debt, 0
            self._pay(None, debt)
        self.on_change()

    def _forget_held(self, stream: Stream) -> None:
        assert self.account is not None
        if stream.waiting is not None:
            self.account.room.leave_line(stream.waiting)
            stream.waiting = None
        self.account.reservations -= bool(stream.reserved) + bool(stream.promised)
        stream.reserved = stream.promised = stream.in_hand = stream.unsent = 0
        self._free(stream, stream.held)


def _grown(window: int, size: int) -> int:
    window += size
    if window > frames.MAX_WINDOW:
        raise ConnectionFailed(frames.FLOW_CONTROL_ERROR, "a window that is too large")
    return window


def _nothing() -> None:
    pass
