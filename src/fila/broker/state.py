"""All that the broker has in memory."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from fila.auth.registry import Change, Registry
from fila.broker.audit import Audit
from fila.broker.loading import Loading
from fila.broker.queue import QueueState, dead_letter_name
from fila.broker.queue_limits import limits_of
from fila.broker.recent import RecentRecords
from fila.broker.scripts import Scripting, Scripts
from fila.broker.wakeups import Wakeups
from fila.config import AuditConfig, LimitsConfig
from fila.core.dedup import Producers
from fila.core.errors import InvalidArgument, QueueNotFound, quoted
from fila.core.ids import MessageIds
from fila.core.ids import Sequence as SequenceNumbers
from fila.core.throttle import Limit, ThrottleManager
from fila.core.transactions import StagedBatch, Transactions
from fila.lua.hooks import Hooks
from fila.storage.records import QueueRecord

RECENT_BYTES = 16 << 20
"""How much of what was just written is kept for consumers that are waiting."""
THROTTLE = "throttle."
"""How the names of settings begin that limit a throttle key."""


class BrokerState:
    """The queues, and what belongs to no single one of them. Rebuilt from the store at every start."""

    __slots__ = (
        "_departed_count",
        "access",
        "audit",
        "clock_mark",
        "config",
        "config_keys",
        "hooks_changed",
        "ids",
        "judging",
        "limits",
        "loading",
        "on_access",
        "on_setting",
        "placing",
        "producers",
        "queues",
        "recent",
        "scripts",
        "sequence",
        "throttles",
        "transactions",
        "wakeups",
    )

    def __init__(
        self,
        node: int,
        limits: LimitsConfig,
        scripting: Scripting,
        audit: AuditConfig | None = None,
        throttles: ThrottleManager | None = None,
    ) -> None:
        self.ids = MessageIds(node)
        self.limits = limits
        self.sequence = SequenceNumbers()
        self.clock_mark = 0
        """No sequence number above this was given out yet, as far as the store knows."""
        self.queues: dict[str, QueueState] = {}
        self.loading: dict[str, Loading] = {}
        """Those whose messages are not all known yet"""
        self.placing: set[str] = set()
        """Queues with the hook `on_enqueue`, which decides the placement of a message"""
        self.judging: set[str] = set()
        """Queues with the hook `on_failure`, which decides what becomes of a failed message"""
        self.hooks_changed = 0
        """How often hooks of a queue changed."""
        self._departed_count = False
        self.producers = Producers()
        self.transactions = Transactions()
        self.config: dict[str, str] = {}
        """What operators set while the broker runs."""
        self.config_keys: list[str] = []
        """Its keys in their order"""
        self.access = Registry()
        """Who may do what"""
        self.on_setting: Callable[[str, str | None], None] = _nobody
        """Told of each entry of the configuration that was set or removed, when that is durable"""
        self.on_access: Callable[[Sequence[Change]], None] = _nobody
        """The same of changes of rights"""
        self.audit = Audit(audit or AuditConfig())
        """Who changed what"""
        self.throttles = throttles or ThrottleManager()
        self.scripts = Scripts(scripting, limits, self.config)
        self.recent = RecentRecords(RECENT_BYTES)
        self.wakeups = Wakeups()

    def queue(self, name: str) -> QueueState:
        """Raises QueueNotFound."""
        found = self.queues.get(name)
        if found is None:
            raise QueueNotFound(name)
        return found

    def add(self, queue: QueueState) -> None:
        """Take in a new queue."""
        self.queues[queue.name] = queue
        self._link(queue, queue)
        self.limit(queue)
        self.scripts.reserved += self.scripts.needs(queue.record)
        self._note_hooks(queue)
        if self._departed_count:
            queue.departed = {}

    def _link(self, queue: QueueState, there: QueueState | None) -> None:
        """Have a queue know its dead-letter queue, whichever of them comes or goes."""
        source = self.queues.get(queue.record.source)
        if source is not None:
            source.dead_letters = there
        elif there is not None:
            queue.dead_letters = self.queues.get(dead_letter_name(queue.name))

    def limit(self, queue: QueueState) -> bool:
        """Have a queue go by its own limits and those of its owner. Returns whether its bytes have to be counted."""
        return queue.capacity.limit(limits_of(queue.record, self.access))

    def hold(self, staged: StagedBatch, sign: int) -> None:
        """Count what a call has staged in the queues that it is for, or no longer (-1)."""
        for share in staged.shares:
            queue = self.queues.get(share.queue)
            if queue is not None and queue.record.created_at == share.created_at:
                queue.capacity.stage(sign * share.messages, sign * share.size)

    def configure(self, queue: QueueState, record: QueueRecord, hooks: Hooks | None) -> None:
        """Have a queue go by these settings and hooks from now on."""
        self.scripts.reserved += self.scripts.needs(record) - self.scripts.needs(queue.record)
        queue.configure(record, hooks)
        if hooks is not None or not record.script:
            self.scripts.broken.pop(record.name, None)
        self._note_hooks(queue)

    def remove(self, queue: QueueState) -> None:
        """Forget a queue."""
        del self.queues[queue.name]
        self.loading.pop(queue.name, None)
        self._link(queue, None)
        self.scripts.reserved -= self.scripts.needs(queue.record)
        self.scripts.broken.pop(queue.name, None)
        self.hooks_changed += 1
        self.placing.discard(queue.name)
        self.judging.discard(queue.name)

    def _note_hooks(self, queue: QueueState) -> None:
        self.hooks_changed += 1
        hooks = queue.hooks
        for names, has in (
            (self.placing, hooks is not None and hooks.has_on_enqueue),
            (self.judging, hooks is not None and hooks.has_on_failure),
        ):
            (names.add if has else names.discard)(queue.name)

    def count_departed(self) -> None:
        """Have all queues remember what forgotten keys had delivered: somebody is going to ask."""
        self._departed_count = True
        for queue in self.queues.values():
            queue.departed = {}

    def check_setting(self, key: str, value: str) -> None:
        """Raises InvalidArgument for a value that its key cannot have."""
        if key.startswith(THROTTLE):
            if key == THROTTLE:
                raise InvalidArgument(f"a throttle key must follow {quoted(THROTTLE)}")
            Limit.parse(value)

    def apply_setting(self, key: str, value: str, now: int) -> None:
        """Go by a value of the runtime configuration from now on."""
        if key not in self.config:
            insort(self.config_keys, key)
        self.config[key] = value
        if key.startswith(THROTTLE):
            self.throttles.set(key.removeprefix(THROTTLE), Limit.parse(value), now)

    def forget_setting(self, key: str) -> None:
        if self.config.pop(key, None) is not None:
            del self.config_keys[bisect_left(self.config_keys, key)]
        if key.startswith(THROTTLE):
            self.throttles.remove(key.removeprefix(THROTTLE))


def _nobody(*_: object) -> None:
    pass
