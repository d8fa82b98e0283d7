"""The engine: commands in, one write a tick, answers out.

A tick is: plan everything that is due, everything that was asked and everything that can be delivered; write it as one
batch; change memory; answer. The engine has one owner and no locks. When the write fails, memory is as it was and every
command of the tick is answered with the error.

Who writes may take its time (`commit.py`). A tick whose write is under way is *in flight*. Meanwhile:
- nothing is planned. Commands wait for the next tick; each counts as having come before what became due after it;
- consumers may come at once. Those that go do so when the tick has landed: it may be about to deliver to them;
- whoever looks sees what the tick has taken out of the lanes in no place.

Who shares what it writes to may have been deposed without knowing. So with a committer no command is answered before a
write of its tick counts, also if the tick changes nothing: all that memory says of it was true after the command came.

What a command does is in its own module (`operations.py` lists them). The engine only decides what goes into a tick,
and when the next one is due. Time is an argument, in nanoseconds since the epoch.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from fila.broker.admission import check_room
from fila.broker.arrival import plan_dedup_sweep
from fila.broker.auditing import plan_entries
from fila.broker.backoff import RETRY_AFTER_FAILURE, WriteBackoff
from fila.broker.chores import plan_chore
from fila.broker.claims import unfinished_removals
from fila.broker.command_queue import CommandQueue
from fila.broker.commands import UNASKED, Command, DropOldest, Parting, ReturnGrants, Settle, bytes_of
from fila.broker.commit import Committer, LocalCommitter
from fila.broker.delivery import plan_deliveries
from fila.broker.expiry import plan_expiry
from fila.broker.extension import plan_extensions
from fila.broker.journal import Journal, Plan
from fila.broker.loading import let_go, read_some
from fila.broker.lookup import Lookups
from fila.broker.operations import OPERATIONS
from fila.broker.producers import plan_producer_sweep
from fila.broker.promotion import plan_promotion
from fila.broker.publishing import unfinished_publishing
from fila.broker.recovery import CLOCK_KEY
from fila.broker.staging import plan_staged_sweep
from fila.broker.state import BrokerState
from fila.broker.tick import Chore, Tick
from fila.broker.wakeups import NEVER
from fila.config import SchedulerConfig
from fila.core.consumers import Consumer
from fila.core.errors import BrokerError, ShuttingDown, SteppedDown, StoreBusy, StoreFailed, quoted
from fila.core.ids import NS_PER_MS
from fila.storage.base import Family, Storage, StoreSizes

CLOCK_STEP = 100 * NS_PER_MS
"""How far ahead of the clock sequence numbers are set aside, so that a restart after the clock stepped back reuses
none. Shorter than a restart, so that ids stay true to the clock."""

NAMED_HOOKS = 3
"""Queues whose hooks are named in a slow tick."""

SWEEP_EVERY = 1000 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an engine is and was."""

    ticks: int
    write_failures: int
    """Ticks whose write failed"""
    write_stalls: int
    """Ticks that were put off because the store stalled"""
    commands_waiting: int
    """Counted in messages"""
    store_free_bytes: int | None
    """Room on the disk of the store, where that is known"""
    store_sizes: StoreSizes | None
    store_full: bool
    """Whether producers are refused because there is too little of it"""
    hooks_waiting: int = 0
    """Of the commands that wait, messages that wait for hooks"""


class _Flight:
    """A tick that is being written."""

    __slots__ = ("commands", "error", "landed", "mark", "on_landed", "record", "tick")

    def __init__(self, tick: Tick, commands: list[Command], mark: int, record: Plan | None) -> None:
        self.tick = tick
        self.commands = commands
        self.mark = mark
        self.record = record
        self.landed = False
        self.error: StoreFailed | None = None
        self.on_landed: Callable[[], None] | None = None

    def land(self, error: StoreFailed | None) -> None:
        """The write is done, or has failed."""
        self.landed, self.error = True, error
        if self.on_landed is not None:
            self.on_landed()


class Engine:
    """Owns the state and the store. Everything happens in a tick."""

    def __init__(
        self,
        state: BrokerState,
        store: Storage,
        config: SchedulerConfig,
        journal: Journal,
        committer: Committer | None = None,
    ) -> None:
        """Writes to the store itself unless there is a committer."""
        self.state = state
        self.journal = journal
        self._store = store
        self._committer = committer or LocalCommitter(store)
        self.is_alone = committer is None
        """Whether nobody else can change what it writes to: its memory is never behind"""
        self._flight: _Flight | None = None
        self._leaving: list[Callable[[], None]] = []
        """Consumers that go when the tick in flight has landed"""
        self.deposed: SteppedDown | None = None
        """Why nothing more is done"""
        self._config = config
        self._commands = CommandQueue(state, store, config)
        self._lookups = Lookups(state, store)
        self._chores: deque[Chore] = deque([*unfinished_publishing(state), *unfinished_removals(state)])
        self._chores_at = 0
        """When chores are tried again after one could not read the store"""
        self._reads_at = 0
        """When more of what a start has left is read after the store could not be read"""
        self._sound = True
        """Whether no write has failed since the last that succeeded"""
        self._backoff = WriteBackoff()
        self._next_sweep = 0
        self._delivering = True
        self._owed = False
        """Whether the last tick left out what is due and what can be delivered"""
        self._ticks = 0
        self._handled: list[type[Command]] = []
        """Commands of the last tick"""
        self.on_durable: Callable[[], None] = _nothing
        """Called when a tick is durable, before its commands are answered"""
        self.on_landed: Callable[[], None] = _nothing
        """Called when `land` is due"""
        state.wakeups.look_up_due(state.queues.values())

    @property
    def queued(self) -> int:
        """Messages of commands that wait, and of settlements that wait for their answer."""
        return self._commands.messages + self._lookups.messages

    def describe_tick(self) -> str:
        """The commands of the last tick, by kind, and the queues whose hooks were asked in it."""
        counts = Counter(kind.__name__ for kind in self._handled)
        hooks = [f"hooks of {quoted(name)}" for name in islice(self._commands.hooks.asked, NAMED_HOOKS)]
        return ", ".join([f"{count} {name}" for name, count in counts.most_common()] + hooks) or "no command"

    def load(self) -> Load:
        store, backoff = self._store, self._backoff
        return Load(
            self._ticks,
            backoff.failures,
            backoff.stalls,
            self.queued,
            store.free_bytes(),
            store.sizes(),
            store.refusal() is not None,
            self._commands.hooks.messages,
        )

    def submit(self, command: Command) -> None:
        """Have a command done in one of the next ticks. Raises Overloaded when too much is waiting."""
        self._commands.add(command, self._lookups.messages)

    def join(self, queue_name: str, consumer: Consumer) -> None:
        """Let a consumer take part in a queue. Raises QueueNotFound."""
        queue = self.state.queue(queue_name)
        queue.consumers.add(consumer)
        self.journal.consumers_changed(queue_name)
        self.want(queue_name)

    def leave(
        self,
        queue_name: str,
        consumer: Consumer,
        parting: Parting = Parting.LEFT,
        unsent: Callable[[], frozenset[int]] = frozenset,
    ) -> None:
        """End a consumer; what it holds goes back in the next ticks. `unsent` says what was never sent to it."""
        if self._flight is not None:
            self._leaving.append(partial(self.leave, queue_name, consumer, parting, unsent))
            return
        queue = self.state.queues.get(queue_name)
        if queue is not None and queue.consumers.remove(consumer.number) is not None:
            self.journal.consumers_changed(queue_name)
            self.submit(ReturnGrants(queue_name, consumer.number, parting, unsent=unsent()))
            if len(queue.suspects):
                self.state.wakeups.want(queue)  # another may try one now, also when nothing goes back

    def want(self, queue_name: str) -> None:
        """Look at a queue in the next tick, because a consumer of it can take more."""
        self.state.wakeups.wanted[queue_name] = None

    def waiting_for_hooks(self, queue: str) -> int:
        """Messages of requests that wait for a queue's hooks."""
        return self._commands.hooks.waiting_for(queue)

    def hooks_wait_ns(self, now: int) -> int | None:
        """How long until hooks may be asked again about what waits for them, which is not while the store stalls; None
        when nothing waits.
        """
        wait = self._commands.hooks_wait_ns
        return max(wait, self._backoff.stalled_until() - now) if wait is not None else None

    def finish(self, now: int) -> bool:
        """Do all that was asked and deliver nothing more. What no client waits for is left to the next start.

        Returns whether that is done; if not, a tick is in flight, and there is more to do when it has landed.
        """
        self._delivering = False
        while self._flight is None and self.deposed is None and (self._lookups or self._commands.has_clients):
            self.tick(now)
        if self._flight is not None:
            return False
        for command in self._commands.take_from_hooks():  # hooks may take any time, and nothing has happened yet
            command.reply(ShuttingDown())
        return True

    # When the next tick is due

    def has_work(self, now: int) -> bool:
        """Whether the next tick has something to do at once."""
        if self._flight is not None or self.deposed is not None or self._backoff.is_stalled(now):
            return False
        if self._lookups or self._commands.is_urgent:
            return True
        if self._backoff.is_paused(now):
            return self._commands.has_clients
        chores = self._chores and now >= self._chores_at
        reads = self.state.loading and now >= self._reads_at
        return bool(self._commands or self.state.wakeups.wanted or reads or chores)

    def next_wakeup(self) -> int | None:
        """When the next tick is due, if no command comes before. None while one is in flight."""
        if self._flight is not None or self.deposed is not None:
            return None
        wakeups = self.state.wakeups
        if self._lookups or self._commands.is_urgent or self._commands.has_clients:
            return self._backoff.stalled_until()
        if wakeups.wanted or self._commands:
            return self._backoff.until()
        chores_at = self._chores_at if self._chores else NEVER
        reads_at = self._reads_at if self.state.loading else NEVER
        due_at = min(wakeups.due_at, chores_at, reads_at, self.state.throttles.next_wakeup() or NEVER)
        return None if due_at == NEVER else max(due_at, self._backoff.until())

    def _has_other_work(self, now: int) -> bool:
        """Whether a tick without commands has something to do."""
        if self._backoff.is_paused(now):
            return False
        wakeups = self.state.wakeups
        chores = self._chores and now >= self._chores_at
        return bool(wakeups.wanted or chores or now >= wakeups.due_at or now >= self._next_sweep)

    # The tick

    def tick(self, now: int) -> None:
        """Do what is due and what was asked, in one write. Nothing while a tick is in flight."""
        if self._flight is not None or self.deposed is not None:
            return
        self._commands.begin_tick(now)
        self._tick(now, alone=self._commands.is_next_alone(now))

    def tick_in_turn(self, now: int) -> None:
        """Tick, but let commands that have a tick to themselves take turns with everything else: however many of them
        come, what is due, chores and deliveries wait for no more than one. While the store stalls, nothing is done
        before it is to be tried again.
        """
        if self._flight is not None or self.deposed is not None or self._backoff.is_stalled(now):
            return
        self._commands.begin_tick(now)
        self._tick(now, alone=self._commands.is_next_alone(now) and not (self._owed and self._has_other_work(now)))

    def _tick(self, now: int, *, alone: bool) -> None:
        self._ticks += 1
        self._owed = alone
        if self.state.loading and now >= self._reads_at:
            self._read_more(now)
        tick = Tick(self.state, self._store, self._chores, now, self._commands.came_by(now))
        commands = self._plan_alone(tick) if alone else self._plan_all(tick)
        self._handled = [type(command) for command in commands]
        if not len(tick.batch) and (self.is_alone or not _are_asked(commands)) and self.journal.remember_looks(tick):
            self._take_effect(tick, now)
        else:
            self._write(tick, commands)

    @property
    def in_flight(self) -> bool:
        """Whether a tick is being written, or `land` is due."""
        return self._flight is not None

    def land(self, now: int) -> bool:
        """Go on with the tick in flight if its write is done, or has failed. Returns whether that was so."""
        flight = self._flight
        if flight is None or not flight.landed:
            return False
        self._flight = None
        if flight.error is None:
            self._sound = True
            self.journal.commit(flight.record)
            self.state.clock_mark = flight.mark
            self._take_effect(flight.tick, now)
        else:
            self._roll_back(flight.tick, flight.commands, flight.error, now)
        if flight.on_landed is not None:
            self._commands.note_flight(flight.tick.now)
        return True

    def _take_effect(self, tick: Tick, now: int) -> None:
        """What is written, if there is anything, is durable."""
        self._backoff.succeeded()
        self._commit(tick, now)
        self._let_leave()
        self.on_durable()
        for reply, answer in tick.replies:
            reply(answer)
        self._lookups.go_on()

    def _let_leave(self) -> None:
        leaving, self._leaving = self._leaving, []
        for leave in leaving:
            leave()

    def _read_more(self, now: int) -> None:
        """Read some of what the start has left."""
        try:
            self.state.wakeups.want(read_some(self.state.loading))
        except StoreFailed:
            self._reads_at = now + RETRY_AFTER_FAILURE
        if not self._sound:
            let_go(self.state.loading)

    def _write(self, tick: Tick, commands: list[Command]) -> None:
        mark = self.state.clock_mark
        if self.state.sequence.last > mark:
            mark = self.state.sequence.last + CLOCK_STEP
            tick.batch.put(Family.DEFAULT, CLOCK_KEY, mark.to_bytes(8, "big"))
        record = self.journal.plan(tick, commands)
        flight = self._flight = _Flight(tick, commands, mark, record)
        self._committer.write(tick.batch, flight.land)
        if not self.land(tick.now):
            flight.on_landed = self.on_landed

    def _commit(self, tick: Tick, now: int) -> None:
        state = self.state
        tick.commit()
        for command in tick.to_go_on:
            self.submit(command)
        if state.wakeups.overfull:
            self._drop_later()
        state.wakeups.note_idle(now)
        state.wakeups.want_throttled(state.queues, state.throttles, now)
        if now >= state.wakeups.due_at:
            state.wakeups.look_up_due(state.queues.values())

    def _drop_later(self) -> None:
        """Have queues that are over their limit drop messages, each in a tick of its own."""
        overfull, waiting = self.state.wakeups.overfull, self._commands.dropping
        for name in overfull:
            if name not in waiting:
                self.submit(DropOldest(name))
        overfull.clear()

    def _roll_back(self, tick: Tick, commands: list[Command], error: StoreFailed, now: int) -> None:
        state = self.state
        tick.roll_back()
        self._sound = False
        let_go(state.loading)
        self._let_leave()
        if isinstance(error, SteppedDown):
            self._end(commands, error)
            return
        state.wakeups.want_throttled(state.queues, state.throttles, now)
        if isinstance(error, StoreBusy) and self._delivering and self._backoff.stalled(now):
            self._commands.put_back(commands, tick.due_by)
            return
        self._backoff.failed(now)
        for command in reversed(commands):
            if isinstance(command, UNASKED):
                self._commands.try_later(command)
            else:
                command.reply(error)
        self._lookups.go_on()

    def step_down(self, error: SteppedDown) -> None:
        """Do nothing more. A tick in flight will land with this error."""
        if self._flight is None and self.deposed is None:
            self._end([], error)

    def _end(self, commands: list[Command], error: SteppedDown) -> None:
        """Another has taken over: tell all that wait, and do nothing more."""
        self.deposed = error
        for command in [*commands, *self._commands.take_all()]:
            if not isinstance(command, UNASKED):
                command.reply(error)
        self._lookups.give_up(error)

    # Planning

    def _plan_all(self, tick: Tick) -> list[Command]:
        """Everything but commands that have a tick to themselves."""
        paused = self._backoff.is_paused(tick.now)
        if not paused:
            self._plan_due(tick)
        commands = self._plan_commands(tick)
        if self._delivering and not paused:
            plan_deliveries(tick, self._config.max_tick_messages)
        return commands

    def _plan_due(self, tick: Tick) -> None:
        budget = self._config.max_tick_messages
        if tick.now >= self._next_sweep:
            self._next_sweep = tick.now + SWEEP_EVERY
            plan_staged_sweep(tick)
            plan_producer_sweep(tick, budget)
            plan_dedup_sweep(tick, budget)
        if self._chores and tick.now >= self._chores_at and not plan_chore(tick):
            self._chores_at = tick.now + RETRY_AFTER_FAILURE
        if tick.now < self.state.wakeups.due_at:
            return
        for queue in self.state.queues.values():
            budget -= plan_expiry(tick, queue, budget)
            budget -= plan_promotion(tick, queue, max(budget, 0))
            if budget <= 0:
                return

    def _plan_commands(self, tick: Tick) -> list[Command]:
        done: list[Command] = []
        budget, room = self._config.max_tick_messages, self._config.max_tick_bytes
        while budget > 0 and room > 0:
            command = self._commands.peek(tick.now)
            if command is None or OPERATIONS[type(command)].alone:
                break
            budget -= command.size
            room -= bytes_of(command)
            done.append(self._plan_next(tick))
        self._finish_leases(tick)
        return done

    def _plan_alone(self, tick: Tick) -> list[Command]:
        """One command that has the tick to itself."""
        command = self._plan_next(tick)
        self._finish_leases(tick)
        return [command]

    def _finish_leases(self, tick: Tick) -> None:
        """After all that may end leases in this tick: extend what is left, and write down what grants still hold."""
        plan_extensions(tick)
        tick.leases.rewrite_released()

    def _plan_next(self, tick: Tick) -> Command:
        command = self._commands.pop()
        operation = OPERATIONS[type(command)]
        reply: Callable[[Any], None] = command.reply
        try:
            if operation.takes_room:
                check_room(self._store)
            answer = operation.plan(tick, command)
            if operation.audit is not None:
                plan_entries(tick, operation.audit(tick, command, answer))
            if isinstance(command, Settle):
                reply = partial(self._answer_settle, reply)
        except BrokerError as error:
            answer = error
        tick.replies.append((reply, answer))
        return command

    def _answer_settle(self, reply: Callable[[Any], None], failures: list[Any]) -> None:
        self._lookups.answer(self._config.max_queued_commands - self.queued, reply, failures)


def _are_asked(commands: list[Command]) -> bool:
    """Whether a client waits for some of them."""
    return any(not isinstance(command, UNASKED) for command in commands)


def _nothing() -> None:
    pass
