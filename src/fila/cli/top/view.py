"""What a live view shows, and what keys change about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fila.cli.top.samples import KEY_SORTS, QUEUE_ORDERS


@dataclass(frozen=True, slots=True)
class View:
    """All queues, or one of them."""

    queue: str | None = None
    """The one that is shown; None: all"""
    sort: str = KEY_SORTS[0]
    order: str = QUEUE_ORDERS[0]
    home: str | None = None
    """The queue that the view began with, if it was one"""
    selected: str = ""
    """Of all queues, the one that a key opens; empty or gone: the first"""

    def press(self, key: str, names: Sequence[str]) -> View:
        """The view after a key. `names` are all queues in the order in which they are shown. Other keys do nothing."""
        actions = _IN_A_QUEUE if self.queue is not None else _AMONG_QUEUES
        action = actions.get(key)
        return self if action is None else action(self, names)

    def marked(self, names: Sequence[str]) -> str:
        """The queue that a key would open."""
        if self.selected in names:
            return self.selected
        return names[0] if names else ""

    @property
    def help(self) -> tuple[str, ...]:
        """What the keys do."""
        if self.queue is not None:
            return "q quit", f"s sort: {self.sort}", "Esc all queues"
        return "q quit", f"s sort: {self.order}", "up, down choose", "Enter open"


def _next(choices: Sequence[str], now: str) -> str:
    return choices[(choices.index(now) + 1) % len(choices)]


def _move(steps: int) -> Callable[[View, Sequence[str]], View]:
    def move(view: View, names: Sequence[str]) -> View:
        if not names:
            return view
        place = names.index(view.marked(names)) + steps
        return replace(view, selected=names[max(0, min(place, len(names) - 1))])

    return move


def _open(view: View, names: Sequence[str]) -> View:
    marked = view.marked(names)
    return replace(view, queue=marked, selected=marked) if names else view


_IN_A_QUEUE: dict[str, Callable[[View, Sequence[str]], View]] = {
    "s": lambda view, _: replace(view, sort=_next(KEY_SORTS, view.sort)),
    "esc": lambda view, _: replace(view, queue=None, selected=view.queue or ""),
}
_IN_A_QUEUE |= dict.fromkeys(("left", "backspace"), _IN_A_QUEUE["esc"])
_AMONG_QUEUES: dict[str, Callable[[View, Sequence[str]], View]] = {
    "s": lambda view, _: replace(view, order=_next(QUEUE_ORDERS, view.order)),
    "up": _move(-1),
    "k": _move(-1),
    "down": _move(1),
    "j": _move(1),
    "page up": _move(-10),
    "page down": _move(10),
    "enter": _open,
    "right": _open,
}
