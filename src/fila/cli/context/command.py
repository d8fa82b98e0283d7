"""The commands: add, use, list, show and remove contexts. None of them talks to a broker."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from fila.cli import completing, output
from fila.cli.asking import confirm, yes_option
from fila.cli.context import file
from fila.cli.context.contexts import Context, Contexts
from fila.cli.endpoint import ADDR_VARIABLE, CONTEXT_VARIABLE, chosen_name
from fila.cli.session import Session, json_option, pass_session, session_options
from fila.settings import SettingsError

_Found = TypeVar("_Found")


@click.group(
    epilog="""\b
Examples:
  fila context add prod --addr broker.example:5555 --tls-ca ca.pem --api-key-file prod.key
  fila context use prod
  fila context list
  fila --context prod queue list
  FILA_CONTEXT=prod fila queue list"""
)
def context() -> None:
    """Give brokers names, and choose one by its name.

    A context is an address with its TLS options and the file of its API key. Contexts are kept in
    $XDG_CONFIG_HOME/fila/contexts.toml (default: ~/.config/fila/contexts.toml). They are used where neither --addr nor
    FILA_ADDR names the broker.
    """


@context.command(
    epilog="""\b
Examples:
  fila context add local --addr localhost:5555
  fila context add prod --addr a.example:5555,b.example:5555 --tls --api-key-file ~/.config/fila/prod.key
  fila context add prod --addr broker.example:5555 --tls-ca ca.pem --replace"""
)
@click.argument("name")
@click.option("--replace", "replaces", is_flag=True, help="Replace a context of this name.")
@session_options
@pass_session
def add(session: Session, /, name: str, replaces: bool) -> None:
    """Keep the broker at --addr as NAME.

    The --tls options and --api-key-file are kept with it. Environment variables are not kept, and no key is: only the
    name of its file. The broker is not asked.
    """
    addr = session.addr
    if addr is None:
        raise click.UsageError("Give --addr HOST:PORT.")
    if session.context is not None:
        raise click.UsageError("Give --addr, not --context.")

    def change(known: Contexts) -> Contexts:
        if name in known.by_name and not replaces:
            raise SettingsError(f'there is a context "{name}" already: add --replace, or remove it first')
        return known.with_one(name, _context_of(session, addr))

    changed = _update(change)
    if session.as_json:
        output.emit_json(_json(changed, name, session))
        return
    click.echo(f'Added context "{name}": {changed.get(name).addr}')
    if changed.use != name:
        click.echo(f"Use it with `fila context use {name}`, or `fila --context {name} ...`", err=True)


def _context_of(session: Session, addr: str) -> Context:
    """What the options say, with absolute paths."""
    made = Context(
        addr=addr,
        tls_ca=_absolute(session.tls_ca),
        tls_cert=_absolute(session.tls_cert),
        tls_key=_absolute(session.tls_key),
        tls_server_name=session.tls_server_name or "",
        api_key_file=_absolute(session.api_key_file),
    )
    return replace(made, tls=session.tls or made.secure)


def _absolute(given: str | Path | None) -> str:
    path = "" if given is None else str(Path(given).expanduser().absolute())
    if not path.isprintable():
        raise SettingsError(f'the path "{path}" cannot be kept: it has characters that cannot be printed')
    return path


@context.command(
    epilog="""\b
Examples:
  fila context use prod
  fila context use --none"""
)
@click.argument("name", required=False, shell_complete=completing.context_names)
@click.option("--none", "nothing", is_flag=True, help="Use no context any more.")
@json_option
@pass_session
def use(session: Session, /, name: str | None, nothing: bool) -> None:
    """Use the context NAME from now on, in every shell."""
    if (name is None) != nothing:
        raise click.UsageError("Give either NAME or --none.")
    changed = _update(lambda known: known.using(name or ""))
    if session.as_json:
        output.emit_json({"use": changed.use or None})
    elif changed.use:
        click.echo(f'Using context "{changed.use}": {changed.get(changed.use).addr}')
    else:
        click.echo("Using no context")
    _warn_of_variables()


@context.command(
    name="list",
    epilog="""\b
Examples:
  fila context list
  fila context list --json | jq -r '.[].name'""",
)
@json_option
@pass_session
def list_contexts(session: Session, /) -> None:
    """List all contexts. A star marks the one that commands use now."""
    known = _known()
    if session.as_json:
        output.emit_json([_json(known, name, session) for name in known.by_name])
        return
    if not known.by_name:
        click.echo("There are no contexts. Add one with `fila context add NAME --addr HOST:PORT`.", err=True)
        return
    current = _current(known, session)
    rows = [
        (name, "*" if name == current else "", each.addr, "yes" if each.secure else "no", each.api_key_file or "-")
        for name, each in sorted(known.by_name.items())
    ]
    output.table(("NAME", "IN USE", "ADDRESS", "TLS", "API KEY FILE"), rows)
    _warn_of_variables()


@context.command(
    epilog="""\b
Examples:
  fila context show
  fila context show prod --json"""
)
@click.argument("name", required=False, shell_complete=completing.context_names)
@json_option
@pass_session
def show(session: Session, /, name: str | None) -> None:
    """Show the context NAME, or the one in use."""
    known = _known()
    name = name or _current(known, session)
    if name is None:
        raise click.ClickException("no context is in use. `fila context list` shows all")
    found = _checked(lambda: known.get(name))
    if session.as_json:
        output.emit_json(_json(known, name, session))
        return
    words = {"addr": "address", "api_key_file": "API key file"}
    given = [(words.get(key, key.replace("_", " ")), _word(each)) for key, each in found.given().items()]
    output.pairs([("name", name), *given, ("in use", "yes" if name == _current(known, session) else "no")])


def _word(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes"


@context.command(
    epilog="""\b
Examples:
  fila context remove prod
  fila context remove prod --yes"""
)
@click.argument("name", shell_complete=completing.context_names)
@yes_option
@json_option
@pass_session
def remove(session: Session, /, name: str, yes: bool) -> None:
    """Remove the context NAME. The files that it names stay.

    The command asks for confirmation unless --yes is given.
    """
    found = _checked(lambda: _known().get(name))
    if not yes:
        confirm(f'Remove context "{name}" ({found.addr})?')
    _update(lambda known: known.without(name))
    if session.as_json:
        output.emit_json({"name": name, "removed": True})
    else:
        click.echo(f'Removed context "{name}"')


def _known() -> Contexts:
    return _checked(file.read)


def _update(change: Callable[[Contexts], Contexts]) -> Contexts:
    return _checked(lambda: file.update(change))


def _checked(act: Callable[[], _Found]) -> _Found:
    """Runs it. What is wrong with a name or the file is one line."""
    try:
        return act()
    except SettingsError as error:
        raise click.ClickException(output.printable(str(error))) from error


def _current(known: Contexts, session: Session) -> str | None:
    """The name of the context that a command uses now. There may be none of that name."""
    return chosen_name(session, known.use)


def _warn_of_variables() -> None:
    for name in (ADDR_VARIABLE, CONTEXT_VARIABLE):
        if os.environ.get(name):
            click.echo(f"{name} is set, and goes before the context in use.", file=sys.stderr)
            return


def _json(known: Contexts, name: str, session: Session) -> dict[str, str | bool]:
    current = _current(known, session) == name
    return {"name": name, **known.by_name[name].given(), "in_use": current}
