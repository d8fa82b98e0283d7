"""Options that all commands share, errors and exit codes."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from fila import TLS
from fila.cli.main import cli
from fila.cli.session import Session
from fila.client.errors import FilaTimeoutError, QueueNotFoundError, TLSError, UnavailableError


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


MALFORMED = ["nonsense", ":5555", "host:", "host:port", "host:70000", "host:0", "a:1,b", "a:1,", "h\x1b[2J:1"]


@pytest.mark.parametrize("addr", MALFORMED)
def test_a_malformed_address_is_wrong_usage(fila, addr):
    for result in (fila("--addr", addr, "queue", "list"), fila("queue", "list", env={"FILA_ADDR": addr})):
        assert result.exit_code == 2
        assert "is not an address" in result.stderr
        assert "\x1b" not in result.stderr
    assert fila.connections == []


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
    assert result.stderr == "Error: no broker answers at localhost:5555 (default address). Is fila-server running?\n"


def test_a_slow_broker_is_exit_code_3(fila, client):
    client.error = FilaTimeoutError("deadline exceeded")
    result = fila("--timeout", "2", "queue", "list")
    assert result.exit_code == 3
    said = "no answer from localhost:5555 (default address) within 2 s. Is fila-server running?"
    assert result.stderr == f"Error: {said}\n"


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
    assert result.stderr == "Error: unexpected error ZeroDivisionError: oops\n"


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


class TestTls:
    @pytest.fixture
    def tls(self, client):
        """The `tls` that a client is made with, for the options of a command line."""

        def run(*args):
            made = []

            def connect(_addr, _timeout, **options):
                made.append(options)
                return client

            answer = CliRunner().invoke(cli, args, obj=Session(make_client=connect), prog_name="fila")
            assert answer.exit_code == 0, answer.output
            return made[0].get("tls")

        return run

    def test_without_options_the_client_decides(self, tls):
        assert tls("queue", "list") is None

    def test_options_before_and_after_the_command(self, tls):
        assert tls("--tls", "queue", "list") == TLS()
        assert tls("--tls-ca", "a", "queue", "list", "--tls-server-name", "n") == TLS(ca="a", server_name="n")
        assert tls("queue", "list", "--tls-cert", "c", "--tls-key", "k") == TLS(cert="c", key="k")

    def test_an_option_goes_before_its_variable(self, tls, monkeypatch):
        monkeypatch.setenv("FILA_TLS_CA", "theirs")
        monkeypatch.setenv("FILA_TLS_SERVER_NAME", "name")
        assert tls("--tls-ca", "ours", "queue", "list") == TLS(ca="ours", server_name="name")

    def test_a_failed_check_is_one_line(self, fila, client, monkeypatch):
        def fail():
            raise TLSError("b:1: the certificate of 'b' has expired (certificate has expired)")

        monkeypatch.setattr(client, "list_queues", fail)
        answer = fila("queue", "list")
        assert answer.exit_code == 1
        said = "b:1: the certificate of 'b' has expired (certificate has expired) (default address)"
        assert answer.stderr == f"Error: {said}\n"


def test_a_key_in_plaintext_to_another_machine_is_one_line_on_stderr():
    args = ["--addr", "192.0.2.1:5555", "--timeout", "0.1", "queue", "list"]
    result = CliRunner().invoke(cli, args, env={"FILA_API_KEY": "top-secret"})
    first, *rest = result.stderr.splitlines()
    assert (result.exit_code, len(rest)) == (3, 1)
    assert first == ("Warning: the API key travels to 192.0.2.1 in plaintext: use TLS (tls=..., --tls-ca or FILA_TLS)")
