"""Where the API key of a client comes from."""

import pytest

from fila import AsyncClient, Client
from fila.client.api_key import ApiKey
from fila.client.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    monkeypatch.delenv("FILA_API_KEY", raising=False)
    monkeypatch.delenv("FILA_API_KEY_FILE", raising=False)


def sent(key):
    return dict(key.metadata()).get("authorization")


def test_a_token_of_an_identity_provider_is_sent_as_it_is(tmp_path):
    token = ".".join(["eyJhbGciOiJFUzI1NiJ9", "e30" * 1500, "_-" * 40])
    (tmp_path / "token").write_text(token + "\n")
    assert sent(ApiKey(token)) == sent(ApiKey(None, tmp_path / "token")) == f"Bearer {token}"


def test_without_a_key_nothing_is_sent():
    assert ApiKey().metadata() == ()


def test_precedence(monkeypatch, tmp_path):
    for name in ("argument", "variable"):
        (tmp_path / name).write_text(f"{name}-file\n")
    monkeypatch.setenv("FILA_API_KEY_FILE", str(tmp_path / "variable"))
    assert sent(ApiKey()) == "Bearer variable-file"
    monkeypatch.setenv("FILA_API_KEY", "variable")
    assert sent(ApiKey()) == "Bearer variable"
    assert sent(ApiKey(None, tmp_path / "argument")) == "Bearer argument-file"
    assert sent(ApiKey("argument")) == "Bearer argument"
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        ApiKey("argument", tmp_path / "argument")


def test_a_file_is_read_again_when_it_has_changed(tmp_path):
    file = tmp_path / "key"
    file.write_text("one")
    key = ApiKey(None, file)
    assert sent(key) == "Bearer one"
    (tmp_path / "next").write_text("two")
    (tmp_path / "next").rename(file)
    assert sent(key) == "Bearer two"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a b"])
def test_a_file_without_a_key_is_refused_at_first_and_left_aside_later(tmp_path, content):
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(InvalidArgumentError):
        ApiKey(None, file)
    file.write_text("good")
    key = ApiKey(None, file)
    file.write_bytes(content)
    assert sent(key) == "Bearer good"
    file.unlink()
    assert sent(key) == "Bearer good"


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(InvalidArgumentError, match="missing"):
        ApiKey(None, tmp_path / "missing")


def test_a_key_is_not_shown():
    key = ApiKey("top-secret")
    assert "top-secret" not in repr(key) + str(key)


def test_a_failed_check_does_not_repeat_the_key():
    with pytest.raises(InvalidArgumentError) as refused:
        ApiKey("top secret")
    assert "top secret" not in str(refused.value)


@pytest.mark.parametrize("addr", ["broker.example:5555", "10.0.0.7:5555", "[2001:db8::1]:5555"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_key_that_would_leave_the_machine_in_plaintext_is_warned_of(kind, addr):
    with pytest.warns(UserWarning, match="the API key travels to .* in plaintext: use TLS") as warned:
        kind(addr, api_key="top-secret", tls=False)
    assert [warning.filename for warning in warned] == [__file__]
    assert "top-secret" not in str(warned[0].message)


@pytest.mark.parametrize(
    "addr,options",
    [
        ("localhost:5555", {"api_key": "k"}),
        ("127.0.0.1:5555", {"api_key": "k"}),
        ("[::1]:5555", {"api_key": "k"}),
        ("broker.example:5555", {"api_key": "k", "tls": True}),
        ("broker.example:5555", {}),
    ],
)
def test_no_warning_on_this_machine_with_tls_or_without_a_key(addr, options):
    Client(addr, **options).close()
    AsyncClient(addr, **options)
