"""Every metric that the broker exports: one table, from which both exits (Prometheus, OTLP) and the docs go.

A counter never goes down while the process lives; it starts at 0 with it. Units are those of UCUM, as OpenTelemetry has
them. In Prometheus a name has underscores for dots, its unit if that is seconds, and `_total` if it is a counter.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric: its name, its labels, and what it says. There is one object for each, so it is a quick key."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    unit: str = "1"

    @property
    def prometheus_name(self) -> str:
        name = self.name.replace(".", "_")
        if self.unit == "s":
            name += "_seconds"
        return name + "_total" if self.kind is Kind.COUNTER else name


_QUEUE = ("queue_id",)
_KEY = ("queue_id", "fairness_key")

#: By the name of the field of `fila.broker.queue.Counters` that it shows.
MESSAGES = {
    field: Metric(f"fila.messages.{name}", Kind.COUNTER, _QUEUE, text, "{message}")
    for field, name, text in (
        ("enqueued", "enqueued", "Messages that were accepted, duplicates not counted"),
        ("delivered", "leased", "Messages that were handed to a consumer, each time"),
        ("acked", "acked", "Messages that were done"),
        ("nacked", "nacked", "Messages that a consumer gave back"),
        ("expired", "expired", "Messages whose lease ended without an answer"),
        ("returned", "returned", "Messages that came back because their consumer went away"),
        ("dead_lettered", "dead_lettered", "Messages that went to the dead-letter queue"),
        ("redriven", "redriven", "Dead letters that went back to their queue, counted in both"),
        ("purged", "purged", "Dead letters that were thrown away"),
    )
}

DEPTH = Metric("fila.queue.depth", Kind.GAUGE, _QUEUE, "Messages that wait, delayed ones included", "{message}")
DELAYED = Metric("fila.queue.delayed", Kind.GAUGE, _QUEUE, "Messages that wait for their delay to end", "{message}")
LEASES = Metric("fila.leases.active", Kind.GAUGE, _QUEUE, "Messages that consumers hold", "{message}")
OLDEST = Metric(
    "fila.queue.oldest_age", Kind.GAUGE, _QUEUE, "Age of the oldest message that could go out; 0 if none", "s"
)
CONSUMERS = Metric("fila.queue.consumers", Kind.GAUGE, _QUEUE, "Consumers with an open stream", "{consumer}")
PAUSED = Metric("fila.queue.paused", Kind.GAUGE, _QUEUE, "1 while the queue hands out nothing on purpose")
CREDIT = Metric("fila.queue.credit", Kind.GAUGE, _QUEUE, "Messages that consumers would take now", "{message}")

THROUGHPUT = Metric(
    "fila.fairness.throughput", Kind.COUNTER, _KEY, "Messages of a fairness key that were handed out", "{message}"
)
PENDING = Metric("fila.fairness.pending", Kind.GAUGE, _KEY, "Messages of a fairness key that could go out", "{message}")
KEY_OLDEST = Metric(
    "fila.fairness.oldest_age", Kind.GAUGE, _KEY, "Age of a fairness key's oldest message that could go out", "s"
)
SHARE = Metric(
    "fila.fairness.fair_share_ratio",
    Kind.GAUGE,
    _KEY,
    "What a fairness key got of the last deliveries, divided by what it should have got by its weight and demand",
)

KEY_WAIT = Metric(
    "fila.fairness.wait",
    Kind.COUNTER,
    (*_KEY, "part"),
    "Where the waits of a fairness key's messages went, of one delivery in 32",
    "s",
)

WAIT = Metric("fila.wait.duration", Kind.HISTOGRAM, _QUEUE, "How long messages had waited, of one delivery in 32", "s")
WAIT_PARTS = Metric(
    "fila.wait.parts", Kind.COUNTER, (*_QUEUE, "part"), "Where the waits of messages went, of one delivery in 32", "s"
)

ROUNDS = Metric("fila.scheduler.drr.rounds", Kind.COUNTER, _QUEUE, "Rounds of the scheduler", "{round}")
ACTIVE_KEYS = Metric(
    "fila.scheduler.drr.active_keys", Kind.GAUGE, _QUEUE, "Fairness keys with messages that could go out", "{key}"
)

TURNS = Metric(
    "fila.scheduler.drr.keys_processed",
    Kind.COUNTER,
    _QUEUE,
    "Turns that fairness keys have had",
    "{turn}",
)
PARKED_KEYS = Metric(
    "fila.scheduler.drr.parked_keys", Kind.GAUGE, _QUEUE, "Fairness keys that wait for nothing but throttles", "{key}"
)

DECISIONS = Metric(
    "fila.throttle.decisions",
    Kind.COUNTER,
    ("throttle_key", "result"),
    "What a throttle decided: pass is a message that it let go, hit a fairness key that it began to hold up",
    "{decision}",
)
_THROTTLE = ("throttle_key",)
TOKENS = Metric(
    "fila.throttle.tokens_remaining", Kind.GAUGE, _THROTTLE, "Tokens in the bucket; less than 0 is a debt", "{token}"
)
THROTTLE_IN_FLIGHT = Metric(
    "fila.throttle.in_flight", Kind.GAUGE, _THROTTLE, "Messages of a throttle key that consumers hold", "{message}"
)
WAITING_KEYS = Metric(
    "fila.throttle.waiting_keys",
    Kind.GAUGE,
    _THROTTLE,
    "Fairness keys that wait for a throttle",
    "{key}",
)

_HOOK = ("queue_id", "hook")
LUA_DURATION = Metric("fila.lua.execution_duration_us", Kind.HISTOGRAM, _HOOK, "How long calls of a hook took", "us")
LUA_ERRORS = Metric("fila.lua.errors", Kind.COUNTER, (*_HOOK, "kind"), "Calls of a hook that failed", "{call}")
LUA_BREAKER = Metric(
    "fila.lua.circuit_breaker.activations",
    Kind.COUNTER,
    _HOOK,
    "How often a hook began to be bypassed",
    "{time}",
)
LUA_BYPASSED = Metric(
    "fila.lua.bypassed", Kind.COUNTER, _HOOK, "Messages that took the defaults while a hook was bypassed", "{message}"
)

LUA_OPEN = Metric("fila.lua.circuit_breaker.open", Kind.GAUGE, _HOOK, "1 while a hook is bypassed", "1")
LUA_SPENT = Metric("fila.lua.budget.spent", Kind.COUNTER, (), "Time that hooks and compiling them took", "s")
LUA_EXHAUSTED = Metric(
    "fila.lua.budget.exhausted", Kind.COUNTER, (), "Ticks that ended with hooks still to be asked", "{tick}"
)
LUA_WAITING = Metric("fila.lua.budget.waiting", Kind.GAUGE, (), "Messages that wait for hooks", "{message}")
LUA_MEMORY = Metric("fila.lua.memory.reserved", Kind.GAUGE, (), "What scripts of all queues may hold", "By")

QUEUES = Metric("fila.broker.queues", Kind.GAUGE, (), "Queues, dead-letter queues included", "{queue}")
COMMANDS = Metric(
    "fila.broker.commands_waiting", Kind.GAUGE, (), "Messages in requests that wait for a tick", "{message}"
)
TICKS = Metric("fila.broker.ticks", Kind.COUNTER, (), "Ticks of the engine", "{tick}")
WRITE_FAILURES = Metric(
    "fila.broker.write_failures",
    Kind.COUNTER,
    (),
    "Ticks that changed nothing because their write failed",
    "{tick}",
)
WRITE_STALLS = Metric(
    "fila.broker.write_stalls",
    Kind.COUNTER,
    (),
    "Ticks that were put off because the store was behind with its files",
    "{tick}",
)
STORE_FREE = Metric("fila.store.free_bytes", Kind.GAUGE, (), "Room on the disk of the store", "By")
STORE_FULL = Metric(
    "fila.store.full", Kind.GAUGE, (), "1 while producers are refused because there is too little room on the disk"
)
TURNS_TAKEN = Metric(
    "fila.loop.turn",
    Kind.HISTOGRAM,
    ("kind",),
    "How long the event loop was busy with one thing at a time",
    "s",
)
LONGEST_TURN = Metric(
    "fila.loop.longest_turn",
    Kind.GAUGE,
    ("kind",),
    "The longest time that the event loop was busy with one thing, in the last one to two minutes",
    "s",
)
SPANS = Metric(
    "fila.tracing.spans",
    Kind.COUNTER,
    ("result",),
    "Spans that were noted, and dropped because there were too many",
    "{span}",
)
BUILD = Metric("fila.build_info", Kind.GAUGE, ("version",), "Always 1, with the version of the server")

CATALOG: tuple[Metric, ...] = (
    *MESSAGES.values(),
    DEPTH,
    DELAYED,
    LEASES,
    OLDEST,
    CONSUMERS,
    CREDIT,
    PAUSED,
    THROUGHPUT,
    PENDING,
    KEY_OLDEST,
    SHARE,
    KEY_WAIT,
    WAIT,
    WAIT_PARTS,
    ROUNDS,
    ACTIVE_KEYS,
    TURNS,
    PARKED_KEYS,
    DECISIONS,
    TOKENS,
    THROTTLE_IN_FLIGHT,
    WAITING_KEYS,
    LUA_DURATION,
    LUA_ERRORS,
    LUA_BREAKER,
    LUA_BYPASSED,
    LUA_OPEN,
    LUA_SPENT,
    LUA_EXHAUSTED,
    LUA_WAITING,
    LUA_MEMORY,
    QUEUES,
    COMMANDS,
    TICKS,
    WRITE_FAILURES,
    WRITE_STALLS,
    STORE_FREE,
    STORE_FULL,
    TURNS_TAKEN,
    LONGEST_TURN,
    SPANS,
    BUILD,
)
