"""Errors of the jobs layer, and what a handler raises to decide about its job.

JobsError
+-- InvalidSettings    a setting cannot be used
+-- InvalidJob         a job cannot be stored and read back unchanged
+-- UnknownPriority    a priority label that the settings do not name
+-- QueueFull          the queue holds as many jobs as it may
+-- QueueClosed        the queue has been shut down
+-- QueueUnavailable   the service behind the queue cannot be reached
|   +-- NotAllowed     the API key lacks a permission
+-- LeaseLost          the lease has ended: somebody else may have the job
+-- TaskNotFound       a job names a task that the app does not know
+-- Defer              raised by a handler: not now, and it was not the job's fault
|   +-- CircuitOpen    the breaker lets nothing through
|   +-- RateLimited    the other side refused: too many requests
+-- Retry              raised by a handler: try again, and count it
+-- Reject             raised by a handler: never try again
"""

from __future__ import annotations

from fila.settings import SettingsError


class JobsError(Exception):
    """Base of everything that `fila.jobs` raises on its own."""


class InvalidSettings(JobsError, SettingsError):
    """A setting cannot be used. The text names it and says what is allowed."""


class InvalidJob(JobsError):
    """The job cannot be stored and read back unchanged."""


class UnknownPriority(JobsError):
    """A priority label that the settings do not name."""


class QueueFull(JobsError):
    """The queue holds as many jobs as it may."""


class QueueClosed(JobsError):
    """The queue has been shut down and takes no more jobs."""


class QueueUnavailable(JobsError):
    """The service behind the queue cannot be reached. `outcome_unknown`: the job may have been taken all the same."""

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class NotAllowed(QueueUnavailable):
    """The API key lacks a permission, or is not known. The text names it."""


class LeaseLost(JobsError):
    """The lease has ended (expired, settled before, purged): another worker may have the job by now."""


class TaskNotFound(JobsError):
    """A job names a task that the app does not know."""


class Defer(JobsError):
    """Raised by a handler: run the job later; this attempt does not count."""

    def __init__(self, message: str = "deferred", *, delay_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.delay_seconds = delay_seconds


class CircuitOpen(Defer):
    """The circuit breaker is open: no call may pass at the moment."""


class RateLimited(Defer):
    """The other side refused: too many requests."""


class Retry(JobsError):
    """Raised by a handler: run the job again and count the attempt. Without a delay, the policy chooses it."""

    def __init__(self, message: str = "retry", *, delay_seconds: float | None = None) -> None:
        super().__init__(message)
        self.delay_seconds = delay_seconds


class Reject(JobsError):
    """Raised by a handler: the job can never succeed. It goes to the dead letters at once."""
