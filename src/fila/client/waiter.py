"""Requests that wait for an answer, and their deadlines."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

from fila.client.errors import FilaError
from fila.client.reply import Reply


@dataclass(slots=True, eq=False)
class Waiter:
    """One request of one caller. `reply` is set once: by the answer, by the deadline, or when the caller gives up."""

    reply: Reply
    deadline: float

    def waits(self) -> bool:
        return not self.reply.done()

    def answer(self, result: object) -> None:
        if not self.reply.done():
            self.reply.set_result(result)

    def fail(self, error: FilaError) -> None:
        """Each waiter gets its own copy of the error, since an error collects the traceback of its raiser."""
        if not self.reply.done():
            self.reply.set_exception(copy(error))


def expire(waiters: Iterable[Waiter], now: float, error: FilaError) -> float | None:
    """Fail those whose deadline has passed. Returns the earliest deadline of the others."""
    waiting = [waiter for waiter in waiters if waiter.waits()]
    for waiter in waiting:
        if waiter.deadline <= now:
            waiter.fail(error)
    return min((waiter.deadline for waiter in waiting if waiter.deadline > now), default=None)
