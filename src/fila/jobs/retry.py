"""What becomes of a job that failed: a decision as a value, made without running or storing anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fila.jobs.errors import Defer, InvalidJob, InvalidSettings, Reject, Retry
from fila.jobs.intake import MAX_DELAY_SECONDS, checked_delay
from fila.jobs.settings import JobsSection
from fila.settings import number, seconds, whole_number

Random = Callable[[], float]  #: a number from 0 up to 1


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Try again, as the next attempt."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class DeferFor:
    """Try again, as the same attempt."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Bury it."""

    reason: str


Decision = RetryIn | DeferFor | GiveUp


@dataclass(frozen=True, slots=True)
class RetryPolicy(JobsSection):
    """Backoff: waits `base * factor ** (attempt - 1)` seconds, never more than `cap`, spread by `jitter`."""

    #: Tries in all, the first included.
    max_attempts: int = whole_number(5, 1)
    base_seconds: float = seconds(1.0, low=0)
    factor: float = number(2.0, 0)
    cap_seconds: float = seconds(300.0, low=0)
    #: Randomly shorten or lengthen a wait by up to this fraction, so that jobs that failed together return apart.
    jitter: float = number(0.1, 0, 1)
    #: Errors that no retry helps against.
    never: tuple[type[BaseException], ...] = ()

    def wait_seconds(self, attempt: int, random: Random) -> float:
        """How long to wait after this attempt failed."""
        try:
            wait = min(self.cap_seconds, self.base_seconds * self.factor ** (attempt - 1))
        except OverflowError:
            wait = self.cap_seconds
        return min(self.cap_seconds, wait * (1 + self.jitter * (2 * random() - 1)))

    def decide(self, attempt: int, error: BaseException, random: Random) -> Decision:
        """What the error of this attempt means. What a handler says itself goes before the policy.

        Raises InvalidSettings when a handler asks for a wait that cannot be.
        """
        if isinstance(error, Defer):
            return DeferFor(_asked_seconds(error, error.delay_seconds))
        asked = error.delay_seconds if isinstance(error, Retry) else None
        asked = None if asked is None else _asked_seconds(error, asked)
        reason = describe(error)
        if isinstance(error, (Reject, *self.never)):
            return GiveUp(reason)
        if attempt >= self.max_attempts:
            return GiveUp(f"{reason} (attempt {attempt} of {self.max_attempts})")
        return RetryIn(self.wait_seconds(attempt, random) if asked is None else asked)


def describe(error: BaseException) -> str:
    """The error in one line, for logs and dead letters."""
    return f"{type(error).__name__}: {text_of(error)}"[:1000]


def text_of(error: BaseException) -> str:
    """What the error says of itself, if it can."""
    try:
        return str(error)
    except Exception as failed:  # noqa: BLE001  the error at hand matters, not that one
        return f"(no text: its __str__ raised {type(failed).__name__})"


def _asked_seconds(error: BaseException, seconds: float) -> float:
    try:
        return checked_delay(max(seconds, 0.0))
    except (TypeError, ValueError, OverflowError, InvalidJob) as wrong:
        name = type(error).__name__
        raise InvalidSettings(
            f"{name}(delay_seconds={seconds!r}): expected a number of seconds, at most {MAX_DELAY_SECONDS:.0f}"
        ) from wrong
