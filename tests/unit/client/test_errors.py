"""Refusals become errors by one table: by their kind, never by their words."""

import pytest

import fila
from fila.client import errors
from fila.client.errors import EnqueueManyError, FilaError, details_of, from_error, from_rpc
from fila.internal.wire_pb2 import RpcStatus
from fila.v1 import errors_pb2
from fila.wire.status import RpcError, StatusCode


def refused(kind, text="t", **fields):
    """A call that the broker refused, as it comes over the wire."""
    code = StatusCode.NOT_FOUND
    status = RpcStatus(code=code, message=text)
    status.details.add().Pack(errors_pb2.Error(code=code, kind=kind, **fields))
    return RpcError(code, text, (("grpc-status-details-bin", status.SerializeToString()),))


KINDS = [number for name, number in errors_pb2.ErrorKind.items() if number]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_the_contract_has_an_error(kind):
    """Whatever its status code and its words are."""
    error = from_rpc(refused(kind, "some words", retryable=True, retry_after_ms=1500, owner="b:5555"))
    assert type(error) is not FilaError
    assert error.kind == errors_pb2.ErrorKind.Name(kind).removeprefix("ERROR_KIND_").lower()
    assert (str(error), error.retryable, error.retry_after_s, error.owner) == ("some words", True, 1.5, "b:5555")


@pytest.mark.parametrize(
    "kind,expected",
    [
        ("QUEUE_NOT_FOUND", "QueueNotFoundError"),
        ("MESSAGE_GONE", "MessageNotFoundError"),
        ("CONFIG_NOT_FOUND", "ConfigNotFoundError"),
        ("QUEUE_ALREADY_EXISTS", "QueueAlreadyExistsError"),
        ("PAYLOAD_TOO_LARGE", "LimitExceededError"),
        ("OVERLOADED", "OverloadedError"),
        ("STORE_FULL", "OverloadedError"),
        ("FENCED", "FencedError"),
        ("CLAIM_LOST", "ClaimLostError"),
    ],
)
def test_errors_are_told_apart_by_kind_and_not_by_words(kind, expected):
    error = errors_pb2.Error(code=StatusCode.INTERNAL, kind=f"ERROR_KIND_{kind}", message="queue message config")
    assert type(from_error(error)).__name__ == expected


def test_a_kind_of_a_later_version_is_an_error_by_its_status_code():
    error = from_error(errors_pb2.Error(code=StatusCode.FAILED_PRECONDITION, kind=9999, message="t"))
    assert (type(error), error.kind) == (errors.FailedPreconditionError, "")
    assert isinstance(from_error(errors_pb2.Error(code=99, message="odd")), errors.InternalError)


@pytest.mark.parametrize(
    "code,expected",
    [
        ("INVALID_ARGUMENT", "InvalidArgumentError"),
        ("RESOURCE_EXHAUSTED", "LimitExceededError"),
        ("UNAVAILABLE", "UnavailableError"),
        ("DEADLINE_EXCEEDED", "FilaTimeoutError"),
        ("UNAUTHENTICATED", "PermissionDeniedError"),
        ("UNKNOWN", "InternalError"),
        ("DATA_LOSS", "InternalError"),
    ],
)
def test_a_status_of_the_transport_has_an_error_that_keeps_the_text(code, expected):
    error = from_rpc(RpcError(StatusCode[code], "t"))
    assert (type(error).__name__, str(error), error.kind) == (expected, "t", "")


@pytest.mark.parametrize("details", [b"\xff\xff\xff", b"", RpcStatus(code=5).SerializeToString(), "text"])
def test_details_that_mean_nothing_are_none(details):
    error = RpcError(StatusCode.NOT_FOUND, "t", (("grpc-status-details-bin", details),))
    assert details_of(error) is None
    assert isinstance(from_rpc(error), errors.InternalError)


def test_a_timeout_is_also_the_timeout_of_the_standard_library():
    assert issubclass(errors.FilaTimeoutError, TimeoutError)


def test_every_error_is_public_and_drawn_in_the_tree():
    public = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, FilaError)}
    assert public <= set(fila.__all__)
    for name in public:
        assert name in (errors.__doc__ or "")


def test_enqueue_many_names_the_failed_indexes_and_shortens_long_lists():
    refused = errors.LimitExceededError("too large")
    error = EnqueueManyError(["id", refused, "id"])
    assert error.failed == {1: refused}
    assert str(error) == "1 of 3 messages not enqueued (index 1): too large"
    assert str(EnqueueManyError([refused] * 50)).count(",") == 10
