"""Statuses, timeouts and metadata in headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import frames, status
from fila.wire.status import StatusCode


@given(st.sampled_from(StatusCode), st.text(max_size=500))
def test_a_status_arrives_with_its_text(code, details):
    assert status.read_status(tuple(status.write_status(code, details))) == (code, details)


def test_a_status_that_is_no_number_of_one_is_unknown():
    for number in (b"17", b"-1", b"", b"x", b"9" * 5000):
        assert status.read_status(((b"grpc-status", number),))[0] is StatusCode.UNKNOWN


def test_a_long_text_is_cut_to_what_peers_take():
    (_, _), (_, text) = status.write_status(StatusCode.INTERNAL, "x" * 100_000)
    assert len(text) == status.MAX_DETAILS_BYTES


@given(st.text())
def test_a_text_goes_as_printable_ascii(details):
    for _, value in status.write_status(StatusCode.INTERNAL, details):
        assert all(0x20 <= byte <= 0x7E for byte in value)


@pytest.mark.parametrize("number", [b"99", b"-1", b"x", b"", b"1" * 30])
def test_a_status_that_nobody_knows_is_unknown(number):
    assert status.read_status(((b"grpc-status", number),))[0] is StatusCode.UNKNOWN


@pytest.mark.parametrize(
    "http, code",
    [(b"503", StatusCode.UNAVAILABLE), (b"404", StatusCode.UNIMPLEMENTED), (b"418", StatusCode.UNKNOWN)],
)
def test_what_a_proxy_answers_has_a_status_too(http, code):
    assert status.read_status(((b":status", http),))[0] is code


@pytest.mark.parametrize(
    "reset, code",
    [
        (frames.REFUSED_STREAM, StatusCode.UNAVAILABLE),
        (frames.CANCEL, StatusCode.CANCELLED),
        (frames.PROTOCOL_ERROR, StatusCode.INTERNAL),
        (12345, StatusCode.INTERNAL),
    ],
)
def test_a_reset_has_a_status(reset, code):
    assert status.from_reset(reset).code() is code


@given(st.floats(min_value=0, max_value=1e8))
def test_a_timeout_arrives_nearly_as_it_was(seconds):
    read = status.read_timeout(status.write_timeout(seconds))
    assert read == pytest.approx(seconds, rel=1e-5, abs=1e-9)
    assert len(status.write_timeout(seconds)) <= 9


@given(st.floats(min_value=1e8, max_value=1e300) | st.floats(max_value=0, min_value=-1e9))
def test_a_timeout_out_of_range_is_still_one(seconds):
    assert status.read_timeout(status.write_timeout(seconds)) is not None


@pytest.mark.parametrize("value", [b"", b"S", b"10", b"1x", b"-1S", b"123456789S", b"1.5S"])
def test_what_is_no_timeout(value):
    assert status.read_timeout(value) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "x-y"]), st.text(st.characters(codec="ascii", min_codepoint=32)))
        | st.tuples(st.just("data-bin"), st.binary()),
        max_size=5,
    )
)
def test_metadata_arrives(metadata):
    assert list(status.read_metadata(tuple(status.write_metadata(metadata)))) == metadata


def test_headers_of_the_protocol_and_broken_values_are_no_metadata():
    headers = ((b":path", b"/"), (b"grpc-timeout", b"1S"), (b"te", b"trailers"), (b"x-bin", b"!"), (b"a", b"b"))
    assert list(status.read_metadata(headers)) == [("a", "b")]
