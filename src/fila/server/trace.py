"""The trace of a call, for clients whose gRPC library sends the W3C trace context with each call.

It becomes that of the messages which the call brings, if they come as one batch: on a stream it is that of whoever
opened it. The SDK puts it into the headers of each message instead.
"""

import re

from fila.broker.commands import Incoming
from fila.config import LimitsConfig
from fila.server.message_codec import add_header
from fila.server.types import ServerCall
from fila.telemetry.tracing import HEADER, UNSAMPLED, Parent, read_parent

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_NAME = HEADER.encode()
_ROOM = 80
"""Bytes that the header takes in a message."""


def caller_of(call: ServerCall) -> Parent | None:
    """Who makes the call, if they are being traced."""
    found = _traceparent(call)
    return None if found is None else read_parent(found) or UNSAMPLED


def adopt_trace(messages: list[Incoming], call: ServerCall, limits: LimitsConfig) -> None:
    """Give the messages that have no trace context that of the call, if there is one and room for it."""
    found = _traceparent(call)
    if found is None or _TRACEPARENT.fullmatch(found) is None:
        return
    for message in messages:
        headers_bytes = len(message.body) - message.payload_bytes
        fits = headers_bytes + _ROOM <= limits.max_header_bytes and len(message.headers) < limits.max_headers
        if fits and HEADER not in message.headers:
            add_header(message, HEADER, found)


def _traceparent(call: ServerCall) -> str | None:
    return next(iter(call.metadata(_NAME)), None)
