"""What operators ask of a running broker: to look at queues and messages, move or remove messages, and try hooks.

All of it may take long, so all of it lets others work in between.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from fila.broker import settings
from fila.broker.admission import check_headers
from fila.broker.audit_commands import INTERNAL, BeginSweep, EndSweep, Origin
from fila.broker.calls import Calls, all_known, step_by_step
from fila.broker.commands import Location, Purge, Redrive, Swept
from fila.broker.dry_run import MAX_WAITING, Subject, TriedMessage, try_on
from fila.broker.explain import Explanation, Found, explain, first_of, next_of, search
from fila.broker.queue import QueueState
from fila.broker.records import READ_FIRST
from fila.broker.removal import source_of
from fila.broker.search import Match, Query, Search
from fila.broker.stats import KeyOrder, QueueStats, QueueSummary, look, summarize
from fila.core.errors import ECHO, BrokerError, InvalidArgument, NoSuchMessage, Overloaded, quoted
from fila.core.ids import NS_PER_MS
from fila.storage import codec
from fila.storage.audit import INTERRUPTED, OK, Values

SEARCHES = 3
"""How often a message is looked for that may be moving."""
EFFORT_A_CALL = 20_000
"""How much one call looks at; about as long as it takes to deliver so many messages, at most."""
EVERYTHING = 1 << 64
MOVED_AT_ONCE = 500
"""Messages that are redriven or purged in one tick, at most"""


class Seen(NamedTuple):
    """Messages of a queue that were looked at."""

    queue: QueueState
    matches: list[Match]
    position: int | None
    """Behind which message there may be more; None when there is no more"""


SWEEP_PAUSE = 10_000 * NS_PER_MS
"""A sweep that is done in several calls has ended when no next one has come for so long."""

MAX_SWEEPS = 1_000
"""That may wait for their next call. With more, each call is a sweep of its own."""
ENDED_AT_ONCE = 100


class SweptSome(NamedTuple):
    """What one call has moved or removed."""

    done: int
    position: int | None
    """Behind which message to go on; None when there is no more"""
    sweep: int
    """The sweep that a next call goes on with"""


@dataclass(frozen=True, slots=True)
class Sweep:
    """How much to move or remove."""

    count: int = 0
    """0 means all."""
    dry_run: bool = False
    """Count only."""
    bounded: bool = False
    """End after a bounded amount of work, even if there is more to do."""
    origin: Origin = INTERNAL
    asked: Mapping[str, Values] = field(default_factory=dict)
    """Which messages, in words of the request"""
    identity: bytes = b""
    """What tells it from other sweeps: the same in every call of it"""
    begun: int = 0
    """The sweep that it goes on with; 0: none"""
    final: bool = False
    """No call goes on with it when `count` messages are done"""


class Operators:
    """Awaitable calls."""

    def __init__(self, broker: Calls) -> None:
        self._broker = broker
        self._state = broker.state
        self._dry_run_lock = asyncio.Lock()
        self._dry_runs = 0
        """Calls that try a script or wait for it"""
        self._sweeping: Counter[int] = Counter()
        """Sweeps that have a call, and how many"""

    def list_config(
        self, prefix: str, behind: str, most: int, visible: Callable[[str], bool] | None = None
    ) -> settings.ConfigPage:
        return settings.find(self._state, prefix, behind, most, visible)

    async def list_queues(
        self, behind: str, most: int, visible: Callable[[str], bool] | None = None
    ) -> tuple[list[QueueSummary], bool]:
        """Queues behind a name that are visible, in the order of their names, and whether there are more."""
        queues = self._state.queues
        await all_known(self._broker, queues)
        names = sorted(name for name in queues if name > behind and (visible is None or visible(name)))
        return [summarize(queues[name]) for name in names[:most]], len(names) > most

    async def stats(self, name: str, order: KeyOrder) -> QueueStats:
        """A queue in detail. Raises QueueNotFound."""
        await all_known(self._broker, {name})
        for told in look(self._state.queue(name), order, self._broker.now()):
            if told is not None:
                return told
            await asyncio.sleep(0)
        raise AssertionError("there is always an answer")

    async def peek(self, name: str, query: Query, most: int) -> Seen:
        """Look at messages without taking them. Raises QueueNotFound."""
        await all_known(self._broker, {name})
        queue = self._state.queue(name)
        walk = Search(self._broker.store, queue, query, read=True)
        matches = await step_by_step(walk.next(most, EFFORT_A_CALL))
        return Seen(queue, matches, None if walk.done else walk.position)

    async def redrive(self, name: str, query: Query, sweep: Sweep) -> SweptSome:
        """Send dead letters back to their queue. Raises QueueNotFound, InvalidArgument or NotNow."""
        await all_known(self._broker, {source_of(self._state, self._state.queue(name)).name})
        return await self._sweep(name, query, sweep, Redrive)

    async def purge(self, name: str, query: Query, sweep: Sweep, any_queue: bool) -> SweptSome:
        """Remove messages. Raises QueueNotFound, or InvalidArgument for a queue that holds no dead letters, unless any
        queue will do.
        """
        if not self._state.queue(name).record.source and not any_queue:
            raise InvalidArgument(
                f"{quoted(name)} is not a dead-letter queue; set any_queue (CLI: --force-any) to purge it"
            )
        return await self._sweep(name, query, sweep, Purge)

    async def _sweep(self, name: str, query: Query, sweep: Sweep, command: type[Redrive | Purge]) -> SweptSome:
        await all_known(self._broker, {name})
        walk = Search(self._broker.store, self._state.queue(name), query)
        if sweep.dry_run:
            count = await self._walk(walk, sweep, _count)
            return SweptSome(count, None if walk.done else walk.position, 0)
        number = await self._begin(name, sweep)
        self._sweeping[number] += 1
        try:
            count = await self._walk(walk, sweep, partial(self._move, partial(command, name, sweep=number)))
        except BaseException:
            with suppress(BrokerError):  # then it is ended at the next start
                self._broker.submit(EndSweep(number, lambda _: None, INTERRUPTED))
            raise
        finally:
            self._sweeping -= Counter([number])
        last = walk.done or not sweep.bounded or (sweep.final and count == sweep.count)
        if last or len(self._state.audit.sweeps) > MAX_SWEEPS:
            with suppress(BrokerError):  # it is tried again: what was asked is done all the same
                await self._broker.do(partial(EndSweep, number))
        return SweptSome(count, None if walk.done else walk.position, number)

    async def _walk(self, walk: Search, sweep: Sweep, take: Callable[[list[Location]], Awaitable[int]]) -> int:
        """Have what is found taken, until there is enough or no more. Returns how many were."""
        count, wanted = 0, sweep.count or EVERYTHING
        while count < wanted and not walk.done:
            if sweep.bounded and walk.effort >= EFFORT_A_CALL:
                break
            most = min(wanted - count, MOVED_AT_ONCE)
            count += await take([match.location for match in await step_by_step(walk.next(most, EFFORT_A_CALL))])
        return count

    async def _move(self, command: Callable[..., Redrive | Purge], found: list[Location]) -> int:
        count = 0
        while found:
            swept: Swept = await self._broker.do(partial(command, found))
            count += swept.done
            found = [location for location in found if location.seq > swept.last]
            await asyncio.sleep(0)  # such commands have a tick to themselves: let one come that delivers
        return count

    async def _begin(self, name: str, sweep: Sweep) -> int:
        """The number of the sweep: the one that it goes on with, if the same caller asked the same, or a new one."""
        known, origin = self._state.audit.sweeps.get(sweep.begun), sweep.origin
        if known is not None and known.seen_at:
            begin, asked = known.begin, (origin.action, origin.principal, name, sweep.identity)
            if (begin.action, begin.principal, begin.resource, known.identity) == asked:
                return sweep.begun
        begin_sweep = partial(BeginSweep, origin, name, sweep.asked, identity=sweep.identity)
        return await self._broker.do(begin_sweep)  # type: ignore[no-any-return]

    def end_sweeps(self) -> None:
        """Now and again: end sweeps that no call goes on with, and those that a stop of the server has interrupted."""
        latest = self._broker.now() - SWEEP_PAUSE
        sweeps = self._state.audit.sweeps.items()
        over = ((n, sweep) for n, sweep in sweeps if n not in self._sweeping and sweep.seen_at <= latest)
        for number, sweep in islice(over, ENDED_AT_ONCE):
            with suppress(BrokerError):
                self._broker.submit(EndSweep(number, lambda _: None, OK if sweep.seen_at else INTERRUPTED))

    async def explain(self, queue_name: str, message_id: str, fairness_key: str) -> Explanation:
        """Why a message, the first of a key, or the next of all is still waiting.

        Raises QueueNotFound or NoSuchMessage.
        """
        await all_known(self._broker, {queue_name})
        queue = self._state.queue(queue_name)
        if message_id:
            found = await self._find(queue, message_id)
        elif fairness_key:
            found = first_of(queue, fairness_key)
        else:
            found = next_of(queue, self._broker.now())
        return explain(queue, found, self._broker.now())

    async def _find(self, queue: QueueState, message_id: str) -> Found:
        """Raises NoSuchMessage."""
        seq = self._state.ids.seq(message_id)
        for _ in range(SEARCHES):
            for found in search(queue, seq) if seq is not None else ():
                if found is not None:
                    return found
                await asyncio.sleep(0)
            # It may have moved from where we had not looked yet to where we had.
        raise NoSuchMessage(f"message {message_id[:ECHO]} is not in queue {quoted(queue.name)}")

    async def try_hooks(self, queue_name: str, script: str, given: Subject, next_messages: int) -> list[TriedMessage]:
        """What a script, or the queue's own, would decide about `given`, or about so many messages that come next:
        fewer if it takes too long. Takes one such call after another.

        Raises QueueNotFound, InvalidArgument for a script that cannot be used, LimitExceeded, or Overloaded.
        """
        queue = self._state.queue(queue_name)
        if not (script or queue.record.script):
            raise InvalidArgument(f"queue {quoted(queue_name)} has no script; pass the script to try")
        check_headers(given.headers, self._state.limits)
        if self._dry_runs >= MAX_WAITING:
            raise Overloaded("too many dry runs are waiting; retry later")
        self._dry_runs += 1
        try:
            async with self._dry_run_lock:
                return await self._try_hooks(queue, script, given, next_messages)
        finally:
            self._dry_runs -= 1

    async def _try_hooks(
        self, queue: QueueState, script: str, given: Subject, next_messages: int
    ) -> list[TriedMessage]:
        await all_known(self._broker, {queue.name})
        scripts, budget = self._state.scripts, self._state.scripts.dry_run_budget
        await self._time_for_dry_runs()
        tried = scripts.try_out(queue.record, script)
        subjects = self._next_of(queue, next_messages) if next_messages else iter([given])
        tried_messages: list[TriedMessage] = []
        for message in try_on(tried, subjects, lambda: budget.spent_ns):
            if message is not None:
                tried_messages.append(message)
            elif not budget.left:
                await self._time_for_dry_runs()
        return tried_messages

    async def _time_for_dry_runs(self) -> None:
        budget = self._state.scripts.dry_run_budget
        while not budget.begin():  # noqa: ASYNC110  # nothing happens but that time passes
            await asyncio.sleep(budget.wait_ns() / 1e9)

    def _next_of(self, queue: QueueState, count: int) -> Iterator[Subject]:
        """What would be delivered next, if consumers asked for it now. Read as it is looked at."""
        selection = queue.drr.select(count, self._broker.now())
        queue.drr.rollback(selection)
        for start in range(0, len(selection.messages), READ_FIRST):
            for seq, _, record in self._broker.records.look_up(selection.messages[start : start + READ_FIRST]):
                headers, payload_bytes = self._state.scripts.read_body(record[len(codec.head_of(record)) :])
                yield Subject(self._state.ids.text(seq), headers, payload_bytes, queue.attempts.get(seq, 0))


async def _count(found: list[Location]) -> int:
    return len(found)
