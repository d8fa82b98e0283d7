"""`fila auth certificate`: whose client certificates are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fila.cli import output
from fila.cli.asking import confirm, yes_option
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import CertificateRuleInfo

_FIELDS = {
    "dn": "The whole subject as RFC 4514 writes it, such as CN=billing,OU=payments,O=Acme.",
    "cn": "A common name of the subject.",
    "dns": "A DNS name among the subject alternative names.",
    "uri": "A URI among them, such as a SPIFFE id.",
    "email": "An e-mail address among them.",
}


@click.group(
    epilog="""\b
Examples:
  fila auth certificate add billing --uri spiffe://acme/ns/prod/sa/billing --role producer:billing.**
  fila auth certificate list
  fila auth certificate remove billing-x7k2mp"""
)
def certificate() -> None:
    """Say whose client certificates are."""


@certificate.command(
    epilog="""\b
Examples:
  fila auth certificate add billing --cn billing --role producer:billing.**
  fila auth certificate add billing --uri 'spiffe://acme/ns/prod/**'
  fila auth certificate add ops --dn 'CN=*,OU=operations,O=Acme' --role operator --first"""
)
@click.argument("principal")
@click.option("--dn", metavar="PATTERN", help=_FIELDS["dn"])
@click.option("--cn", metavar="PATTERN", help=_FIELDS["cn"])
@click.option("--dns", metavar="PATTERN", help=_FIELDS["dns"])
@click.option("--uri", metavar="PATTERN", help=_FIELDS["uri"])
@click.option("--email", metavar="PATTERN", help=_FIELDS["email"])
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE[:PATTERN]",
    help="Give a new principal ROLE, on names that match PATTERN only. Repeatable.",
)
@click.option("--first", is_flag=True, help="Try this rule before all others, not behind them.")
@session_options
@pass_session
def add(session: Session, /, principal: str, roles: tuple[str, ...], first: bool, **patterns: str | None) -> None:
    """Let client certificates with a matching name call as PRINCIPAL.

    The first rule that matches decides. `*` matches within a part of the name, `**` all parts that follow. PRINCIPAL is
    created with the given roles if it does not exist. A call that sends a key or a token is recognised by that.
    """
    given = {field: pattern for field, pattern in patterns.items() if pattern is not None}
    if len(given) != 1:
        raise click.UsageError("Name one of --dn, --cn, --dns, --uri and --email.")
    [(field, pattern)] = given.items()
    with session.client() as client:
        rule = client.auth.add_certificate_rule(principal, field, pattern, roles=roles, first=first)
    if session.as_json:
        output.emit_json(_json(rule))
    else:
        click.echo(output.printable(f"{rule.id}: {field} {pattern} is {principal}"))


@certificate.command(
    name="list",
    epilog="""\b
Examples:
  fila auth certificate list
  fila auth certificate list --json""",
)
@session_options
@pass_session
def list_rules(session: Session, /) -> None:
    """List all certificate rules, in the order in which they are tried."""
    with session.client() as client:
        rules = client.auth.list_certificate_rules()
    if session.as_json:
        output.emit_json([_json(rule) for rule in rules])
    elif rules:
        rows = [(rule.id, rule.field, rule.pattern, rule.principal) for rule in rules]
        output.table(("RULE", "FIELD", "PATTERN", "PRINCIPAL"), rows)
    else:
        click.echo("There are no certificate rules. Add one with `fila auth certificate add`.", err=True)


@certificate.command(
    epilog="""\b
Examples:
  fila auth certificate remove billing-x7k2mp
  fila auth certificate remove billing-x7k2mp --yes"""
)
@click.argument("rule_id", metavar="RULE")
@yes_option
@session_options
@pass_session
def remove(session: Session, /, rule_id: str, yes: bool) -> None:
    """Remove the certificate rule RULE at once.

    Open calls that were recognised by it end within a second. The command asks for confirmation unless --yes is given.
    """
    if not yes:
        confirm(f'Remove the certificate rule "{output.printable(rule_id)}"?')
    with session.client() as client:
        client.auth.remove_certificate_rule(rule_id)
    if session.as_json:
        output.emit_json({"rule": rule_id})
    else:
        click.echo(output.printable(f"{rule_id} removed"))


def _json(rule: CertificateRuleInfo) -> dict[str, str]:
    return {
        "rule": rule.id,
        "field": rule.field,
        "pattern": rule.pattern,
        "principal": rule.principal,
        "created_at": rule.created_at.isoformat(),
    }
