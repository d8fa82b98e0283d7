"""What handlers are given and what they are registered as."""

from collections.abc import Mapping

from fila.wire.context import Context, Method

__all__ = ["Context", "Method", "Methods"]

Methods = Mapping[str, Method]
"""Methods of a service by their names."""
