"""The send window against a model of the broker that loses connections, answers late and refuses."""

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fila.client.errors import InternalError
from fila.client.reply import ThreadReply
from fila.client.send_window import SMALL_BYTES, Batch, SendWindow
from fila.client.waiter import Waiter


def batch(number: int, size: int = SMALL_BYTES) -> Batch[Waiter]:
    return Batch(str(number).encode().rjust(size), [Waiter(ThreadReply(), 0.0)])


def number(of: Batch[Waiter]) -> int:
    return int(of.data)


class Broker:
    """Applies a batch once: any number above the last one, and remembers whom it answered."""

    def __init__(self) -> None:
        self.applied: list[int] = []

    def receive(self, sequence: int) -> None:
        if not self.applied or sequence > self.applied[-1]:
            self.applied.append(sequence)

    def knows(self, sequence: int) -> bool:
        return sequence in self.applied


class SendWindowAgainstBroker(RuleBasedStateMachine):
    @initialize(window=st.integers(1, 4), poison=st.sets(st.integers(1, 20), max_size=3))
    def start(self, window: int, poison: set[int]) -> None:
        self.window = window
        self.poison = poison
        self.send_window: SendWindow[Waiter] = SendWindow(window)
        self.broker = Broker()
        self.made: list[Batch[Waiter]] = []
        self.gathered = 0
        self.wire: deque[Batch[Waiter]] = deque()  # written, not received
        self.answers: deque[Batch[Waiter]] = deque()  # received, answer on its way
        self.late: list[deque[int]] = []  # written to streams that broke; each may be received later, in its order
        self.answered: list[int] = []
        self.blamed: list[int] = []

    def make(self) -> Batch[Waiter] | None:
        if not self.gathered:
            return None
        self.gathered -= 1
        self.made.append(batch(len(self.made) + 1, size=len(self.made) % 3 * SMALL_BYTES))
        return self.made[-1]

    @rule(count=st.integers(1, 5))
    def gather(self, count: int) -> None:
        self.gathered += count

    @rule()
    def write(self) -> None:
        written = self.send_window.next(self.make)
        if written is not None:
            self.wire.append(written)

    @precondition(lambda self: self.wire)
    @rule()
    def receive(self) -> None:
        received = self.wire.popleft()
        if number(received) in self.poison:
            self.refuse()
        else:
            self.broker.receive(number(received))
            self.answers.append(received)

    def refuse(self) -> None:
        blamed = self.send_window.refused()
        if blamed is not None:
            assert number(blamed) in self.poison, "an innocent batch was blamed"
            self.blamed.append(number(blamed))
        self.break_stream()

    @precondition(lambda self: self.answers)
    @rule()
    def answer(self) -> None:
        expected = self.answers.popleft()
        got = self.send_window.answered()
        assert got is expected, "an answer went to the wrong batch"
        assert self.broker.knows(number(got)) or got.abandoned()
        self.answered.append(number(got))

    @rule()
    def lose(self) -> None:
        self.send_window.lost()
        self.break_stream()

    @precondition(lambda self: self.wire and self.wire[0].resent and not self.answers)
    @rule()
    def put_off(self) -> None:
        """The broker has no time for a batch that may have been carried out. It does not look at its number."""
        refused = self.send_window.answered()
        assert refused is self.wire.popleft()
        self.send_window.again(refused)
        if self.wire:  # what was sent behind it gets through
            self.broker.receive(number(self.wire.popleft()))
        self.lose()

    def break_stream(self) -> None:
        if self.wire:
            self.late.append(deque(number(each) for each in self.wire))
        self.wire.clear()
        self.answers.clear()

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def receive_late(self, data: st.DataObject) -> None:
        stream = data.draw(st.sampled_from(self.late))
        sequence = stream.popleft()
        if sequence in self.poison:
            stream.clear()  # the broker ends it
        else:
            self.broker.receive(sequence)
        if not stream:
            self.late = [each for each in self.late if each]

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        for waiter in data.draw(st.sampled_from(self.made)).waiters:
            waiter.fail(InternalError("gave up"))

    @invariant()
    def at_most_a_window_is_unanswered(self) -> None:
        if hasattr(self, "send_window"):
            assert len(self.wire) + len(self.answers) <= self.window

    @invariant()
    def nothing_is_applied_twice(self) -> None:
        if hasattr(self, "broker"):
            assert len(set(self.broker.applied)) == len(self.broker.applied)

    def teardown(self) -> None:
        """In the end whatever somebody waited for is answered or blamed, exactly once, and was applied if answered."""
        if not hasattr(self, "send_window"):
            return
        for _ in range(1000):
            self.write()
            if self.wire:
                self.receive()
            if self.answers:
                self.answer()
        assert len(self.send_window) == 0
        ended = self.answered + self.blamed
        assert len(set(ended)) == len(ended)
        waiting = {number(each) for each in self.made if not each.abandoned()}
        assert waiting <= set(ended)
        assert set(self.blamed) == set(self.blamed) & self.poison
        assert waiting - self.poison <= set(self.broker.applied)


SendWindowAgainstBroker.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestSendWindowAgainstBroker = SendWindowAgainstBroker.TestCase


def test_unanswered_batches_go_first_onto_the_next_stream_in_order_and_are_marked():
    send_window: SendWindow[Waiter] = SendWindow(8)
    made = [batch(n) for n in (1, 2, 3)]
    fresh = iter(made)
    sent = [send_window.next(lambda: next(fresh, None)) for _ in range(3)]
    assert send_window.answered() is made[0]
    send_window.lost()
    for expected in (made[1], made[2]):
        assert send_window.next(lambda: batch(4)) is expected
        assert send_window.next(lambda: batch(4)) is None, "it is resent alone"
        assert send_window.answered() is expected
    assert len(send_window) == 0
    assert [each.resent for each in sent if each is not None] == [False, True, True]


def test_small_batches_leave_time_to_gather():
    """While the last batch is small only two are under way; a large one does not hold back what follows."""
    send_window: SendWindow[Waiter] = SendWindow(8)
    small = iter([batch(n, size=1) for n in range(5)])
    assert [send_window.next(lambda: next(small)) is not None for _ in range(4)] == [True, True, False, False]
    send_window.answered()
    large = iter([batch(n) for n in range(20)])
    assert sum(send_window.next(lambda: next(large)) is not None for _ in range(20)) == 7


def test_a_batch_that_nobody_waits_for_is_not_sent_again():
    send_window: SendWindow[Waiter] = SendWindow(8)
    given_up = batch(1)
    send_window.next(lambda: given_up)
    given_up.waiters[0].fail(InternalError("gave up"))
    send_window.lost()
    assert send_window.next(lambda: None) is None
    assert len(send_window) == 0
