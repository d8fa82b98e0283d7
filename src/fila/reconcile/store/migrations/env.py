"""Run by Alembic: applies the steps on the connection, and in the transaction, of whoever asked."""

from alembic import context

from fila.reconcile.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite changes a table by copying it
)
context.run_migrations()
