"""The server's certificate files: what is refused at a start, what is logged, and how new ones are taken up."""

import os
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fila.config import TlsConfig
from fila.server.certificates import Certificates
from fila.server.handshake_log import HandshakeLog
from fila.settings import SettingsError
from fila.wire.tls_layer import HandshakeFailed, PlaintextReceived
from tests.support.certificates import DAY, Authority, encrypted


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def loaded(pair, **rest):
    """Certificates that were loaded, and what was logged meanwhile."""
    certificates = Certificates(TlsConfig(cert=pair.cert, key=pair.key, **rest))
    with capture_logs() as logs:
        certificates.load()
    return certificates, [(entry["log_level"], entry["event"]) for entry in logs]


def refusal(**settings):
    with pytest.raises(SettingsError) as caught:
        Certificates(TlsConfig(**settings)).load()
    return str(caught.value)


def test_a_good_pair_is_loaded_with_its_end_in_the_log(authority):
    assert loaded(authority.server())[1] == [("info", "certificate loaded")]


@pytest.mark.parametrize(
    "validity,reason",
    [
        ({"begins": -2 * DAY, "ends": -DAY}, "has expired"),
        ({"begins": DAY, "ends": 2 * DAY}, "is not valid yet"),
    ],
)
def test_a_certificate_that_clients_will_refuse_is_warned_of(authority, validity, reason):
    pair = authority.server(**validity)
    with capture_logs() as logs:
        Certificates(TlsConfig(cert=pair.cert, key=pair.key)).load()
    [entry] = logs
    assert entry["log_level"] == "warning"
    assert reason in entry["reason"]


def test_a_certificate_of_a_client_is_no_good_for_a_server(authority):
    assert loaded(authority.client())[1] == [("warning", "clients will refuse the certificate")]


def test_one_that_expires_soon_is_warned_of(authority):
    assert loaded(authority.server(ends=3 * DAY))[1] == [("warning", "the certificate expires soon")]


def test_a_key_that_others_can_read_is_warned_of(authority):
    pair = authority.server()
    Path(pair.key).chmod(0o644)
    assert ("warning", "every user of this machine can read the private key: chmod 600") in loaded(pair)[1]


class TestRefusals:
    def test_a_file_that_is_not_there(self, authority, tmp_path):
        pair = authority.server()
        assert refusal(cert=str(tmp_path / "none"), key=pair.key).endswith("none: No such file or directory")
        assert refusal(cert=pair.cert, key=str(tmp_path / "none")).endswith("none: No such file or directory")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
    def test_a_file_that_must_not_be_read(self, authority):
        pair = authority.server()
        Path(pair.key).chmod(0)
        assert refusal(cert=pair.cert, key=pair.key) == f"tls: cannot read {pair.key}: Permission denied"

    def test_a_folder(self, authority, tmp_path):
        assert refusal(cert=authority.server().cert, key=str(tmp_path)).endswith(": Is a directory")

    def test_the_key_of_another_certificate(self, authority):
        ours, other = authority.server("a"), authority.server("b")
        text = f"tls: the key {other.key} does not belong to the certificate {ours.cert}"
        assert refusal(cert=ours.cert, key=other.key) == text

    def test_something_else_than_pem(self, authority, tmp_path):
        junk = tmp_path / "junk"
        junk.write_text("not a certificate")
        pair = authority.server()
        assert "in PEM" in refusal(cert=str(junk), key=pair.key)
        assert "in PEM" in refusal(cert=pair.cert, key=str(junk))
        text = refusal(cert=pair.cert, key=pair.key, client_ca=str(junk), client_auth="required")
        assert text == f"tls: {junk} has no CA certificate in PEM"

    def test_an_encrypted_key_is_not_asked_for_at_the_terminal(self, authority, tmp_path):
        pair = authority.server()
        assert "is encrypted" in refusal(cert=pair.cert, key=encrypted(pair, tmp_path / "locked.key"))

    @pytest.mark.parametrize(
        "settings",
        [
            {"cert": "c"},
            {"key": "k"},
            {"client_ca": "a", "client_auth": "required"},
            {"cert": "c", "key": "k", "client_ca": "a"},
            {"cert": "c", "key": "k", "client_auth": "optional"},
            {"client_auth": "required"},
            {"cert": "c", "key": "k", "min_version": "1.1"},
        ],
    )
    def test_settings_that_do_not_go_together(self, settings):
        with pytest.raises(SettingsError):
            TlsConfig(**settings)


class TestRenewal:
    def test_nothing_is_read_again_while_files_are_as_they_were(self, authority):
        certificates, _ = loaded(authority.server())
        before = certificates.grpc()
        certificates.renew()
        assert certificates.grpc() is before
        certificates.renew(always=True)
        assert certificates.grpc() is not before

    def test_new_files_are_taken_up(self, authority):
        certificates, _ = loaded(authority.server())
        before = certificates.grpc(), certificates.http()
        authority.server()
        certificates.renew()
        assert certificates.grpc() is not before[0]
        assert certificates.http() is not before[1]

    @pytest.mark.parametrize("kind", ["cert", "key"])
    @pytest.mark.parametrize("text", ["", "junk"])
    def test_a_broken_pair_leaves_the_old_one_in_use_and_says_why_once(self, authority, kind, text):
        pair = authority.server()
        certificates, _ = loaded(pair)
        before = certificates.grpc()
        Path(getattr(pair, kind)).write_text(text)
        with capture_logs() as logs:
            certificates.renew()
            certificates.renew()
        assert certificates.grpc() is before
        [entry] = logs
        assert entry["log_level"] == "error"
        assert "in PEM" in entry["reason"]

    def test_a_pair_that_is_written_in_two_steps(self, authority):
        """Certificate first, then key: as most tools do."""
        pair, other = authority.server("a"), authority.server("b")
        certificates, _ = loaded(pair)
        before = certificates.grpc()
        Path(pair.cert).write_bytes(Path(other.cert).read_bytes())
        certificates.renew()
        assert certificates.grpc() is before
        Path(pair.key).write_bytes(Path(other.key).read_bytes())
        certificates.renew()
        assert certificates.grpc() is not before

    def test_files_that_vanish(self, authority):
        pair = authority.server()
        certificates, _ = loaded(pair)
        before = certificates.grpc()
        Path(pair.cert).unlink()
        certificates.renew()
        assert certificates.grpc() is before
        authority.server()
        certificates.renew()
        assert certificates.grpc() is not before


def test_the_log_of_handshakes_cannot_be_flooded():
    failures = HandshakeLog()
    with capture_logs() as logs:
        for _ in range(1_000):
            failures.failed("192.0.2.7", PlaintextReceived("the peer does not speak TLS"))
            failures.failed("192.0.2.7", ssl.SSLError(1, "whatever"))
            failures.failed("192.0.2.7", HandshakeFailed("the peer closed the connection"))
    assert [entry["log_level"] for entry in logs] == ["warning", "warning"]
