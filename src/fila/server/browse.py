"""Messages that operators look at, send back or remove: which are meant, where a call ended, what they look like."""

import asyncio
from collections.abc import Callable

from fila.broker.broker import Broker
from fila.broker.commands import Location
from fila.broker.operators import Seen
from fila.broker.queue import QueueState
from fila.broker.search import EVERYWHERE, NEWEST_POSSIBLE, Match, Query
from fila.core.errors import InvalidArgument
from fila.core.ids import NS_PER_MS, MessageIds
from fila.core.lifecycle import State
from fila.server.delivery_codec import write_attempt, write_death
from fila.server.timestamps import timestamp
from fila.storage import codec
from fila.v1 import admin_pb2 as pb
from fila.v1 import messages_pb2, service_pb2

DEFAULT_PAGE = 100
MAX_PAGE = 1000
MAX_IDS = 1000
MAX_HEADER_MATCHES = 32
MAX_STATES = 8
PAGE_BYTES = 3 << 20
"""What one answer weighs, unless a single message weighs more."""

WRITTEN_AT_ONCE = 50
"""Messages of an answer that are written in one go: 5 ms, unless they are large"""

WAITING = frozenset({State.READY, State.DELAYED})
_STATES = {
    pb.MESSAGE_STATE_READY: State.READY,
    pb.MESSAGE_STATE_DELAYED: State.DELAYED,
    pb.MESSAGE_STATE_LEASED: State.LEASED,
}
_NUMBERS = {state: number for number, state in _STATES.items()}
_DIGITS = 16


def read_filter(chosen: pb.MessageFilter, ids: MessageIds, now: int, states: frozenset[State] = EVERYWHERE) -> Query:
    """Which messages are meant, of those in some states. Raises InvalidArgument."""
    if len(chosen.message_ids) > MAX_IDS:
        raise InvalidArgument(f"at most {MAX_IDS} message_ids are allowed, {len(chosen.message_ids)} were given")
    if len(chosen.headers) > MAX_HEADER_MATCHES:
        raise InvalidArgument(f"at most {MAX_HEADER_MATCHES} headers are allowed, {len(chosen.headers)} were given")
    if len(chosen.states) > MAX_STATES:
        raise InvalidArgument(f"at most {MAX_STATES} states are allowed, {len(chosen.states)} were given")
    given = frozenset(_STATES.get(number, State.NONE) for number in chosen.states)
    if not given <= EVERYWHERE:
        raise InvalidArgument("states must be ready, delayed or leased")
    if not given <= states:
        raise InvalidArgument("states must be ready or delayed: messages that a consumer holds cannot be moved")
    low = max(0, now - chosen.max_age_ms * NS_PER_MS) if chosen.max_age_ms else 0
    high = max(0, now - chosen.min_age_ms * NS_PER_MS) if chosen.min_age_ms else NEWEST_POSSIBLE
    seqs = None
    if chosen.message_ids:
        seqs = frozenset(seq for one in chosen.message_ids if (seq := ids.seq(one)) is not None)
        low, high = max(low, min(seqs, default=1)), min(high, max(seqs, default=0))
    return Query(
        low=low,
        high=high,
        states=given or states,
        fairness_key=chosen.fairness_key if chosen.HasField("fairness_key") else None,
        seqs=seqs,
        error=chosen.error,
        body=_header_check(chosen) if chosen.headers else None,
    )


def _header_check(chosen: pb.MessageFilter) -> Callable[[bytes], bool]:
    wanted = [(match.name, match.value if match.HasField("value") else None) for match in chosen.headers]

    def check(body: bytes) -> bool:
        headers = service_pb2.EnqueueRequest.FromString(body).headers
        return all(name in headers and value in (None, headers[name]) for name, value in wanted)

    return check


def read_cursor(text: str, count: int) -> list[int] | None:
    """The numbers of a cursor; None for none. Raises InvalidArgument."""
    if not text:
        return None
    digits = [text[at : at + _DIGITS] for at in range(0, len(text), _DIGITS)]
    if len(text) != count * _DIGITS or not all(char in "0123456789abcdef" for char in text):
        raise InvalidArgument("invalid cursor: pass the cursor of an earlier response")
    return [int(number, 16) for number in digits]


def write_cursor(*numbers: int) -> str:
    return "".join(f"{number:0{_DIGITS}x}" for number in numbers)


class Page:
    """The answer to a look, which ends before it grows too large."""

    def __init__(self, broker: Broker, payload_bytes: int) -> None:
        self._broker = broker
        self._payload_bytes = payload_bytes

    async def write(self, seen: Seen) -> pb.PeekResponse:
        response = pb.PeekResponse()
        position, left = seen.position, PAGE_BYTES
        for count, (location, record) in enumerate(seen.matches, 1):
            if not count % WRITTEN_AT_ONCE:
                await asyncio.sleep(0)  # others come in between
            message = self._write(seen.queue, Match(location, record))
            left -= message.ByteSize()
            if left < 0 and response.messages:
                break
            response.messages.append(message)
            position = location.seq
        if len(response.messages) == len(seen.matches):
            position = seen.position
        response.cursor = "" if position is None else write_cursor(position)
        return response

    def _write(self, queue: QueueState, match: Match) -> pb.PeekedMessage:
        location, record = match
        assert record is not None
        head = codec.head_of(record)
        message = messages_pb2.Message.FromString(record[len(head) :])
        size = len(message.payload)
        message.payload = message.payload[: self._payload_bytes]
        message.id = self._broker.state.ids.text(location.seq)
        self._add_metadata(message.metadata, queue, location, head)
        message.timestamps.enqueued_at.FromNanoseconds(location.seq)
        peeked = pb.PeekedMessage(
            message=message,
            state=_NUMBERS[location.state],
            payload_size=size,
            until=timestamp(location.until) if location.until else None,
        )
        if not message.metadata.HasField("dead_letter"):
            failures = self._broker.records.failures_of(queue, location.seq)
            peeked.attempts.extend(write_attempt(*failed) for failed in failures)
        return peeked

    def _add_metadata(
        self, metadata: messages_pb2.MessageMetadata, queue: QueueState, location: Location, head: bytes
    ) -> None:
        metadata.fairness_key = location.key
        metadata.weight, metadata.cost, throttle_keys = codec.read_head(head)
        metadata.throttle_keys.extend(throttle_keys)
        metadata.attempt_count = queue.attempts.get(location.seq, 0)
        metadata.queue_id = queue.name
        metadata.priority = location.priority
        death = self._broker.records.death_of(queue, location.seq) if queue.record.source else None
        if death is not None:
            metadata.dead_letter.CopyFrom(write_death(death))
