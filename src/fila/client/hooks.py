"""The script of a queue that is written as two: one file for each hook.

A queue has one script. Two become one with each in a block of its own, so that their local names stay apart; global
names are shared. The broker names lines of the whole, which are translated back into lines of the two.
"""

import re
from dataclasses import dataclass

_LINE = re.compile(r"script:(\d+)")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The source of `on_enqueue` and that of `on_failure`; None where there is none."""

    on_enqueue: str | None = None
    on_failure: str | None = None

    @property
    def script(self) -> str:
        """What the broker is given. A hook that is alone stands as it was written."""
        if self.on_enqueue is None or self.on_failure is None:
            return self.on_enqueue or self.on_failure or ""
        if self.on_enqueue == self.on_failure:  # one file that defines both
            return self.on_enqueue
        return f"do {self.on_enqueue}\nend do {self.on_failure}\nend\n"

    def located(self, text: str) -> str:
        """What the broker says of the script, with the lines of the source that they come from."""
        return _LINE.sub(lambda found: self._place(int(found[1])), text)

    def _place(self, line: int) -> str:
        first = None if self.on_enqueue is None else self.on_enqueue.count("\n") + 1
        if first is not None and (line <= first or self.on_failure in {None, self.on_enqueue}):
            return f"on_enqueue:{line}"
        return f"on_failure:{line - (first or 0)}"
