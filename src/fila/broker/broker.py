"""The broker as the rest of the program sees it: awaitable calls around an engine that ticks on the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count as numbers
from operator import itemgetter
from time import monotonic_ns
from typing import Any, NamedTuple, Protocol, TypeVar

from fila.broker import settings
from fila.broker.admission import check_headers
from fila.broker.commands import (
    NOBODY,
    Command,
    CommitTransaction,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    Failure,
    Incoming,
    Outcome,
    Parting,
    Produced,
    Purge,
    Redrive,
    SetConfig,
    Settle,
    StageEnqueue,
    Swept,
    UpdateQueue,
)
from fila.broker.engine import Engine, Load
from fila.broker.explain import Explanation, Found, explain, first_of, next_of, search
from fila.broker.failure import Death, death_of, failures_of
from fila.broker.queue import QueueState, stored
from fila.broker.reading import Readers
from fila.broker.redrive import source_of
from fila.broker.search import Match, Query, Search, Steps
from fila.broker.stats import KeyOrder, QueueStats, QueueSummary, look, summarize
from fila.broker.transactions import Committing
from fila.broker.trial import MAX_WAITING, HookTrial, Subject, try_on
from fila.core.consumers import Consumer
from fila.core.errors import (
    ECHO,
    BrokerError,
    InvalidArgument,
    NoSuchMessage,
    Overloaded,
    ShuttingDown,
    StoreFailed,
    StoreUnusable,
    quoted,
)
from fila.core.hands import Hands
from fila.core.leases import Grant
from fila.core.pending import Lane, Taken
from fila.storage import codec
from fila.storage.base import Family, Storage
from fila.storage.codec import AttemptRecord, QueueRecord

READ_FIRST = 16
"""Messages read from the store at first for one consumer; from then on as many as their size allows.
Large ones are read one at a time."""
READ_BYTES = 256 << 10
SEARCHES = 3
"""How often a message is looked for that may be moving."""

EFFORT_A_CALL = 20_000
"""How much one call looks at; about as long as it takes to deliver so many messages, at most."""
EVERYTHING = 1 << 64
MOVED_AT_ONCE = 500
"""Messages that are redriven or purged in one tick, at most"""

T = TypeVar("T")


class Receiver(Protocol):
    """Who receives a consumer's deliveries. None of its methods raises."""

    def granted(self) -> None:
        """There is something to take, and it is durable."""

    def flush(self) -> None:
        """Let it go: all receivers have taken theirs, and those who share a connection can share a write."""

    def ended(self, reason: BrokerError) -> None:
        """There will be no more."""


class Subscription:
    """One consumer's deliveries. Holds no payloads: they are read when the consumer is ready for them."""

    def __init__(
        self,
        broker: "Broker",
        queue: QueueState,
        number: int,
        max_in_flight: int,
        receiver: Receiver,
        hands: Hands | None,
    ) -> None:
        self.queue = queue
        self.receiver = receiver
        self.consumer = Consumer(number, max_in_flight, self._deliver, receiver.ended, hands)
        self._broker = broker
        self._grants: deque[Grant] = deque()

    def take(self) -> Grant | None:
        """What comes next. None when all is taken: then it may be granted more."""
        if self._grants:
            return self._grants.popleft()
        if self.consumer.busy:
            self.consumer.busy = False
            self._broker.freed(self)
        return None

    def waiting(self) -> list[Taken]:
        """The messages that it has not taken, without the large ones."""
        large = self.queue.large
        return [taken for grant in self._grants for taken in grant.members.values() if taken[1] not in large]

    def _deliver(self, grant: Grant) -> None:
        self.consumer.busy = True
        self._grants.append(grant)
        self._broker.tell(self)


class Seen(NamedTuple):
    """Messages of a queue that were looked at."""

    queue: QueueState
    matches: list[Match]
    position: int | None
    """Behind which message there may be more; None when there is no more"""


@dataclass(frozen=True, slots=True)
class Sweep:
    """How much to move or remove."""

    count: int = 0
    """0 means all."""
    dry_run: bool = False
    """Count only."""
    bounded: bool = False
    """End after a bounded amount of work, even if there is more to do."""


class Broker:
    """Drives an engine: gathers what arrives in one turn of the event loop into one tick."""

    def __init__(self, engine: Engine, store: Storage, clock: Callable[[], int]) -> None:
        self.after_tick: Callable[[int], None] = _nothing
        """Called when a tick is done and the next one is planned, with how many messages were asked for before it"""
        self.on_turn: Callable[[str, int, Callable[[], str]], None] = _unwatched
        """Told at the end of each tick: "tick", when it began, and who says what it did"""
        self.state = engine.state
        self.journal = engine.journal
        self._engine = engine
        engine.on_durable = self._hand_out
        self.store = store
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._alarm: asyncio.TimerHandle | None = None
        self._numbers = numbers(1)
        self._subscriptions: dict[int, Subscription] = {}
        self._granted: list[Subscription] = []
        """Those to be told after the tick"""
        self._stopping = False
        self._closed = False
        self.readers = Readers(self)
        self._trying = asyncio.Lock()
        self._trials = 0
        """Calls that try a script or wait for it"""
        self.failed: asyncio.Future[None] = self._loop.create_future()
        """Raises when the broker cannot go on because of a defect of its own."""
        self._schedule()

    async def enqueue(
        self, messages: list[Incoming], produced: Produced = NOBODY, *, traced: bool = False
    ) -> Sequence[Outcome]:
        outcomes: Sequence[Outcome] = await self.do(lambda reply: Enqueue(messages, reply, produced, traced=traced))
        return outcomes

    async def stage(self, command: Callable[[Callable[[Any], None]], StageEnqueue]) -> bool:
        """Keep messages for a transaction. Returns whether it was committed before."""
        return await self.do(command)  # type: ignore[no-any-return]

    async def commit_transaction(self, producer: str, transaction: int, parts: list[tuple[str, int]]) -> bool:
        """Enqueue what was staged. Returns, when all of it is, whether it was committed before."""
        decided_here = False
        while True:
            committing: Committing = await self.do(partial(CommitTransaction, producer, transaction, parts))
            decided_here = decided_here or (committing.decided and not committing.before)
            if committing.done and committing.decided:
                return not decided_here
            await self._published(producer)

    async def _published(self, producer: str) -> None:
        """Wait until nothing that a producer has committed is left to be enqueued. Asking for it by command would take
        ticks from those that do it.
        """
        find = self.state.transactions.find
        while self.ready and find(producer).publishing:  # noqa: ASYNC110  # each turn has a tick that may be the last
            await asyncio.sleep(0)

    async def settle(self, command: Callable[[Callable[[Any], None]], Settle]) -> list[Failure]:
        return await self.do(command)  # type: ignore[no-any-return]

    async def create_queue(self, record: QueueRecord) -> None:
        await self.do(lambda reply: CreateQueue(record, reply))

    async def update_queue(self, name: str, changes: Mapping[str, Any]) -> QueueRecord:
        return await self.do(lambda reply: UpdateQueue(name, changes, reply))  # type: ignore[no-any-return]

    async def delete_queue(self, name: str, force: bool = False) -> int:
        return await self.do(lambda reply: DeleteQueue(name, reply, force))  # type: ignore[no-any-return]

    async def set_config(self, key: str, value: str | None, by: str) -> str | None:
        """Set or remove an entry of the runtime configuration. Returns the value before, if there was one."""
        return await self.do(lambda reply: SetConfig(key, value, reply, by))  # type: ignore[no-any-return]

    async def pause_queue(self, name: str, paused: bool) -> None:
        """Deliver nothing of a queue, or deliver again. Kept over restarts."""
        await self.do(lambda reply: UpdateQueue(name, {"paused": paused}, reply))

    async def peek(self, name: str, query: Query, most: int) -> Seen:
        """Look at messages without taking them. Raises QueueNotFound."""
        queue = self.state.queue(name)
        walk = Search(self.store, queue, query, read=True)
        matches = await self.step_by_step(walk.next(most, EFFORT_A_CALL))
        return Seen(queue, matches, None if walk.done else walk.position)

    async def redrive(self, name: str, query: Query, sweep: Sweep) -> tuple[int, int | None]:
        """Send dead letters back to their queue. Returns how many, and behind which message to go on if there may be
        more. Raises QueueNotFound, InvalidArgument or NotNow.
        """
        source_of(self.state, self.state.queue(name))
        return await self._sweep(name, query, sweep, Redrive)

    async def purge(self, name: str, query: Query, sweep: Sweep, any_queue: bool) -> tuple[int, int | None]:
        """Remove messages. Returns as `redrive`. Raises QueueNotFound, or InvalidArgument for a queue that holds no
        dead letters, unless any queue will do.
        """
        if not self.state.queue(name).record.source and not any_queue:
            raise InvalidArgument(f"{quoted(name)} is not a dead-letter queue; to purge it nevertheless, say so")
        return await self._sweep(name, query, sweep, Purge)

    async def _sweep(
        self, name: str, query: Query, sweep: Sweep, command: type[Redrive | Purge]
    ) -> tuple[int, int | None]:
        walk = Search(self.store, self.state.queue(name), query)
        count, wanted = 0, sweep.count or EVERYTHING
        while count < wanted and not walk.done:
            if sweep.bounded and walk.effort >= EFFORT_A_CALL:
                break
            most = min(wanted - count, MOVED_AT_ONCE)
            found = [match.place for match in await self.step_by_step(walk.next(most, EFFORT_A_CALL))]
            if sweep.dry_run:
                count += len(found)
                continue
            while found:
                swept: Swept = await self.do(partial(command, name, found))
                count += swept.done
                found = [place for place in found if place.seq > swept.last]
                await asyncio.sleep(0)  # such commands have a tick to themselves: let one come that delivers
        return count, None if walk.done else walk.position

    def failures_of(self, queue: QueueState, seq: int) -> list[tuple[int, AttemptRecord]]:
        """The failed attempts of a message that are remembered."""
        return failures_of(self.store, queue, seq)

    async def step_by_step(self, steps: Steps[T]) -> T:
        """Do what takes long a little at a time, so that nobody has to wait for it."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            await asyncio.sleep(0)

    def list_config(self, prefix: str, behind: str, most: int) -> settings.ConfigPage:
        return settings.find(self.state, prefix, behind, most)

    def death_of(self, queue: QueueState, seq: int) -> Death | None:
        """How a dead letter died; None for a message that did not."""
        return death_of(self.store, queue.name, seq)

    def list_queues(self, behind: str, most: int) -> tuple[list[QueueSummary], bool]:
        """Queues behind a name, in the order of their names, and whether there are more."""
        names = sorted(name for name in self.state.queues if name > behind)
        return [summarize(self.state.queues[name]) for name in names[:most]], len(names) > most

    async def stats(self, name: str, order: KeyOrder) -> QueueStats:
        """A queue in detail. Raises QueueNotFound. Lets others work in between."""
        for told in look(self.state.queue(name), order, self._clock()):
            if told is not None:
                return told
            await asyncio.sleep(0)
        raise AssertionError("there is always an answer")

    def waiting_for_hooks(self, queue: str) -> int:
        return self._engine.waiting_for_hooks(queue)

    async def explain(self, queue_name: str, message_id: str, fairness_key: str) -> Explanation:
        """Why a message, the first of a key, or the next of all is still waiting.

        Raises QueueNotFound or NoSuchMessage.
        """
        queue = self.state.queue(queue_name)
        if message_id:
            found = await self._find(queue, message_id)
        elif fairness_key:
            found = first_of(queue, fairness_key)
        else:
            found = next_of(queue, self._clock())
        return explain(queue, found, self._clock())

    async def _find(self, queue: QueueState, message_id: str) -> Found:
        """Raises NoSuchMessage. Lets others work in between: a queue may be large."""
        seq = self.state.ids.seq(message_id)
        for _ in range(SEARCHES):
            for found in search(queue, seq) if seq is not None else ():
                if found is not None:
                    return found
                await asyncio.sleep(0)
            # It may have moved from where we had not looked yet to where we had.
        raise NoSuchMessage(f"message {message_id[:ECHO]} is not in queue {quoted(queue.name)}")

    async def try_hooks(self, queue_name: str, script: str, given: Subject, next_messages: int) -> list[HookTrial]:
        """What a script, or the queue's own, would decide about `given`, or about so many messages that come next:
        fewer if it takes too long. Lets others work in between, and takes one such call after another.

        Raises QueueNotFound, InvalidArgument for a script that cannot be used, LimitExceeded, or Overloaded.
        """
        queue = self.state.queue(queue_name)
        if not (script or queue.record.script):
            raise InvalidArgument(f"queue {quoted(queue_name)} has no script: give one to try")
        check_headers(given.headers, self.state.limits)
        if self._trials >= MAX_WAITING:
            raise Overloaded("too many scripts wait for being tried: try again later")
        self._trials += 1
        try:
            async with self._trying:
                return await self._try_hooks(queue, script, given, next_messages)
        finally:
            self._trials -= 1

    async def _try_hooks(self, queue: QueueState, script: str, given: Subject, next_messages: int) -> list[HookTrial]:
        scripts, budget = self.state.scripts, self.state.scripts.trial_budget
        await self._time_for_trials()
        tried = scripts.try_out(queue.record, script)
        subjects = self._next_of(queue, next_messages) if next_messages else iter([given])
        trials: list[HookTrial] = []
        for trial in try_on(tried, subjects, lambda: budget.spent_ns):
            if trial is not None:
                trials.append(trial)
            elif not budget.left:
                await self._time_for_trials()
        return trials

    async def _time_for_trials(self) -> None:
        budget = self.state.scripts.trial_budget
        while not budget.begin():  # noqa: ASYNC110  # nothing happens but that time passes
            await asyncio.sleep(budget.wait_ns() / 1e9)

    def _next_of(self, queue: QueueState, count: int) -> Iterator[Subject]:
        """What would be delivered next, if consumers asked for it now. Read as it is looked at."""
        selection = queue.drr.select(count, self._clock())
        queue.drr.rollback(selection)
        for start in range(0, len(selection.messages), READ_FIRST):
            for seq, _, record in self._look_up(selection.messages[start : start + READ_FIRST]):
                headers, payload_bytes = self.state.scripts.read_body(record[len(codec.head_of(record)) :])
                yield Subject(self.state.ids.text(seq), headers, payload_bytes, queue.attempts.get(seq, 0))

    @property
    def ready(self) -> bool:
        """Whether it takes work."""
        return not (self._stopping or self._closed)

    def load(self) -> Load:
        return self._engine.load()

    def now(self) -> int:
        return self._clock()

    def subscribe(
        self, queue_name: str, max_in_flight: int, receiver: Receiver, hands: Hands | None = None
    ) -> Subscription:
        """Begin to deliver, to somebody who says what was handed to an application if there are `hands`.

        Raises QueueNotFound or ShuttingDown.
        """
        if self._stopping:
            raise ShuttingDown
        number = next(self._numbers)
        subscription = Subscription(self, self.state.queue(queue_name), number, max_in_flight, receiver, hands)
        self._engine.join(queue_name, subscription.consumer)
        self._subscriptions[number] = subscription
        self._schedule()
        return subscription

    def unsubscribe(self, subscription: Subscription, parting: Parting = Parting.LEFT) -> None:
        """The consumer is gone: what it holds goes back. Not while stopping: those leases outlive the restart."""
        self._subscriptions.pop(subscription.consumer.number, None)
        if not self._stopping:
            self._engine.leave(subscription.queue.name, subscription.consumer, parting)
            self._schedule()

    def freed(self, subscription: Subscription) -> None:
        """A consumer can take more."""
        queue = subscription.queue
        if queue.ready or len(queue.suspects):
            self._engine.want(queue.name)
            self._schedule()
        elif subscription.consumer.credit > 0 and not queue.record.paused:
            queue.ledger.idle.set(False, self._clock())  # a tick would find nothing else to do

    def tell(self, subscription: Subscription) -> None:
        """Have a receiver told of its deliveries at the end of this tick."""
        self._granted.append(subscription)

    def read(
        self, queue: QueueState, grant: Grant, chosen_of: list[Taken] | None = None
    ) -> Iterator[list[tuple[int, Lane, bytes]]]:
        """The messages of a grant, or some of them, about `READ_BYTES` at a time, without those that it no longer
        holds: sequence number, lane, record.
        """
        members = list(grant.members.values()) if chosen_of is None else chosen_of
        start, step = 0, READ_FIRST
        while start < len(members):
            chosen = members[start : start + step]
            if queue.large:
                chosen = _up_to_large(chosen, queue.large)
            start += len(chosen)
            held = grant.members
            read = self._read([message for message in chosen if message[1] in held])
            if read:
                step = max(1, READ_BYTES // max(len(record) for _, _, record in read))
                yield read

    def read_in_pieces(self, queue: QueueState, messages: list[Taken]) -> Iterator[list[tuple[int, Lane, bytes]]]:
        """Messages that nobody holds, about `READ_BYTES` at a time, each piece when it is asked for."""
        start, step = 0, READ_FIRST
        while start < len(messages):
            chosen = messages[start : start + step]
            if queue.large:
                chosen = _up_to_large(chosen, queue.large)
            start += len(chosen)
            read = self._look_up(chosen)
            if read:
                step = max(1, READ_BYTES // max(len(record) for _, _, record in read))
                yield read

    def _read(self, messages: list[Taken]) -> list[tuple[int, Lane, bytes]]:
        recent = self._engine.recent
        found = recent.take([seq for _, seq, _ in messages]) if len(recent) else {}
        if not found:
            return self._look_up(messages)
        missing = [message for message in messages if message[1] not in found]
        found.update((seq, record) for seq, _, record in self._look_up(missing))
        return [(seq, lane, found[seq]) for lane, seq, _ in messages if seq in found]

    def _look_up(self, messages: list[Taken]) -> list[tuple[int, Lane, bytes]]:
        records = self.store.get_many(Family.MESSAGES, stored(messages))
        return [
            (seq, lane, record) for (lane, seq, _), record in zip(messages, records, strict=True) if record is not None
        ]

    def _read_together(self, messages: list[Taken]) -> None:
        """What is dealt out in turn stands side by side in the store: read it once for all, as far as there is room."""
        recent = self._engine.recent
        wanted = sorted([message for message in messages if message[1] not in recent], key=itemgetter(1))
        start, step = 0, READ_FIRST
        while start < len(wanted) and recent.room > 0:
            try:
                read = self._look_up(wanted[start : start + step])
            except (StoreFailed, StoreUnusable):
                return  # each will find out when it reads its own
            recent.add([(seq, record) for seq, _, record in read])
            start += step
            step = max(1, READ_BYTES // max([len(record) for _, _, record in read], default=READ_BYTES))

    def stop(self) -> None:
        """Take no more work, finish what was taken, end all deliveries."""
        self._stopping = True
        self._engine.finish(self._clock())
        for subscription in list(self._subscriptions.values()):
            subscription.consumer.end(ShuttingDown())

    def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self.store.close()

    def fail(self, reason: Exception) -> None:
        """Do nothing more: whoever waits for `failed` is told why."""
        if not self._closed:
            self._closed = True
            self.failed.set_exception(reason)

    def submit(self, command: Command) -> None:
        """Have a command done in one of the next ticks. Its `reply` is called, once, with the answer or a BrokerError,
        and must not raise. Raises Overloaded or ShuttingDown.
        """
        if self._stopping:
            raise ShuttingDown
        self._engine.submit(command)
        self._schedule()

    async def do(self, make: Callable[[Callable[[Any], None]], Command]) -> Any:
        """Have a command done and wait for its answer. Raises what it is answered with, Overloaded or ShuttingDown."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.submit(make(partial(_answer, future)))
        answer = await future
        if isinstance(answer, BrokerError):
            try:
                raise answer
            finally:
                # An error's traceback holds this frame. If the frame held the error, the request would stay in memory
                # until the garbage collector comes by.
                del answer, future
        return answer

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        began = monotonic_ns()
        now, asked = self._clock(), self._engine.queued
        try:
            self._engine.tick_in_turn(now)
        except Exception as defect:  # noqa: BLE001  # whatever it is, it goes to whoever waits for `failed`
            # Memory and store may disagree now. What is in the store is right, so let the program start anew from it.
            self.fail(defect)
            return
        self._plan_next(now)
        self.after_tick(asked)
        self.on_turn("tick", began, self._engine.describe_tick)

    def _hand_out(self) -> None:
        """Deliveries leave before answers: a consumer may be waiting for nothing else."""
        if not self._granted:
            return
        granted, self._granted = self._granted, []
        if len(granted) > 1:
            self._read_together([taken for subscription in granted for taken in subscription.waiting()])
        for subscription in granted:
            subscription.receiver.granted()
        for subscription in granted:
            subscription.receiver.flush()

    def _plan_next(self, now: int) -> None:
        if self._engine.has_work(now):
            self._schedule()
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due, hooks_wait = self._engine.next_wakeup(), self._engine.hooks_wait_ns()
        waits = [due - now] if due is not None else []
        if hooks_wait:
            waits.append(hooks_wait)
        if waits:
            self._alarm = self._loop.call_later(max(0.0, min(waits) / 1e9), self._schedule)


def _nothing(_messages: int) -> None:
    pass


def _unwatched(_kind: str, _began: int, _describe: Callable[[], str]) -> None:
    pass


def _answer(future: asyncio.Future[Any], answer: Any) -> None:
    if not future.done():  # it is when the client has gone meanwhile
        future.set_result(answer)


def _up_to_large(messages: list[Taken], large: set[int]) -> list[Taken]:
    """The messages before the first large one, or that one alone."""
    for index, (_, seq, _) in enumerate(messages):
        if seq in large:
            return messages[: max(1, index)]
    return messages
