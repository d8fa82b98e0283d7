"""What is wrong with a broker, in sentences that are true, those first from which most messages suffer. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fila.client import QueueInfo, QueueStats, ServerInfo
from fila.console import words

#: Waiting is a problem from this age on.
_OLD_S = 30.0
_DISK_FACTOR = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend."""

    queue: str
    #: What is wrong, without the name of the queue.
    text: str
    #: How many messages suffer from it.
    suffer: int
    #: "stopped" (nothing goes on), "slow" or "note".
    weight: str
    #: What the button does: "resume", or the page that it opens.
    mend: str
    #: What the mending is about, such as a throttle key.
    subject: str = ""

    @property
    def rank(self) -> tuple[int, int]:
        return ("stopped", "slow", "note").index(self.weight), -self.suffer


def problems(
    queues: Sequence[QueueInfo], stats: dict[str, QueueStats], server: ServerInfo | None, now: datetime
) -> list[Problem]:
    """All of them, the worst first."""
    found = [problem for name, each in stats.items() for problem in _of_queue(name, each, now)]
    found += [
        Problem(one.name, f"{words.plural(one.depth, 'dead letter')} to look at", one.depth, "note", "dead-letters")
        for one in queues
        if not one.dead_letter_queue and one.depth
    ]
    if server is not None and server.store.free_bytes < _DISK_FACTOR * server.store.min_free_bytes:
        free, least = words.size(server.store.free_bytes), words.size(server.store.min_free_bytes)
        text = f"the disk is almost full: {free} are free, and producers are refused below {least}"
        found.append(Problem("", text, 1 << 62, "stopped", "settings"))
    return sorted(found, key=lambda problem: problem.rank)


def headline(found: Iterable[Problem], queues: Sequence[QueueInfo]) -> str:
    """One sentence about all of it."""
    worst = next((problem for problem in found if problem.weight != "note"), None)
    if worst is not None:
        text = f"{words.visible(worst.queue, 60)}: {worst.text}" if worst.queue else worst.text
        return text[:1].upper() + text[1:] if not worst.queue else text
    if not queues:
        return "No queue yet"
    return "All queues flow"


def _of_queue(name: str, stats: QueueStats, now: datetime) -> Iterable[Problem]:
    summary = stats.summary
    if not summary.dead_letter_queue:
        return
    waiting = summary.depth - summary.delayed
    old = (now - stats.oldest_at).total_seconds() if stats.oldest_at is not None else 0.0
    since = f" since {words.seconds(old)}" if old >= 1 else ""
    waits = f"{waiting:,} wait{'s' if waiting == 1 else ''}{since}"
    if summary.paused and waiting:
        yield Problem(name, f"paused, {waits}", waiting, "stopped", "resume")
    elif waiting and not summary.consumers and not stats.groups:
        yield Problem(name, f"nobody consumes, {waits}", waiting, "stopped", "queue")
    elif waiting and old >= _OLD_S:
        yield _slow(name, stats, waiting, waits)
    if stats.script_error:
        yield Problem(name, "its script cannot be loaded, so messages take the defaults", waiting, "slow", "hooks")
    for hook in stats.hooks:
        if hook.bypassed_until is not None:
            text = f"the hook {hook.hook} fails and is bypassed: {words.visible(hook.last_error, 80)}"
            yield Problem(name, text, waiting, "slow", "hooks")


def _slow(name: str, stats: QueueStats, waiting: int, waits: str) -> Problem:
    """Why messages are old although somebody consumes."""
    held = max(stats.throttles, key=lambda one: one.parked_keys, default=None)
    if not stats.runnable and held is not None and held.parked_keys:
        keys = words.plural(held.parked_keys, "key")
        text = f"the throttle {words.visible(held.key, 60)} holds {keys} up, {waits}"
        return Problem(name, text, waiting, "slow", "throttles", held.key)
    if stats.consumers and not any(one.credit for one in stats.consumers):
        text = f"{words.plural(len(stats.consumers), 'consumer')} without credit, {waits}"
        return Problem(name, text, waiting, "slow", "queue")
    return Problem(name, f"more comes than goes, {waits}", waiting, "slow", "queue")
