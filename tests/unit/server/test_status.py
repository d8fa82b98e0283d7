"""Every refusal has a status of its own choosing."""

import pytest

from fila.core import errors
from fila.core.errors import BrokerError
from fila.server.status import STATUS, status_of
from fila.wire.status import StatusCode


def every_error():
    found, todo = [], [BrokerError]
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += kind.__subclasses__()
    return found[1:]


def test_every_error_has_a_status():
    """A new error cannot reach clients as INTERNAL by accident."""
    assert set(BrokerError.__subclasses__()) <= set(STATUS)


@pytest.mark.parametrize(
    "kind, status",
    [
        (errors.InvalidArgument, StatusCode.INVALID_ARGUMENT),
        (errors.LimitExceeded, StatusCode.RESOURCE_EXHAUSTED),
        (errors.QueueNotFound, StatusCode.NOT_FOUND),
        (errors.QueueAlreadyExists, StatusCode.ALREADY_EXISTS),
        (errors.MessageNotFound, StatusCode.NOT_FOUND),
        (errors.LeaseEnded, StatusCode.NOT_FOUND),
        (errors.MessageGone, StatusCode.NOT_FOUND),
        (errors.StaleSequence, StatusCode.FAILED_PRECONDITION),
        (errors.SequenceReused, StatusCode.FAILED_PRECONDITION),
        (errors.TooFarAhead, StatusCode.FAILED_PRECONDITION),
        (errors.Overloaded, StatusCode.RESOURCE_EXHAUSTED),
        (errors.ShuttingDown, StatusCode.UNAVAILABLE),
        (errors.StoreFull, StatusCode.RESOURCE_EXHAUSTED),
        (errors.StoreFailed, StatusCode.INTERNAL),
        (errors.StoreCorrupt, StatusCode.INTERNAL),
    ],
)
def test_the_status_is_the_one_of_the_contract(kind, status):
    assert status_of(kind.__new__(kind)) is status


def test_an_error_without_a_row_takes_that_of_its_parent():
    for kind in every_error():
        parent = next(one for one in kind.__mro__ if one in STATUS)
        assert status_of(kind.__new__(kind)) is STATUS[parent]


def test_an_unknown_error_is_internal():
    assert status_of(BrokerError()) is StatusCode.INTERNAL
