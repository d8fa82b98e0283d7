"""The live view: samples are taken on a thread, so that keys act at once."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from fila.cli.top.broker_screen import LINES, broker_screen
from fila.cli.top.figures import ALARM, DIM
from fila.cli.top.grid import Cell, lines
from fila.cli.top.queue_screen import queue_screen
from fila.cli.top.samples import Sample, Samples
from fila.cli.top.screen import Screen
from fila.cli.top.view import View
from fila.client import FilaTimeoutError, QueueNotFoundError, UnavailableError


class Live:
    """Refreshes a screen until q is pressed."""

    def __init__(self, samples: Samples, interval: float, most: int | None) -> None:
        self._samples = samples
        self._interval = interval
        self._most = most
        self._screen = Screen()
        self._view = View(samples.queue, samples.sort, home=samples.queue)
        self._looked_at = self._shown = self._view
        """The view that the next sample is for, and the one that the last sample was for"""
        self._asked: tuple[object, ...] = ()
        self._look: Future[Sample] | None = None
        self._due = 0.0
        self._trouble = ""
        """Why the last sample is not newer"""
        self._notice = ""
        """What is said until a key is pressed"""

    def run(self) -> None:
        """Raises FilaError when the first sample cannot be taken, or the queue to be shown is gone."""
        self._prepare()
        self._samples.take()
        self._due = time.monotonic() + self._interval
        pool = ThreadPoolExecutor(1)
        try:
            with self._screen:
                self._draw()
                while self._step(pool):
                    self._draw()
        finally:
            pool.shutdown(wait=False)

    def _step(self, pool: ThreadPoolExecutor) -> bool:
        """Wait for what happens next, and act on it. Returns False at the end."""
        now = time.monotonic()
        if self._look is None and (now >= self._due or (self._stale() and not self._trouble)):
            self._prepare()
            self._due = now + self._interval
            self._look = pool.submit(self._samples.look)
            self._look.add_done_callback(lambda _: self._screen.wake())
        for key in self._screen.wait(None if self._look is not None else max(0.0, self._due - now)):
            if key == "q":
                return False
            self._notice = ""
            self._view = self._view.press(key, self._names())
        if self._look is not None and self._look.done():
            self._take_in(self._look)
            self._look = None
        return True

    def _prepare(self) -> None:
        """The next sample is for the present view and size."""
        samples, view = self._samples, self._view
        samples.queue, samples.sort, samples.order, samples.selected = view.queue, view.sort, view.order, view.selected
        room = max(1, self._screen.size[1] - LINES - 1)
        samples.keys = room if self._most is None else min(room, self._most)
        self._asked = self._wish()
        self._looked_at = view

    def _wish(self) -> tuple[object, ...]:
        return self._view.queue, self._view.sort, self._view.order, self._screen.size

    def _stale(self) -> bool:
        """Whether the last sample does not have what is to be shown."""
        if self._wish() != self._asked:
            return True
        last = self._samples.last
        marked = self._view.marked(self._names())
        return self._view.queue is None and last is not None and bool(marked) and marked not in last.stats

    def _take_in(self, look: Future[Sample]) -> None:
        try:
            self._samples.keep(look.result())
        except (UnavailableError, FilaTimeoutError):
            self._trouble = "The broker does not answer. Trying again."
        except QueueNotFoundError:
            if self._samples.queue != self._view.queue:
                return  # it is left already
            if self._view.queue == self._view.home:
                raise
            self._notice = f'Queue "{self._view.queue}" is gone.'
            self._view = self._view.press("esc", ())
        else:
            self._trouble = ""
            self._shown = self._looked_at

    def _names(self) -> list[str]:
        last = self._samples.last
        return [] if last is None else [queue.name for queue in last.queues]

    def _draw(self) -> None:
        columns, rows = self._screen.size
        shown = self._shown if self._view.queue != self._shown.queue else self._view
        body = screen_of(self._samples, shown, columns, rows - 1)[: rows - 1]
        said = [Cell(each, ALARM) for each in (self._trouble, self._notice) if each]
        foot = lines([*said, *(Cell(each, DIM) for each in self._view.help)], columns)[0]
        self._screen.draw([*body, *[""] * (rows - 1 - len(body)), foot])


def screen_of(samples: Samples, view: View, width: int | None, height: int | None) -> list[str]:
    """The lines of the last sample, which was taken for this view."""
    now = samples.last
    if now is None:
        return []
    if view.queue is not None:
        return queue_screen(samples, now, view.queue, width, height)
    marked = "" if height is None else view.marked([queue.name for queue in now.queues])
    return broker_screen(samples, now, marked, width)
