"""Consumers: credit and turns."""

from fila.core.consumers import Consumer, Consumers


def consumer(number, max_in_flight=10):
    return Consumer(number, max_in_flight, deliver=lambda grant: None, end=lambda error: None)


def joined(*numbers):
    consumers = Consumers()
    for number in numbers:
        consumers.add(consumer(number))
    return consumers


def turns(consumers):
    return [(one.number, credit) for one, credit in consumers.with_credit()]


def test_credit_is_what_may_still_be_handed_out():
    """A consumer is never owed more than its max_in_flight less what it holds."""
    one = consumer(1, max_in_flight=5)
    one.in_flight = 3
    assert one.credit == 2


def test_a_busy_consumer_has_no_credit():
    """Whoever still has deliveries to write is handed no more."""
    one = consumer(1)
    one.busy = True
    assert one.credit == 0


def test_consumers_without_credit_are_passed_over():
    """Only those that may be handed messages have a turn."""
    consumers = joined(1, 2, 3)
    consumers.find(2).in_flight = 10
    consumers.find(3).busy = True
    assert turns(consumers) == [(1, 10)]


def test_the_round_begins_behind_the_one_that_was_served_last():
    """Consumers are served in turn, also over many deliveries."""
    consumers = joined(1, 2, 3)
    first = []
    for _ in range(6):
        served = consumers.with_credit()[0][0]
        first.append(served.number)
        consumers.serve_after(served)
    assert first == [1, 2, 3, 1, 2, 3]


def test_a_consumer_that_leaves_is_forgotten():
    """Leaving twice, or never having joined, is no error."""
    consumers = joined(1, 2)
    assert consumers.remove(1).number == 1
    assert consumers.remove(1) is None
    assert consumers.find(1) is None
    assert len(consumers) == 1
    assert [one.number for one in consumers.all()] == [2]


def test_leaving_keeps_the_turns_of_the_others():
    """The order of those that stay does not change."""
    consumers = joined(1, 2, 3)
    consumers.serve_after(consumers.find(1))
    consumers.remove(3)
    assert [number for number, _ in turns(consumers)] == [2, 1]


def test_whether_any_has_credit_is_known_at_the_first_that_has():
    """A consumer that leaves asks: it does not cost a look at thousands of others."""

    class Counted(Consumer):
        asked = 0

        @property
        def credit(self):
            Counted.asked += 1
            return self.max_in_flight

    consumers = Consumers()
    assert not consumers.has_credit
    for number in range(1000):
        consumers.add(Counted(number, 0 if number == 0 else 1, print, print))
    assert consumers.has_credit
    assert Counted.asked == 2
