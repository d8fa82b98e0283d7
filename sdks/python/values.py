"""Messages, results and errors of the Python SDK as the protocol of drivers has them."""

import asyncio
import base64
from pathlib import Path
from typing import Any

from fila import (
    AsyncConsumeMessage,
    ClientClosedError,
    DuplicateId,
    FilaError,
    FilaTimeoutError,
    InvalidArgumentError,
    OutgoingMessage,
    PermissionDeniedError,
    TLSError,
    UnavailableError,
)

Table = dict[str, Any]


class UnsupportedOpError(Exception):
    """The driver does not know the operation."""


def enqueued(message_id: str) -> Table:
    return {"id": message_id, "duplicate": isinstance(message_id, DuplicateId)}


def open_files() -> int:
    """0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return sum(1 for _ in folder.iterdir()) if folder.exists() else 0


def outgoing(given: Table) -> OutgoingMessage:
    options = given.get("options") or {}
    return OutgoingMessage(
        base64.b64decode(given.get("payload", "")),
        given.get("headers"),
        options.get("delay_ms", 0),
        options.get("priority"),
        options.get("dedup_key"),
    )


def incoming(message: AsyncConsumeMessage) -> Table:
    return {
        "id": message.id,
        "queue": message.queue,
        "headers": message.headers,
        "payload": base64.b64encode(message.payload).decode(),
        "fairness_key": message.fairness_key,
        "attempt_count": message.attempt_count,
        "lease_id": message.lease_id,
    }


def described(error: BaseException) -> Table:
    """An error as the protocol has it."""
    match error:
        case FilaError() if error.kind:
            kind = error.kind.upper()
        case FilaTimeoutError() | TimeoutError():
            kind = "DEADLINE_EXCEEDED"
        case asyncio.CancelledError():
            kind = "CANCELLED"
        case ClientClosedError():
            kind = "CLOSED"
        case TLSError() | UnavailableError():
            kind = "UNAVAILABLE"
        case PermissionDeniedError():
            kind = "PERMISSION_DENIED"
        case InvalidArgumentError():
            kind = "INVALID_ARGUMENT"
        case UnsupportedOpError():
            kind = "UNSUPPORTED_OP"
        case _:
            kind = "INTERNAL"
    retryable = isinstance(error, FilaError) and error.retryable
    return {"kind": kind, "type": type(error).__name__, "message": str(error), "retryable": retryable}
