"""What handlers are given and what they are registered as."""

from collections.abc import Mapping
from functools import partial

from fila.wire.method import Method
from fila.wire.server_call import ServerCall

__all__ = ["Method", "Methods", "ServerCall", "SmallMethod"]

SmallMethod = partial(Method, max_request_bytes=256 << 10)
"""A method whose requests are small: names, ids and numbers. The worst of that size is decoded in 3 ms."""

Methods = Mapping[str, Method]
"""Methods of a service by their names."""
