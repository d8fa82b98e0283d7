"""`fila completion`: the scripts, and which names are offered. What a real shell makes of them: tests/e2e."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cli import completing
from fila.cli.completion import Bash
from fila.cli.main import cli
from fila.cli.session import Session
from tests.unit.cli.conftest import FakeClient, summary
from tests.unit.cli.test_help import COMMANDS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(fila, shell):
    result = fila("completion", shell)
    assert result.exit_code == 0
    assert "_FILA_COMPLETE" in result.stdout


def test_another_shell_is_wrong_usage(fila):
    assert fila("completion", "tcsh").exit_code == 2


@pytest.mark.parametrize(
    "line, words",
    [
        ("fila ", ([], "")),
        ("fila que", ([], "que")),
        ("fila queue upd", (["queue"], "upd")),
        ("fila throttle unset provider:a", (["throttle", "unset"], "provider:a")),
        ("fila stats --addr=a:1 'two w", (["stats", "--addr=a:1"], "two w")),
        ("fila", ([], "")),
        ("", ([], "")),
    ],
)
def test_a_line_is_words_and_the_beginning_of_one(monkeypatch, line, words):
    monkeypatch.setenv("COMP_LINE", line)
    assert Bash(cli, {}, "fila", "_FILA_COMPLETE").get_completion_args() == words


@pytest.fixture
def complete(client):
    """The names that are offered for the end of a line."""

    def run(*words):
        *args, typed = words
        made = Session(make_client=lambda *_, **__: client)
        found = Bash(cli, {"obj": made}, "fila", "_FILA_COMPLETE").get_completions(args, typed)
        return [each.value for each in found]

    return run


class TestNames:
    @pytest.fixture(autouse=True)
    def _known(self, client):
        dead = summary("orders.dlq", dead_letter_queue="")
        client.queues = [summary("orders"), dead, summary("other")]
        client.config = {"throttle.provider:aws": "", "throttle.provider:gcp": "", "pricing.tier": ""}

    @pytest.mark.parametrize(
        "words, offered",
        [
            (("stats", "or"), ["orders", "orders.dlq"]),
            (("dlq", "peek", ""), ["orders", "orders.dlq", "other"]),
            (("dlq", "redrive", "or"), ["orders.dlq"]),
            (("journal", "tail", "--queue", "ot"), ["other"]),
            (("throttle", "unset", "provider:"), ["provider:aws", "provider:gcp"]),
            (("config", "get", "p"), ["pricing.tier"]),
            (("explain", "orders", "--key", "a"), ["acme"]),
            (("dlq", "peek", "--key", "a"), []),
            (("queue", "create", "or"), []),
        ],
    )
    def test_are_those_that_fit(self, complete, words, offered):
        assert complete(*words) == offered

    def test_of_contexts_are_those_of_the_file(self, complete, fila):
        fila("context", "add", "prod", "--addr", "a:1")
        assert complete("context", "use", "") == complete("--context", "p") == ["prod"]

    @pytest.mark.parametrize("error", [OSError("away"), click.UsageError("wrong"), RuntimeError("?")])
    def test_are_none_when_the_broker_is_away(self, complete, client, error, capfd):
        client.error = error
        assert complete("stats", "") == []
        assert complete("--addr", "nonsense", "stats", "") == []
        assert capfd.readouterr() == ("", "")

    def test_are_asked_for_with_little_patience(self, client):
        timeouts = []

        def connect(_addr, timeout):
            timeouts.append(timeout)
            return client

        Bash(cli, {"obj": Session(make_client=connect)}, "fila", "").get_completions(["--timeout", "60", "stats"], "")
        assert timeouts == [completing.TIMEOUT_S]

    @given(st.text())
    def test_that_a_shell_would_act_on_are_not_offered(self, name):
        client = FakeClient(queues=[summary(name)])
        session = Session(make_client=lambda *_, **__: client)
        ctx = click.Context(cli, obj=session)
        offered = completing.queue_names(ctx, cli.params[0], "")
        assert all(each.value == name and not set(name) & set("$`\"'\\;&|<>(){}[]*?!#~ \t\n\x1b") for each in offered)
        assert all(not name.startswith("-") for _ in offered)


QUEUES = [
    (path, parameter)
    for path, command in COMMANDS.items()
    for parameter in command.params
    if "queue" in (parameter.name, (parameter.metavar or "").lower())
    or (path[0:1] == ("queue",) and parameter.name == "name")
]


@pytest.mark.parametrize("path, parameter", QUEUES, ids=lambda each: " ".join(each) if isinstance(each, tuple) else "")
def test_wherever_a_queue_is_named_its_name_is_completed(path, parameter):
    """But for new queues, and for those of services that are no broker."""
    new = path in {("queue", "create"), ("bench",)} or path[0] in {"worker", "reconcile"} or parameter.name in NEW
    assert (parameter._custom_shell_complete is None) == new


NEW = {"discrepancies", "alerts", "refused"}
"""Options of pipelines: these queues are created"""


def test_a_shell_that_asks_is_answered():
    """As the script asks: with the line so far in a variable."""
    fila = Path(sys.executable).parent / "fila"
    for line, expected in (("fila que", "queue"), ("fila queue upd", "update"), ("fila top --sort old", "oldest")):
        env = {**os.environ, "_FILA_COMPLETE": "bash_complete", "COMP_LINE": line}
        result = subprocess.run([fila], env=env, capture_output=True, text=True, check=False, timeout=30)
        assert expected in result.stdout
