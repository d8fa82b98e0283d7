"""The errors of the SDK, and the one table that translates the kinds of the contract into them.

The broker says of each refusal which kind it is (proto/fila/v1/errors.proto). A status without a kind comes from the
transport or a proxy.

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
+-- LimitExceededError        something is larger than its limit, or there are as many as there may be
+-- OverloadedError           backpressure: the broker takes no more now; retry later
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

from google.protobuf.message import DecodeError

from fila.internal.wire_pb2 import RpcStatus
from fila.v1 import errors_pb2 as pb
from fila.wire.status import DETAILS, RpcError, StatusCode, TlsFailed


class FilaError(Exception):
    """Base of all errors of the SDK."""

    #: Which refusal of the broker it is, such as "queue_not_found": a kind of the contract in lower case; empty for an
    #: error that is not the broker's.
    kind: str = ""
    #: Whether the same request may succeed later, though nobody changes anything.
    retryable: bool = False
    #: If retryable: how long to wait at least. 0 means that the caller chooses.
    retry_after_s: float = 0.0
    #: The address of the member of the cluster to ask instead, if the broker told it.
    owner: str = ""


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
    """Something is larger than its limit, or there are as many as there may be."""


class OverloadedError(FilaError):
    """Backpressure: the broker takes no more now. Retry later."""


class QueueFullError(OverloadedError):
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
    StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    StatusCode.RESOURCE_EXHAUSTED: LimitExceededError,
    StatusCode.UNAVAILABLE: UnavailableError,
    StatusCode.CANCELLED: UnavailableError,
    StatusCode.DEADLINE_EXCEEDED: FilaTimeoutError,
    StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    StatusCode.UNAUTHENTICATED: PermissionDeniedError,
}
"""Of statuses without a kind, and of kinds that this version does not know."""

_BY_KIND: Mapping[int, type[FilaError]] = {
    pb.ERROR_KIND_INTERNAL: InternalError,
    pb.ERROR_KIND_INVALID_ARGUMENT: InvalidArgumentError,
    pb.ERROR_KIND_PAYLOAD_TOO_LARGE: LimitExceededError,
    pb.ERROR_KIND_TOO_LARGE: LimitExceededError,
    pb.ERROR_KIND_LIMIT_REACHED: LimitExceededError,
    pb.ERROR_KIND_QUEUE_NOT_FOUND: QueueNotFoundError,
    pb.ERROR_KIND_QUEUE_ALREADY_EXISTS: QueueAlreadyExistsError,
    pb.ERROR_KIND_MESSAGE_NOT_FOUND: MessageNotFoundError,
    pb.ERROR_KIND_LEASE_ENDED: MessageNotFoundError,
    pb.ERROR_KIND_MESSAGE_GONE: MessageNotFoundError,
    pb.ERROR_KIND_CONFIG_NOT_FOUND: ConfigNotFoundError,
    pb.ERROR_KIND_UNAUTHENTICATED: PermissionDeniedError,
    pb.ERROR_KIND_KEY_ENDED: PermissionDeniedError,
    pb.ERROR_KIND_PERMISSION_DENIED: PermissionDeniedError,
    pb.ERROR_KIND_FAILED_PRECONDITION: FailedPreconditionError,
    pb.ERROR_KIND_CLAIM_LOST: ClaimLostError,
    pb.ERROR_KIND_FENCED: FencedError,
    pb.ERROR_KIND_TOO_FAR_AHEAD: FailedPreconditionError,
    pb.ERROR_KIND_NOT_STAGED: NotStagedError,
    pb.ERROR_KIND_STALE_SEQUENCE: FailedPreconditionError,
    pb.ERROR_KIND_SEQUENCE_REUSED: FailedPreconditionError,
    pb.ERROR_KIND_PRODUCER_FENCED: FencedError,
    pb.ERROR_KIND_OVERLOADED: OverloadedError,
    pb.ERROR_KIND_QUOTA_EXCEEDED: OverloadedError,
    pb.ERROR_KIND_QUEUE_FULL: QueueFullError,
    pb.ERROR_KIND_SHUTTING_DOWN: UnavailableError,
    pb.ERROR_KIND_STORE_BUSY: UnavailableError,
    pb.ERROR_KIND_STORE_FULL: OverloadedError,
    pb.ERROR_KIND_STORE_FAILED: InternalError,
    pb.ERROR_KIND_NOT_OWNER: UnavailableError,
    pb.ERROR_KIND_UNSUPPORTED: FailedPreconditionError,
    pb.ERROR_KIND_PROVIDER_AWAY: UnavailableError,
}

_KIND_PREFIX = "ERROR_KIND_"


def from_error(error: pb.Error, text: str = "") -> FilaError:
    """The exception for a refusal of the contract. `text` is for one that has none of its own."""
    code = StatusCode.of(error.code)
    kind = _BY_KIND.get(error.kind) or _BY_CODE.get(code, InternalError)
    made = kind(error.message or text or code.name)
    if error.kind in _BY_KIND:
        made.kind = pb.ErrorKind.Name(error.kind).removeprefix(_KIND_PREFIX).lower()
    made.retryable, made.retry_after_s, made.owner = error.retryable, error.retry_after_ms / 1000, error.owner
    return made


def details_of(error: RpcError) -> pb.Error | None:
    """What the broker says of its refusal; None: it is not the broker that ended the call."""
    name = DETAILS.decode()
    for key, value in error.trailing_metadata() or ():
        if key == name and isinstance(value, bytes):
            return _read_details(value)
    return None


def _read_details(encoded: bytes) -> pb.Error | None:
    found = pb.Error()
    try:
        details = RpcStatus.FromString(encoded).details
        return found if any(detail.Unpack(found) for detail in details) else None
    except DecodeError:
        return None


def from_rpc(error: RpcError) -> FilaError:
    if isinstance(error, TlsFailed):
        return TLSError(error.details())
    details = details_of(error)
    if details is not None:
        return from_error(details, error.details())
    return _BY_CODE.get(error.code(), InternalError)(error.details() or error.code().name)


def forked() -> ClientClosedError:
    """For a client that is used in a forked child of the process that made it."""
    return ClientClosedError("the client belongs to the parent process: make a new client after the fork")


def no_answer(timeout_s: float, trouble: str = "") -> FilaTimeoutError:
    """For a request whose deadline has passed; `trouble` is the last known failure of the connection."""
    return FilaTimeoutError(f"no answer within {timeout_s:g} s" + (f" ({trouble})" if trouble else ""))


def forgotten() -> FailedPreconditionError:
    """For a batch that the broker may not know any more: sent again, it could be carried out twice."""
    error = FailedPreconditionError("the answer was lost, and the broker may not know the request any more")
    error.kind = pb.ErrorKind.Name(pb.ERROR_KIND_STALE_SEQUENCE).removeprefix(_KIND_PREFIX).lower()
    return error


def unreadable(error: Exception) -> InternalError:
    """For an answer that cannot be decoded, or does not match its request."""
    return InternalError(f"unexpected answer from the broker: {error!r}")


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
