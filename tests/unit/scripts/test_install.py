"""`install.sh` against a release on a local HTTP server, with small scripts in place of the programs."""

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.web import serving

RELEASE = Path(__file__).parents[3] / "release"
PROGRAM = '#!/bin/sh\necho "fila-server {version}"\n'


class Machine:
    """A home, a place for programs, and a server with releases."""

    def __init__(self, folder: Path, address: str):
        self.folder, self.address, self.prefix = folder, address, folder / "prefix"
        tools = folder / "tools"
        tools.mkdir()
        self.path = f"{tools}:/usr/bin:/bin"
        self.is_a("Linux", "x86_64")

    def is_a(self, system, machine):
        uname = self.folder / "tools" / "uname"
        uname.write_text(f'#!/bin/sh\n[ "$1" = -s ] && echo {system} || echo {machine}\n')
        uname.chmod(0o755)

    def release(self, version, platform="linux-amd64", place=None, program=PROGRAM):
        """Publishes a version. Returns its folder."""
        folder = self.folder / "www" / (place or f"download/v{version}")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / f"fila-{platform}.tar.gz", "w:gz") as archive:
            for name in ("fila", "fila-server"):
                content = program.format(version=version).encode()
                entry = tarfile.TarInfo(f"fila-{platform}/{name}")
                entry.size, entry.mode = len(content), 0o755
                archive.addfile(entry, io.BytesIO(content))
        digest = hashlib.sha256((folder / f"fila-{platform}.tar.gz").read_bytes()).hexdigest()
        (folder / "SHA256SUMS").write_text(f"{digest}  fila-{platform}.tar.gz\n")
        return folder

    def install(self, *arguments, piped=False):
        script = (RELEASE / "install.sh").read_text().replace("@RELEASES@", self.address)
        env = {"PATH": self.path, "HOME": str(self.folder / "home")}
        words = ["bash", "-s", "--"] if piped else ["bash", "-c", script, "install.sh"]
        return subprocess.run(
            [*words, "--prefix", str(self.prefix), *arguments],
            input=script if piped else None, env=env, check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def installed(self):
        """What the installed program answers."""
        command = [str(self.prefix / "bin" / "fila-server"), "--version"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def files(self):
        return (
            sorted(str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*"))
            if self.prefix.exists()
            else []
        )


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "www").mkdir()
    with serving(tmp_path / "www") as address:
        yield Machine(tmp_path, address)


def test_the_newest_release_is_installed_through_a_pipe_and_says_what_it_did(machine):
    machine.release("1.2.0", place="latest/download")
    done = machine.install(piped=True)
    assert done.returncode == 0, done.stderr
    assert (
        f"installed fila-server 1.2.0 in {machine.prefix}/lib/fila, with links in {machine.prefix}/bin" in done.stdout
    )
    assert f"{machine.prefix}/bin is not on your PATH" in done.stdout
    assert machine.installed() == "fila-server 1.2.0\n"


def test_a_version_can_be_chosen_and_replaces_another(machine):
    machine.release("1.2.0")
    machine.release("1.3.0", place="download/latest")
    assert machine.install("--version", "v1.2.0").returncode == 0
    assert machine.install("--version", "dev").returncode == 0
    assert machine.installed() == "fila-server 1.3.0\n"
    assert [name for name in machine.files() if ".fila." in name] == []


@pytest.mark.parametrize(
    "system, cpu, platform",
    [("Linux", "aarch64", "linux-arm64"), ("Darwin", "arm64", "darwin-arm64"), ("Darwin", "x86_64", "darwin-amd64")],
)
def test_system_and_architecture_choose_the_file(machine, system, cpu, platform):
    machine.is_a(system, cpu)
    machine.release("1.2.0", platform)
    assert machine.install("--version", "1.2.0").returncode == 0
    assert machine.installed() == "fila-server 1.2.0\n"


@pytest.mark.parametrize("system, cpu, named", [("SunOS", "x86_64", "SunOS"), ("Linux", "riscv64", "riscv64")])
def test_a_system_without_programs_is_told_of_pip(machine, system, cpu, named):
    machine.is_a(system, cpu)
    done = machine.install()
    assert (done.returncode, done.stderr) == (
        1,
        f"fila: there are no programs for {named}: with Python 3.11 or newer, run pip install 'fila[server]>=0.1'\n",
    )


def corrupted(folder):
    with (folder / "fila-linux-amd64.tar.gz").open("ab") as file:
        file.write(b"x")


def without_the_archive(folder):
    (folder / "fila-linux-amd64.tar.gz").unlink()


def without_sums(folder):
    (folder / "SHA256SUMS").unlink()


def without_its_line(folder):
    (folder / "SHA256SUMS").write_text("00  fila-darwin-arm64.tar.gz\n")


@pytest.mark.parametrize(
    "damage, text",
    [
        (corrupted, "the release says"),
        (without_the_archive, "fila-linux-amd64.tar.gz: check the version"),
        (without_sums, "SHA256SUMS: check the version"),
        (without_its_line, "does not name fila-linux-amd64.tar.gz: nothing was changed"),
    ],
)
def test_what_cannot_be_verified_changes_nothing(machine, damage, text):
    """What is installed stays and runs; nothing half is left."""
    machine.release("1.2.0")
    assert machine.install("--version", "1.2.0").returncode == 0
    before = machine.files()
    damage(machine.release("1.3.0"))
    done = machine.install("--version", "1.3.0")
    assert done.returncode == 1
    assert text in done.stderr
    assert machine.files() == before
    assert machine.installed() == "fila-server 1.2.0\n"


def test_programs_that_do_not_run_here_change_nothing(machine):
    machine.release("1.2.0", program="#!/no/such/loader\n")
    done = machine.install("--version", "1.2.0")
    assert done.returncode == 1
    assert "do not run on this system" in done.stderr
    assert machine.files() == ["bin", "lib"]


def test_it_can_be_uninstalled(machine):
    machine.release("1.2.0")
    assert machine.install("--version", "1.2.0").returncode == 0
    done = machine.install("--uninstall")
    assert done.returncode == 0
    assert f"removed {machine.prefix}/lib/fila" in done.stdout
    assert machine.files() == ["bin", "lib"]
    assert "nothing is installed" in machine.install("--uninstall").stderr


def test_a_program_of_the_same_name_from_elsewhere_stays(machine):
    machine.release("1.2.0")
    other = machine.prefix / "bin" / "fila"
    other.parent.mkdir(parents=True)
    other.write_text("somebody's")
    done = machine.install("--version", "1.2.0")
    assert done.returncode == 1
    assert "bin/fila was not made by this script" in done.stderr
    assert other.read_text() == "somebody's"
    assert machine.install("--uninstall").returncode == 1


def test_a_download_that_breaks_off_does_nothing(machine):
    """Every prefix of the script that ends at a line either is refused by the shell or changes nothing."""
    machine.release("1.2.0", place="latest/download")
    lines = (RELEASE / "install.sh").read_text().replace("@RELEASES@", machine.address).splitlines(keepends=True)
    env = {"PATH": machine.path, "HOME": str(machine.folder / "home")}
    for end in range(0, len(lines) - 1, 7):
        command = ["bash", "-s", "--", "--prefix", str(machine.prefix)]
        subprocess.run(
            command, input="".join(lines[:end]), env=env, check=False, capture_output=True, text=True, timeout=60
        )
        assert not machine.prefix.exists()


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("--version", "../1"), "not a version"),
        (("--version",), "needs a value"),
        (("--force",), "unknown option --force"),
    ],
)
def test_a_wrong_option_gets_one_line(machine, arguments, text):
    done = machine.install(*arguments)
    assert done.returncode == 1
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_published_script_knows_where_releases_are():
    made = subprocess.run(
        [RELEASE / "installer", "https://example.org/fila/releases"], check=True, capture_output=True, text=True
    )
    assert "RELEASES=${FILA_RELEASES:-https://example.org/fila/releases}" in made.stdout
    assert "@RELEASES@" not in made.stdout


def test_the_unpublished_script_asks_where_releases_are():
    done = subprocess.run(["bash", RELEASE / "install.sh"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "fila: does not know where releases are: set FILA_RELEASES to their address\n",
    )
