"""Real PostgreSQL servers of the test's own, in a temporary directory, on free loopback ports."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a running server. Without one to run, the test is skipped, in CI it fails."""
    with single_postgres() as server:
        yield server.url


@contextmanager
def single_postgres() -> "Iterator[PostgresServer]":
    """A running server. Without one to run, the test is skipped, in CI it fails."""
    with _folder() as folder:
        server = PostgresServer(folder, "only")
        server.initialise()
        server.start("fsync=off")
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def replicated_postgres(*settings: str) -> "Iterator[tuple[PostgresServer, PostgresServer]]":
    """A primary and its synchronous standby, both running."""
    with _folder() as folder:
        primary = PostgresServer(folder, "first")
        primary.initialise()
        primary.start(*settings)
        try:
            with primary.with_standby("second") as standby:
                yield primary, standby
        finally:
            primary.stop()


class PostgresServer:
    """One server, whose data survives being stopped."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._data = Path(folder, name)
        self._settings: tuple[str, ...] = ()
        self.port = _free_port()

    @property
    def url(self) -> str:
        return f"postgresql://fila@127.0.0.1:{self.port}/postgres"

    def initialise(self) -> None:
        """Make an empty database."""
        self._run("initdb", "-D", self._data, "-U", "fila", "-A", "trust", "-E", "UTF8", "--no-sync")

    def copy(self, other: "PostgresServer") -> None:
        """Become its standby."""
        source = f"host=127.0.0.1 port={other.port} user=fila application_name={self._name}"
        self._run("pg_basebackup", "-D", self._data, "-d", source, "-R", "-c", "fast", "--no-sync")

    @contextmanager
    def with_standby(self, name: str) -> "Iterator[PostgresServer]":
        """A synchronous standby of this server."""
        standby = PostgresServer(self._folder, name)
        standby.copy(self)
        standby.start(*self._settings)
        self.set(synchronous_standby_names=name)
        try:
            yield standby
        finally:
            standby.stop()

    def start(self, *settings: str) -> None:
        """`settings`: as `name=value`. Returns when connections are accepted; starts again with the last ones."""
        self._settings = settings or self._settings
        options = [f"-h 127.0.0.1 -p {self.port} -k {self._folder} -c max_connections=50"]
        options += [f"-c {setting}" for setting in self._settings]
        log = f"{self._data}.log"
        self._run("pg_ctl", "-D", self._data, "-o", " ".join(options), "-l", log, "-w", "start")

    def set(self, **settings: str) -> None:
        """Change settings of a running server."""
        for name, value in settings.items():
            self.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.sql("SELECT pg_reload_conf()")

    def guard(self, user: str, password: str, cert: str, key: str) -> None:
        """From now on there is a user who needs TLS and a password."""
        for source, name in ((cert, "server.crt"), (key, "server.key")):
            target = self._data / name
            shutil.copy(source, target)
            target.chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(target, "postgres")
        rules = self._data / "pg_hba.conf"
        rules.write_text(
            f"hostssl all {user} 127.0.0.1/32 scram-sha-256\nhost all {user} 127.0.0.1/32 reject\n" + rules.read_text()
        )
        self.sql(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
        self.sql(f"GRANT CREATE ON SCHEMA public TO {user}")
        self.set(ssl="on")

    def sql(self, statement: str) -> str:
        """Run a statement; says what psql prints."""
        writes = "options='-c default_transaction_read_only=off'"  # whatever the server has
        url = f"host=127.0.0.1 port={self.port} user=fila dbname=postgres {writes}"
        psql = [str(_binaries() / "psql"), "-X", "-A", "-t", "-q", "-d", url, "-c", statement]
        return subprocess.run(psql, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def stop(self) -> None:
        """At once, as a crash would; does nothing when it is stopped."""
        if (self._data / "postmaster.pid").exists():
            self.resume()
            self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def promote(self) -> None:
        """Make the standby a primary."""
        self._run("pg_ctl", "-D", self._data, "-w", "promote")

    def pause(self) -> None:
        """Stop all its processes where they are."""
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                process.suspend()

    def resume(self) -> None:
        """Go on after `pause`."""
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                process.resume()

    def _processes(self) -> list[psutil.Process]:
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            main = psutil.Process(int((self._data / "postmaster.pid").read_text().splitlines()[0]))
            return [main, *main.children()]
        return []

    def _run(self, program: str, *arguments: object) -> None:
        # PostgreSQL refuses to run as root.
        become = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
        command = [*become, str(_binaries() / program), *map(str, arguments)]
        subprocess.run(command, check=True, cwd=self._folder, stdout=subprocess.DEVNULL, timeout=60)


@contextmanager
def _folder() -> Iterator[str]:
    _binaries()
    with tempfile.TemporaryDirectory(prefix="fila-pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        yield folder


def _binaries() -> Path:
    """Where initdb and pg_ctl are: Debian keeps them out of PATH."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    text = "needs a PostgreSQL server: apt-get install postgresql"
    return pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
