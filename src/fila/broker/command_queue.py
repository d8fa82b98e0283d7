"""The command queue: what was asked of the engine and is not planned yet.

Commands are planned in the order in which they came, with two exceptions: those that need hooks wait in `HookQueue`
until their messages are judged, and those that come from there, or are tried again, go before all others.
"""

from collections import deque

from fila.broker.commands import UNASKED, Command, DropOldest, bytes_of
from fila.broker.hook_queue import HookQueue
from fila.broker.operations import OPERATIONS
from fila.broker.state import BrokerState
from fila.config import SchedulerConfig
from fila.core.errors import Overloaded
from fila.storage.base import Storage


class CommandQueue:
    """Bounded by messages and bytes: what does not fit is refused with Overloaded."""

    def __init__(self, state: BrokerState, store: Storage, config: SchedulerConfig) -> None:
        self._config = config
        self._commands: deque[Command] = deque()
        self._first: deque[Command] = deque()
        """Those that go before all others"""
        self.hooks = HookQueue(state, store, config.max_queued_commands)
        self._set_aside = 0
        """Commands of this tick that were let wait for hooks"""
        self._may_ask = True
        """Whether there is time for hooks in this tick"""
        self._budget = state.scripts.budget
        self.messages = 0
        """Of all commands that wait, for hooks too"""
        self.bytes = 0
        self.dropping: set[str] = set()
        """Queues that wait to drop messages"""
        self._put_back_at: int | None = None
        """When those were planned that are tried again before all others"""
        self._came: deque[list[int]] = deque()
        """Of those that came while a tick was in flight: how many, and when that tick was planned"""

    def add(self, command: Command, others: int) -> None:
        """Raises Overloaded when too much is waiting, counting `others` messages that wait elsewhere."""
        config = self._config
        full = self.messages + others >= config.max_queued_commands or self.bytes >= config.max_queued_bytes
        if full and not isinstance(command, UNASKED):
            raise Overloaded("too many requests are waiting in the broker; retry later")
        self.hooks.check(command)
        self._count(command, 1)
        self._commands.append(command)

    def begin_tick(self, now: int) -> None:
        """Ask the hooks that were not asked in the last tick."""
        self._may_ask = self._budget.begin()
        self._set_aside = 0
        self.hooks.asked.clear()
        self._ask(now)

    def peek(self, now: int) -> Command | None:
        """What is planned next. Commands that need hooks are asked about, and wait while there is no time for it."""
        while not self._first and self._commands and self._set_aside < self._config.max_tick_messages:
            command = self._commands[0]
            lines = self.hooks.lines_of(command)
            if not lines:
                return command
            self.hooks.add(self._next(), lines)
            self._set_aside += 1
            if not self._commands:
                self._ask(now)
        return self._first[0] if self._first else None

    def pop(self) -> Command:
        if self._first:
            command = self._first.popleft()
            if not self._first:
                self._put_back_at = None
        else:
            command = self._next()
        self._count(command, -1)
        return command

    def is_next_alone(self, now: int) -> bool:
        """Whether the next command has a tick to itself."""
        command = self.peek(now)
        return command is not None and OPERATIONS[type(command)].alone

    def put_back(self, commands: list[Command], came_by: int) -> None:
        """Have commands done again, before all others and in their order. They came by then, or later."""
        if commands:
            self._put_back_at = came_by
        self._first.extendleft(reversed(commands))
        for command in commands:
            self._count(command, 1)

    def try_later(self, command: Command) -> None:
        """Have a command tried again. It goes before other commands, but nobody waits for it."""
        self._commands.appendleft(command)
        if self._came:
            self._came[0][0] += 1
        self._count(command, 1)

    def note_flight(self, since: int) -> None:
        """A tick that was planned then was in flight. What came meanwhile came then at the earliest."""
        count = len(self._commands) - sum(count for count, _ in self._came)
        if count:
            self._came.append([count, since])

    def came_by(self, now: int) -> int:
        """What is planned next came then, or later."""
        came = self._came[0][1] if self._came else now
        return came if self._put_back_at is None else min(came, self._put_back_at)

    def take_all(self) -> list[Command]:
        """All that wait, which do so no longer."""
        commands = [*self._first, *self._commands]
        self._first.clear()
        self._commands.clear()
        self._came.clear()
        for command in commands:
            self._count(command, -1)
        return commands + self.take_from_hooks()

    def take_from_hooks(self) -> list[Command]:
        """All that wait for hooks, which do so no longer."""
        commands = self.hooks.take_all()
        for command in commands:
            self._count(command, -1)
        return commands

    def __bool__(self) -> bool:
        """Whether there is something to plan."""
        return bool(self._first or self._commands)

    @property
    def hooks_wait_ns(self) -> int | None:
        """How long until hooks may be asked again about what waits for them; None when nothing does."""
        return self._budget.wait_ns() if self.hooks.messages else None

    @property
    def is_urgent(self) -> bool:
        """Whether somebody waits who was promised the next tick."""
        return bool(self._first) or self.hooks_wait_ns == 0

    @property
    def has_clients(self) -> bool:
        """Whether a client waits for something that can be planned."""
        return bool(self._first) or any(not isinstance(command, UNASKED) for command in self._commands)

    def _next(self) -> Command:
        if self._came:
            self._came[0][0] -= 1
            if not self._came[0][0]:
                self._came.popleft()
        return self._commands.popleft()

    def _ask(self, now: int) -> None:
        if self._may_ask and self.hooks.messages and not self._first:
            self._first.extend(self.hooks.ask(now))

    def _count(self, command: Command, sign: int) -> None:
        self.messages += sign * command.size
        self.bytes += sign * bytes_of(command)
        if isinstance(command, DropOldest):
            (self.dropping.add if sign > 0 else self.dropping.discard)(command.queue)
