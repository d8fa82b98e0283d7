"""Names of a broker and of contexts, for completion in a shell.

Rules of this file:
- Completion never disturbs: whatever goes wrong, there are no names, and nothing is printed.
- A name becomes part of a command line when a key is pressed. So only names without characters that a shell acts on are
  offered: producers and operators choose them.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from fila.cli.session import Session
    from fila.client import Client

TIMEOUT_S = 1.0
"""What a broker has to answer in"""
_END_S = 3.0
_MOST = 500
_PLAIN = re.compile(r"[\w.:@%+/][\w.:@%+/-]*")

_Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def end_in_time() -> None:
    """End this process when completion takes too long, such as for a name that cannot be resolved."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _END_S)


def _completer(find: Callable[[click.Context, str], Iterable[str]]) -> _Completer:
    """Offers the names that begin with what was typed."""

    def complete(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem[str]]:
        found: list[str] = []
        with suppress(Exception), Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
            found = [name for name in find(ctx, typed) if name.startswith(typed) and _PLAIN.fullmatch(name)]
        return [CompletionItem(name) for name in sorted(found)[:_MOST]]

    return complete


def _client(ctx: click.Context) -> Client:
    session: Session = ctx.obj
    session.timeout = TIMEOUT_S
    return session.client()


def _queues(ctx: click.Context, _typed: str) -> Iterable[str]:
    with _client(ctx) as client:
        return [queue.name for queue in client.list_queues()]


def _dead_letter_queues(ctx: click.Context, _typed: str) -> Iterable[str]:
    with _client(ctx) as client:
        return [queue.dead_letter_queue for queue in client.list_queues() if queue.dead_letter_queue]


def _config_keys(ctx: click.Context, typed: str) -> Iterable[str]:
    with _client(ctx) as client:
        return list(client.list_config(typed))


def _throttle_keys(ctx: click.Context, typed: str) -> Iterable[str]:
    prefix = "throttle."
    with _client(ctx) as client:
        return [key.removeprefix(prefix) for key in client.list_config(prefix + typed)]


def _fairness_keys(ctx: click.Context, typed: str) -> Iterable[str]:
    queue = ctx.params.get("queue") or ctx.args[0]  # it is left there when an option behind it has no value yet
    with _client(ctx) as client:
        return [key.fairness_key for key in client.queue_stats(queue, _MOST, key_prefix=typed).keys]


def _contexts(_ctx: click.Context, _typed: str) -> Iterable[str]:
    from fila.cli.context import file

    return file.read().by_name


queue_names = _completer(_queues)
dead_letter_queue_names = _completer(_dead_letter_queues)
config_keys = _completer(_config_keys)
throttle_keys = _completer(_throttle_keys)
fairness_keys = _completer(_fairness_keys)
"""Of the queue that the command line names before"""
context_names = _completer(_contexts)
