"""The limits that a queue goes by: its own, or those of the principal that created it, whichever are lower."""

from fila.auth.allowance import QUEUE_BYTES, QUEUE_DEPTH
from fila.auth.registry import Registry
from fila.core.capacity import QueueLimits
from fila.core.errors import quoted
from fila.storage.records import DROP_OLDEST, QueueRecord


def limits_of(record: QueueRecord, access: Registry) -> QueueLimits | None:
    """None when there are none."""
    owner = access.principals.get(record.owner)
    caps = owner.limits if owner is not None else {}
    depth, depth_name = _lower("max_depth", record.max_depth, record.owner, QUEUE_DEPTH, caps.get(QUEUE_DEPTH, 0))
    size, bytes_name = _lower("max_bytes", record.max_bytes, record.owner, QUEUE_BYTES, caps.get(QUEUE_BYTES, 0))
    if not (depth or size):
        return None
    return QueueLimits(depth, size, record.overflow == DROP_OLDEST, depth_name, bytes_name)


def _lower(name: str, own: int, owner: str, cap_name: str, cap: int) -> tuple[int, str]:
    """The lower one of those that are set, and what it is called."""
    if cap and (not own or cap < own):
        return cap, f"{cap_name} of its owner {quoted(owner)}"
    return own, name
