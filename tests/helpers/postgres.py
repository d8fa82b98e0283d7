"""A real PostgreSQL server of the test's own, in a temporary directory, on a free loopback port."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a running server. Without one to run, the test is skipped, in CI it fails."""
    binaries = _binaries()
    if binaries is None:
        text = "needs a PostgreSQL server: apt-get install postgresql"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    root = os.geteuid() == 0  # as which PostgreSQL refuses to run
    with tempfile.TemporaryDirectory(prefix="fila-pg-", ignore_cleanup_errors=True) as folder:
        if root:
            shutil.chown(folder, "postgres")
        data = str(Path(folder, "data"))
        port = _free_port()

        def run(*command: str) -> None:
            subprocess.run(
                [*(("runuser", "-u", "postgres", "--") if root else ()), *command],
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                timeout=60,
            )

        run(str(binaries / "initdb"), "-D", data, "-U", "fila", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off -c max_connections=50"
        log = str(Path(folder, "log"))
        run(str(binaries / "pg_ctl"), "-D", data, "-o", options, "-l", log, "-w", "start")
        try:
            yield f"postgresql://fila@127.0.0.1:{port}/postgres"
        finally:
            run(str(binaries / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")


def _binaries() -> Path | None:
    """Where initdb and pg_ctl are: Debian keeps them out of PATH."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
