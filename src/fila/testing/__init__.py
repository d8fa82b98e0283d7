"""Help for testing programs that use Fila."""

from fila.testing.server import ServerFailed, ServerProcess

__all__ = ["ServerFailed", "ServerProcess"]
