"""The hot paths, each without network and disk, and the plain Python that they are compared with.

Rules of this file:
- A path is prepared first; what is measured is the call that follows, for the asked number of messages.
- `reference` is never changed: all stored ratios are ratios to it. It is work of the kind that a broker does, dicts,
  deques, bytes and small objects, and knows nothing of Fila.
"""

import struct
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fila.broker.commands import AckGroup, CreateQueue, Enqueue, Incoming, Settle
from fila.broker.engine import Engine
from fila.broker.grants import token_text
from fila.broker.journal import Journal
from fila.broker.recovery import recover
from fila.client.encoding import OutgoingMessage, encode_all
from fila.config import JournalConfig, LimitsConfig, SchedulerConfig
from fila.core.consumers import Consumer
from fila.core.leases import Grant
from fila.core.throttle import Limit
from fila.internal import wire_pb2
from fila.server.message_codec import read_batch
from fila.storage.memory import MemoryStorage
from fila.storage.records import QueueRecord

_BATCH = 500
_QUEUE = "guard"
_PAYLOAD = b"x" * 1024
_START = 1_700_000_000_000_000_000
_MS = 1_000_000

#: Prepares for a number of messages, and returns what handles them.
Path = Callable[[int], Callable[[], object]]


def reference(count: int) -> Callable[[], object]:
    """What a message costs in the simplest queue: a packed record, a dict by number, a deque by tenant."""
    record = struct.Struct(">QQI")

    def run() -> int:
        stored: dict[int, bytes] = {}
        waiting: dict[str, deque[int]] = {}
        for number in range(count):
            key = f"tenant-{number % 10}"
            stored[number] = record.pack(number, number * 3, len(key)) + _PAYLOAD[:100]
            waiting.setdefault(key, deque()).append(number)
        taken = 0
        for line in waiting.values():
            while line:
                one, _, size = record.unpack_from(stored.pop(line.popleft()))
                taken += one + size
        return taken

    return run


class _Broker:
    """An engine in memory whose time stands still unless it is told to pass."""

    def __init__(self, *, throttle_headers: tuple[str, ...] = ()) -> None:
        store = MemoryStorage()
        self.state = recover(store, 1, LimitsConfig())
        self.engine = Engine(self.state, store, SchedulerConfig(), Journal(store, JournalConfig()))
        self.now = _START
        record = QueueRecord(
            name=_QUEUE,
            created_at=_START,
            visibility_timeout_ms=30_000,
            quantum=4,
            dedup_window_ms=0,
            fairness_header="tenant",
            throttle_headers=throttle_headers,
        )
        self.engine.submit(CreateQueue(record, _ignore))
        self.tick()

    def tick(self) -> None:
        self.now += _MS
        self.engine.tick(self.now)

    def settle_down(self) -> None:
        while self.engine.has_work(self.now):
            self.tick()

    def enqueue(self, batch: list[Incoming]) -> None:
        self.engine.submit(Enqueue(batch, _ignore))
        self.tick()

    def drain(self, count: int) -> None:
        """One consumer that acks each grant at once."""
        left = count
        grants: list[Grant] = []
        consumer = Consumer(1, 2 * _BATCH, grants.append, _ignore)
        self.engine.join(_QUEUE, consumer)
        while left > 0:
            self.tick()
            for grant in grants:
                ids = [self.state.ids.text(seq) for seq in grant.members]
                self.engine.submit(Settle(_ignore, acks=[AckGroup(_QUEUE, ids, token_text(grant.token))]))
                left -= len(ids)
            grants.clear()
        self.settle_down()
        self.engine.leave(_QUEUE, consumer)


def _ignore(_: Any) -> None: ...


def _batches(count: int, keys: int, headers: Mapping[str, str] = MappingProxyType({})) -> list[list[Incoming]]:
    # Messages of the same headers are known by their kind, as they are when the server has decoded them.
    tenants = [{"tenant": f"tenant-{number}", **headers} for number in range(keys)]
    kinds = [repr(tenant).encode() for tenant in tenants]
    messages = [
        Incoming(_QUEUE, tenants[number % keys], _PAYLOAD, len(_PAYLOAD), header_bytes=kinds[number % keys])
        for number in range(count)
    ]
    return [messages[at : at + _BATCH] for at in range(0, count, _BATCH)]


def _enqueue(count: int) -> Callable[[], object]:
    broker, batches = _Broker(), _batches(count, 10)

    def run() -> None:
        for batch in batches:
            broker.enqueue(batch)

    return run


def _drain(count: int, keys: int) -> Callable[[], object]:
    broker = _Broker()
    for batch in _batches(count, keys):
        broker.enqueue(batch)
    return lambda: broker.drain(count)


def _throttled(count: int) -> Callable[[], object]:
    """Every message asks two buckets that always have enough."""
    broker = _Broker(throttle_headers=("provider", "region"))
    for name in ("provider:x", "region:x"):
        broker.state.throttles.set(name, Limit(rate=1e9, burst=1e9), broker.now)
    for batch in _batches(count, 10, {"provider": "x", "region": "x"}):
        broker.enqueue(batch)
    return lambda: broker.drain(count)


def _encode(count: int) -> Callable[[], object]:
    """What the SDK does to send a message."""
    messages = [OutgoingMessage(_PAYLOAD, {"tenant": f"tenant-{number % 10}"}) for number in range(count)]
    return lambda: [chunk.count for chunk in encode_all(_QUEUE, messages)]


def _decode(count: int) -> Callable[[], object]:
    """What the server does to read it."""
    messages = (OutgoingMessage(_PAYLOAD, {"tenant": f"tenant-{number % 10}"}) for number in range(count))
    chunks = [(chunk.frames, chunk.queue) for chunk in encode_all(_QUEUE, messages)]
    limits = LimitsConfig()

    def run() -> None:
        for frames, queue in chunks:
            request = wire_pb2.EncodedEnqueueBatch.FromString(frames)
            request.queue = queue
            read_batch(request, limits)

    return run


PATHS: Mapping[str, Path] = MappingProxyType(
    {
        "enqueue": _enqueue,
        "drain": lambda count: _drain(count, 1),
        "drain, 1,000 keys": lambda count: _drain(count, 1000),
        "drain, throttled": _throttled,
        "encode": _encode,
        "decode": _decode,
    }
)
