"""How far a consumer is with what it was sent."""

from hypothesis import given
from hypothesis import strategies as st

from fila.core.hands import Hands


@given(
    st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), max_size=5),
    st.lists(st.integers(0, 30), max_size=6),
)
def test_what_was_handed_is_the_first_so_many_that_were_sent(grants, reports):
    """Whatever is reported, in whatever parts it was sent: never more than was sent, and never less than before."""
    hands, sent, handed = Hands(), [], 0
    seq = 0
    for token, parts in enumerate(grants, 1):
        for size in parts:
            seqs = list(range(seq, seq + size))
            seq += size
            hands.send(token, seqs)
            sent += [(token, each) for each in seqs]
            for count in reports:
                hands.report(count)
                handed = max(handed, min(count, len(sent)))
            for lease in range(1, len(grants) + 2):
                members = [each for other, each in sent if other == lease]
                expected = {each for other, each in sent[:handed] if other == lease}
                assert hands.among(lease, members) == expected
            assert list(hands.waiting()) == [each for _, each in sent[handed:]]
