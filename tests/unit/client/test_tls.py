"""Which TLS a client uses: its argument, or the environment."""

import ssl

import pytest

from fila import TLS, InvalidArgumentError
from fila.client.tls import client_tls
from tests.support.certificates import Authority


@pytest.mark.parametrize(
    "environ,expected",
    [
        ({}, None),
        ({"FILA_TLS": "true"}, TLS()),
        ({"FILA_TLS": "ON"}, TLS()),
        ({"FILA_TLS": "0", "FILA_TLS_CA": "a"}, None),
        ({"FILA_TLS": ""}, None),
        ({"FILA_TLS_CA": ""}, None),
        ({"FILA_TLS_CA": "a"}, TLS(ca="a")),
        ({"FILA_TLS_CERT": "c", "FILA_TLS_KEY": "k"}, TLS(cert="c", key="k")),
        ({"FILA_TLS_SERVER_NAME": "n"}, TLS(server_name="n")),
        ({"FILA_TLS__CERT": "the server's", "FILA_TLS__KEY": "as well"}, None),
    ],
)
def test_the_variables(environ, expected):
    assert TLS.from_env(environ) == expected


@pytest.mark.parametrize("environ", [{"FILA_TLS": "perhaps"}, {"FILA_TLS_CERT": "c"}, {"FILA_TLS_KEY": "k"}])
def test_variables_that_make_no_sense(environ):
    with pytest.raises(InvalidArgumentError):
        TLS.from_env(environ)


def test_the_argument_goes_before_the_environment(tmp_path, monkeypatch):
    ca = Authority(tmp_path).ca
    monkeypatch.setenv("FILA_TLS_CA", ca)
    monkeypatch.setenv("FILA_TLS_SERVER_NAME", "theirs")
    assert client_tls(False) is None
    assert client_tls(None).server_name == "theirs"
    assert client_tls(TLS(ca=ca, server_name="ours")).server_name == "ours"
    assert client_tls(True).server_name == ""


def test_a_context_checks_certificates_and_host_names(tmp_path):
    for tls in (True, TLS(ca=Authority(tmp_path).ca)):
        context = client_tls(tls).context()
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_files_are_read_again_when_they_have_changed(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.client()
    tls = client_tls(TLS(authority.ca, *pair))
    first = tls.context()
    assert tls.context() is first
    authority.client()
    second = tls.context()
    assert second is not first
    (tmp_path / "client.key").write_text("half")
    assert tls.context() is second
