"""Commands that destroy something ask on a terminal and need --yes elsewhere: all that there are, and any new one.

Two rules find a new one. A command with a destructive word in its name has --yes and asks. And whatever a command is
called, it calls nothing destructive of the SDK without a terminal and without --yes; a new method of the SDK has to be
put into one of the two lists.
"""

from types import SimpleNamespace
from unittest.mock import MagicMock

import click
import pytest
from click.testing import CliRunner

from fila import Client
from fila.cli.main import cli
from fila.cli.session import Session
from fila.client import BlockingAuth
from tests.unit.cli.conftest import FakeClient
from tests.unit.cli.test_help import COMMANDS

WORDS = {
    "clear", "delete", "destroy", "drop", "erase", "flush", "forget", "prune", "purge", "redrive", "remove", "reset",
    "restore", "revoke", "rm", "truncate", "unset", "wipe",
}  # fmt: skip

DESTRUCTIVE = {
    "delete_config",
    "delete_principal",
    "delete_queue",
    "delete_role",
    "purge",
    "redrive",
    "remove_certificate_rule",
    "revoke_key",
}
"""What cannot be taken back: messages, rights, secrets, values that nobody remembers."""
HARMLESS = {
    "ack", "ack_many", "add_certificate_rule", "auth", "close", "consume", "consume_batches", "create_key",
    "create_queue", "describe", "describe_server", "enqueue", "enqueue_many", "ensure_queue", "explain", "extend",
    "get_config", "group", "list_certificate_rules", "list_config", "list_keys", "list_principals", "list_queues",
    "list_roles", "nack", "pause_queue", "peek", "queue_stats", "read_audit", "read_journal", "read_journal_batches",
    "read_queue", "read_queue_packed", "reject", "release", "resume_queue", "rotate_key", "set_config",
    "set_principal", "set_role", "transaction", "try_hook", "update_queue", "who_am_i",
}  # fmt: skip
"""Methods that read, add or change; also those that settle a message, which is what a consumer is for."""

SERVICES = {"bench", "console", "pipeline", "reconcile", "worker"}
"""Run until they are stopped, without the SDK, or on a queue of their own: only their names are looked at."""


def leaves():
    return {path: command for path, command in COMMANDS.items() if path and not isinstance(command, click.Group)}


def asks(command):
    return any("--yes" in parameter.opts for parameter in command.params)


ASKING = [path for path, command in leaves().items() if asks(command)]


class Recorder(FakeClient):
    """A broker that has something of everything, and remembers what of it was destroyed."""

    def __init__(self):
        super().__init__(config={"throttle.x": "rate=1"})
        self.destroyed = []

    def __getattr__(self, name):
        if name in {"config", "calls", "destroyed"} or name.startswith("__"):
            raise AttributeError(name)
        return self._method(name)

    def __getattribute__(self, name):
        return self._method(name) if name in DESTRUCTIVE else super().__getattribute__(name)

    def _method(self, name):
        def call(*args, **options):
            if name in DESTRUCTIVE and not options.get("dry_run"):
                self.destroyed.append(name)
            return 1 if name in DESTRUCTIVE else MagicMock(name=name)

        return call

    @property
    def auth(self):
        return SimpleNamespace(**{name: self._method(name) for name in public(BlockingAuth)})


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def arguments(command, folder):
    """Something for everything that a command requires."""
    given = []
    for parameter in command.params:
        if not parameter.required:
            continue
        if isinstance(parameter.type, click.Path):
            (folder / "given.toml").write_text("[throttles]\n")
            value = str(folder / "given.toml")
        elif isinstance(parameter.type, click.Choice):
            value = parameter.type.choices[0]
        else:
            value = "1"
        given += [parameter.opts[0], value] if isinstance(parameter, click.Option) else [value]
    return given


SPECIAL = {
    ("apply",): ["--prune"],
    ("context", "remove"): [],
}
"""Options with which a command destroys something"""


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Runs a command without a terminal, with all that it requires. Returns what came of it and what it destroyed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _: None)

    def run(path, *options):
        recorder = Recorder()
        made = Session(make_client=lambda *_, **__: recorder)
        args = [*path, *arguments(leaves()[path], tmp_path), *SPECIAL.get(path, []), *options]
        CliRunner().invoke(cli, ["context", "add", "1", "--addr", "a:1"])
        return CliRunner().invoke(cli, args, obj=made, prog_name="fila", input=""), recorder.destroyed

    return run


def test_each_method_of_the_sdk_is_known_to_destroy_or_not():
    assert public(Client) | public(BlockingAuth) == HARMLESS | DESTRUCTIVE
    assert not HARMLESS & DESTRUCTIVE


@pytest.mark.parametrize("path", leaves(), ids=" ".join)
def test_a_command_with_a_destructive_name_asks(path):
    if set(path[-1].split("-")) & WORDS:
        assert path in ASKING


@pytest.mark.parametrize("path", [path for path in leaves() if path[0] not in SERVICES], ids=" ".join)
def test_no_command_destroys_anything_unasked(invoke, path):
    _, destroyed = invoke(path)
    assert destroyed == []


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_without_a_terminal_a_command_that_asks_is_refused_and_says_how_to_confirm(invoke, path):
    result, _ = invoke(path)
    assert result.exit_code == 2
    assert "Add --yes to confirm." in " ".join(result.stderr.split())


@pytest.mark.parametrize("path", [path for path in ASKING if path[0] not in SERVICES | {"context"}], ids=" ".join)
def test_with_yes_it_is_done_unasked(invoke, path):
    """So these runs do what the command is for, and the ones above would notice it."""
    result, destroyed = invoke(path, "--yes")
    assert result.exit_code == 0, result.output
    assert len(destroyed) == 1


def test_a_new_command_that_forgets_to_ask_is_found(invoke, monkeypatch):
    """So that these tests can fail."""

    @click.command()
    @click.argument("name")
    @click.pass_obj
    def tidy(session, name):
        with session.client() as client:
            client.delete_queue(name, force=True)

    monkeypatch.setitem(cli.commands, "tidy", tidy)
    monkeypatch.setitem(COMMANDS, ("tidy",), tidy)
    _, destroyed = invoke(("tidy",))
    assert destroyed == ["delete_queue"]


@pytest.mark.parametrize(
    "options, asked",
    [
        ((), True),
        (("--rate", "5"), True),
        (("--key", "acme"), False),
        (("--count", "5"), False),
        (("--dry-run",), False),
        (("--yes",), False),
    ],
)
def test_a_redrive_asks_when_it_is_of_all_messages(fila, options, asked):
    result = fila("dlq", "redrive", "orders.dlq", *options)
    assert (result.exit_code == 2) == asked
    if asked:
        assert 'Move 42 messages from "orders.dlq" to "orders"?' in result.stderr


def test_a_redrive_of_nothing_asks_nothing(fila, client, monkeypatch):
    monkeypatch.setattr(client, "redrive", lambda *_, **__: 0)
    assert fila("redrive", "orders.dlq").stdout == 'Moved 0 messages from "orders.dlq" to "orders"\n'
