"""What happened on a connection. `Connection.receive` and its sisters return these; nobody is called while it parses.

Whoever handles an event sees the connection as it is after all of them: a stream whose `MessageReceived` is handled may
have ended already. Events of one stream are in the order in which they happened.
"""

from dataclasses import dataclass

from fila.wire.headers import Headers
from fila.wire.status import StatusCode
from fila.wire.stream import Stream


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A client opened a stream. The first event of each stream of a server."""

    stream: Stream
    headers: Headers


@dataclass(frozen=True, slots=True)
class HeadersReceived:
    """Headers came on an open stream: those of a response, or trailers, which `end` it."""

    stream: Stream
    headers: Headers
    end: bool


@dataclass(slots=True)
class MessageReceived:
    """At least one message was completed: `Connection.read` gives it.

    Made for each message, so it is not frozen: that would take twice as long.
    """

    stream: Stream


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The peer has ended its side of the stream (END_STREAM)."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class StreamWritable:
    """All that was queued has been handed on, or there is window or memory again for what waited to be made."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class StreamRefused:
    """The peer sent what is not accepted. The stream is to be ended with this status."""

    stream: Stream
    code: StatusCode
    text: str


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The stream ended at once: the peer sent RST_STREAM with this code, or we did for what the peer got wrong."""

    stream: Stream
    code: int


@dataclass(frozen=True, slots=True)
class StreamLost:
    """The connection is gone, or the server has not seen the stream before its GOAWAY."""

    stream: Stream
    text: str


StreamEvent = (
    RequestReceived
    | HeadersReceived
    | MessageReceived
    | StreamEnded
    | StreamWritable
    | StreamRefused
    | StreamReset
    | StreamLost
)


@dataclass(frozen=True, slots=True)
class PeerChanged:
    """SETTINGS or GOAWAY came: there may be more or fewer streams that a client can open."""


Event = StreamEvent | PeerChanged
