"""The help of every command: grouped, complete, with examples, and readable in 80 columns."""

from pathlib import Path

import click
import pytest

from fila.auth.allowance import LIMITS
from fila.cli.main import cli
from fila.v1 import auth_pb2

ROOT = Path(__file__).parents[3]


def walk(command, path=()):
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from walk(each, (*path, name))


COMMANDS = dict(walk(cli))
every_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


def test_every_command_stands_under_one_heading():
    listed = [name for names in cli.sections.values() for name in names]
    assert sorted(listed) == sorted(cli.commands)
    assert list(cli.sections) == ["Messages", "Queues", "Operations", "Security", "Jobs", "Pipelines", "Command line"]


def test_the_headings_are_in_the_help_in_order(fila):
    text = fila("--help").stdout
    places = [text.index(f"\n{heading}:\n") for heading in cli.sections]
    assert places == sorted(places)
    assert "..." not in text.replace("[ARGS]...", "")  # nothing is cut off


@every_command
def test_every_command_has_an_example_of_itself(fila, path):
    result = fila(*path, "--help")
    assert result.exit_code == 0
    _, _, examples = result.stdout.partition("Examples:")
    assert " ".join(("fila", *path)) in examples


@every_command
def test_every_option_and_command_is_described_by_a_sentence(path):
    command = COMMANDS[path]
    described = {"": command.help} | {
        option.name: option.help for option in command.params if isinstance(option, click.Option)
    }
    wrong = {name: text for name, text in described.items() if not text or not text[0].isupper()}
    wrong |= {name: text for name, text in described.items() if text and not text.strip().endswith(".")}
    assert wrong == {}


@every_command
def test_a_list_of_commands_is_not_cut_off(fila, path):
    """The first sentence of each is short enough for one line."""
    if hasattr(COMMANDS[path], "commands"):
        text = fila(*path, "--help").stdout
        listed = text.partition("Commands:")[2].partition("Examples:")[0]
        assert "..." not in listed


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_of_a_principal_is_named_where_it_is_set_and_explained(fila, name):
    assert name in fila("auth", "principal", "set", "--help").stdout
    assert f"| `{name}` |" in (ROOT / "docs" / "keys.md").read_text()
    assert name in auth_pb2.PrincipalLimits.DESCRIPTOR.fields_by_name
