"""How much is sent in a measurement, and by whom."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fila.cli.endpoint import Endpoint

WORKLOADS = ("produce", "consume", "lifecycle", "latency")
MOST_PROBES = 5_000
"""Messages of the workload latency, which are sent one by one"""
KEY_HEADER = "key"
"""Whose value is the fairness key"""
STAMP_BYTES = 8
"""At the beginning of each payload: when it was sent, by the monotonic clock that processes of a machine share"""


@dataclass(frozen=True, slots=True)
class Load:
    """Of each workload."""

    messages: int
    size: int
    keys: int
    producers: int
    consumers: int
    batch: int
    """Messages in one call of a producer"""
    seconds: float
    """How long a workload runs at most"""

    @property
    def bytes(self) -> int:
        """Of all payloads."""
        return self.messages * self.size


@dataclass(frozen=True, slots=True)
class Job:
    """What one client process does."""

    endpoint: Endpoint
    queue: str
    load: Load
    messages: int
    """Its part of them; a consumer has none"""


def stamp() -> bytes:
    """The beginning of a payload that is sent now."""
    return time.monotonic_ns().to_bytes(STAMP_BYTES, "big")


def since(payload: bytes) -> float:
    """The seconds since it was sent."""
    return (time.monotonic_ns() - int.from_bytes(payload[:STAMP_BYTES], "big")) / 1e9


def parts(whole: int, count: int) -> list[int]:
    """A number in parts that differ by one at most."""
    return [whole // count + (number < whole % count) for number in range(count)]
