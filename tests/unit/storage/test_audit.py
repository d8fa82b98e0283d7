"""Records of the audit: what is written is read again, and damage is never misread."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.errors import StoreCorrupt
from fila.storage.audit import AuditRecord, Head, entry, head, read_at, read_entry, read_head, read_sweep, sweep

text = st.text(st.characters(codec="utf-8"), max_size=30)
number = st.integers(0, (1 << 63) - 1)
records = st.builds(
    AuditRecord,
    at=number,
    action=text,
    kind=text,
    resource=text,
    principal=text,
    key_id=text,
    peer=text,
    stage=text,
    outcome=text,
    count=number,
    times=number,
    began=number,
    changes=st.dictionaries(text, st.tuples(st.none() | text, st.none() | text), max_size=4),
)


@given(records, number)
def test_what_is_written_is_read_again(record, done):
    assert read_entry(entry(record)) == record
    assert read_at(entry(record)) == record.at
    assert read_sweep(sweep(done, record)) == (done, record)


def test_the_head_is_read_again():
    told = Head(9, 1, 2, 3, 4)
    assert read_head(head(told)) == told


@given(st.binary(max_size=60), st.booleans())
def test_damage_is_refused_and_never_raises_anything_else(damage, versioned):
    value = b"\x01" + damage if versioned else damage
    for read in (read_entry, read_at, read_head, read_sweep):
        with suppress(StoreCorrupt):
            read(value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b'{"action":7}',
        b'{"nonsense":"x"}',
        b'{"changes":{"a":[1,2]}}',
        b'{"changes":[]}',
        b"[" * 9999,
    ],
)
def test_an_entry_that_is_no_entry_is_refused(body):
    with pytest.raises(StoreCorrupt):
        read_entry(b"\x01" + bytes(8) + body)
