"""Calls to Redis. The only module that knows redis-py's errors.

A failed call is one of two things, and a queue that loses nothing and does nothing twice must know which:

| error | Redis |
|---|---|
| `NotExecuted` | certainly did not do it |
| `OutcomeUnknown` | may have done it |
"""

from __future__ import annotations

import hashlib
import math
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.retry import Retry

from fila.jobs.errors import InvalidSettings, JobsError, QueueUnavailable

#: Errors by which Redis says that it cannot serve at the moment: loading, a replica, no memory, no disk, a busy script.
_UNAVAILABLE_CODES = (
    "LOADING",
    "MASTERDOWN",
    "READONLY",
    "OOM",
    "MISCONF",
    "BUSY",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
)

#: Added to a blocking call's own time before silence means that Redis is unavailable.
_SLACK_SECONDS = 1.0


class RedisUnavailable(JobsError):
    """Redis cannot be used at the moment."""


class NotExecuted(RedisUnavailable):
    """Redis did not carry out the call."""


class OutcomeUnknown(RedisUnavailable):
    """No response came: the call was carried out, or not."""


class WaitInterrupted(JobsError):
    """`interrupt` ended the wait."""


class Script:
    """A server-side script of this package, behind what all of them begin with."""

    def __init__(self, name: str) -> None:
        folder = files("fila.jobs.redis")
        self.source = "".join(folder.joinpath(file).read_text(encoding="utf-8") for file in ("prologue.lua", name))
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


class RedisClient:
    """Calls scripts, and waits on a list. Safe for threads; each call uses a connection of its own."""

    def __init__(self, url: str, *, timeout: float) -> None:
        try:
            self._pool = ConnectionPool.from_url(
                url,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                protocol=2,  # Redis 5 knows no other
                retry=Retry(NoBackoff(), 0),  # what a lost answer means is decided by the queue
            )
        except (ValueError, TypeError, RedisError) as error:
            # The text of the error may repeat the URL, and with it a password.
            raise InvalidSettings(f"redis_url: {type(error).__name__}: it cannot be used") from None
        self._waiting: set[Any] = set()
        self._lock = threading.Lock()
        self._fractions = True
        self._closed = False

    def command(self, *command: str | int) -> Any:
        """Run a plain command. Raises NotExecuted or OutcomeUnknown."""
        return self._execute(command)

    def call(self, script: Script, keys: Sequence[str], *args: str | int | bytes) -> Any:
        """Run a script. Raises NotExecuted or OutcomeUnknown."""
        tail = (len(keys), *keys, *args)
        try:
            return self._execute(("EVALSHA", script.sha, *tail))
        except NoScriptError:
            return self._execute(("EVAL", script.source, *tail))

    def wait(self, key: str, seconds: float, unless: Callable[[], bool]) -> bool:
        """Wait for an element of a list and take it. Raises WaitInterrupted, NotExecuted or OutcomeUnknown.

        `unless` is asked after `interrupt` can reach this wait, so nothing that it tells of is missed.

        Redis 5 counts whole seconds; there, a wait may end up to a second late.
        """
        connection = self._connect()
        broken = True
        with self._lock:
            self._waiting.add(connection)
        try:
            if unless():
                broken = False
                return False
            timeout = f"{max(0.001, seconds):.3f}" if self._fractions else str(max(1, math.ceil(seconds)))
            connection.send_command("BLPOP", key, timeout)
            if not connection.can_read(timeout=float(timeout) + _SLACK_SECONDS):
                raise OutcomeUnknown("no response from Redis in time")
            answer = connection.read_response()
            broken = False
            return answer is not None
        except ResponseError as error:
            broken = False
            if "not an integer" in str(error) and self._fractions:
                self._fractions = False
                return False
            raise _translated(error) from error
        except (RedisError, OSError, ValueError, AttributeError) as error:
            # A connection that another thread has shut down fails in whatever way its state allows at that moment.
            with self._lock:
                interrupted = connection not in self._waiting
            if interrupted:
                raise WaitInterrupted("the wait was ended") from error
            raise OutcomeUnknown(_text(error)) from error
        finally:
            with self._lock:
                self._waiting.discard(connection)
            if broken:
                connection.disconnect()
            self._release(connection)

    def interrupt(self) -> None:
        """End all waits."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            for connection in waiting:
                # Only shut down: the waiting thread closes it. A socket that is closed under a reader's hands may be
                # somebody else's by the time it reads.
                sock = getattr(connection, "_sock", None)
                if sock is not None:
                    with suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all waits and close the connections; those in use, when their call is over."""
        self._closed = True
        self.interrupt()
        self._pool.disconnect(inuse_connections=False)

    def _connect(self) -> Any:  # redis-py's connections are untyped
        try:
            return self._pool.get_connection()
        except (RedisError, OSError) as error:
            raise NotExecuted(_text(error)) from error

    def _release(self, connection: Any) -> None:
        self._pool.release(connection)
        if self._closed:
            self._pool.disconnect(inuse_connections=False)

    def _execute(self, command: tuple[str | int | bytes, ...]) -> Any:
        connection = self._connect()
        try:
            connection.send_command(*command)
            return connection.read_response()
        except ResponseError as error:
            raise _translated(error) from error
        except (RedisError, OSError) as error:
            connection.disconnect()
            if isinstance(error, redis.BusyLoadingError):
                raise NotExecuted(_text(error)) from error
            raise OutcomeUnknown(_text(error)) from error
        finally:
            self._release(connection)


def _translated(error: ResponseError) -> Exception:
    """An error response: Redis is unavailable, or refuses (a key of another type, no permission) until fixed."""
    if isinstance(error, NoScriptError):
        return error
    # redis-py takes the code from some answers and leaves it in others; older servers put it inside a script's error.
    unavailable = isinstance(error, redis.ReadOnlyError | redis.OutOfMemoryError)
    unavailable = unavailable or any(code in str(error) for code in _UNAVAILABLE_CODES)
    return NotExecuted(_text(error)) if unavailable else QueueUnavailable(f"Redis refuses: {error}")


def _text(error: Exception) -> str:
    source = "Redis" if isinstance(error, RedisConnectionError) else type(error).__name__
    return f"{source}: {error}"
