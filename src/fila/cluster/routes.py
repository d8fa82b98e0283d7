"""The table of ways: for every RPC, which worker answers it. An RPC without a row cannot be served by several workers.

| way | who answers |
|---|---|
| `HERE` | the worker that was called: all know the same |
| `QUEUE` | the one that has the queue which the request names |
| `FIRST_REQUEST` | the same, of a stream whose first request names the queue |
| `SPLIT` | each for its part of a batch (`server/spread.py`) |
| `LEADER` | worker 0, which has the others follow before it answers (`replication.py`) |
| `EACH` | all of them, and their answers are put together (`gathering.py`) |
| `REFUSED` | nobody: it would span workers, which is not built |
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple

from fila.core.errors import Unsupported

LEADER: Final = 0
"""The worker to which configuration and access control are told first"""


class Way(Enum):
    """Who answers a call."""

    HERE = "here"
    QUEUE = "queue"
    FIRST_REQUEST = "first request"
    SPLIT = "split"
    LEADER = "leader"
    EACH = "each"
    REFUSED = "refused"


class Route(NamedTuple):
    """The way of an RPC."""

    way: Way
    queue: Callable[[Any], str | None] = lambda request: str(request.queue)
    """The queue that a request is about; None: it is about what the leader has. Raises Unsupported."""
    why_not: str = ""


def _leads(_: Any) -> None:
    pass


_HERE, _QUEUE, _SPLIT = Route(Way.HERE), Route(Way.QUEUE), Route(Way.SPLIT)
_LEADER, _EACH = Route(Way.LEADER, _leads), Route(Way.EACH)
_TRANSACTIONS: Final = Route(
    Way.REFUSED,
    why_not="transactions need a server without workers: their messages could be in the stores of several workers",
)
_OF_THE_LEADER: Final = ("key:", "certificate:", "principal:", "role:", "config:", "throttle:")


def _journal_queue(request: Any) -> str:
    if not request.queue:
        raise Unsupported("each worker has a journal of its own: give a queue, whose journal is read then")
    return str(request.queue)


def _audit_queue(request: Any) -> str | None:
    if request.queue:
        return str(request.queue)
    if request.resource.startswith(_OF_THE_LEADER):
        return None
    raise Unsupported(
        "each worker has an audit of its own: give a queue, or a resource of another kind, such as "
        f"{', '.join(kind + '**' for kind in _OF_THE_LEADER)}"
    )


def _principal_limits(request: Any) -> None:
    """Raises Unsupported."""
    for field, _ in request.limits.ListFields():
        if not field.name.startswith("queue_"):
            raise Unsupported(
                f"{field.name} of a principal would hold for each worker by itself: only limits of single queues "
                "(queue_max_depth, queue_max_bytes) can be set on a server with workers"
            )


_HOT = "/fila.v1.FilaService/"
_OPERATE = "/fila.v1.FilaAdmin/"
_AUTH = "/fila.v1.FilaAuth/"

ROUTES: Final[dict[str, Route]] = {
    _HOT + "Describe": _HERE,
    _HOT + "GetClusterMap": _HERE,
    _HOT + "Enqueue": _QUEUE,
    _HOT + "EnqueueBatch": _SPLIT,
    _HOT + "EnqueueStream": _SPLIT,
    _HOT + "StageEnqueue": _TRANSACTIONS,
    _HOT + "CommitTransaction": _TRANSACTIONS,
    _HOT + "Lease": _QUEUE,
    _HOT + "Consume": Route(Way.FIRST_REQUEST),
    _HOT + "Ack": _QUEUE,
    _HOT + "Nack": _QUEUE,
    _HOT + "ExtendLease": _QUEUE,
    _HOT + "Settle": _SPLIT,
    _HOT + "Claim": _QUEUE,
    _HOT + "DescribeClaim": _QUEUE,
    _HOT + "ReadClaim": _QUEUE,
    _HOT + "AckClaims": _QUEUE,
    _HOT + "ExtendClaims": _QUEUE,
    _HOT + "ClaimFloor": _QUEUE,
    _HOT + "DropGroup": _QUEUE,
    _HOT + "ReadQueue": _QUEUE,
    _OPERATE + "CreateQueue": Route(Way.QUEUE, lambda request: str(request.name)),
    _OPERATE + "UpdateQueue": _QUEUE,
    _OPERATE + "DeleteQueue": _QUEUE,
    _OPERATE + "ListQueues": _EACH,
    _OPERATE + "GetStats": _QUEUE,
    _OPERATE + "SetConfig": _LEADER,
    _OPERATE + "GetConfig": _HERE,
    _OPERATE + "ListConfig": _HERE,
    _OPERATE + "DeleteConfig": _LEADER,
    _OPERATE + "Explain": _QUEUE,
    _OPERATE + "DryRunHook": _QUEUE,
    _OPERATE + "PauseQueue": _QUEUE,
    _OPERATE + "ResumeQueue": _QUEUE,
    _OPERATE + "Peek": _QUEUE,
    _OPERATE + "Redrive": Route(Way.QUEUE, lambda request: str(request.dlq_queue)),
    _OPERATE + "Purge": _QUEUE,
    _OPERATE + "ReadJournal": Route(Way.QUEUE, _journal_queue),
    _OPERATE + "ReadAudit": Route(Way.QUEUE, _audit_queue),
    _OPERATE + "DescribeServer": _HERE,
    _AUTH + "WhoAmI": _HERE,
    _AUTH + "CreateKey": _LEADER,
    _AUTH + "ListKeys": _EACH,
    _AUTH + "RotateKey": _LEADER,
    _AUTH + "RevokeKey": _LEADER,
    _AUTH + "AddCertificateRule": _LEADER,
    _AUTH + "ListCertificateRules": _HERE,
    _AUTH + "RemoveCertificateRule": _LEADER,
    _AUTH + "SetPrincipal": Route(Way.LEADER, _principal_limits),
    _AUTH + "DeletePrincipal": _LEADER,
    _AUTH + "ListPrincipals": _HERE,
    _AUTH + "SetRole": _LEADER,
    _AUTH + "DeleteRole": _LEADER,
    _AUTH + "ListRoles": _HERE,
}
"""By the path of the RPC."""
