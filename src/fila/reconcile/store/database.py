"""One database for any number of threads: sessions that end well, and statements that both dialects know."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sqlalchemy import CursorResult, Engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from fila.reconcile.store.engine import StoreError, shown
from fila.reconcile.store.tables import Base


class Database:
    """Hands out sessions for reading and for writing."""

    def __init__(self, engine: Engine) -> None:
        self._reads = engine
        self._writes = engine.execution_options(writes=True)
        # SQLite has one writer at a time, and who finds it busy sleeps for up to 100 ms before looking again. Threads
        # of one process wait for each other here instead, and are woken at once.
        self._turn = threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()

    def reading(self) -> AbstractContextManager[Session]:
        """A fresh session that sees one moment."""
        return self._session(self._reads)

    def writing(self) -> AbstractContextManager[Session]:
        """A fresh session, committed if nothing was raised, and closed in any case."""
        return self._session(self._writes, self._turn)

    def insert_new(self, table: type[Base]) -> Any:
        """An insert that leaves alone what is there."""
        dialect = postgresql if self._reads.dialect.name == "postgresql" else sqlite
        return dialect.insert(table).on_conflict_do_nothing()

    def close(self) -> None:
        """Give back all connections."""
        self._reads.dispose()

    @contextmanager
    def _session(
        self,
        engine: Engine,
        turn: AbstractContextManager[object] = nullcontext(),  # noqa: B008 - it keeps no state
    ) -> Iterator[Session]:
        try:
            with turn, Session(engine, expire_on_commit=False) as session, session.begin():
                yield session
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise StoreError(f"{shown(str(engine.url))}: {cause}".strip()) from error


def changed(result: Any) -> bool:
    """Whether a statement did what it was for, on the one row it was for."""
    assert isinstance(result, CursorResult)
    return result.rowcount == 1
