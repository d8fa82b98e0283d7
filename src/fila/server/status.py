"""Errors on the wire: one table from what the broker refuses to gRPC's status codes."""

from fila.core import errors
from fila.core.errors import BrokerError
from fila.v1 import messages_pb2
from fila.wire.status import StatusCode

STATUS: dict[type[BrokerError], StatusCode] = {
    errors.InvalidArgument: StatusCode.INVALID_ARGUMENT,
    errors.LimitExceeded: StatusCode.RESOURCE_EXHAUSTED,
    errors.QueueNotFound: StatusCode.NOT_FOUND,
    errors.QueueAlreadyExists: StatusCode.ALREADY_EXISTS,
    errors.MessageNotFound: StatusCode.NOT_FOUND,
    errors.ConfigNotFound: StatusCode.NOT_FOUND,
    errors.Unauthenticated: StatusCode.UNAUTHENTICATED,
    errors.PermissionDenied: StatusCode.PERMISSION_DENIED,
    errors.NotNow: StatusCode.FAILED_PRECONDITION,
    errors.StaleSequence: StatusCode.FAILED_PRECONDITION,
    errors.SequenceReused: StatusCode.FAILED_PRECONDITION,
    errors.Overloaded: StatusCode.RESOURCE_EXHAUSTED,
    errors.ShuttingDown: StatusCode.UNAVAILABLE,
    errors.ProviderAway: StatusCode.UNAVAILABLE,
    errors.StoreBusy: StatusCode.UNAVAILABLE,
    errors.StoreFull: StatusCode.RESOURCE_EXHAUSTED,
    errors.StoreFailed: StatusCode.INTERNAL,
    errors.StoreUnusable: StatusCode.INTERNAL,
}


def status_of(error: BrokerError) -> StatusCode:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), StatusCode.INTERNAL)


def write_error(error: BrokerError) -> messages_pb2.Error:
    return messages_pb2.Error(code=status_of(error), message=str(error))
