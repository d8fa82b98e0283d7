"""Where the keys of the identity provider come from, and when they are looked for again.

| | file | address |
|---|---|---|
| at the start | one that cannot be used is refused | one that does not answer is logged, and tried again |
| while running | read again within 2 s of a change, at once on SIGHUP | fetched every `refresh_s` |
| token of an unknown key | read again, if it has changed | fetched at once, or `SOONEST_S` after the last time |
| when that fails | the keys that were there stay in use, and the log says why | the same; again after `SOONEST_S` |
| token of an unknown key then | `ProviderAway`: it may be a good one | the same |

Keys are fetched in a thread, and one at a time: the event loop never waits for the provider. A fetch that is under way
when the token of an unknown key comes may bring the keys of before that one was published: then the next one counts.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog

from fila.core.errors import ProviderAway
from fila.server.file_stamp import Stamp, stamp_of
from fila.server.tokens.fetch import TIMEOUT_S, FetchFailed, fetch
from fila.server.tokens.key_set import MAX_BYTES, KeySet, KeySetUnusable
from fila.settings import SettingsError

WATCH_S: Final = 2.0
SOONEST_S: Final = 5.0
"""Between two fetches. A peer that invents keys cannot make the server ask the provider more often."""
MAX_WAITING: Final = 1_000
"""Calls with a token of an unknown key that wait for the next fetch. Others are refused at once."""
LONGEST_WAIT_S: Final = SOONEST_S + 2 * TIMEOUT_S

Read = Callable[[bytes], KeySet]
"""Makes keys of a document. Raises KeySetUnusable."""

log = structlog.get_logger(__name__)


def _away() -> ProviderAway:
    return ProviderAway(
        "the token is signed by a key that is not known here, and other keys of the identity provider could not be "
        "fetched: try again"
    )


class KeySource(Protocol):
    """The provider's keys as they are now."""

    keys: KeySet
    error: str
    """Why they could not be renewed the last time; empty: they could"""
    on_change: Callable[[], None]

    async def start(self) -> None:
        """Raises SettingsError."""

    def look_after(self) -> None:
        """Called several times a second."""

    def renew(self) -> None:
        """Look for other keys as soon as that is allowed."""

    async def renewed(self) -> bool:
        """Wait until other keys were looked for. Returns False when that had begun before the call: a key that was
        published meanwhile is found the next time. Raises ProviderAway when nobody could look.
        """


class FileKeys:
    """Keys in a file."""

    def __init__(self, path: str, read: Read) -> None:
        self.keys = KeySet()
        self.error = ""
        self.on_change: Callable[[], None] = _nothing
        self._path = path
        self._read = read
        self._stamp: Stamp | None = None
        self._due = 0.0

    async def start(self) -> None:
        try:
            self._take_up()
        except (OSError, KeySetUnusable) as error:
            raise SettingsError(f"jwt.jwks_file: {self._path} cannot be used: {error}") from error

    def look_after(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._due:
            self._due = now + WATCH_S
            self.renew()

    def renew(self) -> None:
        if stamp_of(self._path) == self._stamp:
            return
        try:
            self._take_up()
        except (OSError, KeySetUnusable) as error:
            self.error = str(error)
            log.error("the new keys of the identity provider cannot be used: the old ones stay", reason=self.error)  # noqa: TRY400
        else:
            self.on_change()

    async def renewed(self) -> bool:
        self.renew()
        if self.error:
            raise _away()
        return True

    def _take_up(self) -> None:
        self._stamp = stamp_of(self._path)  # before it is read: a change meanwhile is seen the next time
        with Path(self._path).open("rb") as file:
            self.keys = self._read(file.read(MAX_BYTES + 1))
        self.error = ""
        log.info("keys of the identity provider loaded", file=self._path, keys=len(self.keys))


class UrlKeys:
    """Keys that are fetched from an address."""

    def __init__(self, url: str, read: Read, refresh_s: float) -> None:
        self.keys = KeySet()
        self.error = ""
        self.on_change: Callable[[], None] = _nothing
        self._url = url
        self._read = read
        self._refresh_s = refresh_s
        self._data = b""
        self._due = 0.0
        self._soonest = 0.0
        self._failures = 0
        self._fetching = False
        self._waiting: list[asyncio.Future[None]] = []

    async def start(self) -> None:
        self._begin()
        await self._next()

    def look_after(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._fetching and now >= max(self._due, self._soonest):
            self._begin()

    def renew(self) -> None:
        self._due = 0.0

    async def renewed(self) -> bool:
        if len(self._waiting) >= MAX_WAITING:
            raise _away()
        under_way = self._fetching
        self.renew()
        self.look_after()
        if not await self._next() or self.error:
            raise _away()
        return not under_way

    async def _next(self) -> bool:
        """Wait for the end of a fetch, but not for ever: the look-up of a name may hang. Returns whether it ended."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        with suppress(TimeoutError):
            await asyncio.wait_for(done, LONGEST_WAIT_S)
            return True
        return False

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._fetching = True
        self._due = loop.time() + self._refresh_s
        self._soonest = min(self._due, loop.time() + SOONEST_S)
        threading.Thread(target=self._fetch, args=(loop,), name="jwks", daemon=True).start()

    def _fetch(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, which a stop does not wait for."""
        found: bytes | FetchFailed
        try:
            found = fetch(self._url, MAX_BYTES)
        except FetchFailed as error:
            found = error
        with suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(self._fetched, found)

    def _fetched(self, found: bytes | FetchFailed) -> None:
        self._fetching = False
        try:
            if isinstance(found, FetchFailed):
                raise found
            self._take_up(found)
        except (FetchFailed, KeySetUnusable) as error:
            self._failed(str(error))
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            if not done.done():
                done.set_result(None)

    def _take_up(self, data: bytes) -> None:
        changed = data != self._data
        if changed:
            self.keys = self._read(data)
            self._data = data
        if changed or self._failures:
            log.info("keys of the identity provider fetched", keys=len(self.keys))
        self.error, self._failures = "", 0
        if changed:
            self.on_change()

    def _failed(self, reason: str) -> None:
        self.error, self._due = reason, self._soonest
        self._failures += 1
        if self._failures & (self._failures - 1) == 0:  # 1, 2, 4, 8: the log is not filled while it is away
            log.error(
                "the keys of the identity provider cannot be fetched: the old ones stay in use",
                reason=reason,
                failures=self._failures,
                keys=len(self.keys),
            )


def _nothing() -> None:
    pass
