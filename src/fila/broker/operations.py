"""The table of operations: how each command is planned. A command without a row here cannot be asked for."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fila.broker.access import plan_access
from fila.broker.arrival import plan_enqueue
from fila.broker.audit_commands import BeginSweep, EndSweep, RecordRefusals
from fila.broker.audit_entries import access_changed, configured, created, deleted, group_dropped, swept, updated
from fila.broker.auditing import plan_begin_sweep, plan_end_sweep, plan_refusals
from fila.broker.claims import plan_ack_claims, plan_claim, plan_drop_group, plan_extend_claims
from fila.broker.commands import (
    AckClaims,
    ChangeAccess,
    CommitTransaction,
    CreateQueue,
    DeleteQueue,
    DropGroup,
    DropOldest,
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
from fila.broker.overflow import plan_drop
from fila.broker.queues import plan_create, plan_delete, plan_update
from fila.broker.removal import plan_purge, plan_redrive
from fila.broker.settings import plan_setting
from fila.broker.settle import plan_settle
from fila.broker.staging import plan_commit, plan_stage
from fila.broker.tick import Tick
from fila.storage.audit import AuditRecord

Told = Callable[[Tick, Any, Any], Sequence[AuditRecord]]


class Operation(NamedTuple):
    plan: Callable[[Tick, Any], object]
    """Returns the answer, or raises BrokerError."""
    audit: Told | None = None
    """What the audit says of it, from the command and its answer. None for what happens to messages one by one, and
    for what only writes to the audit."""
    alone: bool = False
    """It has a tick to itself, so that no other command has to foresee it."""
    takes_room: bool = False
    """It is refused, like messages, when the disk is nearly full. Redriving writes messages a second time."""


OPERATIONS: dict[type, Operation] = {
    Enqueue: Operation(plan_enqueue),
    Settle: Operation(plan_settle),
    ReturnGrants: Operation(plan_return),
    DropOldest: Operation(plan_drop, alone=True),
    CreateQueue: Operation(plan_create, created, alone=True, takes_room=True),
    UpdateQueue: Operation(plan_update, updated, alone=True),
    DeleteQueue: Operation(plan_delete, deleted, alone=True),
    SetConfig: Operation(plan_setting, configured, alone=True),
    ChangeAccess: Operation(plan_access, access_changed, alone=True),
    Redrive: Operation(plan_redrive, swept, alone=True, takes_room=True),
    Purge: Operation(plan_purge, swept, alone=True),
    MakeClaim: Operation(plan_claim, alone=True),
    AckClaims: Operation(plan_ack_claims, alone=True),
    ExtendClaims: Operation(plan_extend_claims, alone=True),
    DropGroup: Operation(plan_drop_group, group_dropped, alone=True),
    StageEnqueue: Operation(plan_stage, alone=True, takes_room=True),
    CommitTransaction: Operation(plan_commit, alone=True),
    BeginSweep: Operation(plan_begin_sweep, alone=True),
    EndSweep: Operation(plan_end_sweep, alone=True),
    RecordRefusals: Operation(plan_refusals, alone=True),
}
