"""The fields of a form that was sent: bounded, and only with the token of the session."""

import hmac
from urllib.parse import parse_qsl

from starlette.requests import Request

from fila.console.limits import MAX_BODY_BYTES, MAX_FIELDS
from fila.console.sessions import Session


class BadForm(Exception):
    """What was sent is not a form of ours. The text is for the person."""


async def read_form(request: Request, session: Session | None) -> dict[str, str]:
    """The fields, by name. Raises BadForm; with a session, also for a form without its token."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadForm("The form has a type that the console does not read.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BadForm(f"The form must not exceed {MAX_BODY_BYTES:,} bytes.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError as error:
        raise BadForm("The form cannot be read.") from error
    fields = {name: value.replace("\r\n", "\n") for name, value in pairs}
    if session is not None and not hmac.compare_digest(fields.pop("csrf", "").encode(), session.csrf.encode()):
        raise BadForm("The form does not carry this session's token: reload the page and send it again.")
    request.state.fields = fields
    return fields


def number(fields: dict[str, str], name: str) -> float | None:
    """The number in a field; None when it is empty. Raises BadForm."""
    text = fields.get(name, "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise BadForm(f"{name.replace('_', ' ')} is not a number.") from error


def whole(fields: dict[str, str], name: str) -> int | None:
    """As `number`, without a fraction. Raises BadForm."""
    found = number(fields, name)
    if found is not None and (found != found // 1 or abs(found) > 1e15):
        raise BadForm(f"{name.replace('_', ' ')} is not a whole number.")
    return None if found is None else int(found)
