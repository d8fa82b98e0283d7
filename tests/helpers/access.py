"""A gate without keys, for handlers that are tested by themselves: everybody may do everything."""

from fila.auth.registry import Registry
from fila.server.access import Access

ANYBODY = Access(Registry(), None, "127.0.0.1:1")


class NoRefusals:
    """As much of `Refusals` as the interceptor uses."""

    async def add(self, origin, resource, code):
        pass


class OpenGate:
    """As much of `Gate` as handlers and the interceptor use."""

    def enter(self, call):
        return ANYBODY

    def leave(self, call):
        pass

    def of(self, call):
        return ANYBODY

    def require_first(self, call, rule, request):
        pass
