"""Header blocks: what we write is read by others, what others write is read by us, and none can be a bomb."""

from contextlib import suppress

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import frames, headers
from fila.wire.frames import ConnectionFailed
from fila.wire.headers import HeaderDecoder

LIMIT = 16 << 10

texts = st.binary(max_size=300)
header_lists = st.lists(
    st.one_of(
        st.tuples(texts, texts),
        st.sampled_from([(b":method", b"POST"), (b":status", b"200"), (b":scheme", b"https"), (b"te", b"trailers")]),
    ),
    max_size=12,
)


@given(header_lists)
def test_what_is_written_is_read_by_us_and_by_the_reference(written):
    block = headers.encode(written)
    assert HeaderDecoder(LIMIT).decode(block) == tuple(written)
    assert [tuple(each) for each in Decoder().decode(block, raw=True)] == written


@given(st.lists(header_lists, max_size=5))
def test_blocks_of_a_compressing_peer_are_read_in_their_order(blocks):
    """With ours in between, which must not disturb the table that the peer counts on."""
    peer, decoder = Encoder(), HeaderDecoder(1 << 20)
    for written in blocks:
        assert decoder.decode(peer.encode(written)) == tuple(written)
        assert decoder.decode(headers.encode(written)) == tuple(written)


@given(st.binary(max_size=200))
def test_any_bytes_are_headers_or_end_the_connection(block):
    with suppress(ConnectionFailed):
        assert isinstance(HeaderDecoder(LIMIT).decode(block), tuple)


def test_a_small_block_that_becomes_many_headers_is_refused():
    """A header in the table costs one byte each time it is named again."""
    peer, decoder = Encoder(), HeaderDecoder(LIMIT)
    decoder.decode(peer.encode([(b"x", b"y" * 3000)]))
    with pytest.raises(ConnectionFailed) as failure:
        decoder.decode(b"\xbe" * 1000)
    assert failure.value.code in {frames.COMPRESSION_ERROR, frames.ENHANCE_YOUR_CALM}


def test_many_headers_in_our_own_form_are_refused_too():
    with pytest.raises(ConnectionFailed) as failure:
        HeaderDecoder(1000).decode(headers.encode([(b"a", b"b")] * 100))
    assert failure.value.code == frames.ENHANCE_YOUR_CALM
