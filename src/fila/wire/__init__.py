"""gRPC over HTTP/2 on asyncio, made for few streams with much on them: both ends of a connection, one frame layer.

It speaks to every gRPC peer. Decision 4 says why it is here and what it saves.

- `frames`, `headers`, `status`, `connection`: bytes in, bytes out; no socket, no event loop, no clock.
- `link`: one TCP (or TLS) connection of an event loop.
- `server` and `context`, `channel` and `call`: calls, as their handlers and their callers see them.
"""
