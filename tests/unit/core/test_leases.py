"""Who holds which message, and until when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.leases import MANY_DEAD, Grant, Leases

LANE = Lane(FairKey("tenant"), 5, (b"", b""))


def grant(number, seqs, *, token=None, consumer=1, expires_at=100):
    return Grant(number, token or number, consumer, expires_at, {seq: (LANE, seq, 1) for seq in seqs})


def held(*grants):
    leases = Leases()
    for one in grants:
        leases.add(one)
    return leases


def test_a_leased_message_is_found():
    """A message leads to its grant, an unknown one to nothing."""
    first = grant(1, [10, 11])
    leases = held(first)
    assert leases.find(10) is first
    assert leases.find(12) is None
    assert 11 in leases
    assert len(leases) == 2


def test_a_token_of_another_lease_finds_nothing():
    """With a token a message is found only under that lease."""
    leases = held(grant(1, [10]))
    assert leases.find(10, 1) is not None
    assert leases.find(10, 2) is None


def test_releasing_returns_the_message_and_its_grant():
    """What is released is what was granted, and is held no more."""
    first = grant(1, [10, 11], consumer=7)
    leases = held(first)
    assert leases.release(10) == (first, (LANE, 10, 1))
    assert leases.find(10) is None
    assert leases.find(11) is first
    with pytest.raises(KeyError):
        leases.release(10)


def test_releasing_many_says_what_each_consumer_no_longer_holds():
    """Releasing many at once is the same as one by one, told by consumer."""
    leases = held(grant(1, [10, 11], consumer=1), grant(2, [20], consumer=2), grant(3, [30]))
    released = {consumer: [seq for _, seq, _ in messages] for consumer, messages in leases.release_many([11, 20, 10])}
    assert released == {1: [11, 10], 2: [20]}
    assert [one.number for one in leases.grants()] == [3]


def test_messages_are_found_together_only_when_one_grant_holds_each_of_them_once():
    """Whatever else is asked for is looked at message by message."""
    leases = held(first := grant(1, [10, 11, 12]), grant(2, [20]))
    assert leases.find_all([12, 10]) is leases.find_all([12, 10], first.token) is first
    for seqs in ([10, 20], [10, 10], [10, 99], [10, None], []):
        assert leases.find_all(seqs) is None
    assert leases.find_all([10], 2) is None


def test_a_grant_without_messages_is_gone():
    """With its last message a grant leaves its consumer and the order of expiry."""
    leases = held(grant(1, [10], expires_at=50), grant(2, [20], expires_at=90))
    leases.release(10)
    assert [one.number for one in leases.of_consumer(1)] == [2]
    assert leases.next_expiry() == 90
    leases.release(20)
    assert leases.of_consumer(1) == leases.grants() == []
    assert leases.next_expiry() is None


def test_an_extension_moves_the_message():
    """Added under a new grant, a message leaves the old one and keeps its token."""
    old, new = grant(1, [10, 11]), grant(2, [10], token=1, expires_at=500)
    leases = held(old)
    leases.add(new)
    assert leases.find(10, 1) is new
    assert list(old.members) == [11]
    assert len(leases) == 2
    assert [one.number for one in leases.expired(100, 10)] == [1]


def test_extending_the_last_message_ends_the_old_grant():
    """A grant that lost all its messages to a later one does not expire any more."""
    leases = held(grant(1, [10]), grant(2, [10], token=1, expires_at=500))
    assert leases.expired(400, 10) == []
    assert [one.number for one in leases.of_consumer(1)] == [2]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(0, 60), st.integers(1, 50))
def test_grants_expire_in_order_and_asking_changes_nothing(ends, now, limit):
    """Those whose time is over, earliest first, as many as hold `limit` messages; asking twice answers twice."""
    leases = held(*(grant(n, [10 * n, 10 * n + 1], expires_at=end) for n, end in enumerate(ends, 1)))
    expected = sorted((end, n) for n, end in enumerate(ends, 1) if end <= now)[: (limit + 1) // 2]
    for _ in range(2):
        assert [(one.expires_at, one.number) for one in leases.expired(now, limit)] == expected
    assert len(leases) == 2 * len(ends)


def test_ended_grants_do_not_pile_up():
    """A lease that was settled costs nothing, however far its end was away."""
    leases = held(grant(1, [1], expires_at=10**18))
    for number in range(2, 10_000):
        leases.add(grant(number, [number], expires_at=10**18 + number))
        leases.release(number)
    assert len(leases._expiry) <= 2 * MANY_DEAD
    assert leases.next_expiry() == 10**18


class LeaseModel(RuleBasedStateMachine):
    """Leases against a plain dictionary of message -> (token, consumer, end)."""

    def __init__(self):
        super().__init__()
        self.leases = Leases()
        self.model = {}
        self.number = 0
        self.last_seq = 0

    @rule(count=st.integers(1, 5), consumer=st.integers(1, 3), end=st.integers(0, 50))
    def deliver(self, count, consumer, end):
        self.number += 1
        seqs = range(self.last_seq + 1, self.last_seq + count + 1)
        self.last_seq += count
        self.leases.add(grant(self.number, seqs, consumer=consumer, expires_at=end))
        self.model |= dict.fromkeys(seqs, (self.number, consumer, end))

    @precondition(lambda self: self.model)
    @rule(data=st.data(), end=st.integers(0, 90))
    def extend(self, data, end):
        seq = data.draw(st.sampled_from(sorted(self.model)))
        token, consumer, _ = self.model[seq]
        self.number += 1
        self.leases.add(grant(self.number, [seq], token=token, consumer=consumer, expires_at=end))
        self.model[seq] = (token, consumer, end)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), together=st.booleans())
    def settle(self, data, together):
        seqs = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True, max_size=4))
        if together:
            self.leases.release_many(seqs)
        else:
            for seq in seqs:
                self.leases.release(seq)
        for seq in seqs:
            del self.model[seq]

    @invariant()
    def each_message_is_in_the_grant_that_the_model_says(self):
        in_grants = [(seq, one) for one in self.leases.grants() for seq in one.members]
        assert {seq: (one.token, one.consumer, one.expires_at) for seq, one in in_grants} == self.model
        assert len(in_grants) == len(self.model) == len(self.leases)
        assert all(self.leases.find(seq) is one for seq, one in in_grants)

    @invariant()
    def the_order_of_expiry_is_that_of_the_model(self):
        ends = [end for _, _, end in self.model.values()]
        expired = [one.expires_at for one in self.leases.expired(40, 10**6)]
        assert expired == sorted(expired)
        assert set(expired) == {end for end in ends if end <= 40}
        assert self.leases.next_expiry() == min(ends, default=None)

    @invariant()
    def each_consumer_has_its_grants(self):
        for consumer in (1, 2, 3):
            seqs = {seq for one in self.leases.of_consumer(consumer) for seq in one.members}
            assert seqs == {seq for seq, (_, owner, _) in self.model.items() if owner == consumer}


TestLeaseModel = LeaseModel.TestCase
