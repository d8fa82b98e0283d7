"""The `fila` command group, and the one place where failures become words and exit codes.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no broker answers, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import click

from fila.cli.completion import completion
from fila.cli.config import config
from fila.cli.consume import consume
from fila.cli.dlq import dlq, redrive
from fila.cli.enqueue import enqueue
from fila.cli.explain import explain
from fila.cli.hooks import hook
from fila.cli.journal import journal
from fila.cli.output import printable, wants_colour
from fila.cli.pipeline import pipeline
from fila.cli.queues import inspect, queue
from fila.cli.reconcile import reconcile
from fila.cli.session import Session, global_options
from fila.cli.stream import stream
from fila.cli.throttle import throttle
from fila.cli.top import top
from fila.cli.worker import worker

INTERRUPTED = 130


class Refused(click.ClickException):
    """Something was not done, for a reason that the user reads as one line."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes `Error: ...` to stderr."""
        colour = wants_colour(sys.stderr)
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {self.message}", file=file, err=True, color=colour)


class Unreachable(Refused):
    """Nothing was done, since no broker answers."""

    exit_code = 3


class FilaGroup(click.Group):
    """A group whose commands may raise what the SDK raises."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; no failure of it leaves as a traceback."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _abandon_stdout()
            ctx.exit(0)
        except Exception as error:
            raise _failure(error, ctx.ensure_object(Session)) from error


def _failure(error: Exception, session: Session) -> Refused:
    from fila.client import errors

    match error:
        case errors.FilaTimeoutError():
            return Unreachable(f"no answer from {session.addr} within {session.timeout:g} s (is fila-server running?)")
        case errors.UnavailableError():
            return Unreachable(f"no broker answers at {session.addr} (is fila-server running?)")
        case errors.FilaError() | OSError():
            return Refused(str(error))
        case _:
            return Refused(f"unexpected {type(error).__name__}: {error}")


def _abandon_stdout() -> None:
    """The reader is gone: let the interpreter's last flush go nowhere instead of complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=FilaGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  fila queue create orders --fairness-header tenant
  fila enqueue orders '{"item": 7}' -H tenant=acme
  fila consume orders --count 1
  fila --addr broker.example:5555 queue list

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no broker answers, 130 interrupted.""",
)
@click.version_option(package_name="fila-client", message="fila %(version)s")
@global_options
def cli() -> None:
    """Talk to a Fila broker: manage queues, limits and dead letters, send messages, receive them."""


cli.add_command(queue)
cli.add_command(inspect, "stats")
cli.add_command(enqueue)
cli.add_command(consume)
cli.add_command(worker)
cli.add_command(reconcile)
cli.add_command(pipeline)
pipeline.add_command(stream)
cli.add_command(config)
cli.add_command(throttle)
cli.add_command(hook)
cli.add_command(explain)
cli.add_command(dlq)
cli.add_command(redrive)
cli.add_command(top)
cli.add_command(completion)
cli.add_command(journal)


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="fila")


if __name__ == "__main__":
    main()
