"""What one side of a connection allows the other."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Announced to the peer as SETTINGS where HTTP/2 has a setting for it, and enforced in any case."""

    max_message_bytes: int = 16 << 20
    #: SETTINGS_MAX_CONCURRENT_STREAMS.
    max_streams: int = 1000
    #: SETTINGS_MAX_HEADER_LIST_SIZE: all headers of a call together, compressed or not.
    max_header_bytes: int = 16 << 10
    #: SETTINGS_INITIAL_WINDOW_SIZE: flow control of each stream.
    stream_window: int = 4 << 20
    #: Flow control of the connection as a whole.
    connection_window: int = 16 << 20
    #: SETTINGS_MAX_FRAME_SIZE. Larger frames are fewer frames.
    max_frame_bytes: int = 1 << 20
    #: Whether the peer is limited in what costs it little (`flood.py`). Not where it is a part of our own program,
    #: which passes on what many callers do.
    limits_floods: bool = True
