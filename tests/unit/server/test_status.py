"""Every refusal has a kind and a status of its own choosing."""

from fila.core import errors
from fila.core.errors import BrokerError
from fila.server.status import DEFECT, MAX_TEXT_BYTES, TABLE, row_of, text_of, write_error
from fila.v1 import errors_pb2
from fila.wire.status import StatusCode

RETRYABLE = {StatusCode.RESOURCE_EXHAUSTED, StatusCode.UNAVAILABLE}


def every_error():
    found, todo = [], [BrokerError]
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += kind.__subclasses__()
    return found[1:]


def test_every_error_has_a_kind():
    """A new error cannot reach clients without a kind, and none takes that of its parent by accident."""
    assert [kind.__name__ for kind in every_error() if kind not in TABLE] == []
    assert errors_pb2.ERROR_KIND_UNSPECIFIED not in {row.kind for row in TABLE.values()}


def test_a_status_code_says_whether_a_refusal_may_be_retried():
    """RESOURCE_EXHAUSTED and UNAVAILABLE are for what may be retried, and for nothing else."""
    for error, row in TABLE.items():
        assert row.retryable == (row.code in RETRYABLE), error
        assert row.retryable or not row.retry_after_ms


def test_a_kind_has_one_status_code():
    codes = {}
    for row in TABLE.values():
        codes.setdefault(row.kind, set()).add((row.code, row.retryable, row.retry_after_ms))
    assert {len(different) for different in codes.values()} == {1}


def test_an_error_in_band_says_what_its_row_says():
    error = write_error(errors.StoreFull("the store is full"))
    assert (error.code, error.kind) == (StatusCode.RESOURCE_EXHAUSTED, errors_pb2.ERROR_KIND_STORE_FULL)
    assert (error.message, error.retryable, error.retry_after_ms) == ("the store is full", True, 1000)


def test_an_unknown_error_is_internal():
    assert row_of(BrokerError()) is DEFECT


def test_a_long_text_is_cut_between_characters():
    """It stands in the trailers twice."""
    text = text_of(BrokerError("x" + "é" * 4000))
    assert MAX_TEXT_BYTES - 1 <= len(text.encode()) <= MAX_TEXT_BYTES
