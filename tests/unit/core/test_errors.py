"""The tree of errors."""

import inspect

from fila.core import errors
from fila.core.errors import BrokerError, LeaseEnded, MessageGone, MessageNotFound, QueueAlreadyExists, QueueNotFound

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BrokerError)]


def test_the_drawn_tree_names_every_error():
    """The picture at the top of the file is complete, and each error says what it means."""
    for kind in ALL:
        assert kind.__name__ in errors.__doc__
        assert kind.__doc__


def test_an_error_stays_short_however_long_the_name():
    """What a client sent is repeated only in part."""
    name = "q" * 1_000_000
    for error in (
        QueueNotFound(name),
        QueueAlreadyExists(name),
        MessageNotFound(name, name),
        LeaseEnded(name, name),
        MessageGone(name, name),
    ):
        assert len(str(error)) < 400


def test_a_short_name_is_repeated_whole():
    """The person who sent it sees what was not found."""
    assert str(QueueNotFound("orders")) == 'queue "orders" does not exist'
