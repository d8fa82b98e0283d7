"""The URL of a log."""

import asyncio
import sys

import pytest

from fila.replicas.address import Address, BadAddress, parse
from fila.replicas.opening import ENGINES, open_log

PORTS = {"postgres": 5432, "kafka": 9092}


def test_a_url_says_engine_user_hosts_name_and_options():
    address = parse("kafka://fila@one:1234,two,[::1]:99/log.1?tls=true&append_timeout_ms=500", PORTS)
    assert address == Address(
        "kafka",
        (("one", 1234), ("two", 9092), ("::1", 99)),
        "log.1",
        "fila",
        {"tls": "true", "append_timeout_ms": "500"},
    )
    assert address.servers == ["one:1234", "two:9092", "[::1]:99"]
    assert address.append_timeout_s == 0.5
    assert not address.unsafe_one_copy


@pytest.mark.parametrize(
    "url, text",
    [
        ("", "no engine://"),
        ("redis://host/name", "redis://... it may be one of postgres://, kafka://"),
        ("kafka:///name", "names no host"),
        ("kafka://host", "the log is called ''"),
        ("kafka://host/a/b", "the log is called 'a/b'"),
        ("kafka://host/..", "the log is called '..'"),
        ("kafka://host:0/name", "names 'host:0'"),
        ("kafka://host:65536/name", "names 'host:65536'"),
        ("kafka://host:port/name", "names 'host:port'"),
        ("kafka://host,,other/name", "names ''"),
        ("kafka://::1/name", "names '::1'"),
        ("kafka://host/name?tls", "are written as"),
        ("kafka://host/name?tls=true&tls=false", "stands twice"),
    ],
)
def test_what_is_wrong_in_a_url_is_said(url, text):
    with pytest.raises(BadAddress) as error:
        parse(url, PORTS)
    assert text in str(error.value).replace(": it", " it")


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(BadAddress, match="password_file") as error:
        parse("kafka://fila:hunter2@host/name", PORTS)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "option, text",
    [
        ("tabel=x", "has no option tabel"),
        ("tls=yes", "the option tls of the log is 'yes'"),
        ("unsafe_one_copy=1", "unsafe_one_copy of the log is '1'"),
        ("append_timeout_ms=0", "append_timeout_ms of the log is '0'"),
        ("append_timeout_ms=-5", "append_timeout_ms of the log is '-5'"),
        ("append_timeout_ms=1s", "append_timeout_ms of the log is '1s'"),
        ("password_file=/nowhere/secret", "cannot be read from /nowhere/secret: No such file"),
        ("tls=true&tls_ca=/nowhere/ca.pem", "certificates of the log cannot be read"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrong_option_is_told_before_anything_is_connected(engine, option, text):
    with pytest.raises(BadAddress) as error:
        asyncio.run(open_log(f"{engine}://127.0.0.1:1/name?{option}"))
    assert text in str(error.value)


def test_a_password_comes_from_a_file_or_a_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("FILA_LOG_PASSWORD", raising=False)
    plain = parse("kafka://host/name", PORTS)
    assert plain.password() is None
    monkeypatch.setenv("FILA_LOG_PASSWORD", "from the environment")
    assert plain.password() == "from the environment"
    path = tmp_path / "secret"
    path.write_text("from a file\n")
    from_file = parse(f"kafka://host/name?password_file={path}", PORTS)
    assert from_file.password() == "from a file"
    path.write_text("replaced")
    assert from_file.password() == "replaced"
    assert "replaced" not in repr(from_file)


def test_a_file_that_is_no_text_is_no_password(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadAddress, match="it is not text"):
        parse(f"kafka://host/name?password_file={path}", PORTS).password()


@pytest.mark.parametrize("table", ["a-b", "1a", 'a"b', "x" * 51, "é", ""])
def test_a_table_has_a_plain_name(table):
    with pytest.raises(BadAddress, match="the table of the log is"):
        asyncio.run(open_log(f"postgres://127.0.0.1:1/name?table={table}"))


@pytest.mark.parametrize("engine, package", [("postgres", "asyncpg"), ("nats", "nats"), ("kafka", "confluent_kafka")])
def test_a_client_that_is_not_installed_is_named_with_its_extra(engine, package, monkeypatch):
    for name in list(sys.modules):
        if f"{name}.".startswith((f"{package}.", f"fila.replicas.{engine}")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadAddress, match=rf"needs the package {package}.*: pip install 'fila\[server,{engine}\]'"):
        asyncio.run(open_log(f"{engine}://127.0.0.1:1/name"))
