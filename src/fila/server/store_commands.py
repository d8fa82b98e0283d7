"""`fila-server backup`, `restore` and `check`: what is done with the folder of a store, beside or without a server."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from fila.broker.journal import Journal
from fila.broker.recovery import recover
from fila.cluster.folder import check_one
from fila.config import JournalConfig, LimitsConfig
from fila.core.errors import BrokerError, StoreUnusable
from fila.storage.backup import files_of, make_backup
from fila.storage.base import Batch, Family, Storage
from fila.storage.check import Checker, Report
from fila.storage.folder import BACKUP_FILE, check_log
from fila.storage.format import FORMAT
from fila.storage.migration import as_present
from fila.storage.reader import StoreReader
from fila.storage.restore import restore_backup

EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130
_MIB = 1 << 20

_EXAMPLES: Final = {
    "backup": """examples:
  fila-server backup --data-dir /var/lib/fila --to /backup/fila/monday
  fila-server check --data-dir /backup/fila/monday
""",
    "restore": """examples:
  fila-server restore --from /backup/fila/monday --data-dir /var/lib/fila
""",
    "check": """examples:
  fila-server check --data-dir /var/lib/fila
  fila-server check --data-dir /backup/fila/monday && echo whole
""",
}


def run(name: str, arguments: Sequence[str]) -> int:
    """Run a command. Returns the exit code."""
    os.umask(0o077)
    try:
        for folder in _folders(arguments):
            check_one(folder)
        return COMMANDS[name](arguments)
    except (BrokerError, OSError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        _end_line()
        sys.stderr.write("Interrupted\n")
        return EXIT_INTERRUPTED


def _folders(arguments: Sequence[str]) -> list[Path]:
    """Those that are named as a store."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data-dir", type=Path)
    known, _ = parser.parse_known_args(arguments)
    return [] if known.data_dir is None else [known.data_dir]


def _parser(name: str, about: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"fila-server {name}",
        description=about,
        epilog=_EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _backup(arguments: Sequence[str]) -> int:
    parser = _parser("backup", "Copy a store to a folder. A server may be using the store; nothing stops meanwhile.")
    parser.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="the store")
    parser.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="a folder that does not exist or is empty"
    )
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    made = make_backup(options.data_dir, options.to, _bytes_done("copied"))
    _end_line()
    seconds = time.perf_counter() - began
    _say(
        f"Backup in {options.to}: {made.files} files, {made.size / _MIB:.1f} MiB, of which "
        f"{made.copied / _MIB:.1f} MiB were copied and the rest is shared; {seconds:.2f} s."
    )
    return 0


def _restore(arguments: Sequence[str]) -> int:
    parser = _parser(
        "restore", "Copy a backup to a folder, check it and count its messages. The backup stays as it is."
    )
    parser.add_argument("--from", type=Path, required=True, metavar="DIR", dest="backup", help="the backup")
    parser.add_argument(
        "--data-dir", type=Path, required=True, metavar="DIR", help="a folder that does not exist or is empty"
    )
    options = parser.parse_args(arguments)
    told = restore_backup(options.backup, options.data_dir, _bytes_done("restored"))
    _end_line()
    at = datetime.fromtimestamp(told.began_at / 1e9, UTC)
    _say(f"Restored the backup of {at:%Y-%m-%d %H:%M:%S} UTC to {options.data_dir}. Checking it.")
    return _check_store(options.data_dir)


def _check(arguments: Sequence[str]) -> int:
    parser = _parser(
        "check",
        "Read a store that no server uses, or a backup, and say what is wrong with it. Nothing is changed. "
        "The exit code is 1 when it is damaged.",
    )
    parser.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="the store or the backup")
    return _check_store(parser.parse_args(arguments).data_dir)


COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {"backup": _backup, "restore": _restore, "check": _check}


def _check_store(path: Path) -> int:
    if (path / BACKUP_FILE).exists():
        files_of(path)
    with StoreReader(path) as store:
        report = Checker(store, _entries_done).run()
        _end_line()
        if report.whole:
            _start_from(store, report)
    for line in report.damage:
        _say(f"damage: {line}")
    for what, more in report.untold.items():
        _say(f"damage: {what}: {more} more")
    for what, count in report.leftovers.items():
        _say(f"leftover: {count} {what}; the next start removes them")
    messages = sum(report.queues.values())
    queues = f"{len(report.queues)} queue{'s' * (len(report.queues) != 1)}"
    _say(f"{queues}, {messages} message{'s' * (messages != 1)}, {report.entries.total()} entries.")
    if not report.whole:
        _say(f"The store in {path} is damaged. Restore a backup; keep this folder to find out what happened.")
        return EXIT_FAILED
    _say(f"The store in {path} is whole.")
    return 0


class _Looked:
    """A store as recovery reads it: after a migration. What recovery would remove stays."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store
        self._format = store.format or FORMAT

    def get(self, family: Family, key: bytes) -> bytes | None:
        value = self._store.get(family, key)
        return None if value is None else as_present(self._format, family, key, value)

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._store.scan(family, start, end):
            yield key, as_present(self._format, family, key, value)

    def write(self, _: Batch) -> None:
        """Nothing is changed."""


def _start_from(store: StoreReader, report: Report) -> None:
    """Do what a start does, and see whether it would take the store."""
    try:
        check_log(store.path)
        looked = cast("Storage", _Looked(store))
        recover(looked, store.node or 0, LimitsConfig())
        Journal(looked, JournalConfig())
    except StoreUnusable as refused:
        report.say("the server would not start", str(refused))


def _bytes_done(what: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        _line(f"{what} {done / _MIB:.0f} of {total / _MIB:.0f} MiB")

    return tell


def _entries_done(family: str, done: int) -> None:
    _line(f"checking {family.lower()}: {done:,} entries")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _line(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _end_line() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
