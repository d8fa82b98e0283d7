"""What a server serves: methods with their handlers, and what they may take."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

UNKNOWN_METHOD_BYTES: Final = 64 << 10
"""The largest request of a method that is not served."""

Handler = Callable[[Any, Any], Awaitable[Any]]
"""Takes the decoded request and the `ServerCall`."""


class Aborted(Exception):
    """Ends a handler whose call has its status already."""


@dataclass(frozen=True, slots=True)
class Method:
    """A handler takes the request, or None when requests come as a stream, and its call.

    It returns the response, or writes any number of them to the call and returns None.
    """

    handler: Handler
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    takes_stream: bool = False
    gives_stream: bool = False
    #: The largest request; None: as large as the connection accepts any.
    max_request_bytes: int | None = None
    #: Whether its requests may be large, and share the server's `WorkLimit`: how much work a byte of them is, beside a
    #: byte of a batch of messages. 0: they are small.
    bulk: int = 0
    #: Whether its response may be large, and is made when there is memory for it.
    large: bool = False
    standing: bool = False
    """Whether its calls last until one side goes away. A server that stops does not wait for them."""
