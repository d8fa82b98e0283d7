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
    assert HeaderDecoder(LIMIT).decode(block).headers == tuple(written)
    assert [tuple(each) for each in Decoder().decode(block, raw=True)] == written


@given(st.lists(header_lists, max_size=5))
def test_blocks_of_a_compressing_peer_are_read_in_their_order(blocks):
    """With ours in between, which must not disturb the table that the peer counts on."""
    peer, decoder = Encoder(), HeaderDecoder(1 << 20)
    for written in blocks:
        assert decoder.decode(peer.encode(written)).headers == tuple(written)
        assert decoder.decode(headers.encode(written)).headers == tuple(written)


@given(st.binary(max_size=200))
def test_any_bytes_are_headers_or_end_the_connection(block):
    with suppress(ConnectionFailed):
        assert isinstance(HeaderDecoder(LIMIT).decode(block).headers, tuple)


def test_a_small_block_that_becomes_many_headers_is_refused():
    """A header in the table costs one byte each time it is named again."""
    peer, decoder = Encoder(), HeaderDecoder(LIMIT)
    decoder.decode(peer.encode([(b"x", b"y" * 3000)]))
    with pytest.raises(ConnectionFailed) as failure:
        decoder.decode(b"\xbe" * 1000)
    assert failure.value.code == frames.ENHANCE_YOUR_CALM


def test_headers_somewhat_beyond_the_limit_are_read_and_counted():
    """So that one call can be refused while the connection goes on."""
    block = HeaderDecoder(1000).decode(headers.encode([(b"a", b"b")] * 100))
    assert (len(block.headers), block.size) == (100, 3400)


BEGINNING = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/s/M"))


@pytest.mark.parametrize(
    "request_headers",
    [
        BEGINNING,
        (*BEGINNING, (b":authority", b"")),
        (*BEGINNING, (b"te", b"trailers"), (b"content-length", b"12"), (b"a", b"b"), (b"a", b"b")),
    ],
)
def test_a_request_as_it_should_be_has_no_fault(request_headers):
    assert HeaderDecoder(LIMIT).decode(headers.encode(request_headers)).fault == ""


MALFORMED = {
    "without a path": BEGINNING[:2],
    "without a method": BEGINNING[1:],
    "without a scheme": (BEGINNING[0], BEGINNING[2]),
    "with an empty path": (*BEGINNING[:2], (b":path", b"")),
    "with a method twice": (BEGINNING[0], *BEGINNING),
    "with a path twice": (*BEGINNING, (b":path", b"/s/N")),
    "with a pseudo-header behind another": (*BEGINNING, (b"a", b"b"), (b":authority", b"x")),
    "with an unknown pseudo-header": (*BEGINNING, (b":test", b"x")),
    "with the pseudo-header of an answer": (*BEGINNING, (b":status", b"200")),
    "with upper case": (*BEGINNING, (b"X-Test", b"x")),
    "with an empty name": (*BEGINNING, (b"", b"x")),
    "with connection": (*BEGINNING, (b"connection", b"keep-alive")),
    "with keep-alive": (*BEGINNING, (b"keep-alive", b"5")),
    "with transfer-encoding": (*BEGINNING, (b"transfer-encoding", b"chunked")),
    "with upgrade": (*BEGINNING, (b"upgrade", b"h2c")),
    "with another te": (*BEGINNING, (b"te", b"trailers, deflate")),
    "with a content-length that is no number": (*BEGINNING, (b"content-length", b"-1")),
    "with a content-length that no content has": (*BEGINNING, (b"content-length", b"9" * 5000)),
}


@pytest.mark.parametrize("request_headers", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("peer", [headers.encode, lambda listed: Encoder().encode(listed)], ids=["plain", "compressed"])
def test_a_malformed_request_says_why(request_headers, peer):
    """RFC 9113, 8.2 and 8.3: what h2spec tries in 8.1.2."""
    assert HeaderDecoder(LIMIT).decode(peer(request_headers)).fault


@pytest.mark.parametrize("entry", [(b":path", b"/"), (b"X", b"y"), (b"connection", b"close")])
def test_malformed_trailers_say_why(entry):
    assert headers.fault_of_trailers((entry,))
    assert not headers.fault_of_trailers(((b"grpc-status", b"0"),))
