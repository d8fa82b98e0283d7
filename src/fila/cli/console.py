"""`fila console`: the broker in a browser. The console is imported by the command itself."""

from __future__ import annotations

from pathlib import Path

import click

from fila.cli import output
from fila.cli.session import Session, pass_session, session_options


@click.command(
    epilog="""\b
Examples:
  fila console
  fila console --addr broker.example:5555 --tls-ca ca.pem
  fila console --listen 0.0.0.0:5550 --cert console.pem --key console.key --host console.example
  fila console --reports reconciled"""
)
@click.option(
    "--listen",
    default="127.0.0.1:5550",
    metavar="HOST:PORT",
    help="The address to serve (default 127.0.0.1:5550; port 0 takes a free one).",
)
@click.option("--cert", metavar="FILE", help="Serve HTTPS with the certificate in FILE.")
@click.option("--key", metavar="FILE", help="The private key of --cert.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Also answer browsers that open it by NAME, such as that of a proxy. Repeat the option for more names.",
)
@click.option("--insecure", is_flag=True, help="Serve other machines without HTTPS. Keys then travel in plaintext.")
@click.option(
    "--reports",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Show the reports of pipelines that are in DIR.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="End when stdin ends.")
@session_options
@pass_session
def console(
    session: Session,
    /,
    listen: str,
    cert: str | None,
    key: str | None,
    hosts: tuple[str, ...],
    insecure: bool,
    reports: Path | None,
    with_parent: bool,
) -> None:
    """Serve the console, in which a browser shows the broker.

    Whoever opens it signs in with an API key and has the rights of that key. A browser on this machine needs none while
    the broker asks for none. The command needs the extra fila[console] and runs until SIGTERM or Ctrl-C.
    """
    if session.api_key_file is not None:
        raise click.UsageError(
            "Leave --api-key-file out: the console has no key of its own, whoever opens it signs in."
        )
    try:
        from fila.console.serving import NotServed, Serving, serve
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"fila console needs the package {error.name}: pip install 'fila[console]'"
        ) from error
    broker = session.endpoint()
    broker.export()  # for what it leaves to the environment; keys are taken out of that again
    serving = Serving(broker.addr, listen, broker.tls or None, hosts, cert, key, insecure, reports, with_parent)
    try:
        serve(serving, lambda url: click.echo(f"Console of {output.printable(broker.addr)} at {url}", err=True))
    except NotServed as error:
        raise click.ClickException(str(error)) from error
