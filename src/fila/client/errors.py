"""What can go wrong, and the one table that turns gRPC status codes into it.

FilaError
+-- QueueNotFoundError        the queue does not exist
+-- QueueAlreadyExistsError   a queue of that name exists
+-- MessageNotFoundError      nobody holds the message under that lease (late, settled before, or never delivered)
+-- ConfigNotFoundError       the runtime configuration has no such entry
+-- InvalidArgumentError      the request itself is wrong
+-- FailedPreconditionError   the request is right, but not now
|   +-- ClaimLostError        the claim was acked, was never made, or ended on the way
|   +-- FencedError           a reader of a later epoch has taken the group over
|   +-- NotStagedError        a transaction lacks messages that belong to it
+-- LimitExceededError        a size limit or backpressure of the broker
+-- UnavailableError          the broker cannot be reached or is shutting down
+-- FilaTimeoutError          no answer in time (also a TimeoutError); the request may or may not have been carried out
+-- PermissionDeniedError     the broker does not accept who asks, or does not allow what is asked
+-- InternalError             the broker failed, or answered with something unexpected
+-- ClientClosedError         the client was closed
+-- EnqueueManyError          some messages of enqueue_many were not accepted
+-- AckManyError              some messages of ack_many were not acked
"""

from collections.abc import Mapping, Sequence

from fila.wire.status import RpcError, StatusCode


class FilaError(Exception):
    """Base of everything that the SDK raises on its own."""


class QueueNotFoundError(FilaError):
    """The queue does not exist."""


class QueueAlreadyExistsError(FilaError):
    """A queue of that name exists."""


class MessageNotFoundError(FilaError):
    """Nobody holds the message under that lease."""


class ConfigNotFoundError(FilaError):
    """The runtime configuration has no such entry."""


class InvalidArgumentError(FilaError):
    """The request itself is wrong."""


class FailedPreconditionError(FilaError):
    """The request is right, but not in the present state."""


class ClaimLostError(FailedPreconditionError):
    """The claim was acked, was never made, or ended on the way."""


class FencedError(FailedPreconditionError):
    """A reader of a later epoch has taken the group over."""


class NotStagedError(FailedPreconditionError):
    """A transaction lacks messages that belong to it."""


class LimitExceededError(FilaError):
    """A size limit was passed, or the broker asks for less."""


class UnavailableError(FilaError):
    """The broker cannot be reached or is shutting down."""


class FilaTimeoutError(FilaError, TimeoutError):
    """No answer in time. The request may or may not have been carried out."""


class PermissionDeniedError(FilaError):
    """The broker does not accept who asks, or does not allow what is asked."""


class InternalError(FilaError):
    """The broker failed, or answered with something unexpected."""


class ClientClosedError(FilaError):
    """The client was closed."""


class EnqueueManyError(FilaError):
    """Some messages were not accepted.

    `results` has one entry for each message in order: its id, or the error it met. It ends where sending ended: after a
    hopeless message, or after a batch that was not answered, nothing more is sent.
    """

    def __init__(self, results: Sequence[str | FilaError]) -> None:
        self.results = list(results)
        self.failed = {index: result for index, result in enumerate(self.results) if isinstance(result, FilaError)}
        first = next(iter(self.failed.values()))
        indexes = _shortened([str(index) for index in self.failed])
        super().__init__(f"{len(self.failed)} of {len(self.results)} messages not enqueued (index {indexes}): {first}")


class AckManyError(FilaError):
    """Some messages were not acked. `failed` has the error of each, by message id; all others were acked."""

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

#: The broker sets this in the trailing metadata of everything that it refuses.
REFUSAL_MARK = "fila-error"

#: Kinds of refusals that callers have to tell from others of the same status.
_BY_KIND: Mapping[str, type[FilaError]] = {
    "ClaimLost": ClaimLostError,
    "Fenced": FencedError,
    "NotStaged": NotStagedError,
}

_NOT_FOUND: Mapping[str, type[FilaError]] = {"queue": QueueNotFoundError, "config": ConfigNotFoundError}


def from_status(code: StatusCode, text: str) -> FilaError:
    """The error for a status. The first word of a NOT_FOUND says what was not found."""
    if code is StatusCode.NOT_FOUND:
        return _NOT_FOUND.get(text.partition(" ")[0], MessageNotFoundError)(text)
    return _BY_CODE.get(code, InternalError)(text or code.name)


def from_number(code: int, text: str) -> FilaError:
    """The error for the status number that one message of a batch was answered with."""
    return from_status(StatusCode.of(code), text)


def from_rpc(error: RpcError) -> FilaError:
    kinds = [str(kind) for key, kind in error.trailing_metadata() or () if key == REFUSAL_MARK]
    if kinds and kinds[0] in _BY_KIND:
        return _BY_KIND[kinds[0]](error.details() or kinds[0])
    return from_status(error.code(), error.details() or "")


def forked() -> ClientClosedError:
    """For a client that is used in a child of the process that made it."""
    return ClientClosedError("the client belongs to the parent process: make one after the fork")


def no_answer(timeout_s: float, trouble: str = "") -> FilaTimeoutError:
    """For a request whose time is over, and what kept it from being answered if that is known."""
    return FilaTimeoutError(f"no answer within {timeout_s:g} s" + (f" ({trouble})" if trouble else ""))


def unreadable(error: Exception) -> InternalError:
    """For a request whose answer makes no sense."""
    return InternalError(f"the answer cannot be read: {error!r}")


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
