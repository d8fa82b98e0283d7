"""The table of operations: how each command is planned. A command without a row here cannot be asked for."""

from collections.abc import Callable
from typing import Any, NamedTuple

from fila.broker.access import plan_access
from fila.broker.arrival import plan_enqueue
from fila.broker.claims import plan_ack_claims, plan_claim, plan_drop_group, plan_extend_claims
from fila.broker.commands import (
    AckClaims,
    ChangeAccess,
    CommitTransaction,
    CreateQueue,
    DeleteQueue,
    DropGroup,
    Enqueue,
    ExtendClaims,
    MakeClaim,
    Purge,
    Redrive,
    ReturnGrants,
    SetConfig,
    Settle,
    StageEnqueue,
    UpdateQueue,
)
from fila.broker.departure import plan_return
from fila.broker.queues import plan_create, plan_delete, plan_update
from fila.broker.removal import plan_purge, plan_redrive
from fila.broker.settings import plan_setting
from fila.broker.settle import plan_settle
from fila.broker.staging import plan_commit, plan_stage
from fila.broker.tick import Tick


class Operation(NamedTuple):
    plan: Callable[[Tick, Any], object]
    """Returns the answer, or raises BrokerError."""
    alone: bool = False
    """It has a tick to itself, so that no other command has to foresee it."""
    takes_room: bool = False
    """It is refused, like messages, when the disk is nearly full. Redriving writes messages a second time."""


OPERATIONS: dict[type, Operation] = {
    Enqueue: Operation(plan_enqueue),
    Settle: Operation(plan_settle),
    ReturnGrants: Operation(plan_return),
    CreateQueue: Operation(plan_create, alone=True, takes_room=True),
    UpdateQueue: Operation(plan_update, alone=True),
    DeleteQueue: Operation(plan_delete, alone=True),
    SetConfig: Operation(plan_setting, alone=True),
    ChangeAccess: Operation(plan_access, alone=True),
    Redrive: Operation(plan_redrive, alone=True, takes_room=True),
    Purge: Operation(plan_purge, alone=True),
    MakeClaim: Operation(plan_claim, alone=True),
    AckClaims: Operation(plan_ack_claims, alone=True),
    ExtendClaims: Operation(plan_extend_claims, alone=True),
    DropGroup: Operation(plan_drop_group, alone=True),
    StageEnqueue: Operation(plan_stage, alone=True, takes_room=True),
    CommitTransaction: Operation(plan_commit, alone=True),
}
