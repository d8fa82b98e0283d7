"""`fila worker`: run the jobs of an app, and print one line for each job.

The first Ctrl-C or SIGTERM finishes running jobs, a second one ends at once.
"""

from __future__ import annotations

import importlib
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output
from fila.cli.durations import SECONDS
from fila.cli.reload import run_reloading
from fila.cli.stopping import stop_signals

if TYPE_CHECKING:
    from fila.jobs import App, Worker

_LOOKS: dict[str, dict[str, Any]] = {
    "done": {"fg": "green"},
    "repeated": {"fg": "cyan"},
    "deferred": {"fg": "yellow"},
    "retried": {"fg": "yellow", "bold": True},
    "lost": {"fg": "red"},
    "dead": {"fg": "red", "bold": True},
}


_INDENT = 10
"""As wide as the time of a line, for lines that continue it."""


class Unusable(click.ClickException):
    """The app cannot be run. The reason is printed as one line."""

    def __init__(self, message: str) -> None:
        super().__init__(output.printable(message))


class NoQueue(Unusable):
    """The service behind the app's queue does not answer."""

    exit_code = 3


@click.command(
    epilog="""\b
Examples:
  fila worker shop.jobs:app
  fila worker shop.jobs:app --concurrency 16 --queue mail --queue reports
  fila worker jobs:app --reload               restart when a file changes
  FILA_JOBS_URL=redis://localhost:6379/0 fila worker shop.jobs:app
"""
)
@click.argument("target", metavar="MODULE:APP")
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    metavar="N",
    help="Run up to N jobs of each queue at a time.",
)
@click.option(
    "--queue",
    "-q",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Run jobs of this queue only. Repeat the option for more queues.",
)
@click.option(
    "--grace",
    type=SECONDS,
    default=30.0,
    metavar="TIME",
    help="Wait up to TIME for running jobs when stopping (default 30s).",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics at http://HOST:PORT/metrics.")
@click.option("--verbose", "-v", is_flag=True, help="Print tracebacks of failed jobs and the logs of libraries.")
@click.option(
    "--reload", is_flag=True, help="Restart when a Python file in the current folder changes. For development."
)
def worker(
    target: str,
    concurrency: int,
    queues: Sequence[str],
    grace: float,
    metrics: str | None,
    *,
    verbose: bool,
    reload: bool,
) -> None:
    """Run the jobs of an app until SIGTERM or Ctrl-C.

    MODULE may be in the current folder. The app, or else $FILA_JOBS_URL, names the backend that keeps the jobs.
    """
    if reload:
        sys.exit(run_reloading([argument for argument in sys.argv[1:] if argument != "--reload"], Path.cwd()))
    from fila.jobs import JobsError, PoolSettings, QueueUnavailable

    log = _show_jobs(verbose=verbose)
    app = load(target)
    log.task_width = max((len(name) for name in app.tasks), default=0)
    try:
        exporter = _exporter(app, metrics)
        workers = app.worker(PoolSettings(concurrency=concurrency, grace_seconds=grace), queues or None)
    except QueueUnavailable as error:
        raise NoQueue(str(error)) from error
    except JobsError as error:
        raise Unusable(str(error)) from error
    _greet(app, target, workers, concurrency)
    with exporter, stop_signals() as wait_for_signal:
        started = time.monotonic()
        workers.start()
        wait_for_signal()
        if workers.busy:
            _say(f"Stopping: {output.count(workers.busy, 'job')} to finish (press Ctrl-C again to stop at once)")
        finished = workers.stop()
    app.close()
    _part(log.counts, time.monotonic() - started)
    sys.exit(0 if finished else 1)


def _exporter(app: App, address: str | None) -> AbstractContextManager[object]:
    if address is None:
        return nullcontext()
    from fila.jobs import Counters, MetricsServer

    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise click.UsageError(f"--metrics: {address!r} is not HOST:PORT.")
    counters = Counters()
    app.watch(counters)
    try:
        return MetricsServer(counters, host.strip("[]"), int(port))
    except OSError as error:
        raise Unusable(f"cannot serve metrics at {address}: {error}") from error


def load(target: str) -> App:
    """The app that a text such as `shop.jobs:app` names. Raises UsageError or Unusable."""
    from fila.jobs import App

    module_name, colon, attribute = target.partition(":")
    if not colon or not module_name or not attribute:
        raise click.UsageError(f"{target!r} is not of the form MODULE:APP, such as shop.jobs:app.")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise Unusable(f"{module_name} imports the module {error.name}, which is not installed") from error
        raise Unusable(f"module {module_name!r} is neither in the current folder nor installed") from error
    except Exception as error:
        raise Unusable(f"cannot import {module_name}: {type(error).__name__}: {error}") from error
    found: object = module
    for name in attribute.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise Unusable(f"{target} is {what}, not a fila.jobs.App")
    return found


class LiveLog(logging.Handler):
    """A line for each job that ended; other logs as they are. Jobs go on when nobody reads them any more."""

    def __init__(self, *, verbose: bool) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.task_width = 0
        self._verbose = verbose
        self._colour = sys.stderr is not None and output.wants_colour(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            click.echo(self._line(record), err=True, color=self._colour)
        except Exception:  # noqa: BLE001  as any logging handler does
            with suppress(Exception):  # which would tell of it on the same stderr
                self.handleError(record)

    def _line(self, record: logging.LogRecord) -> str:
        outcome = getattr(record, "outcome", None)
        if isinstance(outcome, str):
            self.counts[outcome] += 1
            line = self._job_line(record, outcome)
        else:
            said = output.printable(record.getMessage() + _details(record))
            line = f"{self._moment(record)}  {record.levelname.lower():<8}  {said}"
        if record.exc_info and (self._verbose or outcome is None):
            line += "\n" + output.printable(logging.Formatter().formatException(record.exc_info), keep="\n")
        return line

    def _job_line(self, record: logging.LogRecord, outcome: str) -> str:
        fields = record.__dict__
        label = f"{outcome:<8}"
        parts = [
            self._moment(record),
            click.style(label, **_LOOKS[outcome]) if self._colour else label,
            output.printable(str(fields.get("task") or fields.get("queue"))).ljust(self.task_width),
            output.duration_ms(1000 * fields["seconds"]).rjust(8),
            output.printable(str(fields.get("correlation_id") or "-")),
        ]
        if fields["attempt"] > 1 or outcome != "done":
            parts.append(f"attempt {fields['attempt']}")
        if fields.get("error"):
            parts.append(output.printable(fields["error"]))
        return output.folded(parts, gap="  ", indent=_INDENT, width=self._width())

    def _width(self) -> int | None:
        return None if sys.stderr is None or sys.stderr.closed else output.width_of(sys.stderr)

    def _moment(self, record: logging.LogRecord) -> str:
        text = time.strftime("%H:%M:%S", time.localtime(record.created))
        return click.style(text, dim=True) if self._colour else text


#: What a log record may say besides its text, in this order.
_DETAILS = ("reason", "redis", "breaker", "depth", "warn_depth", "jobs", "jobs_lost", "retries", "job_ids", "queue")


def _details(record: logging.LogRecord) -> str:
    return "".join(f"  {name}={record.__dict__[name]}" for name in _DETAILS if name in record.__dict__)


def _show_jobs(*, verbose: bool) -> LiveLog:
    from fila.jobs import CorrelationFilter

    handler = LiveLog(verbose=verbose)
    handler.addFilter(CorrelationFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("fila.jobs").setLevel(logging.INFO)
    return handler


def _greet(app: App, target: str, workers: Worker, concurrency: int) -> None:
    backends = {app.queue(name).backend for name in workers.queues}
    tasks = sorted(name for name, task in app.tasks.items() if task.choices.queue in workers.queues)
    _say(f"{target}: {output.count(len(tasks), 'task')} on {', '.join(sorted(backends))}")
    rows = [
        ("queues", ", ".join(workers.queues)),
        ("tasks", ", ".join(tasks) or "none"),
        ("at a time", str(concurrency)),
    ]
    for name, value in rows:
        _say(f"  {name:<10}{output.printable(value)}")
    if "memory" in backends:
        _say("Jobs are kept in the memory of this process, so jobs of other processes do not arrive here.")
    _say("Waiting for jobs. Press Ctrl-C to stop.")


def _part(counts: Counter[str], seconds: float) -> None:
    total = sum(counts.values())
    parts = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common())
    said = f"Stopped after {output.duration_ms(1000 * seconds)}: {output.count(total, 'job')}"
    _say(f"{said} ({parts})" if parts else said)


def _say(text: str) -> None:
    """Write to stderr. Nobody may be there to read it, which is no reason to leave jobs undone."""
    with suppress(OSError, ValueError):
        click.echo(text, err=True)
