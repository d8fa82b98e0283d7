"""What policy decides about a message: values that a queue's headers or hooks produce and the scheduler obeys."""

from typing import NamedTuple

DEFAULT_KEY = "default"
MAX_WEIGHT = 1000
MAX_COST = 1_000_000_000
MAX_PRIORITY = 255
MAX_THROTTLE_KEYS = 32
"""Of one message."""


class Placement(NamedTuple):
    """Where a message stands among the others. The defaults are the safe ones."""

    fairness_key: str = DEFAULT_KEY
    weight: int = 1
    throttle_keys: tuple[str, ...] = ()
    """Sorted, without repetition."""
    cost: int = 1
    priority: int | None = None
    """None leaves it as the producer said."""
    delay_ms: int | None = None
    """None leaves it as the producer said."""


class Verdict(NamedTuple):
    """What becomes of a message that failed. The defaults are the safe ones."""

    dead: bool = False
    """Whether it goes to the dead-letter queue instead of being tried again."""
    delay_ms: int | None = None
    """How long it rests before it is tried again. None leaves it as the consumer said."""
