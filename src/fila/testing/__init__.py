"""Help for testing programs that use Fila."""

from fila.testing.redis import RedisProcess
from fila.testing.server import ServerFailed, ServerProcess

__all__ = ["RedisProcess", "ServerFailed", "ServerProcess"]
