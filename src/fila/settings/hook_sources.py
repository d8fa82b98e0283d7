"""A queue's script that is given as two sources, one for each hook.

A queue has one script. Each source becomes a block of that script, so that local names stay apart; global names are
shared. Errors name lines of the script, which are translated back into lines of the sources.
"""

import re
from dataclasses import dataclass

_LINE = re.compile(r"script:(\d+)")


@dataclass(frozen=True, slots=True)
class HookSources:
    """The source of `on_enqueue` and that of `on_failure`; None where there is none."""

    on_enqueue: str | None = None
    on_failure: str | None = None

    @property
    def script(self) -> str:
        """The one script. A single source is used as it is."""
        if self.on_enqueue is None or self.on_failure is None:
            return self.on_enqueue or self.on_failure or ""
        if self.on_enqueue == self.on_failure:  # one file that defines both
            return self.on_enqueue
        return f"do {self.on_enqueue}\nend do {self.on_failure}\nend\n"

    def located(self, text: str) -> str:
        """An error text in which lines of the script are replaced by lines of the sources."""
        return _LINE.sub(lambda found: self._source_line(int(found[1])), text)

    def _source_line(self, line: int) -> str:
        first = None if self.on_enqueue is None else self.on_enqueue.count("\n") + 1
        if first is not None and (line <= first or self.on_failure in {None, self.on_enqueue}):
            return f"on_enqueue:{line}"
        return f"on_failure:{line - (first or 0)}"
