"""Connections. Both databases are made to behave alike: short transactions, writers one after another where they meet.

SQLite: the write-ahead log lets readers and one writer work at once; writers take their lock at the start (`BEGIN
IMMEDIATE`) and wait for it, instead of failing halfway. A commit is on the disk when it returns, so it survives a power
cut too: a report that was accepted is nowhere else.

Values of statements are never logged (`hide_parameters`): they are claims, and hashes of keys.
"""

import sqlite3
import time
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

BUSY_TIMEOUT_MS = 30_000
BUSY_PAUSE_S = 0.005
CONNECTIONS = 16


class StoreError(Exception):
    """The database cannot be used. The text never holds a password."""


def open_engine(url: str) -> Engine:
    """An engine for `sqlite:///file` or `postgresql://...`. Nothing is connected yet."""
    parsed = _parse(url)
    try:
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(parsed)
        return create_engine(parsed, pool_size=CONNECTIONS, max_overflow=0, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise StoreError(f"no driver for {shown(url)}: install fila[reconcile] ({error})") from error
    except SQLAlchemyError as error:
        raise StoreError(f"cannot use {shown(url)}: {error}") from error


def shown(url: str) -> str:
    """The URL as it may be logged: without its password, and any query, which may hold one too."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return "[not a database URL]"
    return parsed.set(query={}).render_as_string(hide_password=True) + ("?***" if parsed.query else "")


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreError("not a database URL: expected sqlite:///file or postgresql://user@host/name") from error
    if parsed.drivername in {"postgresql", "postgres"}:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in {"sqlite", "postgresql+psycopg"}:
        raise StoreError(f"{parsed.drivername!r} is not supported: expected sqlite or postgresql")
    if parsed.drivername == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise StoreError("SQLite needs a file, for example sqlite:///reconcile.db: memory is not shared by processes")
    return parsed


def _sqlite(url: URL) -> Engine:
    engine = create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        cursor = connection.cursor()
        _keep_a_write_ahead_log(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _keep_a_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """Once for a new file, and then there is nothing to do. Those who meet while they do it wait here: SQLite's own
    timeout does not hold for a reader that wants to write, since two of them would wait for each other.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(BUSY_PAUSE_S)
