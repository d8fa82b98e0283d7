"""Every metric that the broker exports: one table for Prometheus, OTLP and the docs.

Add a metric:
1. a `Metric` below, listed in `CATALOG`; a gauge of a queue that must not be summed over queues has `adds_up=False`;
2. one line that reads its value (the broker counts with plain integers, and a look reads them):

   | of | where |
   |---|---|
   | the broker, its store | `watch.py`: `_collect_broker` |
   | the process | `process.py` |
   | a queue, also with further labels (`WAIT_PARTS`) | `watch.py`: `_measure` |
   | a fairness key, a throttle key | `keys.py`, `throttles.py` |
   | a hook, waits, the event loop | `scripts.py`, `waits.py`, `loop_watchdog.py` |
3. a row in docs/observability.md and a panel in deploy/grafana/fila.json: tests compare both with `CATALOG`.
"""

from fila.metrics.metric import Metric, MetricType

_QUEUE = ("queue_id",)
_KEY = ("queue_id", "fairness_key")

#: By the name of the field of `fila.broker.queue.Counters` that it shows.
MESSAGES = {
    field: Metric(f"fila.messages.{name}", MetricType.COUNTER, _QUEUE, text, "{message}")
    for field, name, text in (
        ("enqueued", "enqueued", "Messages accepted, without duplicates"),
        ("delivered", "leased", "Deliveries to consumers; a redelivery counts again"),
        ("acked", "acked", "Messages acked"),
        ("nacked", "nacked", "Messages nacked by a consumer"),
        ("expired", "expired", "Messages whose lease expired"),
        ("returned", "returned", "Messages released, or returned because their consumer disconnected"),
        ("dead_lettered", "dead_lettered", "Messages moved to the dead-letter queue"),
        ("redriven", "redriven", "Dead letters moved back to their queue; counted in both queues"),
        ("purged", "purged", "Messages removed by a purge"),
        ("refused", "refused", "Messages refused because the queue was full"),
        (
            "dropped",
            "dropped",
            "Messages dropped because the queue was full",
        ),
    )
}

DEPTH = Metric("fila.queue.depth", MetricType.GAUGE, _QUEUE, "Messages that wait, including delayed ones", "{message}")
DELAYED = Metric("fila.queue.delayed", MetricType.GAUGE, _QUEUE, "Messages whose delay has not ended", "{message}")
SUSPECTS = Metric(
    "fila.queue.suspects",
    MetricType.GAUGE,
    _QUEUE,
    "Messages that wait to be delivered alone, since a consumer that held them was lost",
    "{message}",
)
LEASES = Metric("fila.leases.active", MetricType.GAUGE, _QUEUE, "Messages leased to consumers", "{message}")
OLDEST = Metric(
    "fila.queue.oldest_age",
    MetricType.GAUGE,
    _QUEUE,
    "Age of the oldest message that waits and is not delayed; 0 if there is none",
    "s",
    adds_up=False,
)
USED = Metric(
    "fila.queue.used",
    MetricType.GAUGE,
    _QUEUE,
    "Part of max_depth or max_bytes that is used, of the nearer one, 1 when full; only of queues that are limited",
    adds_up=False,
)
CONSUMERS = Metric("fila.queue.consumers", MetricType.GAUGE, _QUEUE, "Consumers with an open stream", "{consumer}")
PAUSED = Metric("fila.queue.paused", MetricType.GAUGE, _QUEUE, "1 while the queue is paused")
CREDIT = Metric(
    "fila.queue.credit",
    MetricType.GAUGE,
    _QUEUE,
    "Messages that consumers can take now: the sum of their credit",
    "{message}",
)

THROUGHPUT = Metric("fila.fairness.throughput", MetricType.COUNTER, _KEY, "Deliveries of a fairness key", "{message}")
PENDING = Metric(
    "fila.fairness.pending",
    MetricType.GAUGE,
    _KEY,
    "Messages of a fairness key that wait and are not delayed; suspects count",
    "{message}",
)
KEY_OLDEST = Metric(
    "fila.fairness.oldest_age", MetricType.GAUGE, _KEY, "Age of the oldest pending message of a fairness key", "s"
)
SHARE = Metric(
    "fila.fairness.fair_share_ratio",
    MetricType.GAUGE,
    _KEY,
    "Share of recent deliveries that a fairness key got, divided by the share it is entitled to by weight and demand",
)

KEY_WAIT = Metric(
    "fila.fairness.wait",
    MetricType.COUNTER,
    (*_KEY, "part"),
    "Waiting time of a fairness key by cause, sampled from one delivery in 32",
    "s",
)

WAIT = Metric(
    "fila.wait.duration", MetricType.HISTOGRAM, _QUEUE, "Waiting time of messages, sampled from one delivery in 32", "s"
)
WAIT_PARTS = Metric(
    "fila.wait.parts",
    MetricType.COUNTER,
    (*_QUEUE, "part"),
    "Waiting time of messages by cause, sampled from one delivery in 32",
    "s",
)

ROUNDS = Metric("fila.scheduler.drr.rounds", MetricType.COUNTER, _QUEUE, "Rounds of the scheduler", "{round}")
ACTIVE_KEYS = Metric(
    "fila.scheduler.drr.active_keys", MetricType.GAUGE, _QUEUE, "Fairness keys with pending messages", "{key}"
)

TURNS = Metric(
    "fila.scheduler.drr.keys_processed",
    MetricType.COUNTER,
    _QUEUE,
    "Turns of fairness keys",
    "{turn}",
)
PARKED_KEYS = Metric(
    "fila.scheduler.drr.parked_keys",
    MetricType.GAUGE,
    _QUEUE,
    "Fairness keys that wait only for throttles, or after a start for older messages to be read",
    "{key}",
)

DECISIONS = Metric(
    "fila.throttle.decisions",
    MetricType.COUNTER,
    ("throttle_key", "result"),
    "Decisions of a throttle: pass counts messages let through, hit counts times a fairness key had to wait",
    "{decision}",
)
_THROTTLE = ("throttle_key",)
TOKENS = Metric(
    "fila.throttle.tokens_remaining",
    MetricType.GAUGE,
    _THROTTLE,
    "Tokens in the bucket; negative means debt",
    "{token}",
)
THROTTLE_IN_FLIGHT = Metric(
    "fila.throttle.in_flight",
    MetricType.GAUGE,
    _THROTTLE,
    "Messages of a throttle key leased to consumers",
    "{message}",
)
WAITING_KEYS = Metric(
    "fila.throttle.waiting_keys",
    MetricType.GAUGE,
    _THROTTLE,
    "Fairness keys that wait for a throttle",
    "{key}",
)

_HOOK = ("queue_id", "hook")
LUA_DURATION = Metric(
    "fila.lua.execution_duration_us", MetricType.HISTOGRAM, _HOOK, "Duration of calls of a hook", "us"
)
LUA_ERRORS = Metric("fila.lua.errors", MetricType.COUNTER, (*_HOOK, "kind"), "Failed calls of a hook", "{call}")
LUA_BREAKER = Metric(
    "fila.lua.circuit_breaker.activations",
    MetricType.COUNTER,
    _HOOK,
    "Times that the circuit breaker of a hook opened",
    "{time}",
)
LUA_BYPASSED = Metric(
    "fila.lua.bypassed",
    MetricType.COUNTER,
    _HOOK,
    "Messages that got the defaults because a hook was bypassed",
    "{message}",
)

LUA_OPEN = Metric("fila.lua.circuit_breaker.open", MetricType.GAUGE, _HOOK, "1 while a hook is bypassed", "1")
LUA_SPENT = Metric("fila.lua.budget.spent", MetricType.COUNTER, (), "Time spent in hooks and in compiling scripts", "s")
LUA_EXHAUSTED = Metric(
    "fila.lua.budget.exhausted", MetricType.COUNTER, (), "Ticks that ran out of time for hooks", "{tick}"
)
LUA_WAITING = Metric("fila.lua.budget.waiting", MetricType.GAUGE, (), "Messages that wait for hooks", "{message}")
LUA_MEMORY = Metric("fila.lua.memory.reserved", MetricType.GAUGE, (), "Memory limits of all scripts together", "By")

QUEUES = Metric("fila.broker.queues", MetricType.GAUGE, (), "Queues, including dead-letter queues", "{queue}")
COMMANDS = Metric(
    "fila.broker.commands_waiting", MetricType.GAUGE, (), "Messages in requests that wait for the engine", "{message}"
)
TICKS = Metric("fila.broker.ticks", MetricType.COUNTER, (), "Ticks of the engine", "{tick}")
WRITE_FAILURES = Metric(
    "fila.broker.write_failures",
    MetricType.COUNTER,
    (),
    "Ticks whose write failed; they changed nothing",
    "{tick}",
)
WRITE_STALLS = Metric(
    "fila.broker.write_stalls",
    MetricType.COUNTER,
    (),
    "Ticks postponed by a write stall of the store",
    "{tick}",
)
STORE_FREE = Metric("fila.store.free_bytes", MetricType.GAUGE, (), "Free space on the disk of the store", "By")
STORE_FULL = Metric(
    "fila.store.full",
    MetricType.GAUGE,
    (),
    "1 while producers are refused because the disk is full",
)
STORE_FILES = Metric(
    "fila.store.file_bytes",
    MetricType.GAUGE,
    (),
    "Size of the files of the store, without its write-ahead log",
    "By",
)
STORE_BUFFER = Metric(
    "fila.store.buffer_bytes",
    MetricType.GAUGE,
    (),
    "Memory of what is written to the log and not to files yet",
    "By",
)
STORE_CACHE = Metric("fila.store.cache_bytes", MetricType.GAUGE, (), "Memory of cached blocks of files", "By")
COMPACTION_PENDING = Metric(
    "fila.store.compaction.pending_bytes",
    MetricType.GAUGE,
    (),
    "What compaction still has to rewrite, as RocksDB estimates it",
    "By",
)
COMPACTIONS = Metric("fila.store.compaction.running", MetricType.GAUGE, (), "Compactions that run now", "{compaction}")
PROCESS_MEMORY = Metric(
    "fila.process.memory_bytes", MetricType.GAUGE, (), "Resident memory of the server process (RSS); on Linux", "By"
)
PROCESS_CPU = Metric(
    "fila.process.cpu", MetricType.COUNTER, (), "CPU time of the server process, of all its threads", "s"
)
PROCESS_START = Metric(
    "fila.process.start_time", MetricType.GAUGE, (), "When the server process started, since 1970", "s"
)
TURNS_TAKEN = Metric(
    "fila.loop.turn",
    MetricType.HISTOGRAM,
    ("kind",),
    "Duration of turns of the event loop",
    "s",
)
LONGEST_TURN = Metric(
    "fila.loop.longest_turn",
    MetricType.GAUGE,
    ("kind",),
    "Longest turn of the event loop in the last one to two minutes",
    "s",
)
SPANS = Metric(
    "fila.tracing.spans",
    MetricType.COUNTER,
    ("result",),
    "Spans recorded, and spans dropped because too many waited",
    "{span}",
)
BUILD = Metric("fila.build_info", MetricType.GAUGE, ("version",), "Always 1, with the version of the server")

CATALOG: tuple[Metric, ...] = (
    *MESSAGES.values(),
    DEPTH,
    DELAYED,
    SUSPECTS,
    LEASES,
    OLDEST,
    USED,
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
    STORE_FILES,
    STORE_BUFFER,
    STORE_CACHE,
    COMPACTION_PENDING,
    COMPACTIONS,
    PROCESS_MEMORY,
    PROCESS_CPU,
    PROCESS_START,
    TURNS_TAKEN,
    LONGEST_TURN,
    SPANS,
    BUILD,
)
