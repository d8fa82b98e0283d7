"""Help for testing programs that use Fila."""

from importlib import import_module
from typing import TYPE_CHECKING

from fila.testing.redis import RedisProcess
from fila.testing.server import ServerFailed, ServerProcess

if TYPE_CHECKING:
    from fila.testing.jobs import VirtualClock, VirtualJobs

__all__ = ["RedisProcess", "ServerFailed", "ServerProcess", "VirtualClock", "VirtualJobs"]


def __getattr__(name: str) -> object:
    if name in {"VirtualClock", "VirtualJobs"}:
        return getattr(import_module("fila.testing.jobs"), name)
    raise AttributeError(f"module 'fila.testing' has no attribute {name!r}")
