"""Brings a database to the form that this version expects, from whatever form it has.

Several processes may start at once: the first does the work while the others wait, and then find nothing to do.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from fila.reconcile.store.engine import StoreError, shown

LOCK = 0x46494C41  # "FILA": any number that other users of the database do not lock


def upgrade(engine: Engine) -> str:
    """Apply the migrations that are missing, all or none. Returns the version the database then has."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    head = ScriptDirectory.from_config(config).get_current_head() or ""
    try:
        with engine.execution_options(writes=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
            _refuse_unknown(connection, ScriptDirectory.from_config(config))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise StoreError(f"cannot use {shown(str(engine.url))}: {cause}") from error
    return head


def _refuse_unknown(connection: Connection, scripts: ScriptDirectory) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if current is not None and current not in known:
        raise StoreError(f"the database has version {current!r}, newer than this program supports")
