"""Which member tries to own the shard, and when."""

from fila.replicas.view import SILENCE, TURN, Beat, View

OWNS, FOLLOWS, BEHIND = Beat(True, 3, 10), Beat(False, 3, 10), Beat(False, 3, 5)
NOW = 10**18
BIT = 10**6


def seen_by_second(first=OWNS, third=FOLLOWS):
    view = View(1, 3, NOW)
    view.heard(0, first, NOW)
    view.heard(2, third, NOW)
    return view


def test_nobody_tries_while_there_is_an_owner():
    view = seen_by_second()
    assert view.owner(NOW) == 0
    assert not view.should_try(10, NOW)


def test_an_owner_whose_address_refuses_is_followed_at_once():
    view = seen_by_second()
    view.gone(0)
    assert view.owner(NOW) is None
    assert view.should_try(10, NOW)


def test_an_owner_that_is_silent_is_given_up_when_the_log_does_not_move_either():
    view = seen_by_second()
    late = NOW + SILENCE
    view.heard(2, FOLLOWS, late - BIT)
    assert not view.should_try(10, late - BIT)
    assert view.should_try(10, late)
    view = seen_by_second()
    view.heard(2, FOLLOWS, late - BIT)
    view.log_moved(late - BIT)
    assert not view.should_try(10, late)
    view.heard(2, FOLLOWS, late + SILENCE - 2 * BIT)
    assert view.should_try(10, late + SILENCE - BIT)


def test_members_give_an_owner_up_at_different_times():
    view = View(1, 2, NOW, jitter=BIT)
    view.heard(0, OWNS, NOW)
    assert not view.should_try(10, NOW + SILENCE)
    assert view.should_try(10, NOW + SILENCE + BIT)


def test_the_one_that_has_read_furthest_tries_first():
    view = seen_by_second(third=FOLLOWS)
    view.gone(0)
    assert not view.should_try(9, NOW), "the third has read further"
    assert view.should_try(9, NOW + TURN)
    view = seen_by_second(third=BEHIND)
    view.gone(0)
    assert view.should_try(9, NOW)


def test_of_those_that_have_read_the_same_the_first_in_the_list_tries_first():
    view = View(2, 3, NOW)
    view.heard(0, FOLLOWS, NOW)
    view.heard(1, FOLLOWS, NOW)
    view.gone(1)
    assert not view.should_try(10, NOW)
    assert view.should_try(10, NOW + TURN)


def test_a_member_that_has_said_nothing_yet_may_be_the_owner():
    view = View(0, 2, NOW)
    assert not view.should_try(10, NOW)
    view.heard(1, BEHIND, NOW)
    assert view.should_try(10, NOW)
    view.gone(1)
    view.reached(1, NOW)
    assert not view.should_try(10, NOW)


def test_one_that_was_never_heard_is_given_up_when_the_log_does_not_move():
    """Its address may refuse because of a firewall."""
    view = View(0, 2, NOW)
    view.gone(1)
    view.log_moved(NOW + BIT)
    assert not view.should_try(10, NOW + SILENCE)
    assert view.should_try(10, NOW + SILENCE + BIT)


def test_reaching_a_member_that_says_nothing_does_not_count_as_hearing_of_it():
    """A process that is stopped is connected to by its machine."""
    view = seen_by_second()
    late = NOW + SILENCE
    view.heard(2, FOLLOWS, late - BIT)
    view.reached(0, late - BIT)
    assert view.should_try(10, late)


def test_one_whose_barrier_counts_has_time_to_say_that_it_owns_the_shard():
    view = seen_by_second(first=FOLLOWS, third=BEHIND)
    view.took(0, NOW)
    assert not view.should_try(10, NOW)
    view.gone(0)
    assert view.should_try(10, NOW)


def test_one_that_says_that_it_tries_has_time_for_it():
    """The engine may be slow. But one that cannot reach it does not keep the others from trying for ever."""
    view = seen_by_second(first=FOLLOWS, third=BEHIND)
    view.heard(0, BEHIND._replace(tries=True), NOW)
    assert not view.should_try(10, NOW)
    late = NOW + SILENCE
    view.heard(0, BEHIND._replace(tries=True), late)
    view.heard(2, BEHIND, late)
    assert view.should_try(10, late)


def test_the_owner_of_the_latest_epoch_is_the_owner():
    view = seen_by_second(first=Beat(True, 3, 10), third=Beat(True, 4, 10))
    assert view.owner(NOW) == 2


def test_who_goes_names_the_standby_that_has_read_furthest():
    view = View(0, 4, NOW)
    assert view.furthest(NOW) is None
    view.heard(1, BEHIND, NOW)
    view.heard(2, FOLLOWS, NOW)
    view.heard(3, FOLLOWS, NOW)
    assert view.furthest(NOW) == 2
    view.gone(2)
    assert view.furthest(NOW) == 3
    assert view.furthest(NOW + SILENCE) is None


def test_an_owner_knows_that_some_may_not_hear_it():
    view = seen_by_second(first=FOLLOWS)
    assert not view.misses_some(NOW)
    assert view.misses_some(NOW + SILENCE)
    view.gone(0)
    assert view.misses_some(NOW), "that it has ended may be wrong"
    assert View(0, 2, NOW).misses_some(NOW)
