"""`fila auth whoami`: who the broker takes the caller for, and by what."""

from __future__ import annotations

import click

from fila.cli import output
from fila.cli.session import Session, pass_session, session_options

_WORDS = {"key": "API key", "certificate": "certificate rule", "token": "token signed by key"}


@click.command(
    epilog="""\b
Examples:
  fila auth whoami
  fila auth whoami --json
  fila --tls-ca ca.pem --tls-cert billing.pem --tls-key billing.key auth whoami"""
)
@session_options
@pass_session
def whoami(session: Session, /) -> None:
    """Show who the broker takes you for, and by what.

    Shows the names in your client certificate too, which certificate rules are compared with.
    """
    with session.client() as client:
        identity = client.auth.who_am_i()
    ends = identity.expires_at
    if session.as_json:
        output.emit_json(
            {
                "principal": identity.principal,
                "key_id": identity.key_id,
                "recognised_by": identity.recognised_by,
                "credential": identity.credential,
                "expires_at": ends.isoformat() if ends else None,
                "roles": list(identity.roles),
                "grants": list(identity.grants),
                "certificate_names": list(identity.certificate_names),
            }
        )
        return
    names = [("certificate", name) for name in identity.certificate_names]
    if not identity.principal:
        click.echo("The broker has no keys: everybody may do everything.")
        if names:
            output.pairs(names)
        return
    output.pairs(
        [
            ("principal", identity.principal),
            ("recognised by", f"{_WORDS.get(identity.recognised_by, identity.recognised_by)} {identity.credential}"),
            *([("until", f"{ends:%Y-%m-%d %H:%M:%S} UTC")] if ends else []),
            ("roles", ", ".join(identity.roles)),
            *(("grant", grant) for grant in identity.grants),
            *names,
        ]
    )
