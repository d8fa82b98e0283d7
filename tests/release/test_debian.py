"""The Debian package: installed, run, upgraded, removed and purged in a root of its own."""

import shutil
import subprocess

import pytest

from tests.release.conftest import ROOT, script
from tests.support.programs import broker, round_trip
from tests.support.roots import ENVIRONMENT

UNIT = "lib/systemd/system/fila-server.service"


@pytest.fixture(scope="module")
def package(dist):
    assert script("release/deb", dist).returncode == 0
    [package] = dist.glob("fila_*.deb")
    return package


@pytest.fixture
def installed(root, package):
    shutil.copy(package, root.folder / "tmp/fila.deb")
    shutil.copy("/etc/resolv.conf", root.folder / "etc/resolv.conf")
    root.output("apt-get", "install", "-y", "-qq", "--no-install-recommends", "adduser")
    root.output("dpkg", "--install", "/tmp/fila.deb")
    return root


def test_the_service_of_the_package_serves_as_a_user_of_its_own(installed, tmp_path):
    """As the unit starts it: the user fila, the settings in /etc, the data in /var/lib/fila."""
    [start] = [line for line in (installed.folder / UNIT).read_text().splitlines() if line.startswith("ExecStart=")]
    server = [*start.removeprefix("ExecStart=").split(), "--listen", "{addr}"]
    command = ["chroot", "--userspec=fila:fila", str(installed.folder), *server]
    with broker(command, installed.command("fila"), ENVIRONMENT, tmp_path) as found:
        round_trip(installed.command("fila"), found)
    data = installed.folder / "var/lib/fila"
    assert data.stat().st_mode & 0o777 == 0o700
    assert data.stat().st_uid != 0
    assert list(data.iterdir())


def test_an_upgrade_keeps_what_an_operator_set_and_a_removal_keeps_messages(installed):
    settings = installed.folder / "etc/fila/fila.toml"
    settings.write_text(settings.read_text().replace('level = "info"', 'level = "debug"'))
    (installed.folder / "var/lib/fila/messages").write_text("kept")
    installed.output("dpkg", "--install", "--force-confold", "/tmp/fila.deb")
    assert 'level = "debug"' in settings.read_text()
    installed.output("dpkg", "--remove", "fila")
    assert settings.exists()
    assert (installed.folder / "var/lib/fila/messages").exists()
    assert not (installed.folder / "usr/bin/fila-server").exists()
    installed.output("dpkg", "--purge", "fila")
    assert not settings.exists()
    assert not (installed.folder / "var/lib/fila").exists()


def test_the_package_brings_both_licences(installed):
    documents = {path.name for path in (installed.folder / "usr/share/doc/fila").iterdir()}
    assert documents >= {"LICENSE", "LICENSE.Apache-2.0", "LICENSING.md", "copyright"}


def test_the_unit_is_valid_and_sandboxed():
    """systemd reads it without a complaint, and rates what it leaves open as little (0 is nothing, 10 everything)."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze: apt-get install systemd")
    unit = str(ROOT / "deploy/systemd/fila-server.service")
    verified = subprocess.run(["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True)
    complaints = [line for line in verified.stderr.splitlines() if "fila-server.service" in line]
    assert all("/usr/bin/fila-server is not executable" in line for line in complaints), "it is not installed here"
    rate = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    done = subprocess.run(rate, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-400:]
