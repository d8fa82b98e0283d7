"""The table of operations."""

from typing import get_args

from fila.broker.commands import Command
from fila.broker.operations import OPERATIONS


def test_every_command_has_a_plan():
    assert set(OPERATIONS) == set(get_args(Command))
