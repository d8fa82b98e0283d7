"""`fila reconcile`: the reconciliation service, its workers, and a look at what they did.

The service is imported by the commands themselves, so the rest of the CLI needs none of its packages.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila.cli import output
from fila.cli.reconcile_keys import key
from fila.cli.reconcile_options import load_config, service, service_options
from fila.cli.stopping import stop_signals

if TYPE_CHECKING:
    from fila.reconcile.store import Store


@click.group(
    epilog="""\b
Examples:
  fila reconcile simulate --listen 127.0.0.1:8090
  fila reconcile serve --config reconcile.toml
  fila reconcile worker --config reconcile.toml --queue redis://localhost:6379/0 --concurrency 8
  fila reconcile status --db sqlite:///reconcile.db"""
)
def reconcile() -> None:
    """Reconcile reports of affiliates with platform metrics."""


reconcile.add_command(key)


@reconcile.command(
    epilog="""\b
Examples:
  fila reconcile serve
  fila reconcile serve --config reconcile.toml --listen 0.0.0.0:8080
  fila reconcile serve --queue redis://localhost:6379/0 --workers 0"""
)
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="The address to serve."
)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Also reconcile in this process, with N threads (default: 4 for a queue in memory, else 0).",
)
@service_options
def serve(
    listen: str, workers: int | None, config_path: Path | None, store_url: str | None, queue_url: str | None
) -> None:
    """Serve the ingestion API. Its documentation is at /docs."""
    host, port = _address(listen)
    with service():
        from fila.reconcile.service import Parts
        from fila.reconcile.serving import HttpServer

        config = load_config(config_path, store_url, queue_url, workers or None)
        embedded = (not config.queue.shared) if workers is None else workers > 0
        with stop_signals() as wait_for_signal, contextlib.ExitStack() as stack:
            parts = stack.enter_context(contextlib.closing(Parts.open(config)))
            if embedded:
                stack.enter_context(parts.worker())
            server = HttpServer(parts.api(), host, port)
            workers_said = f"{config.worker.concurrency} workers" if embedded else "no workers"
            with server:
                click.echo(f"Answering at {server.url} (description at {server.url}/docs), {workers_said}", err=True)
                wait_for_signal()


@reconcile.command(
    epilog="""\b
Examples:
  fila reconcile worker --config reconcile.toml --queue redis://localhost:6379/0
  fila reconcile worker --config reconcile.toml --queue fila://localhost:5555/reconcile --concurrency 16"""
)
@click.option(
    "--concurrency", type=click.IntRange(min=1), metavar="N", help="Reconcile N reports at a time (default 4)."
)
@service_options
def worker(concurrency: int | None, config_path: Path | None, store_url: str | None, queue_url: str | None) -> None:
    """Reconcile reports until SIGTERM or Ctrl-C.

    The first signal finishes the running jobs, a second one ends at once.
    """
    with service():
        from fila.reconcile.service import Parts

        config = load_config(config_path, store_url, queue_url, concurrency)
        if not config.queue.shared:
            raise click.UsageError("A queue in memory cannot be shared. Give --queue, or use `fila reconcile serve`.")
        with stop_signals() as wait_for_signal, contextlib.closing(Parts.open(config)) as parts, parts.worker():
            click.echo(f"Working with {config.worker.concurrency} threads", err=True)
            wait_for_signal()


@reconcile.command(
    epilog="""\b
Examples:
  fila reconcile status
  fila reconcile status 5d0a7a3c8f2b4f6e9a1c3e5d7b9f0a2c
  fila reconcile status --db postgresql://fila@localhost/fila --json | jq .outcomes"""
)
@click.argument("report_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option(
    "--affiliates", type=click.IntRange(min=1), default=10, metavar="N", help="Show N affiliates (default 10)."
)
@service_options
def status(
    report_id: str | None,
    as_json: bool,
    affiliates: int,
    config_path: Path | None,
    store_url: str | None,
    queue_url: str | None,
) -> None:
    """Show the state of reconciliation, or one report.

    Without REPORT_ID: outcomes, alerts and the least trusted affiliates. With it: the report and all its attempts.
    """
    with service(log_level="warning"):
        from fila.cli import reconcile_views as views
        from fila.reconcile.service import open_store

        config = load_config(config_path, store_url, queue_url, None)
        with contextlib.closing(open_store(config)) as store:
            if report_id is None:
                shown = views.overview(store, config.rules.trust, affiliates)
                output.emit_json(shown) if as_json else views.show_overview(shown)
            else:
                _show_report(store, report_id, as_json=as_json)


def _show_report(store: Store, report_id: str, *, as_json: bool) -> None:
    from fila.cli import reconcile_views as views

    found = store.views.report(report_id)
    if found is None:
        raise click.ClickException(f'report "{output.printable(report_id)}" does not exist')
    shown = views.report_json(*found)
    output.emit_json(shown) if as_json else views.show_report(shown)


@reconcile.command(
    epilog="""\b
Examples:
  fila reconcile simulate
  curl -X PUT localhost:8090/control/clipshare -d '{"down": true}'"""
)
@click.option(
    "--listen", default="127.0.0.1:8090", show_default=True, metavar="HOST:PORT", help="The address to serve."
)
def simulate(listen: str) -> None:
    """Simulate platforms, for tests. Faults are set over HTTP.

    Every NAME is a platform: /NAME/v1/posts/POST/metrics. The token is "simulated".
    """
    host, port = _address(listen)
    with service():
        from fila.reconcile.simulator import Simulator

        with stop_signals() as wait_for_signal, Simulator(host, port) as simulator:
            url = simulator.url
            click.echo(f"Platforms answer at {url}/NAME, faults are set at {url}/control/NAME", err=True)
            wait_for_signal()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise click.BadParameter(f'"{text}" is not an address such as 127.0.0.1:8080', param_hint="--listen")
    return host.strip("[]"), int(port)
