"""Varints: what is written is read again, and equals what protobuf writes."""

import pytest
from google.protobuf.internal.encoder import _VarintBytes
from hypothesis import given
from hypothesis import strategies as st

from fila.wire.varint import read_varint, write_varint


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_is_read_as_it_was_written(number, before, behind):
    encoded = write_varint(number)
    assert encoded == _VarintBytes(number)
    assert read_varint(before + encoded + behind, len(before)) == (number, len(before) + len(encoded))


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\xff\xff", b"\xff" * 10 + b"\x01", b"\xff" * (1 << 20)])
def test_a_number_that_does_not_end_is_none(encoded):
    with pytest.raises(IndexError):
        read_varint(encoded, 0)
