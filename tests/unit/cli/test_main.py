"""Options that all commands share, errors and exit codes."""

import subprocess
import sys

import pytest

from fila.client.errors import FilaTimeoutError, QueueNotFoundError, UnavailableError


def test_the_broker_is_local_unless_told_otherwise(fila):
    fila("queue", "list")
    assert fila.connections == [("localhost:5555", 5.0)]


@pytest.mark.parametrize("args", [("--addr", "b:1", "queue", "list"), ("queue", "list", "--addr", "b:1")])
def test_the_address_may_stand_before_or_after_the_command(fila, args):
    fila(*args)
    assert fila.connections == [("b:1", 5.0)]


def test_the_environment_names_the_broker_and_an_option_overrides_it(fila):
    fila("queue", "list", env={"FILA_ADDR": "env:1"})
    fila("queue", "list", "--addr", "option:2", env={"FILA_ADDR": "env:1"})
    assert [addr for addr, _ in fila.connections] == ["env:1", "option:2"]


@pytest.mark.parametrize("addr", ["nonsense", ":5555", "host:", "host:port", "host:70000"])
def test_a_malformed_address_is_wrong_usage(fila, addr):
    result = fila("--addr", addr, "queue", "list")
    assert result.exit_code == 2
    assert "is not an address" in result.stderr


def test_a_refusal_is_one_line_and_exit_code_1(fila, client):
    client.error = QueueNotFoundError('queue "foo" does not exist')
    result = fila("queue", "inspect", "foo")
    assert result.exit_code == 1
    assert result.stderr == 'Error: queue "foo" does not exist\n'
    assert result.stdout == ""


def test_no_broker_is_exit_code_3_and_says_what_to_check(fila, client):
    client.error = UnavailableError("failed to connect to all addresses")
    result = fila("queue", "list")
    assert result.exit_code == 3
    assert result.stderr == "Error: no broker answers at localhost:5555 (is fila-server running?)\n"


def test_a_slow_broker_is_exit_code_3(fila, client):
    client.error = FilaTimeoutError("deadline exceeded")
    result = fila("--timeout", "2", "queue", "list")
    assert result.exit_code == 3
    assert result.stderr == "Error: no answer from localhost:5555 within 2 s (is fila-server running?)\n"


def test_an_interrupt_is_exit_code_130_without_a_word(fila, client):
    client.error = KeyboardInterrupt()
    result = fila("queue", "list")
    assert (result.exit_code, result.output) == (130, "")


def test_an_error_text_cannot_bring_escapes(fila, client):
    client.error = QueueNotFoundError('queue "\x1b[2J" does not exist')
    assert "\x1b" not in fila("queue", "inspect", "x").output


def test_even_a_defect_is_no_traceback(fila, client):
    client.error = ZeroDivisionError("oops")
    result = fila("queue", "list")
    assert result.exit_code == 1
    assert result.stderr == "Error: unexpected ZeroDivisionError: oops\n"


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("queue",),
        *(("queue", name) for name in ("create", "list", "inspect", "delete")),
        ("enqueue",),
        ("consume",),
    ],
)
def test_help_shows_examples_at_every_level(fila, command):
    result = fila(*command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout


def test_help_does_not_load_what_only_tables_need():
    code = "import sys, fila.cli.main; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
