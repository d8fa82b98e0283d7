"""How long each piece of work kept the event loop: measured where the work begins, told to whoever wants to know.

A turn is what runs between two moments at which the event loop can look for other work. Nobody else is served
meanwhile, so a server is as responsive as its longest turn is short.
"""

from collections.abc import Callable, Coroutine
from time import monotonic_ns
from types import TracebackType
from typing import Any

OnTurn = Callable[[str, int, Callable[[], str]], None]
"""Told at the end of a turn: its kind, when it began (of the monotonic clock, in nanoseconds), and who says what it
did. Asked only if somebody wants to know, before the next turn begins."""


def ignore_turn(_kind: str, _began: int, _describe: Callable[[], str]) -> None:
    """For those whom nobody watches."""


def _describe_nothing() -> str:
    return "a call that has ended"


class TimedCoroutine(Coroutine[Any, Any, None]):
    """A coroutine, each of whose steps is a turn of the kind "call"."""

    __slots__ = ("_coroutine", "_describe", "_on_turn")

    def __init__(self, coroutine: Coroutine[Any, Any, None], on_turn: OnTurn, describe: Callable[[], str]) -> None:
        self._coroutine = coroutine
        self._on_turn = on_turn
        self._describe = describe

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> Any:
        del value, trace  # asyncio throws an exception alone
        return self._step(self._coroutine.throw, kind)

    def _step(self, step: Callable[[Any], Any], argument: Any) -> Any:
        began = monotonic_ns()
        try:
            waits_for = step(argument)
        except BaseException:  # it has ended
            self._on_turn("call", began, self._describe)
            self._describe = _describe_nothing  # the call that it asked holds it: no cycle is left to be collected
            raise
        self._on_turn("call", began, self._describe)
        return waits_for

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self._coroutine.__await__()
