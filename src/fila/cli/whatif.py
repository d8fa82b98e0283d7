"""`fila pipeline whatif`: a journal once more under other settings. Spark is imported by the command itself."""

from __future__ import annotations

import time
from typing import Any

import click

from fila.cli import completing, output
from fila.cli.durations import Duration
from fila.cli.pipeline import spark_options, spark_session
from fila.cli.session import Session, pass_session

_VARIANTS = {"recorded": "what happened", "model": "replayed, nothing changed", "whatif": "what would have been"}


@click.command(
    epilog="""\b
Examples:
  fila pipeline whatif --broker localhost:5555 --out whatif --set throttle.provider:aws=50/s
  fila pipeline whatif --journal history.parquet --out whatif --queue orders --set weight.acme=3 --set consumers=8
  fila pipeline whatif --archive archive --out whatif     change nothing: can the replay be trusted?"""
)
@click.option("--journal", metavar="PATH", help="The output of `fila journal export`: a file, a folder or a pattern.")
@click.option("--broker", metavar="HOST:PORT", help="Read the journal of this broker instead.")
@click.option("--archive", metavar="FOLDER", help="Read the --out folder of `fila pipeline archive` instead.")
@click.option("--out", required=True, metavar="FOLDER", help="The folder of the runs.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="What to change; may be repeated: throttle.KEY=50/s (or a limit as of `fila throttle set`, or none), "
    "weight.KEY=3, quantum=10, consumers=4, max_in_flight=20, paused=false.",
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="QUEUE",
    shell_complete=completing.queue_names,
    help="Change weights, quantum, consumers and pause of this queue only; may be repeated (default: of all). Only it "
    "and the queues that share its throttle keys are replayed.",
)
@click.option(
    "--window",
    type=Duration("s", bare="s", low_s=0.001),
    metavar="TIME",
    help="The length of a time window, such as 10s (default: about 60 windows in all).",
)
@click.option(
    "--in-one",
    is_flag=True,
    help="Replay the days of a queue one after the other. By default days (UTC) are replayed in parallel.",
)
@spark_options
@pass_session
def whatif(
    session: Session,
    /,
    journal: str | None,
    broker: str | None,
    archive: str | None,
    out: str,
    settings: tuple[str, ...],
    queues: tuple[str, ...],
    window: float | None,
    in_one: bool,
    master: str | None,
    as_json: bool,
) -> None:
    """Replay a journal under other settings.

    What arrived goes once more through the broker's own scheduler, on a clock of its own: with the settings as they
    were, and with those of --set. A page compares waits and shares with what happened.

    First the command checks that the scheduler chooses each recorded delivery again. If it does not, the exit code is 1
    and the page says where.
    """
    if sum(given is not None for given in (journal, broker, archive)) != 1:
        raise click.UsageError("Give one of --journal, --broker and --archive.")
    if broker is not None:
        session.addr = broker
        session.endpoint().export()
    changes = _parsed(settings, queues)
    with spark_session("fila whatif", master) as (spark, say):
        from fila.pipelines.submit.program import needs_server

        with needs_server():
            from fila.pipelines.whatif.pipeline import Options, Source, whatif

        options = Options(changes, window, by_day=not in_one)
        source = Source(journal, session.endpoint().addr if broker is not None else None, archive)
        found = whatif(spark, out, options, now_ms=time.time_ns() // 1_000_000, source=source, say=say)
    if session.as_json or as_json:
        output.emit_json({"report": found.report, **found.summary})
    else:
        _show(found.summary)
        click.echo(f"\nReport: {found.report}")
    if found.failure is not None:
        raise click.ClickException(found.failure)


def _parsed(settings: tuple[str, ...], queues: tuple[str, ...]) -> Any:
    from fila.pipelines.errors import BadInput
    from fila.pipelines.submit.program import needs_server

    try:
        with needs_server():
            from fila.pipelines.whatif.changes import parse
        return parse(settings, queues)
    except BadInput as error:
        raise click.UsageError(str(error)) from error


def _show(summary: dict[str, Any]) -> None:
    from fila.pipelines.pages.whatif import duration

    rows = []
    for queue in summary["queues"]:
        for variant, name in _VARIANTS.items():
            if variant in queue:
                told = queue[variant]
                waits = (duration(told[each]) for each in ("mean_wait_ns", "p95_wait_ns", "longest_ns"))
                jain = "-" if told["jain"] is None else f"{told['jain']:.3f}"
                rows.append((queue["queue"], name, f"{told['leased']:,}", f"{told['backlog']:,}", *waits, jain))
    output.table(("queue", "", "deliveries", "left", "mean wait", "95 % wait", "longest", "Jain"), rows)
    found = summary["reproduction"]
    click.echo(f"\nOf what happened, {found['alike']:,} deliveries were chosen again by the scheduler, in their order.")
    if found["skipped"]:
        click.echo(
            f"{found['skipped']:,} are not compared: suspects, claims of reader groups, and what was delivered before "
            "a queue was empty once, where the journal begins in the middle."
        )
