"""Errors on the wire: one table from what the broker refuses to the kind, status code and retry advice of the contract.

RESOURCE_EXHAUSTED and UNAVAILABLE are for what may be retried as it is; nothing else is. `docs/protocol.md` shows the
same table, and a test holds the two equal.
"""

from typing import Final, NamedTuple

from fila.core import errors
from fila.core.errors import BrokerError
from fila.internal.wire_pb2 import RpcStatus
from fila.v1 import errors_pb2 as pb
from fila.wire.status import Metadata, StatusCode

MAX_TEXT_BYTES: Final = 1024
"""How much of the text of an error is sent: it stands in the trailers twice, and peers take 8 KiB of them."""

DETAILS: Final = "grpc-status-details-bin"
"""The trailer with a google.rpc.Status, by gRPC's convention."""

SOON_MS: Final = 1000
"""When to come back to what needs time: quotas are per second, and a disk is looked at every second."""


class Row(NamedTuple):
    """How one error looks on the wire."""

    kind: pb.ErrorKind
    code: StatusCode
    retryable: bool = False
    retry_after_ms: int = 0


TABLE: Final[dict[type[BrokerError], Row]] = {
    errors.InvalidArgument: Row(pb.ERROR_KIND_INVALID_ARGUMENT, StatusCode.INVALID_ARGUMENT),
    errors.LimitExceeded: Row(pb.ERROR_KIND_TOO_LARGE, StatusCode.INVALID_ARGUMENT),
    errors.PayloadTooLarge: Row(pb.ERROR_KIND_PAYLOAD_TOO_LARGE, StatusCode.INVALID_ARGUMENT),
    errors.LimitReached: Row(pb.ERROR_KIND_LIMIT_REACHED, StatusCode.FAILED_PRECONDITION),
    errors.QueueFull: Row(pb.ERROR_KIND_QUEUE_FULL, StatusCode.RESOURCE_EXHAUSTED, True),
    errors.QuotaExceeded: Row(pb.ERROR_KIND_QUOTA_EXCEEDED, StatusCode.RESOURCE_EXHAUSTED, True, SOON_MS),
    errors.QueueNotFound: Row(pb.ERROR_KIND_QUEUE_NOT_FOUND, StatusCode.NOT_FOUND),
    errors.QueueAlreadyExists: Row(pb.ERROR_KIND_QUEUE_ALREADY_EXISTS, StatusCode.ALREADY_EXISTS),
    errors.MessageNotFound: Row(pb.ERROR_KIND_MESSAGE_NOT_FOUND, StatusCode.NOT_FOUND),
    errors.LeaseEnded: Row(pb.ERROR_KIND_LEASE_ENDED, StatusCode.NOT_FOUND),
    errors.MessageGone: Row(pb.ERROR_KIND_MESSAGE_GONE, StatusCode.NOT_FOUND),
    errors.NoSuchMessage: Row(pb.ERROR_KIND_MESSAGE_NOT_FOUND, StatusCode.NOT_FOUND),
    errors.ConfigNotFound: Row(pb.ERROR_KIND_CONFIG_NOT_FOUND, StatusCode.NOT_FOUND),
    errors.Unsupported: Row(pb.ERROR_KIND_UNSUPPORTED, StatusCode.UNIMPLEMENTED),
    errors.Unauthenticated: Row(pb.ERROR_KIND_UNAUTHENTICATED, StatusCode.UNAUTHENTICATED),
    errors.KeyEnded: Row(pb.ERROR_KIND_KEY_ENDED, StatusCode.UNAUTHENTICATED),
    errors.UnknownSigner: Row(pb.ERROR_KIND_UNAUTHENTICATED, StatusCode.UNAUTHENTICATED),
    errors.PermissionDenied: Row(pb.ERROR_KIND_PERMISSION_DENIED, StatusCode.PERMISSION_DENIED),
    errors.NotNow: Row(pb.ERROR_KIND_FAILED_PRECONDITION, StatusCode.FAILED_PRECONDITION),
    errors.ClaimLost: Row(pb.ERROR_KIND_CLAIM_LOST, StatusCode.FAILED_PRECONDITION),
    errors.Fenced: Row(pb.ERROR_KIND_FENCED, StatusCode.FAILED_PRECONDITION),
    errors.TooFarAhead: Row(pb.ERROR_KIND_TOO_FAR_AHEAD, StatusCode.FAILED_PRECONDITION),
    errors.NotStaged: Row(pb.ERROR_KIND_NOT_STAGED, StatusCode.FAILED_PRECONDITION),
    errors.StaleSequence: Row(pb.ERROR_KIND_STALE_SEQUENCE, StatusCode.FAILED_PRECONDITION),
    errors.SequenceReused: Row(pb.ERROR_KIND_SEQUENCE_REUSED, StatusCode.FAILED_PRECONDITION),
    errors.ProducerFenced: Row(pb.ERROR_KIND_PRODUCER_FENCED, StatusCode.FAILED_PRECONDITION),
    errors.Overloaded: Row(pb.ERROR_KIND_OVERLOADED, StatusCode.RESOURCE_EXHAUSTED, True),
    errors.ShuttingDown: Row(pb.ERROR_KIND_SHUTTING_DOWN, StatusCode.UNAVAILABLE, True),
    errors.ProviderAway: Row(pb.ERROR_KIND_PROVIDER_AWAY, StatusCode.UNAVAILABLE, True, SOON_MS),
    errors.StoreBusy: Row(pb.ERROR_KIND_STORE_BUSY, StatusCode.UNAVAILABLE, True),
    errors.SteppedDown: Row(pb.ERROR_KIND_SHUTTING_DOWN, StatusCode.UNAVAILABLE, True),
    errors.StoreFull: Row(pb.ERROR_KIND_STORE_FULL, StatusCode.RESOURCE_EXHAUSTED, True, SOON_MS),
    errors.StoreFailed: Row(pb.ERROR_KIND_STORE_FAILED, StatusCode.INTERNAL),
    errors.StoreUnusable: Row(pb.ERROR_KIND_STORE_FAILED, StatusCode.INTERNAL),
    errors.StoreLocked: Row(pb.ERROR_KIND_STORE_FAILED, StatusCode.INTERNAL),
    errors.StoreLost: Row(pb.ERROR_KIND_STORE_FAILED, StatusCode.INTERNAL),
    errors.StoreCorrupt: Row(pb.ERROR_KIND_STORE_FAILED, StatusCode.INTERNAL),
    errors.StoreTooNew: Row(pb.ERROR_KIND_STORE_FAILED, StatusCode.INTERNAL),
}

DEFECT: Final = Row(pb.ERROR_KIND_INTERNAL, StatusCode.INTERNAL)


_OF_THE_WIRE: Final = {
    StatusCode.INVALID_ARGUMENT: TABLE[errors.LimitExceeded],
    StatusCode.RESOURCE_EXHAUSTED: TABLE[errors.Overloaded],
}


def row_of(error: BrokerError) -> Row:
    return TABLE.get(type(error), DEFECT)


def text_of(error: BrokerError) -> str:
    """Its text, cut to what is sent."""
    return str(error).encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore")


def write_error(error: BrokerError) -> pb.Error:
    """A refusal in-band."""
    written = _write_row(row_of(error))
    written.message = text_of(error)
    return written


def write_details(row: Row, text: str) -> Metadata:
    """The trailer of a call that ends with a status of this text."""
    details = RpcStatus(code=row.code, message=text)
    details.details.add().Pack(_write_row(row))
    return ((DETAILS, details.SerializeToString()),)


def read_details(trailers: Metadata) -> pb.Error | None:
    """The refusal that `write_details` wrote, with its text; None: there is none."""
    written = next((value for name, value in trailers if name == DETAILS), None)
    if not isinstance(written, bytes):
        return None
    details, refusal = RpcStatus.FromString(written), pb.Error()
    if not (details.details and details.details[0].Unpack(refusal)):
        return None
    refusal.message = details.message
    return refusal


def describe_refusal(code: StatusCode, text: str) -> Metadata:
    """The same of a request that was refused by its length, or because its sender holds too much."""
    row = _OF_THE_WIRE.get(code)
    return () if row is None else write_details(row, text)


def _write_row(row: Row) -> pb.Error:
    return pb.Error(code=row.code, kind=row.kind, retryable=row.retryable, retry_after_ms=row.retry_after_ms)
