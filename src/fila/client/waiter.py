"""Who waits for an answer, and until when."""

from collections.abc import Iterable
from dataclasses import dataclass

from fila.client.errors import FilaError
from fila.client.reply import Reply


@dataclass(slots=True, eq=False)
class Waiter:
    """One request of one caller. `reply` is set once: by the answer, by the deadline, or by the caller giving up."""

    reply: Reply
    deadline: float

    def waits(self) -> bool:
        return not self.reply.done()

    def answer(self, result: object) -> None:
        if not self.reply.done():
            self.reply.set_result(result)

    def fail(self, error: FilaError) -> None:
        """Each waiter raises an error of its own, for an error collects the traceback of whoever raises it."""
        if not self.reply.done():
            self.reply.set_exception(type(error)(*error.args))


def expire(waiters: Iterable[Waiter], now: float, error: FilaError) -> float | None:
    """Fail those whose deadline has come. Returns the earliest deadline of the others."""
    waiting = [waiter for waiter in waiters if waiter.waits()]
    for waiter in waiting:
        if waiter.deadline <= now:
            waiter.fail(error)
    return min((waiter.deadline for waiter in waiting if waiter.deadline > now), default=None)
