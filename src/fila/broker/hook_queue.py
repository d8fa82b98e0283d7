"""Commands that wait until hooks have been asked about their messages, as far as the budget of hooks goes.

Asking comes before planning: a batch of thousands whose hook takes milliseconds would otherwise hold up everybody. So
hooks are asked a little in each tick, and a command is planned when all of its messages are judged. Whoever needs no
hook does not wait.

Rules:
- Commands stand in lines, one for each queue whose hook they need and one for their producer. A command is asked about
  when it is the first in all of its lines. So batches of one queue, and of one producer, keep their order; the first to
  come is never held up.
- Turns go to the queue whose hooks have used the least time, so that a slow hook delays no other queue's for long.
- A line has a length: then producers of that queue are told to come again later, and nobody else is.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from fila.broker.arrival import ask_on_enqueue_ahead
from fila.broker.commands import Command, CreateQueue, Enqueue, Settle, StageEnqueue, UpdateQueue
from fila.broker.scripts import SCRIPT_SETTINGS
from fila.broker.settle import ask_on_failure_ahead
from fila.broker.state import BrokerState
from fila.core.errors import Overloaded, quoted
from fila.storage.base import Storage

SLICE_NS = 1_000_000
"""How long one queue's hooks are asked before it is another's turn."""
TURN_NS = 10_000
"""What a turn counts for beside the time of its hooks."""
PART_OF_ALL, PART_OF_ONE = 2, 8
"""Which part of all messages that may wait, may wait for hooks: in all lines, and in one."""

PRODUCER = "\0"
"""What the line of a producer begins with; the name of no queue does."""


@dataclass(slots=True)
class Waiting:
    """A command that waits for hooks."""

    command: Command
    lines: list[str]
    """The first is the one whose turns it takes."""
    questions: Iterator[None] | None = None
    """Asks one hook after each step."""


class HookQueue:
    """The lines, and whose turn it is."""

    def __init__(self, state: BrokerState, store: Storage, max_messages: int) -> None:
        self._state = state
        self._store = store
        self._budget = state.scripts.budget
        self._max_messages = max_messages
        self._lines: dict[str, deque[Waiting]] = {}
        self._sizes: dict[str, int] = {}
        """Messages in each line"""
        self._turns: list[tuple[int, int, Waiting]] = []
        """Those that are the first in all their lines: a heap by the time that the hooks of their queue have used"""
        self._used: dict[str, int] = {}
        """That time, of each queue. Who comes new or after a while begins with what the last one had used."""
        self._level = 0
        """What the queue had used that had its turn last"""
        self._number = 0
        self._now = 0
        self.messages = 0
        """Of all commands that wait"""
        self.asked: dict[str, None] = {}
        """Whose hooks were asked since somebody last cleared it"""

    def lines_of(self, command: Command) -> list[str]:
        """Where a command has to wait; nothing when it can be planned at once."""
        match command:
            case Enqueue() | StageEnqueue():
                placing = self._state.placing
                if not (placing or self._lines):
                    return []
                lines = sorted(placing.intersection([message.queue for message in command.messages]))
                if isinstance(command, Enqueue) and command.produced.producer:
                    if lines and command.produced.place <= self._state.producers.last(command.produced.producer):
                        lines = []  # it is answered again
                    if lines or PRODUCER + command.produced.producer in self._lines:
                        lines.append(PRODUCER + command.produced.producer)
                return lines
            case Settle(nacks=nacks) if nacks and self._state.judging:
                return sorted(self._state.judging.intersection({nack.queue for nack in nacks}))
            case CreateQueue(record=record) if record.script:
                return self._lines_to_compile(record.name)
            case UpdateQueue(name=name, changes=changes) if not SCRIPT_SETTINGS.isdisjoint(changes):
                return self._lines_to_compile(name)
        return []

    def _lines_to_compile(self, name: str) -> list[str]:
        return [] if self._budget.left and name not in self._lines else [name]

    def check(self, command: Command) -> None:
        """Raises Overloaded for a command that would make a line too long."""
        if not self.messages or not isinstance(command, Enqueue | StageEnqueue):
            return
        for line in self.lines_of(command):
            if not line.startswith(PRODUCER) and self._sizes.get(line, 0) >= self._max_messages // PART_OF_ONE:
                raise Overloaded(f"too many messages wait for the hook of queue {quoted(line)}; retry later")
            if self.messages >= self._max_messages // PART_OF_ALL:
                raise Overloaded("too many messages wait for hooks; retry later")

    def waiting_for(self, queue: str) -> int:
        """Messages of requests that wait for a queue's hooks."""
        return self._sizes.get(queue, 0)

    def add(self, command: Command, lines: list[str]) -> None:
        """Let a command wait in these lines."""
        waiting = Waiting(command, lines)
        self.messages += command.size
        for name in lines:
            self._lines.setdefault(name, deque()).append(waiting)
            self._sizes[name] = self._sizes.get(name, 0) + command.size
        self._offer(waiting)

    def ask(self, now: int) -> list[Command]:
        """Ask hooks as far as the budget goes. Returns the commands whose messages are all judged, in their order."""
        ready: list[Command] = []
        budget = self._budget
        while self._turns and budget.left:
            used, _, waiting = heappop(self._turns)
            self._level = max(self._level, used)
            self.asked[waiting.lines[0]] = None
            before = budget.spent_ns
            done = self._take_turn(waiting, now, before + SLICE_NS)
            self._used[waiting.lines[0]] = used + budget.spent_ns - before + TURN_NS
            if not done:
                self._offer(waiting)
                continue
            ready.append(waiting.command)
            self._leave(waiting)
            if isinstance(waiting.command, CreateQueue | UpdateQueue):
                break  # it is compiled when it is planned, and nobody knows how long that takes
        if self._turns and not budget.left:
            budget.exhausted += 1
        if len(self._used) > 2 * len(self._lines) + 64:
            self._used = {name: used for name, used in self._used.items() if used > self._level}
        return ready

    def take_all(self) -> list[Command]:
        """Everything that waits, which does so no longer."""
        found = {id(one): one.command for line in self._lines.values() for one in line}
        self._lines.clear()
        self._sizes.clear()
        self._turns.clear()
        self.messages = 0
        return list(found.values())

    def _take_turn(self, waiting: Waiting, now: int, until_ns: int) -> bool:
        """Ask about a command's messages for a while. Returns whether all of them are judged."""
        self._now = now
        if waiting.questions is None:
            waiting.questions = self._questions(waiting.command)
        budget = self._budget
        return all(budget.left and budget.spent_ns < until_ns for _ in waiting.questions)

    def _questions(self, command: Command) -> Iterator[None]:
        if isinstance(command, Enqueue | StageEnqueue):
            return ask_on_enqueue_ahead(self._state, command, self._time)
        if isinstance(command, Settle):
            return ask_on_failure_ahead(self._state, self._store, command, self._time)
        return iter(())

    def _time(self) -> int:
        return self._now

    def _leave(self, waiting: Waiting) -> None:
        self.messages -= waiting.command.size
        firsts: dict[int, Waiting] = {}
        for name in waiting.lines:
            line = self._lines[name]
            line.popleft()
            self._sizes[name] -= waiting.command.size
            if line:
                firsts[id(line[0])] = line[0]
            else:
                del self._lines[name], self._sizes[name]
        for first in firsts.values():
            self._offer(first)

    def _offer(self, waiting: Waiting) -> None:
        """Let a command have a turn if it is the first in all of its lines."""
        if all(self._lines[name][0] is waiting for name in waiting.lines):
            self._number += 1
            used = max(self._used.get(waiting.lines[0], 0), self._level)
            heappush(self._turns, (used, self._number, waiting))
