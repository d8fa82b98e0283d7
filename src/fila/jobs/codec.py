"""Jobs as text, for queues that keep them outside the process.

The memory queue checks its jobs with the same codec, so that a job which works in a test works on Redis and on the
broker, and nobody shares a mutable object with a worker by accident.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Protocol

from fila.jobs.errors import InvalidJob

#: As much as the broker takes by default, so that the same jobs fit everywhere.
MAX_JOB_BYTES = 4 * 1024 * 1024


class JobCodec(Protocol):
    """Turns a job into text and back. `decode(encode(job)) == job`. Both raise InvalidJob."""

    def encode(self, job: Any) -> str: ...
    def decode(self, text: str) -> Any: ...


class JsonCodec:
    """Jobs are JSON values: None, bool, int, float, str, lists of them, dicts of them by str."""

    def encode(self, job: Any) -> str:
        problem = json_problem(job, "job")
        if problem:
            raise InvalidJob(problem)
        text = json.dumps(job, separators=(",", ":"), allow_nan=False)
        if len(text) > MAX_JOB_BYTES:
            raise InvalidJob(f"the job has {len(text)} bytes, {MAX_JOB_BYTES} can be stored")
        return text

    def decode(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidJob(f"a stored job is not JSON: {error}") from error


class DataclassCodec:
    """Jobs are instances of one dataclass whose fields are JSON values."""

    def __init__(self, job_type: type[Any]) -> None:
        if not dataclasses.is_dataclass(job_type):
            raise TypeError(f"{job_type!r} is not a dataclass")
        self._type = job_type
        self._json = JsonCodec()

    def encode(self, job: Any) -> str:
        if type(job) is not self._type:
            raise InvalidJob(f"expected a {self._type.__name__}, got {type(job).__name__}")
        return self._json.encode({each.name: getattr(job, each.name) for each in dataclasses.fields(job)})

    def decode(self, text: str) -> Any:
        values = self._json.decode(text)
        try:
            return self._type(**values)
        except Exception as error:  # a class may check its fields, and raises then what it likes
            raise InvalidJob(f"a stored job is not a {self._type.__name__}: {error}") from error


def text_in(value: object) -> str:
    """A stored value that was written as text. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value


def number_in(value: object) -> float:
    """A stored value that was written as a number. Raises TypeError or OverflowError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    return float(value)


_MAX_DEPTH = 100


def json_problem(value: Any, path: str, depth: int = 0) -> str | None:
    """Why JSON would not return the value unchanged, with the path to the problem; None if it would."""
    if depth > _MAX_DEPTH:
        return f"{path} is nested deeper than {_MAX_DEPTH} levels"
    if value is None or type(value) is bool:
        return None
    if type(value) is int:
        # Python reads back no more than 4300 digits.
        return None if value.bit_length() < 10_000 else f"{path} is a number of too many digits"
    if type(value) is str:
        return None if _encodable(value) else f"{path} is text that UTF-8 cannot hold"
    if type(value) is float:
        return None if value - value == 0 else f"{path} is {value!r}, which JSON cannot hold"
    if type(value) is list:
        return next(filter(None, (json_problem(each, f"{path}[{n}]", depth + 1) for n, each in enumerate(value))), None)
    if type(value) is dict:
        for name, each in value.items():
            if type(name) is not str or not _encodable(name):
                return f"{path} has the key {name!r}: keys are text"
            if problem := json_problem(each, f"{path}[{name!r}]", depth + 1):
                return problem
        return None
    return f"{path} is a {type(value).__name__}, which JSON cannot hold"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
