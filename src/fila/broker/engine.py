"""The engine: commands in, one write a tick, answers out.

A tick is: plan everything that is due, everything that was asked and everything that can be delivered; write it as one
batch; change memory; answer. Nothing else happens in between: the engine has one owner and no locks. When the write
fails, memory is as it was and every command of the tick is answered with the error.

Time is an argument, in nanoseconds since the epoch.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from fila.broker.admin import plan_create, plan_delete, plan_update
from fila.broker.admission import check_room
from fila.broker.asking import Asking
from fila.broker.claims import plan_ack_claims, plan_claim, plan_drop_group, plan_extend_claims
from fila.broker.commands import (
    ALONE,
    AckClaims,
    Command,
    CommitTransaction,
    CreateQueue,
    DeleteQueue,
    DropGroup,
    Enqueue,
    ExtendClaims,
    Failure,
    MakeClaim,
    Parting,
    Purge,
    Redrive,
    ReturnGrants,
    SetConfig,
    Settle,
    StageEnqueue,
    UpdateQueue,
    bytes_of,
)
from fila.broker.deliver import plan_delivery, plan_straight
from fila.broker.enqueue import plan_enqueue
from fila.broker.journal import Journal
from fila.broker.lookup import LOOKUPS_A_TICK, Lookup
from fila.broker.queue import QueueState
from fila.broker.recent import RecentRecords
from fila.broker.recovery import CLOCK_KEY
from fila.broker.redrive import plan_purge, plan_redrive
from fila.broker.settings import plan_setting
from fila.broker.settle import plan_expiry, plan_extensions, plan_promotion, plan_return, plan_settle, rewrite_grants
from fila.broker.state import BrokerState
from fila.broker.tick import Arrivals, Delivery, Tick
from fila.broker.transactions import plan_commit, plan_stage, plan_staged_sweep
from fila.config import SchedulerConfig
from fila.core.consumers import TRIALS, Consumer
from fila.core.errors import BrokerError, Overloaded, ShuttingDown, StoreBusy, StoreFailed, StoreUnusable, quoted
from fila.core.ids import NS_PER_MS
from fila.core.schedule import Delayed
from fila.core.suspects import at_home
from fila.storage import keys
from fila.storage.base import Batch, Family, Storage

CLOCK_STEP = 100 * NS_PER_MS
"""How far ahead of the clock sequence numbers are set aside, so that a restart after the clock stepped back reuses
none. Shorter than a restart, so that ids stay true to the clock."""

NAMED_HOOKS = 3
"""Queues whose hooks are named in a slow tick."""

RETRY_AFTER_FAILURE = 1000 * NS_PER_MS
"""How long work that nobody waits for rests after a failed write."""

BUSY_PAUSE = 1 * NS_PER_MS
"""How long a write rests that came while the store was behind with its files; twice as long after each try,"""
LONGEST_BUSY_PAUSE = 64 * NS_PER_MS
"""but not longer than this."""
BUSY_PATIENCE = 10_000 * NS_PER_MS
"""How long commands wait for such a store before they are answered that it is busy."""

SWEEP_EVERY = 1000 * NS_PER_MS
SILENT_AFTER = 600_000 * NS_PER_MS
"""How long a producer's batches can be answered again after the last one."""
MAX_PRODUCERS = 100_000

NEVER = 1 << 63

TAKES_ROOM = (CreateQueue, Redrive, StageEnqueue)
"""Refused, like messages, when there is too little room: redriving writes messages a second time."""

RECENT_BYTES = 16 << 20
"""How much of what was just written is kept for consumers that are waiting."""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an engine is and was."""

    ticks: int
    write_failures: int
    """Ticks whose write failed"""
    write_stalls: int
    """Ticks that were put off because the store was behind with its files"""
    commands_waiting: int
    """Counted in messages"""
    store_free_bytes: int | None
    """Room on the disk of the store, where that is known"""
    store_full: bool
    """Whether producers are refused because there is too little of it"""
    hooks_waiting: int = 0
    """Of the commands that wait, messages that wait for hooks"""


@dataclass(slots=True)
class _Stall:
    """A store that is behind with its files."""

    since: int
    pause: int
    until: int
    """No write is tried before this."""


class Engine:
    """Owns the state and the store. Everything happens in a tick."""

    def __init__(self, state: BrokerState, store: Storage, config: SchedulerConfig, journal: Journal) -> None:
        self.state = state
        self.journal = journal
        self._store = store
        self._config = config
        self._commands: deque[Command] = deque()
        self._asking = Asking(state, store, config.max_queued_commands)
        self._ready: deque[Command] = deque()
        """Commands about which hooks have been asked; they go before all others"""
        self._may_ask = True
        """Whether there is time for hooks in this tick"""
        self._set_aside = 0
        """Commands of this tick that were let wait for hooks"""
        self.queued = 0
        """Messages of commands that wait"""
        self.queued_bytes = 0
        self._wanted: dict[str, None] = {}
        """Queues that may have something to deliver, in turn."""
        self._freed: dict[str, QueueState] = {}
        """Queues that hold no message for the room that consumers have just got"""
        self._due_at = self._earliest()
        """Nothing is due before this. Looked up anew only when it has passed, not whenever a lease is settled."""
        self.recent = RecentRecords(RECENT_BYTES)
        self._delivering = True
        self._resting_until = 0
        self._stall: _Stall | None = None
        self._next_sweep = 0
        self._chores_at = 0
        """When chores are tried again after one could not read the store"""
        self._lookups: deque[Lookup] = deque()
        """Settlements that failed, to be answered when it is known which of their messages exist"""
        self._owed = False
        """Whether the last tick left out what is due and what can be delivered"""
        self._ticks = 0
        self._handled: list[type[Command]] = []
        """Of the last tick"""
        self._write_failures = 0
        self._write_stalls = 0
        self.on_durable: Callable[[], None] = _nothing
        """Called when a tick is durable, before its commands are answered"""

    def describe_tick(self) -> str:
        """The commands of the last tick, by kind, and the queues whose hooks were asked in it."""
        counts = Counter(kind.__name__ for kind in self._handled)
        hooks = [f"hooks of {quoted(name)}" for name in islice(self._asking.asked, NAMED_HOOKS)]
        return ", ".join([f"{count} {name}" for name, count in counts.most_common()] + hooks) or "no command"

    def load(self) -> Load:
        store = self._store
        return Load(
            self._ticks,
            self._write_failures,
            self._write_stalls,
            self.queued,
            store.free_bytes(),
            store.refusal() is not None,
            self._asking.messages,
        )

    def submit(self, command: Command) -> None:
        """Have a command done in one of the next ticks. Raises Overloaded when too much is waiting."""
        config = self._config
        full = self.queued >= config.max_queued_commands or self.queued_bytes >= config.max_queued_bytes
        if full and not isinstance(command, ReturnGrants):
            raise Overloaded("the broker has too many requests waiting; try again later")
        self._asking.check(command)
        self.queued += command.size
        self.queued_bytes += bytes_of(command)
        self._commands.append(command)

    def join(self, queue_name: str, consumer: Consumer) -> None:
        """Let a consumer take part in a queue. Raises QueueNotFound."""
        queue = self.state.queue(queue_name)
        queue.consumers.add(consumer)
        self.journal.consumers_changed(queue_name)
        self._wanted[queue_name] = None

    def leave(self, queue_name: str, consumer: Consumer, parting: Parting = Parting.LEFT) -> None:
        """End a consumer; what it holds goes back in the next ticks."""
        queue = self.state.queues.get(queue_name)
        if queue is not None and queue.consumers.remove(consumer.number) is not None:
            self.journal.consumers_changed(queue_name)
            self.submit(ReturnGrants(queue_name, consumer.number, parting))

    def want(self, queue_name: str) -> None:
        """Look at a queue in the next tick, because a consumer of it can take more."""
        self._wanted[queue_name] = None

    def finish(self, now: int) -> None:
        """Do all that was asked and deliver nothing more. What no client waits for is left to the next start."""
        self._delivering = False
        while self._lookups or self._ready or any(not isinstance(command, ReturnGrants) for command in self._commands):
            self.tick(now)
        for command in self._asking.take_all():  # their hooks may take any time, and nothing of them has happened yet
            self.queued -= command.size
            command.reply(ShuttingDown())

    def has_work(self, now: int) -> bool:
        """Whether the next tick has something to do at once."""
        if self._is_stalled(now):
            return False
        if self._lookups or self._ready or self.hooks_wait_ns() == 0:
            return True
        if now < self._resting_until:
            return any(not isinstance(command, ReturnGrants) for command in self._commands)
        return bool(self._commands or self._wanted or (self.state.chores and now >= self._chores_at))

    def next_wakeup(self) -> int | None:
        """When the next tick is due, if no command comes before."""
        if self._wanted or self._commands or self._lookups or self._ready or self.hooks_wait_ns() == 0:
            return self._tried_at
        due_at = min(
            self._due_at, self._chores_at if self.state.chores else NEVER, self.state.throttles.next_wakeup() or NEVER
        )
        return None if due_at == NEVER else max(due_at, self._tried_at)

    @property
    def _tried_at(self) -> int:
        """Before this, work that nobody waits for is not tried again."""
        return max(self._resting_until, self._stall.until if self._stall else 0)

    def waiting_for_hooks(self, queue: str) -> int:
        """Messages of requests that wait for a queue's hooks."""
        return self._asking.waiting_for(queue)

    def hooks_wait_ns(self) -> int | None:
        """How long until hooks may be asked again about what waits for them; None when nothing does."""
        return self.state.scripts.budget.wait_ns() if self._asking.messages else None

    def tick(self, now: int) -> None:
        """Do what is due and what was asked, in one write."""
        self._begin(now)
        self._tick(now, alone=self._is_next_alone(now))

    def tick_in_turn(self, now: int) -> None:
        """Tick, but let commands that have a tick to themselves take turns with everything else: however many of them
        come, what is due, chores and deliveries wait for no more than one. While the store is behind with its files,
        nothing is done before it is to be tried again.
        """
        if self._is_stalled(now):
            return
        self._begin(now)
        self._tick(now, alone=self._is_next_alone(now) and not (self._owed and self._has_other_work(now)))

    def _begin(self, now: int) -> None:
        """Ask the hooks that were not asked in the last tick."""
        self._may_ask = self.state.scripts.budget.begin()
        self._set_aside = 0
        self._asking.asked.clear()
        self._ask(now)

    def _ask(self, now: int) -> None:
        if self._may_ask and self._asking.messages and not self._ready:
            self._ready.extend(self._asking.ask(now))

    def _is_next_alone(self, now: int) -> bool:
        return isinstance(self._next_command(now), ALONE)

    def _next_command(self, now: int) -> Command | None:
        """What is planned next. Commands that need hooks are asked about, and wait while there is no time for it."""
        while not self._ready and self._commands and self._set_aside < self._config.max_tick_messages:
            command = self._commands[0]
            lines = self._asking.lines_of(command)
            if not lines:
                return command
            self._asking.add(self._commands.popleft(), lines)
            self._set_aside += 1
            if not self._commands:
                self._ask(now)
        return self._ready[0] if self._ready else None

    def _is_stalled(self, now: int) -> bool:
        return self._stall is not None and now < self._stall.until

    def _has_other_work(self, now: int) -> bool:
        """Whether a tick without commands has something to do."""
        if now < self._resting_until:
            return False
        chores = self.state.chores and now >= self._chores_at
        return bool(self._wanted or chores or now >= self._due_at or now >= self._next_sweep)

    def _tick(self, now: int, *, alone: bool) -> None:
        self._ticks += 1
        self._owed = alone
        tick = Tick(now, Batch())
        if alone:
            commands = [self._plan_next(tick)]
        else:
            rested = now >= self._resting_until
            if rested:
                self._plan_due(tick)
            commands = self._plan_commands(tick)
            if rested and self._delivering:
                self._plan_deliveries(tick)
        self._handled = [type(command) for command in commands]
        try:
            self._write(tick, commands)
        except StoreFailed as error:
            self._roll_back(tick)
            if isinstance(error, StoreBusy) and self._can_wait(now):
                self._put_back(commands)
                return
            self._write_failures += 1
            self._resting_until = now + RETRY_AFTER_FAILURE
            for command in reversed(commands):
                self._give_up(command, error)
            self._look_up()
            return
        self._stall = None
        self._commit(tick)
        self.on_durable()
        for reply, answer in tick.replies:
            reply(answer)
        self._look_up()

    def _look_up(self) -> None:
        """Find out what became of some of the messages that nobody holds. In turn, and only between writes: what the
        store says is asked.
        """
        budget = LOOKUPS_A_TICK
        while self._lookups and budget > 0:
            lookup = self._lookups.popleft()
            budget -= lookup.go_on(self.state, self._store, budget)
            if lookup.done:
                self.queued -= lookup.size
            else:
                self._lookups.append(lookup)

    def _answer_settle(self, reply: Callable[[list[Failure] | BrokerError], None], answer: list[Failure]) -> None:
        """Answer what consumers said, at once or when it is known which of the messages that they do not hold exist."""
        lookup = Lookup(reply, answer) if answer else None
        if lookup is None or not 0 < lookup.size <= self._config.max_queued_commands - self.queued:
            reply(answer)
        else:
            self.queued += lookup.size
            self._lookups.append(lookup)

    def _can_wait(self, now: int) -> bool:
        """Whether a tick is tried again when the store has caught up, and when. While stopping, nobody waits."""
        if self._stall is None:
            self._stall = _Stall(now, BUSY_PAUSE, now)
        stall = self._stall
        if not self._delivering or now - stall.since >= BUSY_PATIENCE:
            return False
        self._write_stalls += 1
        stall.until = now + stall.pause
        stall.pause = min(2 * stall.pause, LONGEST_BUSY_PAUSE)
        return True

    def _put_back(self, commands: list[Command]) -> None:
        """Have commands done again, before all others and in their order."""
        self._ready.extendleft(reversed(commands))
        self.queued += sum(command.size for command in commands)
        self.queued_bytes += sum(map(bytes_of, commands))

    def _give_up(self, command: Command, error: StoreFailed) -> None:
        if isinstance(command, ReturnGrants):  # nobody waits for it, and nobody else would do it
            self._commands.appendleft(command)
            self.queued += command.size
        else:
            command.reply(error)

    def _write(self, tick: Tick, commands: list[Command]) -> None:
        if not len(tick.batch):
            return
        mark = self.state.clock_mark
        if self.state.sequence.last > mark:
            mark = self.state.sequence.last + CLOCK_STEP
            tick.batch.put(Family.DEFAULT, CLOCK_KEY, mark.to_bytes(8, "big"))
        record = self.journal.plan(self.state, tick, commands)
        self._store.write(tick.batch)
        self.journal.commit(record)
        self.state.clock_mark = mark

    # Planning

    def _plan_due(self, tick: Tick) -> None:
        if tick.now >= self._next_sweep:
            self._next_sweep = tick.now + SWEEP_EVERY
            self._plan_sweep(tick)
        if self.state.chores and tick.now >= self._chores_at:
            self._plan_chore(tick)
        if tick.now < self._due_at:
            return
        budget = self._config.max_tick_messages
        for queue in self.state.queues.values():
            budget -= plan_expiry(self.state, self._store, tick, queue, budget)
            budget -= plan_promotion(tick, queue, max(budget, 0))
            if budget <= 0:
                return

    def _plan_chore(self, tick: Tick) -> None:
        chores = self.state.chores
        try:
            done = chores[0](tick)
        except (StoreFailed, StoreUnusable):  # it reads before it plans anything
            self._chores_at = tick.now + RETRY_AFTER_FAILURE
            return
        tick.on_commit.append(chores.popleft if done else partial(chores.rotate, -1))

    def _plan_sweep(self, tick: Tick) -> None:
        plan_staged_sweep(self.state, tick)
        for producer in self.state.producers.idle(tick.now - SILENT_AFTER, MAX_PRODUCERS):
            prefix = keys.producer(producer)
            tick.batch.delete_range(Family.DEDUP, prefix, keys.after(prefix))
            tick.silent.append(producer)
            if len(tick.silent) >= self._config.max_tick_messages:
                break
        for queue in self.state.queues.values():
            outlived = queue.dedup.expired(tick.now, self._config.max_tick_messages)
            for key in outlived:
                tick.batch.delete(Family.DEDUP, keys.dedup(queue.name, key))
            if outlived:
                tick.outlived.append((queue, outlived))

    def _plan_commands(self, tick: Tick) -> list[Command]:
        done: list[Command] = []
        budget, room = self._config.max_tick_messages, self._config.max_tick_bytes
        while budget > 0 and room > 0:
            command = self._next_command(tick.now)
            if command is None or isinstance(command, ALONE):
                break
            budget -= command.size
            room -= bytes_of(command)
            done.append(self._plan_next(tick))
        plan_extensions(self.state, tick)
        rewrite_grants(tick)
        return done

    def _plan_next(self, tick: Tick) -> Command:
        command = (self._ready or self._commands).popleft()
        self.queued -= command.size
        self.queued_bytes -= bytes_of(command)
        reply: Callable[[Any], None] = command.reply
        try:
            answer: object = self._plan(tick, command)
            if isinstance(command, Settle):
                reply = partial(self._answer_settle, reply)
        except BrokerError as error:
            answer = error
        tick.replies.append((reply, answer))
        return command

    def _plan(self, tick: Tick, command: Command) -> object:
        if isinstance(command, TAKES_ROOM):
            check_room(self._store)
        match command:
            case Enqueue():
                return plan_enqueue(self.state, self._store, tick, command)
            case Settle():
                return plan_settle(self.state, self._store, tick, command)
            case ReturnGrants():
                if not plan_return(self.state, self._store, tick, command):
                    tick.on_commit.append(partial(self.submit, command))
            case CreateQueue():
                plan_create(self.state, tick, command)
            case UpdateQueue():
                record = plan_update(self.state, tick, command)
                tick.on_commit.append(partial(self.want, record.name))  # it may deliver again
                return record
            case DeleteQueue():
                return plan_delete(self.state, tick, command)
            case Redrive():
                return plan_redrive(self.state, self._store, tick, command)
            case Purge():
                swept = plan_purge(self.state, self._store, tick, command)
                tick.on_commit.append(partial(self.want, command.queue))  # others may come to their throttles now
                return swept
            case SetConfig():
                return plan_setting(self.state, tick, command)
            case MakeClaim():
                return plan_claim(self.state, tick, command)
            case AckClaims():
                return plan_ack_claims(self.state, tick, command)
            case ExtendClaims():
                extended = plan_extend_claims(self.state, tick, command)
                tick.on_commit.append(self._look_up_due)
                return extended
            case DropGroup():
                plan_drop_group(self.state, tick, command)
            case StageEnqueue():
                return plan_stage(self.state, tick, command)
            case CommitTransaction():
                return plan_commit(self.state, self._store, tick, command)
        return None

    def _plan_deliveries(self, tick: Tick) -> None:
        self._want_throttled(tick.now)
        budget = self._config.max_tick_messages
        for name in list(self._wanted):
            if budget <= 0:
                break
            del self._wanted[name]
            queue = self.state.queues.get(name)
            if queue is not None:
                count = plan_delivery(self.state, tick, queue, budget)
                budget -= count
                if 0 < count < queue.ready:
                    self._wanted[name] = None  # at the end: there is more, but the others come first
        for queue in tick.unfinished:
            self._wanted[queue.name] = None
        if not (tick.promoted or tick.returned or tick.dead):  # which may be older than what arrives
            for arrivals in tick.arrivals.values():
                if arrivals.awaited and len(arrivals.seqs) <= budget:
                    plan_straight(self.state, tick, arrivals)

    # After the write

    def _commit(self, tick: Tick) -> None:
        for delivery in tick.delivered:  # first: a key that has something out is not forgotten
            if delivery.trial:  # suspects are out while they wait
                for lane, _, _ in at_home(delivery.selection.messages):
                    lane.key.delivered += 1
                continue
            for key, count in delivery.selection.served:
                key.out += count
                key.delivered += count
        for arrivals in tick.arrivals.values():
            self._commit_arrivals(arrivals, tick.now)
        for queue, delayed in tick.promoted:
            for due, seq, lane, cost in delayed:
                lane.key.out -= 1
                queue.come_back(lane, seq, cost)
                queue.ledger.was_delayed(seq, due)
            self._want(queue)
        self._commit_returns(tick)
        self._commit_dead(tick)
        for queue, grant in tick.extended:
            queue.leases.add(grant)
            self._due_at = min(self._due_at, grant.expires_at)
        self._commit_acks(tick)
        for delivery in tick.delivered:
            self._commit_delivery(delivery, tick.now)
        for producer in tick.silent:
            self.state.producers.forget(producer)
        for producer, sequence in tick.producers.items():
            self.state.producers.advance(producer, sequence, tick.now)
        for queue, dedup_keys in tick.outlived:
            queue.dedup.forget(dedup_keys, tick.now)
        for change in tick.on_commit:
            change()
        if self._freed:
            self._note_idle(tick.now)
        self._want_throttled(tick.now)
        if tick.now >= self._due_at:
            self._due_at = self._earliest()

    def _look_up_due(self) -> None:
        self._due_at = self._earliest()

    def _earliest(self) -> int:
        """When the next lease or delay of any queue ends."""
        ends = ((queue.leases.next_expiry(), queue.schedule.next_due()) for queue in self.state.queues.values())
        return min((end for pair in ends for end in pair if end is not None), default=NEVER)

    def _commit_arrivals(self, arrivals: Arrivals, now: int) -> None:
        queue = arrivals.queue
        for seqs in arrivals.staged:
            queue.ledger.begin(seqs, now)
        for key, weight in arrivals.weights.items():
            key.weight = weight
            queue.weighs = queue.weighs or weight != 1
        for dedup_key, (seq, ends) in arrivals.dedup.items():
            queue.dedup.add(dedup_key, seq, ends)
        if arrivals.handed_on:
            queue.hand_on(arrivals.lanes[0], len(arrivals.seqs))
        else:
            queue.take_in(arrivals.lanes, arrivals.seqs, arrivals.costs)
            self._want(queue)
        queue.bound_spots()
        for delayed in arrivals.delayed:
            key = delayed[2].key
            key.out += 1
            queue.know(key)
            self._delay(queue, delayed)
        queue.counters.enqueued += len(arrivals.seqs) + len(arrivals.delayed)
        queue.large.update(arrivals.large)
        queue.costly = queue.costly or bool(arrivals.costs)
        self.recent.add(arrivals.records)

    def _commit_returns(self, tick: Tick) -> None:
        for back in tick.returned:
            queue = back.queue
            grant, (lane, _, cost) = queue.leases.release(back.seq)
            if back.attempts:
                queue.attempts[back.seq] = back.attempts
            queue.judge(back.seq, back.kind, uncounted=back.suspect)
            queue.ledger.came_back(back.seq, grant.token, back.due or tick.now)
            if back.due:
                self._delay(queue, (back.due, back.seq, lane, cost))
            else:
                lane.key.out -= 1
                queue.come_back(lane, back.seq, cost)
            queue.counters.count_failure(back.kind)
            self._free_credit(queue, grant.consumer, 1)

    def _commit_dead(self, tick: Tick) -> None:
        for dead in tick.dead:
            queue, graves = dead.queue, dead.graves
            grant, (lane, seq, _) = queue.leases.release(dead.seq)
            queue.attempts.pop(seq, None)
            queue.suspicion.pop(seq, None)
            lane.key.out -= 1
            queue.forget_if_gone(lane.key)
            if seq in queue.large:
                queue.large.remove(seq)
                graves.large.add(seq)
            queue.counters.count_failure(dead.kind)
            queue.counters.dead_lettered += 1
            self._free_credit(queue, grant.consumer, 1)
            graves.attempts[seq] = dead.attempts
            graves.know(dead.lane.key)
            graves.judge(seq, dead.kind)
            graves.come_back(dead.lane, seq, dead.cost)
            self._want(graves)

    def _commit_acks(self, tick: Tick) -> None:
        for acked in tick.acked:
            queue, seqs = acked.queue, acked.seqs
            attempts, suspicion = queue.attempts, queue.suspicion
            for consumer, messages in queue.leases.release_many(seqs):
                for lane, seq, _ in messages:
                    if attempts:
                        attempts.pop(seq, None)
                    if suspicion:
                        suspicion.pop(seq, None)
                    key = lane.key
                    key.out -= 1
                    if not key.out:
                        queue.forget_if_gone(key)
                self._free_credit(queue, consumer, len(messages))
            queue.bound_spots()
            if queue.large:
                queue.large.difference_update(seqs)
            queue.counters.acked += len(seqs)

    def _want(self, queue: QueueState) -> None:
        if len(queue.consumers):
            self._wanted[queue.name] = None

    def _want_throttled(self, now: int) -> None:
        """Look at the queues that wait for a throttle which may let something pass."""
        queues = self.state.queues
        due = [name for name in self.state.throttles.due(now) if name in queues and len(queues[name].consumers)]
        if due:
            self._wanted = in_turn(self._wanted, due)

    def _delay(self, queue: QueueState, delayed: Delayed) -> None:
        queue.schedule.add(delayed)
        self._due_at = min(self._due_at, delayed[0])

    def _free_credit(self, queue: QueueState, number: int, count: int) -> None:
        consumer = queue.consumers.find(number)
        if consumer is not None:
            consumer.in_flight -= count
            if consumer.trying and not consumer.in_flight:
                consumer.stop_trying()
        if queue.ready or len(queue.suspects):
            self._want(queue)
        else:
            self._freed[queue.name] = queue

    def _note_idle(self, now: int) -> None:
        """Whether queues without messages now have a consumer that waits. A tick would find nothing else to do."""
        for queue in self._freed.values():
            queue.ledger.idle.set(queue.record.paused or not queue.consumers.with_credit(), now)
        self._freed.clear()

    def _commit_delivery(self, delivery: Delivery, now: int) -> None:
        queue = delivery.queue
        count = len(delivery.selection.messages)
        if delivery.trial:
            queue.suspects.forget(delivery.selection)
        else:
            queue.ready -= count
        queue.counters.delivered += count
        queue.pace.add(count, now)
        cost = sum([cost for _, _, cost in delivery.selection.messages]) if queue.costly else count
        queue.cost_pace.add(cost, now)
        queue.ledger.deliver(delivery.selection.messages, queue.attempts, now)
        for key in delivery.selection.trace.standings:
            queue.ledger.note_throttles(key, now)
        for key, _, _ in () if delivery.trial else delivery.selection.before:
            if not key.out:
                queue.forget_if_gone(key)
        for consumer, grant in delivery.grants:
            queue.leases.add(grant)
            self._due_at = min(self._due_at, grant.expires_at)
            consumer.in_flight += len(grant.members)
            if not delivery.trial:
                consumer.trials_left = TRIALS
            consumer.deliver(grant)
        if delivery.last is not None:
            queue.consumers.serve_after(delivery.last)

    def _roll_back(self, tick: Tick) -> None:
        for delivery in reversed(tick.delivered):
            if delivery.trial:
                delivery.queue.suspects.drr.rollback(delivery.selection)
                for consumer, _ in delivery.grants:
                    consumer.stop_trying()
                self._wanted[delivery.queue.name] = None
            elif not delivery.straight:
                delivery.queue.drr.rollback(delivery.selection)
                self._wanted[delivery.queue.name] = None
        self._want_throttled(tick.now)
        for queue, delayed in tick.promoted:
            for item in delayed:
                queue.schedule.add(item)


def _nothing() -> None:
    pass


def in_turn(wanted: dict[str, None], due: list[str]) -> dict[str, None]:
    """Queues that are wanted, with those that are due among them, and these in their order.

    The places of all others stay as they are: a queue that waits for a throttle does not put off one that does not, nor
    is it put off by one that waits for the same throttle and was served last.
    """
    turn = iter(due)
    known = set(due)
    return {next(turn) if name in known else name: None for name in {**wanted, **dict.fromkeys(due)}}
