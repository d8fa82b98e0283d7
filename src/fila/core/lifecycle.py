"""The life of a message as a table: every state, everything that can happen in it, and what follows.

The state is not stored as a field: it is where the message is (a lane, the schedule, a grant, nowhere). The table says
which moves between those places are legal. Tests hold the broker to it, and the diagram in the documentation is drawn
from it. A dead letter is ready as any other message, in the dead-letter queue of the queue that it came from.
"""

from enum import Enum


class State(Enum):
    NONE = "none"
    DELAYED = "delayed"
    READY = "ready"
    LEASED = "leased"


TRANSITIONS: dict[tuple[State, str], State] = {
    (State.NONE, "enqueue"): State.READY,
    (State.NONE, "enqueue with delay"): State.DELAYED,
    (State.DELAYED, "due"): State.READY,
    (State.READY, "lease"): State.LEASED,
    (State.LEASED, "extend"): State.LEASED,
    (State.LEASED, "ack"): State.NONE,
    (State.LEASED, "nack"): State.READY,
    (State.LEASED, "nack with delay"): State.DELAYED,
    (State.LEASED, "release"): State.READY,
    (State.LEASED, "release with delay"): State.DELAYED,
    (State.LEASED, "expire"): State.READY,
    (State.LEASED, "consumer lost"): State.READY,
    (State.LEASED, "never handed"): State.READY,
    (State.LEASED, "dead-letter"): State.READY,
    (State.READY, "redrive"): State.READY,
    (State.DELAYED, "redrive"): State.READY,
    (State.READY, "overflow"): State.READY,
    (State.READY, "purge"): State.NONE,
    (State.DELAYED, "purge"): State.NONE,
    (State.DELAYED, "delete queue"): State.NONE,
    (State.READY, "delete queue"): State.NONE,
    (State.LEASED, "delete queue"): State.NONE,
}

COUNTS_AN_ATTEMPT = frozenset({"nack", "nack with delay", "expire", "consumer lost", "dead-letter"})
"""What adds one to a message's attempt count."""


def after(state: State, event: str) -> State:
    """The state that follows. Raises KeyError for a move that is not legal."""
    return TRANSITIONS[state, event]


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for (state, event), then in TRANSITIONS.items():
        start, end = ("[*]" if s is State.NONE else s.name for s in (state, then))
        lines.append(f"    {start} --> {end}: {event}")
    return "\n".join(lines) + "\n"
