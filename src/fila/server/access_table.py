"""The table of rights: for every RPC, which permission it needs and on what. An RPC without a row cannot be served.

| when | what is checked |
|---|---|
| `BEFORE` | the request, before the handler sees it |
| `FIRST` | the first request of the stream: it names the queue |
| `EACH` | every message or settlement of a batch; those that are not allowed are answered one by one, others are done |
| `ALL` | every message of a batch; one that is not allowed refuses all of them |
| `SHOWN` | nothing; the answer has only what the caller may see |
| `KNOWN` | only that the caller is who it says |

A call that needs rights on two resources names the second in `also`: all of them, or it is refused.

Health checking and reflection are no services of ours and have no row: they need no key. They tell that the server
is alive and what its contract looks like, which is public, and nothing of queues or messages.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from fila.auth.rights import Kind, Permission

THROTTLE = "throttle."


class When(Enum):
    """When a right is checked."""

    BEFORE = "before"
    FIRST = "first"
    EACH = "each"
    ALL = "all"
    SHOWN = "shown"
    KNOWN = "known"


Resource = tuple[Kind, str]
Need = tuple[Permission, Resource]


class Rule(NamedTuple):
    permission: Permission | None
    when: When = When.BEFORE
    resource: Callable[[Any], Resource] | None = None
    """What a request is about, where one look at it tells."""
    changes: Callable[[Any], tuple[str, str]] | None = None
    """For the audit: kind and name of what a request changes. None for what only looks, and for what clients do with
    messages that they send or hold. The change has an entry in the audit, and so has a refusal of the call."""
    also: tuple[tuple[Permission, Callable[[Any], Resource]], ...] = ()
    """Further rights that a request needs, each on a resource of its own, such as the queue that messages move to."""

    def needs(self, request: Any) -> tuple[Need, ...]:
        """Every right that a request needs; none where one look at it does not tell."""
        if self.resource is None:
            return ()
        first = self.permission or Permission.ADMIN, self.resource(request)
        return (first, *[(permission, resource(request)) for permission, resource in self.also])


def _queue(request: Any) -> Resource:
    return Kind.QUEUE, request.queue


def _server(_: Any) -> Resource:
    return Kind.SERVER, ""


def config_entry(key: str) -> Resource:
    """An entry of the runtime configuration: the limit of a throttle key, or a value for scripts."""
    return (Kind.THROTTLE, key.removeprefix(THROTTLE)) if key.startswith(THROTTLE) else (Kind.CONFIG, key)


def _entry(request: Any) -> Resource:
    return config_entry(request.key)


def _journal(request: Any) -> Resource:
    return _queue(request) if request.queue else _server(request)


_ENQUEUE = Rule(Permission.ENQUEUE, When.BEFORE, _queue)
_CONSUME = Rule(Permission.CONSUME, When.BEFORE, _queue)
_BROWSE = Rule(Permission.BROWSE, When.BEFORE, _queue)
_MANAGE = Rule(Permission.MANAGE, When.BEFORE, _queue, _queue)
_CONFIGURE = Rule(Permission.CONFIGURE, When.BEFORE, _entry, _entry)
_ADMIN = Rule(Permission.ADMIN, When.BEFORE, _server)


def _new_queue(request: Any) -> Resource:
    return Kind.QUEUE, request.name


def _dead_letters(request: Any) -> Resource:
    return Kind.QUEUE, request.dlq_queue


def _administers(kind: str, field: str) -> Rule:
    return _ADMIN._replace(changes=lambda request: (kind, getattr(request, field)))


_HOT = "/fila.v1.FilaService/"
_OPERATE = "/fila.v1.FilaAdmin/"
_AUTH = "/fila.v1.FilaAuth/"

RULES: dict[str, Rule] = {
    _HOT + "Describe": Rule(None, When.KNOWN),
    _HOT + "GetClusterMap": Rule(None, When.KNOWN),
    _HOT + "Enqueue": _ENQUEUE,
    _HOT + "EnqueueBatch": Rule(Permission.ENQUEUE, When.EACH),
    _HOT + "EnqueueStream": Rule(Permission.ENQUEUE, When.EACH),
    _HOT + "StageEnqueue": Rule(Permission.ENQUEUE, When.ALL),
    _HOT + "CommitTransaction": Rule(None, When.KNOWN),  # transactions of one principal are hidden from all others
    _HOT + "Lease": _CONSUME,
    _HOT + "Consume": Rule(Permission.CONSUME, When.FIRST, _queue),
    _HOT + "Ack": _CONSUME,
    _HOT + "Nack": _CONSUME,
    _HOT + "ExtendLease": _CONSUME,
    _HOT + "Settle": Rule(Permission.CONSUME, When.EACH),
    _HOT + "Claim": _CONSUME,
    _HOT + "DescribeClaim": _CONSUME,
    _HOT + "ReadClaim": _CONSUME,
    _HOT + "AckClaims": _CONSUME,
    _HOT + "ExtendClaims": _CONSUME,
    _HOT + "ClaimFloor": _CONSUME,
    _HOT + "DropGroup": _CONSUME._replace(changes=_queue),
    _HOT + "ReadQueue": _BROWSE,
    _OPERATE + "CreateQueue": Rule(Permission.MANAGE, When.BEFORE, _new_queue, _new_queue),
    _OPERATE + "UpdateQueue": _MANAGE,
    _OPERATE + "DeleteQueue": _MANAGE,
    _OPERATE + "ListQueues": Rule(Permission.BROWSE, When.SHOWN),
    _OPERATE + "GetStats": _BROWSE,
    _OPERATE + "SetConfig": _CONFIGURE,
    _OPERATE + "GetConfig": Rule(Permission.BROWSE, When.BEFORE, _entry),
    _OPERATE + "ListConfig": Rule(Permission.BROWSE, When.SHOWN),
    _OPERATE + "DeleteConfig": _CONFIGURE,
    _OPERATE + "Explain": _BROWSE,
    _OPERATE + "DryRunHook": _MANAGE._replace(changes=None),  # it runs a script of the caller's
    _OPERATE + "PauseQueue": _MANAGE,
    _OPERATE + "ResumeQueue": _MANAGE,
    _OPERATE + "Peek": _BROWSE,
    _OPERATE + "Redrive": Rule(Permission.MANAGE, When.BEFORE, _dead_letters, _dead_letters),
    _OPERATE + "Purge": _MANAGE,
    _OPERATE + "ReadJournal": Rule(Permission.AUDIT, When.BEFORE, _journal),
    _OPERATE + "ReadAudit": Rule(Permission.AUDIT, When.BEFORE, _journal),
    _OPERATE + "DescribeServer": Rule(Permission.AUDIT, When.BEFORE, _server),
    _AUTH + "WhoAmI": Rule(None, When.KNOWN),
    _AUTH + "CreateKey": _administers("principal", "principal"),
    _AUTH + "ListKeys": _ADMIN,
    _AUTH + "RotateKey": _administers("key", "key_id"),
    _AUTH + "RevokeKey": _administers("key", "key_id"),
    _AUTH + "AddCertificateRule": _administers("principal", "principal"),
    _AUTH + "ListCertificateRules": _ADMIN,
    _AUTH + "RemoveCertificateRule": _administers("certificate", "id"),
    _AUTH + "SetPrincipal": _administers("principal", "name"),
    _AUTH + "DeletePrincipal": _administers("principal", "name"),
    _AUTH + "ListPrincipals": _ADMIN,
    _AUTH + "SetRole": _administers("role", "name"),
    _AUTH + "DeleteRole": _administers("role", "name"),
    _AUTH + "ListRoles": _ADMIN,
}
"""By the path of the RPC."""
