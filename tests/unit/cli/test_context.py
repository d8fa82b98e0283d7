"""`fila context`: the file of contexts, and which broker a command talks to."""

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fila import TLS
from fila.cli.context import file as context_file
from fila.cli.context.contexts import Context, Contexts
from fila.cli.main import cli
from fila.cli.session import Session
from fila.settings import SettingsError


@pytest.fixture
def contexts(tmp_path):
    """The file of contexts, in a folder that is there."""
    path = tmp_path / "config" / "fila" / "contexts.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def reach(client):
    """The address and the options that a client is made with for a command line."""

    def run(*args, **env):
        made = []

        def connect(addr, _timeout, **options):
            made.append((addr, options))
            return client

        answer = CliRunner().invoke(cli, args, obj=Session(make_client=connect), prog_name="fila", env=env)
        assert answer.exit_code == 0, answer.output
        return made[0]

    return run


def write(path, content, mode=0o600):
    path.write_text(content)
    path.chmod(mode)


TWO = """
use = "prod"
[contexts.prod]
addr = "prod:1"
tls_ca = "/ca.pem"
api_key_file = "/prod.key"
[contexts.local]
addr = "local:2"
"""
PROD_KEY = {"api_key_file": Path("/prod.key")}
PROD = ("prod:1", {"tls": TLS(ca="/ca.pem"), **PROD_KEY})


class TestWhichBroker:
    @pytest.fixture(autouse=True)
    def _two(self, contexts):
        write(contexts, TWO)

    def test_the_context_in_use(self, reach):
        assert reach("queue", "list") == PROD

    def test_the_one_of_the_variable_goes_before_it(self, reach):
        assert reach("queue", "list", FILA_CONTEXT="local") == ("local:2", {"tls": False})

    def test_the_variable_of_the_address_goes_before_both_and_takes_nothing_of_a_context(self, reach):
        assert reach("queue", "list", FILA_ADDR="env:3", FILA_CONTEXT="local") == ("env:3", {})

    @pytest.mark.parametrize("args", [("--context", "local", "queue", "list"), ("queue", "list", "--context", "local")])
    def test_the_option_of_a_context_goes_before_the_variables(self, reach, args):
        assert reach(*args, FILA_ADDR="env:3", FILA_TLS="true") == ("local:2", {"tls": False})

    def test_the_option_of_the_address_takes_nothing_of_a_context(self, reach):
        """A key is not sent to whom it is not for."""
        assert reach("--addr", "option:4", "queue", "list", FILA_CONTEXT="prod") == ("option:4", {})

    def test_both_options_are_wrong_usage(self, fila):
        result = fila("--context", "prod", "queue", "list", "--addr", "a:1")
        assert result.exit_code == 2
        assert "Give --addr or --context, not both." in result.stderr

    def test_a_variable_goes_before_a_setting_of_the_context_in_use(self, reach):
        assert reach("queue", "list", FILA_API_KEY="k") == ("prod:1", {"tls": TLS(ca="/ca.pem")})
        assert reach("queue", "list", FILA_TLS_CA="/env.pem") == ("prod:1", PROD_KEY)

    def test_an_option_goes_before_a_setting_of_any_context(self, reach):
        addr, options = reach("--context", "prod", "--tls-ca", "o.pem", "--api-key-file", "o.key", "queue", "list")
        assert (addr, options) == ("prod:1", {"tls": TLS(ca="o.pem"), "api_key_file": Path("o.key")})
        assert reach("--tls-server-name", "n", "queue", "list")[1]["tls"] == TLS(ca="/ca.pem", server_name="n")

    def test_an_unknown_one_is_an_error_that_says_who_asks_for_it(self, fila):
        said = 'there is no context "nope": `fila context list` shows all'
        assert fila("--context", "nope", "queue", "list").stderr == f"Error: {said}\n"
        assert fila("queue", "list", env={"FILA_CONTEXT": "nope"}).stderr == f"Error: FILA_CONTEXT: {said}\n"
        assert fila.connections == []

    def test_for_parts_that_read_the_environment_it_is_said_there(self, monkeypatch):
        for name in ("FILA_API_KEY", "FILA_TLS_CERT", "FILA_ADDR"):
            monkeypatch.setenv(name, "old")
        monkeypatch.setattr("os.environ", dict(os.environ))
        Session(context="prod").endpoint().export()
        told = {name: value for name, value in os.environ.items() if name.startswith("FILA_")}
        assert told == {
            "FILA_ADDR": "prod:1",
            "FILA_API_KEY_FILE": "/prod.key",
            "FILA_TLS": "true",
            "FILA_TLS_CA": "/ca.pem",
        }


class TestTheCommands:
    def test_add_keeps_what_the_options_say_with_absolute_paths(self, fila, contexts, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        options = ("--tls-ca", "ca.pem", "--tls-cert", "c", "--tls-key", "k", "--tls-server-name", "n")
        result = fila("context", "add", "prod", "--addr", "a:1,b:2", *options, "--api-key-file", "p.key")
        assert result.stdout == 'Added context "prod": a:1,b:2\n'
        assert context_file.read() == Contexts(
            {
                "prod": Context(
                    addr="a:1,b:2",
                    tls=True,
                    tls_ca=f"{tmp_path}/ca.pem",
                    tls_cert=f"{tmp_path}/c",
                    tls_key=f"{tmp_path}/k",
                    tls_server_name="n",
                    api_key_file=f"{tmp_path}/p.key",
                )
            }
        )

    def test_add_keeps_nothing_of_the_environment(self, fila):
        env = {"FILA_ADDR": "env:1", "FILA_API_KEY": "secret", "FILA_TLS": "true"}
        assert fila("context", "add", "prod", env=env).exit_code == 2
        fila("context", "add", "prod", "--addr", "a:1", env=env)
        assert context_file.read().by_name == {"prod": Context(addr="a:1")}

    def test_add_replaces_only_when_told_to(self, fila):
        fila("context", "add", "prod", "--addr", "a:1")
        refused = fila("context", "add", "prod", "--addr", "b:1")
        assert (refused.exit_code, "there is a context" in refused.stderr) == (1, True)
        fila("context", "add", "prod", "--addr", "c:1", "--replace")
        assert context_file.read().by_name["prod"].addr == "c:1"

    @pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", ".a", "x" * 65, "\x1b[2J", "ü"])
    def test_a_name_is_a_plain_word(self, fila, name):
        result = fila("context", "add", "--addr", "a:1", "--", name)
        assert result.exit_code == 1
        assert "is not a name" in result.stderr
        assert "\x1b" not in result.stderr

    def test_the_one_in_use_is_marked_and_used_until_told_otherwise(self, fila, contexts):
        write(contexts, TWO)
        assert fila("context", "use", "local").stdout == 'Using context "local": local:2\n'
        marked = [line.split()[:2] for line in fila("context", "list").stdout.splitlines() if "*" in line]
        assert marked == [["local", "*"]]
        assert fila("context", "use", "--none").exit_code == 0
        assert "*" not in fila("context", "list").stdout

    def test_what_goes_before_the_one_in_use_is_said(self, fila, contexts):
        write(contexts, TWO)
        result = fila("context", "list", env={"FILA_ADDR": "a:1"})
        assert "*" not in result.stdout
        assert result.stderr == "FILA_ADDR is set, and goes before the context in use.\n"
        assert "local  *" in fila("context", "list", env={"FILA_CONTEXT": "local"}).stdout

    def test_one_that_is_missing_does_not_hide_the_others(self, fila, contexts):
        write(contexts, TWO)
        assert "local:2" in fila("context", "list", env={"FILA_CONTEXT": "gone"}).stdout

    def test_show_is_about_the_one_that_applies_unless_named(self, fila, contexts):
        write(contexts, TWO)
        assert "prod:1" in fila("context", "show").stdout
        shown = json.loads(fila("context", "show", "local", "--json").stdout)
        assert shown == {"name": "local", "addr": "local:2", "in_use": False}
        assert fila("context", "show", "nope").exit_code == 1

    def test_remove_forgets_it_also_as_the_one_in_use(self, fila, contexts):
        write(contexts, TWO)
        assert fila("context", "remove", "prod").exit_code == 2
        assert fila("context", "remove", "prod", "--yes").stdout == 'Removed context "prod"\n'
        left = context_file.read()
        assert (list(left.by_name), left.use) == (["local"], "")

    def test_an_unknown_one_cannot_be_used_or_removed(self, fila):
        for args in (("use", "nope"), ("remove", "nope", "--yes")):
            assert fila("context", *args).stderr.startswith('Error: there is no context "nope"')


class TestTheFile:
    def test_is_for_its_user_alone_and_has_no_secret(self, fila, tmp_path):
        (tmp_path / "key").write_text("fila_secret")
        fila("context", "add", "prod", "--addr", "a:1", "--api-key-file", str(tmp_path / "key"))
        path = context_file.location()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert [each.name for each in path.parent.iterdir()] == ["contexts.toml"]
        assert "fila_secret" not in path.read_text()
        assert "fila_secret" not in fila("context", "show", "prod").output

    def test_a_link_to_it_stays_one(self, fila, contexts, tmp_path):
        write(tmp_path / "dotfile", TWO)
        contexts.symlink_to(tmp_path / "dotfile")
        fila("context", "use", "local")
        assert contexts.is_symlink()
        assert context_file.read().use == "local"

    def test_is_below_home_without_a_usable_variable(self, monkeypatch):
        monkeypatch.setenv("HOME", "/home/me")
        for value in ("", "relative/path"):
            monkeypatch.setenv("XDG_CONFIG_HOME", value)
            assert context_file.location() == Path("/home/me/.config/fila/contexts.toml")

    def test_without_a_home_there_are_none(self, fila, monkeypatch):
        def homeless(_):
            raise RuntimeError

        monkeypatch.delenv("XDG_CONFIG_HOME")
        monkeypatch.setattr(Path, "home", classmethod(homeless))
        assert fila("queue", "list").exit_code == 0
        assert "XDG_CONFIG_HOME" in fila("context", "add", "a", "--addr", "a:1").stderr

    @pytest.mark.parametrize(
        "content, said",
        [
            (b"use = ", "Invalid value"),
            (b"\xff", "codec can't decode"),
            (b"\x00", "contexts.toml: "),
            (b"colour = 1", "unknown key colour: expected one of use, contexts"),
            (b"contexts = 1", "contexts must be a table"),
            (b"contexts.a = 1", "a = 1: expected a section"),
            (b"[contexts.a]", "a.addr is missing: expected an address such as localhost:5555"),
            (b'[contexts.a]\naddr = "nonsense"', "a.addr = 'nonsense': expected an address"),
            (b"[contexts.a]\naddr = 5", "a.addr = 5: expected an address"),
            (b'[contexts.a]\naddr = "h:1"\nport = 1', "unknown key a.port"),
            (b'[contexts.a]\naddr = "h:1"\ntls = "yes"', "a.tls = 'yes': expected true or false"),
            (b'[contexts.a]\naddr = "h:1"\ntls_ca = "ca.pem"', "expected an absolute path"),
            (b'[contexts.a]\naddr = "h:1"\napi_key_file = "/a\\u0000"', "expected an absolute path"),
            (b'[contexts.a]\naddr = "h:1"\ntls_key = "/k"', "expected tls_cert and tls_key together"),
            (b'[contexts."a b"]\naddr = "h:1"', '"a b" is not a name'),
            (b'[contexts."\\u001b[2J"]\naddr = "h:1"', "is not a name"),
            (b'use = "a"', 'there is no context "a"'),
            (b"use = 1", "use must be the name of a context"),
            (b"x = " + b"[" * 20_000, "too deeply nested"),
            (b"x = " + b"9" * 5000, "digits"),
            (b"#" * (context_file.MOST_BYTES + 1), f"more than {context_file.MOST_BYTES} bytes"),
            (b'"' + b"y" * 100_000 + b'" = 1', "unknown key yyy"),
        ],
    )
    def test_a_damaged_or_hostile_one_is_one_short_line(self, fila, contexts, content, said):
        contexts.write_bytes(content)
        contexts.chmod(0o600)
        for args in (("queue", "list"), ("context", "list"), ("context", "use", "a")):
            result = fila(*args)
            assert (result.exit_code, result.stderr.count("\n"), len(result.stderr) < 800) == (1, 1, True)
            assert said in result.stderr
            assert result.stderr[:-1].isprintable()
        assert fila.connections == []
        assert contexts.read_bytes() == content

    @pytest.mark.parametrize("mode", [0o620, 0o602])
    def test_one_that_others_may_change_is_refused(self, fila, contexts, mode):
        write(contexts, TWO, mode)
        assert "other users may change it" in fila("queue", "list").stderr

    def test_what_is_no_file_is_refused_at_once(self, fila, contexts):
        os.mkfifo(contexts)
        assert "not a regular file" in fila("queue", "list").stderr
        contexts.unlink()
        contexts.mkdir()
        assert fila("queue", "list").stderr.startswith("Error: ")

    def test_one_that_is_not_asked_for_is_not_looked_at(self, fila, contexts):
        contexts.write_text("damaged")
        assert fila("--addr", "a:1", "queue", "list").exit_code == 0
        assert fila("queue", "list", env={"FILA_ADDR": "a:1"}).exit_code == 0

    @given(
        st.dictionaries(
            st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"),
            st.builds(
                Context,
                addr=st.just("host:1"),
                tls=st.booleans(),
                tls_ca=st.text(st.characters(exclude_characters="\0", codec="utf-8")).map(lambda text: f"/{text}"),
                tls_server_name=st.text(st.characters(codec="utf-8")),
            ),
            max_size=3,
        )
    )
    def test_what_is_written_is_read_again(self, tmp_path_factory, wanted):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
            context_file.update(lambda _: Contexts(wanted))
            assert context_file.read() == Contexts(wanted)

    def test_a_refused_change_leaves_it_as_it_was(self, contexts):
        write(contexts, TWO)
        with pytest.raises(SettingsError):
            context_file.update(lambda known: known.using("nope"))
        assert contexts.read_text() == TWO
