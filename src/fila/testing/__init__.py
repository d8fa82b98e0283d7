"""Tools for testing programs that use Fila: real servers as processes, jobs on a virtual clock, a store in memory."""

from importlib import import_module
from typing import TYPE_CHECKING

from fila.testing.process import ServerFailed
from fila.testing.redis import RedisProcess
from fila.testing.server import ServerProcess

if TYPE_CHECKING:
    from fila.storage.memory import MemoryStorage
    from fila.testing.jobs import VirtualClock, VirtualJobs

__all__ = ["MemoryStorage", "RedisProcess", "ServerFailed", "ServerProcess", "VirtualClock", "VirtualJobs"]

#: Names that are loaded on first use, and their modules.
_LAZY = {
    "MemoryStorage": "fila.storage.memory",
    "VirtualClock": "fila.testing.jobs",
    "VirtualJobs": "fila.testing.jobs",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'fila.testing' has no attribute {name!r}")
