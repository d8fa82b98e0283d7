"""What the commands of `fila reconcile` share: their options, and how they fail."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fila.cli import output

if TYPE_CHECKING:
    from fila.reconcile.config import Config

_Command = TypeVar("_Command", bound=Callable[..., Any])


def service_options(command: _Command) -> _Command:
    """Where the service keeps things."""
    for option in (
        click.option(
            "--queue",
            "queue_url",
            metavar="URL",
            envvar="FILA_RECONCILE_QUEUE",
            help="The job queue: memory (default), redis://host:port/db or fila://host:port/queue.",
        ),
        click.option(
            "--db",
            "store_url",
            metavar="URL",
            envvar="FILA_RECONCILE_DB",
            help="The database of reports: sqlite:///file (default sqlite:///reconcile.db) or postgresql://...",
        ),
        click.option(
            "--config",
            "config_path",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A TOML file with platforms, limits and rules.",
        ),
    ):
        command = option(command)
    return command


def load_config(path: Path | None, store_url: str | None, queue_url: str | None, concurrency: int | None) -> Config:
    """The file, and what the command line overrides. Raises SettingsError."""
    from fila.reconcile.config import Config

    config = Config.load(path).override(store_url=store_url, queue_url=queue_url, concurrency=concurrency)
    config.queue.queue_settings(config.worker.concurrency)
    return config


@contextlib.contextmanager
def service(log_level: str = "info") -> Iterator[None]:
    """Whatever stops the service is said in one line."""
    try:
        from fila.reconcile.logs import configure
        from fila.reconcile.service import STOPS
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"fila reconcile needs the package {error.name}: pip install 'fila[reconcile]'"
        ) from error
    configure(log_level)
    try:
        yield
    except STOPS as error:
        raise click.ClickException(output.printable(str(error))) from error
