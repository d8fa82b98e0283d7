"""`install.sh` installs what was built, from a release on a local HTTP server."""

import os
import subprocess

import pytest

from tests.release.conftest import ROOT, script
from tests.support.programs import broker, round_trip
from tests.support.web import serving


@pytest.fixture
def releases(dist, tmp_path):
    """The address below which a release has the built files."""
    (tmp_path / "www/latest").mkdir(parents=True)
    (tmp_path / "www/latest/download").symlink_to(dist)
    with serving(tmp_path / "www") as address:
        yield address


def test_a_newcomer_pipes_it_into_a_shell_and_runs_the_broker(releases, tmp_path):
    """As a user without rights on the machine: into ~/.local, and out of it again."""
    published = script("release/installer", releases).stdout
    home = tmp_path / "home"
    env = {"PATH": f"{home}/.local/bin:/usr/bin:/bin", "HOME": str(home)}

    def pipe(*arguments):
        command = ["bash", "-s", "--", "--prefix", f"{home}/.local", *arguments]
        return subprocess.run(
            command, input=published, env=env, check=False, capture_output=True, text=True, timeout=300
        )

    done = pipe()
    assert done.returncode == 0, done.stderr
    assert "installed fila-server " in done.stdout
    with broker(["fila-server", "--listen", "{addr}", "--data-dir", "data"], ["fila"], env, tmp_path) as found:
        round_trip(["fila"], found)
    assert pipe("--uninstall").returncode == 0
    assert sorted(path.name for path in (home / ".local").rglob("*")) == ["bin", "lib"]
    assert (tmp_path / "data").is_dir()


def test_a_corrupted_archive_is_refused(dist, releases, tmp_path):
    """The checksum is that of the release, whatever the archive holds."""
    [archive] = dist.glob("fila-*.tar.gz")
    bad = tmp_path / "www/download/v9.9.9"
    bad.mkdir(parents=True)
    (bad / "SHA256SUMS").write_bytes((dist / "SHA256SUMS").read_bytes())
    whole = archive.read_bytes()
    (bad / archive.name).write_bytes(whole[: len(whole) // 2])
    command = ["bash", ROOT / "release/install.sh", "--version", "9.9.9", "--prefix", tmp_path / "prefix"]
    done = subprocess.run(
        command, env={**os.environ, "FILA_RELEASES": releases}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert not list((tmp_path / "prefix/bin").iterdir())
