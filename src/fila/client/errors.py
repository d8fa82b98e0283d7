"""The errors of the SDK, and the one table that translates gRPC status codes into them.

FilaError
+-- QueueNotFoundError        the queue does not exist
+-- QueueAlreadyExistsError   a queue of that name exists
+-- MessageNotFoundError      no message is held under that lease (expired, settled before, or never delivered)
+-- ConfigNotFoundError       the runtime configuration has no such entry
+-- InvalidArgumentError      an argument is not valid
+-- FailedPreconditionError   the request is valid, but not in the present state
|   +-- ClaimLostError        the claim was acked, was never made, or ended during the call
|   +-- FencedError           a reader with a higher epoch has taken the group over
|   +-- NotStagedError        the broker lacks staged messages of a transaction
+-- LimitExceededError        a size limit, or backpressure of the broker
|   +-- QueueFullError        the queue holds as much as it may
+-- UnavailableError          the broker cannot be reached or is shutting down
+-- TLSError                  there is no secure connection: the text says which check failed
+-- FilaTimeoutError          no answer in time (also a TimeoutError); the request may or may not have been carried out
+-- PermissionDeniedError     the broker does not accept the caller, or does not allow the call
+-- InternalError             the broker failed, or sent an unexpected answer
+-- ClientClosedError         the client was closed
+-- EnqueueManyError          the broker did not accept some messages of enqueue_many
+-- AckManyError              some messages of ack_many were not acked
"""

from collections.abc import Mapping, Sequence

from fila.wire.status import RpcError, StatusCode, TlsFailed


class FilaError(Exception):
    """Base of all errors of the SDK."""


class QueueNotFoundError(FilaError):
    """The queue does not exist."""


class QueueAlreadyExistsError(FilaError):
    """A queue of that name exists."""


class MessageNotFoundError(FilaError):
    """No message is held under that lease: it expired, was settled before, or never existed."""


class ConfigNotFoundError(FilaError):
    """The runtime configuration has no such entry."""


class InvalidArgumentError(FilaError):
    """An argument is not valid."""


class FailedPreconditionError(FilaError):
    """The request is valid, but not in the present state."""


class ClaimLostError(FailedPreconditionError):
    """The claim was acked, was never made, or ended during the call."""


class FencedError(FailedPreconditionError):
    """A reader with a higher epoch has taken the group over."""


class NotStagedError(FailedPreconditionError):
    """The broker lacks staged messages of a transaction."""


class LimitExceededError(FilaError):
    """A size limit was exceeded, or the broker applies backpressure."""


class QueueFullError(LimitExceededError):
    """The queue holds as much as it may. Retry when messages were settled."""


class UnavailableError(FilaError):
    """The broker cannot be reached or is shutting down."""


class TLSError(FilaError):
    """There is no secure connection to the broker. The text says which check failed."""


class FilaTimeoutError(FilaError, TimeoutError):
    """No answer in time. The request may or may not have been carried out."""


class PermissionDeniedError(FilaError):
    """The broker does not accept the caller, or does not allow the call."""


class InternalError(FilaError):
    """The broker failed, or sent an unexpected answer."""


class ClientClosedError(FilaError):
    """The client was closed."""


class EnqueueManyError(FilaError):
    """The broker did not accept some messages.

    `results` has one entry for each message that was sent, in order: its id, or its error. Nothing is sent after a
    message that cannot be sent, or after a batch that was not answered.
    """

    def __init__(self, results: Sequence[str | FilaError]) -> None:
        self.results = list(results)
        self.failed = {index: result for index, result in enumerate(self.results) if isinstance(result, FilaError)}
        first = next(iter(self.failed.values()))
        indexes = _shortened([str(index) for index in self.failed])
        super().__init__(f"{len(self.failed)} of {len(self.results)} messages not enqueued (index {indexes}): {first}")


class AckManyError(FilaError):
    """Some messages were not acked. `failed` has their errors, by message id; all others were acked."""

    def __init__(self, failed: Mapping[str, FilaError]) -> None:
        self.failed = dict(failed)
        first = next(iter(self.failed.values()))
        super().__init__(f"{len(self.failed)} messages not acked ({_shortened(list(self.failed))}): {first}")


#: How many indexes or ids the text of an error lists.
_LISTED = 10

_BY_CODE: Mapping[StatusCode, type[FilaError]] = {
    StatusCode.ALREADY_EXISTS: QueueAlreadyExistsError,
    StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    StatusCode.RESOURCE_EXHAUSTED: LimitExceededError,
    StatusCode.UNAVAILABLE: UnavailableError,
    StatusCode.CANCELLED: UnavailableError,
    StatusCode.DEADLINE_EXCEEDED: FilaTimeoutError,
    StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    StatusCode.UNAUTHENTICATED: PermissionDeniedError,
}

#: What the text of a refusal says when a queue is full.
_FULL = " is full: "

#: The broker sets this trailing metadata on every refusal.
REFUSAL_MARK = "fila-error"

#: The errors that share a status code with others, by the value of REFUSAL_MARK.
_BY_MARK: Mapping[str, type[FilaError]] = {
    "ClaimLost": ClaimLostError,
    "Fenced": FencedError,
    "NotStaged": NotStagedError,
    "QueueFull": QueueFullError,
}

_NOT_FOUND: Mapping[str, type[FilaError]] = {"queue": QueueNotFoundError, "config": ConfigNotFoundError}


def from_status(code: StatusCode, text: str) -> FilaError:
    """The error for a status. The first word of a NOT_FOUND says what was not found, and that of a RESOURCE_EXHAUSTED
    whether it is a queue that is full: messages of a batch have no metadata of their own.
    """
    if code is StatusCode.NOT_FOUND:
        return _NOT_FOUND.get(text.partition(" ")[0], MessageNotFoundError)(text)
    if code is StatusCode.RESOURCE_EXHAUSTED and text.startswith("queue ") and _FULL in text:
        return QueueFullError(text)
    return _BY_CODE.get(code, InternalError)(text or code.name)


def from_number(code: int, text: str) -> FilaError:
    """The error for the status number that one message of a batch was answered with."""
    return from_status(StatusCode.of(code), text)


def from_rpc(error: RpcError) -> FilaError:
    if isinstance(error, TlsFailed):
        return TLSError(error.details())
    marks = [str(value) for key, value in error.trailing_metadata() or () if key == REFUSAL_MARK]
    if marks and marks[0] in _BY_MARK:
        return _BY_MARK[marks[0]](error.details() or marks[0])
    return from_status(error.code(), error.details() or "")


def forked() -> ClientClosedError:
    """For a client that is used in a forked child of the process that made it."""
    return ClientClosedError("the client belongs to the parent process: make a new client after the fork")


def no_answer(timeout_s: float, trouble: str = "") -> FilaTimeoutError:
    """For a request whose deadline has passed; `trouble` is the last known failure of the connection."""
    return FilaTimeoutError(f"no answer within {timeout_s:g} s" + (f" ({trouble})" if trouble else ""))


def unreadable(error: Exception) -> InternalError:
    """For an answer that cannot be decoded, or does not match its request."""
    return InternalError(f"unexpected answer from the broker: {error!r}")


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
