"""Who is signed in: a random cookie stands for a link to the broker, and for a token against forged forms (CSRF).

The key itself stays in the link. A browser on this machine needs none while the broker asks for none.
"""

import secrets
import time
from collections import deque
from dataclasses import dataclass, field

from fila.client import FilaError, PermissionDeniedError
from fila.client.auth import Identity
from fila.console.limits import KEYLESS_PAUSE_S, MAX_FAILED_SIGN_INS, MAX_LINKS, MAX_SESSIONS, SESSION_IDLE_S
from fila.console.links import Link, Links

COOKIE = "fila_console"
"""The name begins so; the port follows, since browsers keep one set of cookies for all ports of a host."""


@dataclass(slots=True)
class Session:
    """One signed-in browser."""

    link: Link
    identity: Identity
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    used_at: float = field(default_factory=time.monotonic)
    #: What the next page says once: "ok" or "error", and the text.
    notices: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=4))

    @property
    def name(self) -> str:
        return self.identity.principal

    def may(self, permission: str) -> bool:
        """Whether the key has the permission on anything at all. What it may do to what is the broker's decision; a
        page leaves out actions that can never be allowed.
        """
        if not self.identity.principal:
            return True
        return any(grant.partition("=")[0] in {permission, "*"} for grant in self.identity.grants)


class Refused(Exception):
    """Nobody is signed in. The text is for the person."""


@dataclass(slots=True)
class Sessions:
    """All of them, by cookie."""

    links: Links
    _by_cookie: dict[str, Session] = field(default_factory=dict)
    #: When the broker may be asked without a key again.
    _keyless_from: float = 0.0
    _failures: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_FAILED_SIGN_INS))

    def find(self, cookie: str) -> Session | None:
        session = self._by_cookie.get(cookie)
        if session is None or time.monotonic() - session.used_at > SESSION_IDLE_S:
            return None
        session.used_at = time.monotonic()
        return session

    async def begin(self, key: str | None) -> tuple[str, Session]:
        """The cookie and the session of who has this key. Raises Refused, or FilaError when the broker is away."""
        self._check_pace(key)
        link = self._open(key)
        try:
            identity = await link.client.auth.who_am_i()
            if key is None and identity.principal:
                raise Refused("The broker knows the console itself, not you: sign in with a key of yours.")
        except PermissionDeniedError as error:
            self._note_failure(key)
            await self.links.leave(link)
            raise Refused(
                f"The broker does not accept this key: {error}" if key else "The broker asks for a key."
            ) from error
        except BaseException:
            await self.links.leave(link)
            raise
        await self._make_room()
        cookie = secrets.token_urlsafe(32)
        self._by_cookie[cookie] = Session(link, identity)
        return cookie, self._by_cookie[cookie]

    def _open(self, key: str | None) -> Link:
        if not self.links.has_room_for(key):
            raise Refused(f"{MAX_LINKS} keys are signed in, which is the limit: sign out in another browser.")
        try:
            return self.links.open(key)
        except FilaError as error:
            raise Refused("This is not a key: one line of printable ASCII.") from error

    async def end(self, cookie: str) -> None:
        session = self._by_cookie.pop(cookie, None)
        if session is not None:
            await self.links.leave(session.link)

    def _note_failure(self, key: str | None) -> None:
        if key is None:
            self._keyless_from = time.monotonic() + KEYLESS_PAUSE_S
        else:
            self._failures.append(time.monotonic())

    def _check_pace(self, key: str | None) -> None:
        now = time.monotonic()
        if key is None and now < self._keyless_from:
            raise Refused("The broker asks for a key.")
        if key is not None and len(self._failures) == MAX_FAILED_SIGN_INS and now - self._failures[0] < 60:
            raise Refused("Too many sign-ins have failed: try again in a minute.")

    async def _make_room(self) -> None:
        now = time.monotonic()
        for cookie in [each for each, one in self._by_cookie.items() if now - one.used_at > SESSION_IDLE_S]:
            await self.end(cookie)
        while len(self._by_cookie) >= MAX_SESSIONS:
            await self.end(min(self._by_cookie, key=lambda each: self._by_cookie[each].used_at))
