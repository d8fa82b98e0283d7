"""A circuit breaker: stops calls to a service that keeps failing, then probes it with a few calls.

    CLOSED     every call may pass. `failure_threshold` failures in a row, or `rate_limit_threshold` rate limits in a
               row, open it; a success resets both counts.
    OPEN       no call may pass until the cooldown is over.
    HALF_OPEN  `half_open_probe_count` calls may pass. When all of them succeed it closes, when one fails it opens. If
               their answers do not come within another cooldown, as many may pass again.

Each change of state begins a new epoch. A call reports with the epoch in which it was let through, and reports of an
earlier epoch are ignored: an old failure does not open a breaker that has just closed, an old success closes none.

`step` is the whole state machine, a pure function. `LocalStore` keeps the state in this process; `RedisBreakerStore` in
Redis, where a script takes the same steps for many processes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from fila.jobs.errors import CircuitOpen, Defer, RateLimited, Reject
from fila.jobs.events import BreakerChanged, Hook, emit
from fila.jobs.intake import MAX_DELAY_SECONDS
from fila.jobs.settings import JobsSection
from fila.settings import seconds, whole_number

logger = logging.getLogger(__name__)


class State(StrEnum):
    """Whether calls may pass."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Op(StrEnum):
    """The inputs of the state machine."""

    ASK = "ask"
    SUCCESS = "success"
    FAILURE = "failure"
    RATE_LIMIT = "rate_limit"
    RELEASE = "release"  #: the call said nothing about the other side


@dataclass(frozen=True, slots=True)
class BreakerSettings(JobsSection):
    """When it opens, and for how long."""

    failure_threshold: int = whole_number(5, 1)
    rate_limit_threshold: int = whole_number(3, 1)
    open_cooldown_seconds: float = seconds(30.0)
    half_open_probe_count: int = whole_number(2, 1)


@dataclass(frozen=True, slots=True)
class Circuit:
    """A breaker at one moment. Times are seconds since the epoch."""

    state: State = State.CLOSED
    epoch: int = 0
    failures: int = 0
    rate_limits: int = 0
    #: OPEN: when it may be tried. HALF_OPEN: when answers that did not come are given up.
    until: float = 0.0
    #: Calls let through, and those that succeeded, while HALF_OPEN.
    probes: int = 0
    successes: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a step."""

    allowed: bool
    state: State
    epoch: int
    #: How long to wait before asking again, when it is not allowed.
    wait_seconds: float = 0.0
    #: Whether this step changed the state.
    changed: bool = False


def step(
    settings: BreakerSettings, circuit: Circuit, op: Op, now: float, epoch: int = 0, wait_seconds: float = 0.0
) -> tuple[Circuit, Answer]:
    """Take one step. `epoch` is that of the call that reports; `wait_seconds` what a rate limit asked for."""
    before = circuit.state
    if op is Op.ASK:
        circuit, allowed, wait = _ask(settings, circuit, now)
    else:
        allowed, wait = True, 0.0
        if epoch == circuit.epoch:
            circuit = _report(settings, circuit, op, now, wait_seconds)
    return circuit, Answer(allowed, circuit.state, circuit.epoch, wait, circuit.state is not before)


def _ask(settings: BreakerSettings, circuit: Circuit, now: float) -> tuple[Circuit, bool, float]:
    if circuit.state is State.CLOSED:
        return circuit, True, 0.0
    if now < circuit.until:
        if circuit.state is State.HALF_OPEN and circuit.probes < settings.half_open_probe_count:
            return replace(circuit, probes=circuit.probes + 1), True, 0.0
        return circuit, False, circuit.until - now
    until = now + settings.open_cooldown_seconds
    return Circuit(State.HALF_OPEN, circuit.epoch + 1, until=until, probes=1), True, 0.0


def _report(settings: BreakerSettings, circuit: Circuit, op: Op, now: float, wait_seconds: float) -> Circuit:
    if circuit.state is State.OPEN:
        return circuit
    match op:
        case Op.RELEASE:
            return replace(circuit, probes=max(0, circuit.probes - 1))
        case Op.SUCCESS:
            if circuit.state is State.CLOSED:
                return replace(circuit, failures=0, rate_limits=0)
            circuit = replace(circuit, successes=circuit.successes + 1)
            done = circuit.successes >= settings.half_open_probe_count
            return Circuit(epoch=circuit.epoch + 1) if done else circuit
        case Op.FAILURE:
            circuit = replace(circuit, failures=circuit.failures + 1)
            too_many = circuit.failures >= settings.failure_threshold
        case _:
            circuit = replace(circuit, rate_limits=circuit.rate_limits + 1)
            too_many = circuit.rate_limits >= settings.rate_limit_threshold
    if circuit.state is State.HALF_OPEN or too_many:
        until = now + max(settings.open_cooldown_seconds, wait_seconds)
        return Circuit(State.OPEN, circuit.epoch + 1, circuit.failures, circuit.rate_limits, until)
    return circuit


class BreakerStore(Protocol):
    """Where breakers are kept. A step is atomic."""

    def step(self, name: str, op: Op, epoch: int = 0, wait_seconds: float = 0.0) -> Answer: ...
    def read(self, name: str) -> Circuit: ...


class LocalStore:
    """Breakers of this process."""

    def __init__(self, settings: BreakerSettings | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings or BreakerSettings()
        self._clock = clock
        self._lock = threading.Lock()
        self._circuits: dict[str, Circuit] = {}

    def step(self, name: str, op: Op, epoch: int = 0, wait_seconds: float = 0.0) -> Answer:
        with self._lock:
            circuit = self._circuits.get(name, Circuit())
            self._circuits[name], answer = step(self._settings, circuit, op, self._clock(), epoch, wait_seconds)
        return answer

    def read(self, name: str) -> Circuit:
        with self._lock:
            return self._circuits.get(name, Circuit())


class Permit:
    """A call that was let through. It reports its outcome once; later reports are ignored."""

    def __init__(self, breaker: CircuitBreaker, epoch: int) -> None:
        self._breaker = breaker
        self._epoch = epoch
        self._reported = False

    def success(self) -> None:
        self._report(Op.SUCCESS)

    def failure(self) -> None:
        self._report(Op.FAILURE)

    def rate_limited(self, retry_after_seconds: float = 0.0) -> None:
        """The other side refused with a rate limit, and said how long to wait.

        The wait is capped at the longest delay of a job; a negative one, or nan, counts as 0.
        """
        # In this order: `max` keeps its first argument when the other is not a number.
        self._report(Op.RATE_LIMIT, min(max(0.0, retry_after_seconds), MAX_DELAY_SECONDS))

    def release(self) -> None:
        """The call says nothing about the health of the other side."""
        self._report(Op.RELEASE)

    def _report(self, op: Op, wait_seconds: float = 0.0) -> None:
        if not self._reported:
            self._reported = True
            self._breaker._step(op, self._epoch, wait_seconds)  # noqa: SLF001  the two are one


class CircuitBreaker:
    """Guards calls to one thing that may fail, for example one platform.

        with breaker.guard():
            fetch()

    While it is open, `guard` raises CircuitOpen, which as a Defer puts the job off without using up an attempt.
    """

    def __init__(
        self,
        name: str,
        settings: BreakerSettings | None = None,
        *,
        store: BreakerStore | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        """With a store, the settings of the store apply, and breakers with the same name share their state."""
        self.name = name
        self._store = store or LocalStore(settings)
        self._hooks = tuple(hooks)
        self.last_seen = State.CLOSED  #: when it was last asked or told something
        emit(self._hooks, BreakerChanged(name, self.last_seen))

    @property
    def state(self) -> State:
        """An open breaker stays open until the first call after its cooldown."""
        return self._store.read(self.name).state

    def acquire(self) -> Permit:
        """Permission for one call. Raises CircuitOpen."""
        answer = self._step(Op.ASK)
        if not answer.allowed:
            raise CircuitOpen(f"the circuit breaker {self.name!r} is {answer.state}", delay_seconds=answer.wait_seconds)
        return Permit(self, answer.epoch)

    @contextmanager
    def guard(self) -> Iterator[Permit]:
        """Make one call: an exception is a failure, RateLimited a rate limit; Defer and Reject count as neither."""
        permit = self.acquire()
        try:
            yield permit
        except RateLimited as error:
            permit.rate_limited(error.delay_seconds)
            raise
        except (Defer, Reject):
            permit.release()
            raise
        except Exception:
            permit.failure()
            raise
        except BaseException:
            permit.release()
            raise
        else:
            permit.success()

    def _step(self, op: Op, epoch: int = 0, wait_seconds: float = 0.0) -> Answer:
        answer = self._store.step(self.name, op, epoch, wait_seconds)
        if answer.changed:
            level = logging.ERROR if answer.state is State.OPEN else logging.WARNING
            logger.log(level, "circuit breaker is %s", answer.state, extra={"breaker": self.name})
        if answer.state is not self.last_seen:  # changed by us, or by another process that shares the store
            self.last_seen = answer.state
            emit(self._hooks, BreakerChanged(self.name, answer.state))
        return answer
