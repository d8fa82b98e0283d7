"""The broker as the rest of the program sees it: awaitable calls around an engine that ticks on the event loop.

Here are the loop and the subscriptions of consumers. Everything else is a part of its own: `records` reads messages,
`readers` serves readers in claims, `operators` serves operators.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from time import monotonic_ns
from typing import Any

from fila.auth.registry import Change
from fila.broker.audit_commands import INTERNAL, Origin
from fila.broker.calls import all_known
from fila.broker.commands import (
    NOBODY,
    ChangeAccess,
    Command,
    CommitTransaction,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueResult,
    Failure,
    Incoming,
    Parting,
    Produced,
    SetConfig,
    Settle,
    StageEnqueue,
    UpdateQueue,
)
from fila.broker.engine import Engine, Load
from fila.broker.loading import let_go
from fila.broker.operators import Operators
from fila.broker.queue import dead_letter_name
from fila.broker.reading import Readers
from fila.broker.records import Records
from fila.broker.staging import Committing
from fila.broker.subscription import Receiver, Subscription
from fila.core.errors import BrokerError, ShuttingDown, SteppedDown
from fila.core.hands import Hands
from fila.storage.base import Storage
from fila.storage.records import QueueRecord


class Broker:
    """Drives an engine: gathers what arrives in one turn of the event loop into one tick, or while one is in flight."""

    def __init__(self, engine: Engine, store: Storage, clock: Callable[[], int]) -> None:
        self.after_tick: Callable[[int], None] = _nothing
        """Called when a tick is done and the next one is planned, with how many messages were asked for before it"""
        self.on_turn: Callable[[str, int, Callable[[], str]], None] = _unwatched
        """Told at the end of each tick: "tick", when it began, and who says what it did"""
        self.state = engine.state
        self.journal = engine.journal
        self.is_alone = engine.is_alone
        """Whether nobody else can change what is stored here. If not, memory may be behind."""
        self._engine = engine
        engine.on_durable = self._hand_out
        engine.on_landed = self._schedule
        self.store = store
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._alarm: asyncio.TimerHandle | None = None
        self._numbers = count(1)
        self._subscriptions: dict[int, Subscription] = {}
        self._granted: list[Subscription] = []
        """Those to be told after the tick"""
        self._asked = 0
        """How many messages were asked for before the tick that is in flight"""
        self._landing: asyncio.Future[None] | None = None
        """Of whoever waits for the end of a flight"""
        self._refusal: Callable[[], BrokerError] | None = None
        """Why nothing is taken any more"""
        self._closed = False
        self.records = Records(store, self.state.recent)
        self.readers = Readers(self)
        self.operators = Operators(self)
        self.failed: asyncio.Future[None] = self._loop.create_future()
        """Raises when the broker cannot go on because of a defect of its own."""
        self._schedule()

    # Commands

    def submit(self, command: Command) -> None:
        """Have a command done in one of the next ticks. Its `reply` is called, once, with the answer or a BrokerError,
        and must not raise. Raises Overloaded, ShuttingDown or SteppedDown.
        """
        if self._refusal is not None:
            raise self._refusal()
        self._engine.submit(command)
        self._schedule()

    async def do(self, make: Callable[[Callable[[Any], None]], Command]) -> Any:
        """Have a command done and wait for its answer. Raises what it is answered with, and as `submit`."""
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

    async def enqueue(
        self, messages: list[Incoming], produced: Produced = NOBODY, *, traced: bool = False
    ) -> Sequence[EnqueueResult]:
        outcomes: Sequence[EnqueueResult] = await self.do(
            lambda reply: Enqueue(messages, reply, produced, traced=traced)
        )
        return outcomes

    async def settle(self, command: Callable[[Callable[[Any], None]], Settle]) -> list[Failure]:
        return await self.do(command)  # type: ignore[no-any-return]

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
        while self.ready and find(producer).publishing:
            if self._engine.in_flight:
                await self._landed()
            await asyncio.sleep(0)  # each turn has a tick that may be the last

    async def create_queue(self, record: QueueRecord, origin: Origin = INTERNAL) -> None:
        await self.do(lambda reply: CreateQueue(record, reply, origin))

    async def update_queue(self, name: str, changes: Mapping[str, Any], origin: Origin = INTERNAL) -> QueueRecord:
        return await self.do(lambda reply: UpdateQueue(name, changes, reply, origin))  # type: ignore[no-any-return]

    async def delete_queue(self, name: str, force: bool = False, origin: Origin = INTERNAL) -> int:
        await all_known(self, {name, dead_letter_name(name)})
        return await self.do(lambda reply: DeleteQueue(name, reply, force, origin))  # type: ignore[no-any-return]

    async def pause_queue(self, name: str, paused: bool, origin: Origin = INTERNAL) -> None:
        """Deliver nothing of a queue, or deliver again. Kept over restarts."""
        await self.do(lambda reply: UpdateQueue(name, {"paused": paused}, reply, origin))

    async def set_config(self, key: str, value: str | None, origin: Origin = INTERNAL) -> str | None:
        """Set or remove an entry of the runtime configuration. Returns the value before, if there was one."""
        return await self.do(lambda reply: SetConfig(key, value, reply, origin))  # type: ignore[no-any-return]

    async def change_access(self, changes: Sequence[Change], origin: Origin = INTERNAL) -> None:
        """Set or remove roles, principals and keys. Raises InvalidArgument, or NotNow when it would lock all out."""
        await self.do(lambda reply: ChangeAccess(changes, reply, origin))

    # Consumers

    def subscribe(
        self, queue_name: str, max_in_flight: int, receiver: Receiver, hands: Hands | None = None
    ) -> Subscription:
        """Begin to deliver, to somebody who says what was handed to an application if there are `hands`.

        Raises QueueNotFound, ShuttingDown or SteppedDown.
        """
        if self._refusal is not None:
            raise self._refusal()
        number, queue = next(self._numbers), self.state.queue(queue_name)
        subscription = Subscription(queue, (number, max_in_flight, hands), receiver, self._granted.append, self._freed)
        self._engine.join(queue_name, subscription.consumer)
        self._subscriptions[number] = subscription
        self._schedule()
        return subscription

    def set_credit(self, subscription: Subscription, max_in_flight: int) -> None:
        """A consumer wants to hold so many messages at most from now on. What it holds stays with it."""
        queue = subscription.queue
        subscription.consumer.max_in_flight = max_in_flight
        self.journal.consumers_changed(queue.name)
        if queue.ready or len(queue.suspects):
            self._engine.want(queue.name)
            self._schedule()
        else:
            queue.ledger.idle.set(queue.record.paused or not queue.consumers.with_credit(), self._clock())

    def unsubscribe(
        self, subscription: Subscription, parting: Parting = Parting.LEFT, unsent: Iterable[int] = ()
    ) -> None:
        """The consumer is gone: what it holds goes back. Not while stopping: those leases outlive the restart.

        `unsent`: what it has taken here and was not sent.
        """
        self._subscriptions.pop(subscription.consumer.number, None)
        subscription.gone = True
        if self._refusal is None:
            taken = frozenset(unsent)
            self._engine.leave(
                subscription.queue.name, subscription.consumer, parting, lambda: subscription.untaken() | taken
            )
            self._schedule()

    def look_at_throttles(self) -> None:
        """Somebody else has changed what a throttle allows."""
        self._schedule()

    def _freed(self, subscription: Subscription) -> None:
        """A consumer can take more."""
        queue = subscription.queue
        if queue.ready or len(queue.suspects):
            self._engine.want(queue.name)
            self._schedule()
        elif subscription.consumer.credit > 0 and not queue.record.paused:
            queue.ledger.idle.set(False, self._clock())  # a tick would find nothing else to do

    def _hand_out(self) -> None:
        """Deliveries leave before answers: a consumer may be waiting for nothing else."""
        if not self._granted:
            return
        granted = self._granted.copy()
        self._granted.clear()
        if len(granted) > 1:
            self.records.read_ahead([taken for subscription in granted for taken in subscription.waiting()])
        for subscription in granted:
            subscription.receiver.granted()
        for subscription in granted:
            subscription.receiver.flush()

    # State

    @property
    def ready(self) -> bool:
        """Whether it takes work."""
        return self._refusal is None and not self._closed

    def now(self) -> int:
        return self._clock()

    def load(self) -> Load:
        return self._engine.load()

    def waiting_for_hooks(self, queue: str) -> int:
        """Messages of requests that wait for a queue's hooks."""
        return self._engine.waiting_for_hooks(queue)

    async def stop(self) -> None:
        """Take no more work, finish what was taken, end all deliveries. Waits only for a tick that is in flight."""
        self._refusal = self._refusal or ShuttingDown
        while not (self._closed or self._engine.finish(self._clock())):
            await self._landed()
        self._end_deliveries(ShuttingDown)

    def _end_deliveries(self, reason: Callable[[], BrokerError]) -> None:
        for subscription in list(self._subscriptions.values()):
            subscription.consumer.end(reason())

    def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        let_go(self.state.loading)
        self.store.close()

    def step_down(self, reason: SteppedDown) -> None:
        """Another has taken over: tell all that wait, and do nothing more."""
        self._engine.step_down(reason)
        if self._engine.deposed is not None and self._refusal is None:
            self._give_up(str(reason))

    def fail(self, reason: Exception) -> None:
        """Do nothing more: whoever waits for `failed` is told why."""
        if not self._closed:
            self._closed = True
            self.failed.set_exception(reason)
            self._has_landed()

    # The loop

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        began, now, engine = monotonic_ns(), self._clock(), self._engine
        try:
            if not engine.in_flight:
                self._asked = engine.queued
                engine.tick_in_turn(now)
            elif not engine.land(now):
                return
        except Exception as defect:  # noqa: BLE001  # whatever it is, it goes to whoever waits for `failed`
            # Memory and store may disagree now. What is in the store is right, so let the program start anew from it.
            self.fail(defect)
            return
        if not engine.in_flight:
            self._plan_next(now)
            self.after_tick(self._asked)
            self._has_landed()
        self.on_turn("tick", began, engine.describe_tick)
        if engine.deposed is not None:
            self._give_up(str(engine.deposed))

    async def _landed(self) -> None:
        """Wait for the tick in flight. Any number may."""
        if self._landing is None:
            self._landing = self._loop.create_future()
        await asyncio.wait({self._landing})

    def _has_landed(self) -> None:
        """No tick is in flight, or none will land."""
        landing, self._landing = self._landing, None
        if landing is not None:
            landing.set_result(None)

    def _give_up(self, why: str) -> None:
        """Another has taken over. All that waited was told."""
        self._refusal = partial(SteppedDown, why)
        self._end_deliveries(self._refusal)
        self.fail(SteppedDown(why))

    def _plan_next(self, now: int) -> None:
        if self._engine.has_work(now):
            self._schedule()
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due, hooks_wait = self._engine.next_wakeup(), self._engine.hooks_wait_ns(now)
        waits = [due - now] if due is not None else []
        if hooks_wait is not None:  # 0 when their time has come since `has_work`: then nothing else may wake us
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
