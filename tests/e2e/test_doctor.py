"""`fila doctor` against real servers: each check finds what it is for, and a sound server has nothing to mend."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fila import Client
from fila.cli.doctor import access_checks, server_checks
from fila.cli.doctor.finding import Severity
from fila.client import TLS, CertificateRuleInfo, KeyInfo, PrincipalInfo, RoleInfo, ServerInfo, ServerStore
from fila.testing import ServerProcess
from tests.support.certificates import DAY, Authority, grpc_credentials

pytestmark = pytest.mark.timeout(90)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text()


def doctor(server, *args, code=None, **env):
    """The findings by check, as `fila doctor --json` has them."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    command = [sys.executable, "-m", "fila.cli.main", "doctor", "--json", "--addr", f"localhost:{server.port}", *args]
    done = subprocess.run(command, env=given | env, capture_output=True, text=True, timeout=60, check=False)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    assert done.stdout, done.stderr
    return {found["check"]: found for found in json.loads(done.stdout)}


def severities(findings):
    return {name: found["severity"] for name, found in findings.items() if found["severity"] != "note"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("doctor"))


def with_tls(authority, name="server", more="", **validity):
    pair = authority.server(name, **validity)
    config = f'[tls]\ncert = "{pair.cert}"\nkey = "{pair.key}"\n{more}'
    return pair, ServerProcess(config=config, listen_host="0.0.0.0", credentials=grpc_credentials(authority))


def test_a_server_that_is_open_to_everyone_is_unsafe():
    config = '[telemetry]\nprometheus_listen = "0.0.0.0:0"\n'
    with ServerProcess(config=config, listen_host="0.0.0.0", args=("--insecure",)) as server:
        found = doctor(server, "--ignore", "root", code=2)
        assert severities(found) == {"open": "unsafe", "metrics": "unsafe"}
        assert {"durability", "journal"} <= set(found)
        with Client(server.addr) as client:
            token = client.auth.create_key("admin", ["admin"], ttl_ms=90 * 86_400_000).token
        found = doctor(server, "--ignore", "root", code=2, FILA_API_KEY=token)
        assert severities(found) == {"plaintext": "unsafe", "insecure-setting": "warning", "metrics": "warning"}
        assert "key-in-environment" in found


def test_a_default_server_has_notes_only():
    with ServerProcess(listen_host="0.0.0.0") as server:
        found = doctor(server, "--ignore", "root", code=0)
        assert severities(found) == {}
        assert found["protected-mode"]["fix"] == "fila auth init"


def test_a_sound_server_has_nothing_to_mend_and_files_of_others_are_found(authority, tmp_path):
    pair, process = with_tls(authority, "sound", ends=90 * DAY, more='min_version = "1.3"\n[journal]\nenabled = true\n')
    key, ca = tmp_path / "admin.key", ("--tls-ca", authority.ca)
    with process as server:
        with Client(f"localhost:{server.port}", tls=TLS(ca=authority.ca)) as client:
            key.write_text(client.auth.create_key("admin", ["admin"], ttl_ms=90 * 86_400_000).token)
        key.chmod(0o600)
        mine = (*ca, "--api-key-file", str(key), "--ignore", "root")
        assert set(doctor(server, *mine, code=0)) == {"durability"}
        key.chmod(0o644)
        Path(pair.key).chmod(0o644)
        server.data_dir.chmod(0o755)
        found = doctor(server, *mine, code=2)
        assert severities(found) == dict.fromkeys(("key-file-mode", "private-key-mode", "data-dir-mode"), "unsafe")
        assert found["private-key-mode"]["fix"].startswith(f"chmod 600 {pair.key}")


def test_keys_queues_and_permissions():
    with ServerProcess() as server:
        with Client(server.addr) as client:
            admin = client.auth.create_key("admin", ["admin"]).token
        with Client(server.addr, api_key=admin) as client:
            client.create_queue("endless")
            client.create_queue("given-up", max_attempts=3)
            for number in range(3):
                client.auth.create_key(f"admin{number}", ["admin"], ttl_ms=86_400_000)
            client.auth.create_key("team", ["admin:team.**"], ttl_ms=90 * 86_400_000)
            viewer = client.auth.create_key("viewer", ["viewer"], ttl_ms=90 * 86_400_000).token
        found = doctor(server, "--ignore", "root", code=1, FILA_API_KEY=admin)
        assert severities(found) == dict.fromkeys(("key-expiry", "key-ends-soon", "admin-keys"), "warning")
        assert found["admin-keys"]["text"].startswith("4 keys may")
        assert "endless" in found["max-attempts"]["text"]
        assert "given-up" not in found["max-attempts"]["text"]
        doctor(server, "--fail-on", "unsafe", code=0, FILA_API_KEY=admin)
        found = doctor(server, code=0, FILA_API_KEY=viewer)
        assert severities(found) == {"server": "skipped", "keys": "skipped"}


def test_certificates_that_end_soon_have_ended_or_are_for_another_name(authority, tmp_path):
    _, process = with_tls(authority, "soon", ends=20 * DAY)
    with process as server:
        assert severities(doctor(server, "--tls-ca", authority.ca, "--ignore", "root", code=1)) == {
            "certificate-expiry": "warning"
        }
        found = doctor(server, "--tls-ca", authority.ca, "--tls-server-name", "broker.example", code=2)
        assert "is for another host name" in found["certificate"]["text"]
        found = doctor(server, "--tls", code=2)
        assert "is not signed by a trusted CA" in found["certificate"]["text"]


def test_the_file_is_compared_with_the_running_server(tmp_path):
    file = tmp_path / "fila.toml"
    with ServerProcess() as server:
        file.write_text(f'[server]\nlisten_addr = "{server.addr}"\n[storage]\ndurability = "fsync"\n')
        file.chmod(0o666)
        found = doctor(server, "--config", str(file), "--ignore", "root", code=2)
        assert severities(found) == {"config-file-mode": "unsafe", "restart-pending": "warning"}
        assert found["restart-pending"]["text"].endswith("differ: storage.durability.")


def test_text_for_people():
    with ServerProcess() as server:
        command = [sys.executable, "-m", "fila.cli.main", "doctor", "--addr", server.addr, "--ignore", "root"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        *lines, last = done.stdout.splitlines()
        assert last == "Nothing to mend."
        assert any(re.fullmatch(r"note +journal +.*\. Fix: journal\.enabled = true\.", line) for line in lines)


# What no server can be brought to in a test: other days, other clocks, other versions, a full disk.
STORE = ServerStore("/d", 0o700, "fsync", 100 << 30, 1 << 30)
SOUND = ServerInfo("1", NOW, "127.0.0.1:5555", "", False, False, True, None, STORE, True, False)


def checks(findings):
    return [(finding.severity.name, finding.check) for finding in findings]


def test_clock_version_root_and_disk():
    assert checks(server_checks.check_process(SOUND, "1", NOW)) == []
    odd = replace(SOUND, version="2", now=NOW + timedelta(seconds=6), runs_as_root=True)
    assert checks(server_checks.check_process(odd, "1", NOW)) == [
        ("WARNING", "root"), ("WARNING", "version"), ("WARNING", "clock"),
    ]  # fmt: skip
    assert checks(server_checks.check_store(SOUND)) == []
    full = replace(SOUND, store=replace(STORE, free_bytes=(2 << 30) - 1))
    assert checks(server_checks.check_store(full)) == [("WARNING", "disk")]


def test_a_certificate_for_other_names_and_one_that_clients_refuse():
    tls = server_checks_tls("*.example", "10.0.0.1")
    for host, expected in (
        ("a.example", []), ("10.0.0.1", []), ("localhost", []),
        ("a.b.example", [("WARNING", "certificate-name")]), ("10.0.0.2", [("WARNING", "certificate-name")]),
    ):  # fmt: skip
        assert checks(server_checks.check_tls(replace(SOUND, tls=tls), host, NOW)) == expected
    refused = replace(tls, certificate_error="has expired", certificate_expires_at=None, client_auth="optional")
    assert checks(server_checks.check_tls(replace(SOUND, tls=refused), "x", NOW)) == [
        ("UNSAFE", "certificate"), ("NOTE", "client-certificates"),
    ]  # fmt: skip


def server_checks_tls(*names):
    from fila.client import ServerTls

    return ServerTls("none", "1.3", "", NOW + timedelta(days=90), names, "/k", 0o600)


def test_keys_that_nobody_uses():
    old, recent = NOW - timedelta(days=100), NOW - timedelta(days=10)
    ends = NOW + timedelta(days=100)
    keys = [
        KeyInfo("never", "p", old, ends, None),
        KeyInfo("long-ago", "p", old, ends, old),
        KeyInfo("used", "p", old, ends, recent),
        KeyInfo("new", "p", recent, ends, None),
        KeyInfo("expired", "p", old, recent, old),
    ]
    roles = [RoleInfo("admin", ("admin=server",), built_in=True)]
    principals = [PrincipalInfo("p", ("viewer",), old, {})]
    [finding] = access_checks.check_keys(keys, principals, roles, NOW)
    assert finding.check == "key-unused"
    assert finding.text.endswith(": never, long-ago.")


def test_certificate_rules_that_match_nothing_or_everybody():
    admin, team = PrincipalInfo("root", ("admin",), NOW, {}), PrincipalInfo("team", ("producer", "admin:x.**"), NOW, {})
    patterns = {"cn": "*", "dn": "CN=*,O=*", "uri": "*://*/**", "email": "*@*", "dns": "*.acme.example"}
    rules = [CertificateRuleInfo(field, field, pattern, "root", NOW) for field, pattern in patterns.items()]
    rules.append(CertificateRuleInfo("team", "cn", "*", "team", NOW))
    roles = [RoleInfo("admin", ("admin=server",), built_in=True)]
    [found] = access_checks.check_certificate_rules(rules, "required", [admin, team], roles)
    assert (found.check, found.severity) == ("certificate-admins", Severity.UNSAFE)
    assert found.text.endswith("by the rules cn, dn, uri, email.")
    [found] = access_checks.check_certificate_rules(rules[4:], "none", [admin, team], roles)
    assert (found.check, found.severity) == ("certificate-rules", Severity.WARNING)
    assert list(access_checks.check_certificate_rules([], "none", [admin], roles)) == []


def test_every_check_is_in_the_documentation_and_none_is_left_over():
    folder = Path(server_checks.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py"))
    named = set(re.findall(r'Severity\.\w+(?: if \w+ else Severity\.\w+)?,\s+"([a-z-]+)"', source))
    assert len(named) > 20
    listed = PAGE[PAGE.index("## Checks") :]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", listed, re.MULTILINE)) == named
