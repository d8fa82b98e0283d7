"""Status codes become errors by one table."""

import pytest

import fila
from fila.client import errors
from fila.client.errors import EnqueueManyError, FilaError, from_number, from_status
from fila.wire.status import StatusCode


@pytest.mark.parametrize(
    "code,text,kind",
    [
        ("NOT_FOUND", 'queue "x" does not exist', "QueueNotFoundError"),
        ("NOT_FOUND", "message 1 is not leased", "MessageNotFoundError"),
        ("ALREADY_EXISTS", "t", "QueueAlreadyExistsError"),
        ("INVALID_ARGUMENT", "t", "InvalidArgumentError"),
        ("FAILED_PRECONDITION", "t", "FailedPreconditionError"),
        ("RESOURCE_EXHAUSTED", "t", "LimitExceededError"),
        ("UNAVAILABLE", "t", "UnavailableError"),
        ("DEADLINE_EXCEEDED", "t", "FilaTimeoutError"),
        ("UNAUTHENTICATED", "t", "PermissionDeniedError"),
        ("UNKNOWN", "t", "InternalError"),
        ("DATA_LOSS", "t", "InternalError"),
    ],
)
def test_every_status_has_an_error_that_keeps_the_text(code, text, kind):
    status = StatusCode[code]
    for error in (from_status(status, text), from_number(status, text)):
        assert type(error).__name__ == kind
        assert str(error) == text


def test_an_unknown_status_number_is_an_internal_error():
    assert isinstance(from_number(99, "odd"), errors.InternalError)


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
