"""What the console knows of a broker: samples of what somebody looks at, however many pages show it.

One task samples each subject (the overview, one queue) every two seconds and stops when nobody has looked for a while.
Pages read the last sample, so ten open pages cost the broker as much as one. What is not sampled is asked when a page
needs it, and the answer is shared for a second.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fila.client import (
    AsyncClient,
    FilaError,
    PermissionDeniedError,
    QueueInfo,
    QueueNotFoundError,
    QueueStats,
    ServerInfo,
)
from fila.console.history import History
from fila.console.limits import (
    MAX_OVERVIEW_QUEUES,
    MAX_SAMPLED_KEYS,
    MAX_WATCHED,
    SAMPLE_EVERY_S,
    WATCHED_S,
)

T = TypeVar("T")

_SHARED_S = 1.0
_MAX_SHARED = 64
_INFO_EVERY_S = 10.0
_ORDER_S = 30.0
"""How long rows keep their places."""


@dataclass(slots=True)
class Overview:
    """The broker at one moment."""

    queues: list[QueueInfo]
    #: Of the busiest queues, without their fairness keys.
    stats: dict[str, QueueStats]
    histories: dict[str, History]
    #: None: the key may not see it.
    server: ServerInfo | None


@dataclass(frozen=True, slots=True)
class KeysView:
    """Which fairness keys of a queue somebody looks at."""

    queue: str
    sort: str = "pending"
    prefix: str = ""
    offset: int = 0


@dataclass(slots=True)
class WatchedQueue:
    """A queue at one moment, and before. Rows keep their places for a while, so that nothing jumps."""

    stats: QueueStats
    #: Of the queue as a whole.
    history: History
    #: Of the fairness keys in view.
    key_history: History
    order: list[str]
    ordered_at: float


@dataclass(slots=True)
class _Subject:
    """Something that is sampled."""

    sample: Callable[[], Awaitable[Any]]
    looked_at: float = 0.0
    tried_at: float = float("-inf")
    found: Any = None
    error: FilaError | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Watch:
    """The samples of one key."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._subjects: dict[KeysView | None, _Subject] = {}
        self._task: asyncio.Task[None] | None = None
        self._shared: dict[str, tuple[float, asyncio.Future[Any]]] = {}
        self._histories: dict[str, History] = {}
        self._queue_histories: dict[str, History] = {}
        self._last: dict[KeysView, WatchedQueue] = {}
        self._server: tuple[float, ServerInfo | None] = (float("-inf"), None)

    async def overview(self) -> Overview:
        """Raises FilaError."""
        found: Overview = await self._look(None, self._sample_overview)
        return found

    async def queue(self, view: KeysView) -> WatchedQueue:
        """Raises FilaError."""
        found: WatchedQueue = await self._look(view, lambda: self._sample_queue(view))
        return found

    async def shared(self, call: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """What the call answers, shared with whoever asked the same within the last second. Raises FilaError."""
        return await self.kept(_SHARED_S, call, *args, **options)

    async def kept(self, for_s: float, call: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """As `shared`, for another time. Raises FilaError."""
        key = repr((call.__name__, args, sorted(options.items())))
        now = time.monotonic()
        known = self._shared.get(key)
        if known is None or now - known[0] > for_s:
            self._shared.pop(key, None)
            while len(self._shared) >= _MAX_SHARED:
                del self._shared[next(iter(self._shared))]
            known = self._shared[key] = now, asyncio.ensure_future(call(*args, **options))
        return await asyncio.shield(known[1])

    def forget(self) -> None:
        """Something was changed: what was seen before is no longer true."""
        self._shared.clear()
        for subject in self._subjects.values():
            subject.tried_at = float("-inf")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self, name: KeysView | None, sample: Callable[[], Awaitable[Any]]) -> Any:
        subject = self._subjects.get(name)
        if subject is None:
            self._make_room()
            subject = self._subjects[name] = _Subject(sample)
        subject.looked_at = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._live())
        if time.monotonic() - subject.tried_at > 2 * SAMPLE_EVERY_S:
            await self._take(subject)
        if subject.error is not None:
            raise subject.error
        return subject.found

    def _make_room(self) -> None:
        while len(self._subjects) >= MAX_WATCHED:
            self._drop(min(self._subjects, key=lambda name: self._subjects[name].looked_at))

    def _drop(self, name: KeysView | None) -> None:
        del self._subjects[name]
        if name is not None:
            self._last.pop(name, None)
            if not any(each is not None and each.queue == name.queue for each in self._subjects):
                self._queue_histories.pop(name.queue, None)

    async def _take(self, subject: _Subject) -> None:
        async with subject.lock:
            if time.monotonic() - subject.tried_at < SAMPLE_EVERY_S / 2:
                return
            try:
                subject.found, subject.error = await subject.sample(), None
            except FilaError as error:
                subject.error = error
            subject.tried_at = time.monotonic()

    async def _live(self) -> None:
        while self._subjects:
            await asyncio.sleep(SAMPLE_EVERY_S)
            for name, subject in list(self._subjects.items()):
                if time.monotonic() - subject.looked_at > WATCHED_S:
                    self._drop(name)
                else:
                    await self._take(subject)

    async def _sample_overview(self) -> Overview:
        queues = await self._client.list_queues()
        busiest = sorted(queues, key=lambda one: (not one.dead_letter_queue, -(one.depth + one.in_flight), one.name))
        names = [one.name for one in busiest[:MAX_OVERVIEW_QUEUES]]
        answers = await asyncio.gather(*(self._stats(name) for name in names))
        at = time.monotonic()
        stats = {name: answer for name, answer in zip(names, answers, strict=True) if answer is not None}
        self._histories = {name: self._histories.get(name) or History() for name in stats}
        for name, history in self._histories.items():
            history.add(at, stats[name], with_keys=False)
        return Overview(queues, stats, self._histories, await self._describe())

    async def _stats(self, name: str) -> QueueStats | None:
        try:
            return await self._client.queue_stats(name, 1)
        except QueueNotFoundError:  # deleted since it was listed
            return None

    async def _describe(self) -> ServerInfo | None:
        at, known = self._server
        if time.monotonic() - at > _INFO_EVERY_S:
            try:
                known = await self._client.describe_server()
            except PermissionDeniedError:
                known = None
            self._server = time.monotonic(), known
        return known

    async def _sample_queue(self, view: KeysView) -> WatchedQueue:
        stats = await self._client.queue_stats(
            view.queue, MAX_SAMPLED_KEYS, sort=view.sort, offset=view.offset, key_prefix=view.prefix
        )
        at = time.monotonic()
        history = self._queue_histories.setdefault(view.queue, History())
        if not history.points or at - history.points[-1].at > SAMPLE_EVERY_S / 2:
            history.add(at, stats, with_keys=False)
        last = self._last.get(view)
        keys = last.key_history if last is not None else History()
        keys.add(at, stats, with_keys=True)
        order, ordered_at = _ordered(last, [key.fairness_key for key in stats.keys], at)
        self._last[view] = WatchedQueue(stats, history, keys, order, ordered_at)
        return self._last[view]


def _ordered(last: WatchedQueue | None, found: list[str], at: float) -> tuple[list[str], float]:
    """The keys in the order in which they were shown before, unless that is old; new ones take the places of gone
    ones.
    """
    if last is None or at - last.ordered_at > _ORDER_S:
        return found, at
    here = set(found)
    known = set(last.order)
    fresh = iter([key for key in found if key not in known])
    kept = [key if key in here else next(fresh, "") for key in last.order]
    return [key for key in kept if key] + list(fresh), last.ordered_at
