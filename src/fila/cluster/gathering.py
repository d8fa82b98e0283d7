"""One answer of the answers of all workers."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fila.v1 import admin_pb2, auth_pb2

MAX_PAGE: Final = 1000

Gather = Callable[[Any, Sequence[bytes]], bytes]
"""Takes the request and the encoded responses."""


def gather_queues(request: admin_pb2.ListQueuesRequest, responses: Sequence[bytes]) -> bytes:
    """A page of queues, by name. Each worker has given the first ones behind the cursor, as many as a page has."""
    pages = [admin_pb2.ListQueuesResponse.FromString(response) for response in responses]
    queues = sorted((queue for page in pages for queue in page.queues), key=lambda queue: queue.name)
    page = queues[: min(request.limit or MAX_PAGE, MAX_PAGE)]
    more = len(queues) > len(page) or any(each.cursor for each in pages)
    return admin_pb2.ListQueuesResponse(queues=page, cursor=page[-1].name if more and page else "").SerializeToString()


def gather_keys(_: auth_pb2.ListKeysRequest, responses: Sequence[bytes]) -> bytes:
    """All workers know the same keys. Each knows when it was shown one."""
    keys: dict[str, auth_pb2.KeyInfo] = {}
    for response in responses:
        for key in auth_pb2.ListKeysResponse.FromString(response).keys:
            known = keys.setdefault(key.id, key)
            if _used_at(key) > _used_at(known):
                known.last_used_at.CopyFrom(key.last_used_at)
    return auth_pb2.ListKeysResponse(keys=[keys[name] for name in sorted(keys)]).SerializeToString()


def _used_at(key: auth_pb2.KeyInfo) -> int:
    return int(key.last_used_at.ToNanoseconds()) if key.HasField("last_used_at") else 0


GATHER: Final[dict[str, Gather]] = {
    "/fila.v1.FilaAdmin/ListQueues": gather_queues,
    "/fila.v1.FilaAuth/ListKeys": gather_keys,
}
"""By the path of the RPC; one for each row of `ROUTES` with `Way.EACH`."""
