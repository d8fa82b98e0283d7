"""A job as a message of the broker: the payload is the job, headers say the rest.

correlation-id     as it is, for whoever else reads the message
fila-job-key       the fairness key, which the queue is told to go by
fila-job           what else the jobs layer needs to know, as JSON
(others)           the job's own headers
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fila.client import ConsumeMessage, PeekedMessage
from fila.jobs.codec import JobCodec, number_in, text_in
from fila.jobs.errors import InvalidJob
from fila.jobs.item import DeadJob, QueueItem

META = "fila-job"
KEY = "fila-job-key"
CORRELATION = "correlation-id"
_OURS = frozenset({META, KEY, CORRELATION})


@dataclass(frozen=True, slots=True)
class DeliveryRef:
    """What settles a delivery: its message and its lease, as the text in `QueueItem.claim`."""

    message_id: str
    lease_id: str

    def __str__(self) -> str:
        return f"{self.message_id}/{self.lease_id}"

    @classmethod
    def of(cls, item: QueueItem) -> DeliveryRef:
        """Raises InvalidJob for an item that was not claimed here."""
        message_id, found, lease_id = item.claim.partition("/")
        if not found:
            raise InvalidJob(f"job {item.id} was not claimed from this queue")
        return cls(message_id, lease_id)


def headers_of(item: QueueItem) -> dict[str, str]:
    """The headers of an item that becomes a message. Raises InvalidJob for a reserved header."""
    meta: dict[str, Any] = {
        "id": item.id,
        "label": item.priority_label,
        "at": item.enqueued_at,
        "ready": item.ready_at,
    }
    if CORRELATION in item.headers:
        raise InvalidJob(f"header {CORRELATION!r}: give it as correlation_id")
    headers = dict(item.headers)
    headers[META] = json.dumps(meta, separators=(",", ":"))
    if item.key is not None:
        headers[KEY] = item.key
    if item.correlation_id is not None:
        headers[CORRELATION] = item.correlation_id
    return headers


def item_of(message: ConsumeMessage, codec: JobCodec) -> QueueItem:
    """The item of a delivered message. Raises InvalidJob if the jobs layer did not write it.

    A job whose worker was lost while it ran others too is run once more before that attempt counts: alone, so that it
    is known whether it was the cause.
    """
    leased_at = message.leased_at.timestamp()
    claim = str(DeliveryRef(message.id, message.lease_id))
    attempt = message.attempt_count + (message.isolation != "suspect")
    return _item(message, codec, max(1, attempt), leased_at, claim)


def dead_job_of(message: PeekedMessage, codec: JobCodec) -> DeadJob:
    """A dead letter. One that is not a job has the label "unreadable"."""
    letter = message.dead_letter
    error = (letter.attempts[-1].error if letter.attempts else "") or letter.reason if letter is not None else "unknown"
    died_at = (message.enqueued_at if letter is None else letter.died_at).timestamp()
    try:
        item = _item(message, codec, max(1, message.attempt_count), died_at, "")
    except InvalidJob:
        item = QueueItem(None, "unreadable", message.priority, 0.0, 0.0, seq_of(message.id), id=message.id)
    return DeadJob(item, error, died_at)


def _item(
    message: ConsumeMessage | PeekedMessage, codec: JobCodec, attempt: int, ready_again: float, claim: str
) -> QueueItem:
    headers = message.headers
    meta = _meta(message, headers)
    try:
        ready_at = number_in(meta["ready"])
        item = QueueItem(
            job=None,
            priority_label=text_in(meta["label"]),
            priority_value=message.priority,
            enqueued_at=number_in(meta["at"]),
            # When a message that came back was ready again is the broker's secret.
            ready_at=ready_again if message.attempt_count else ready_at,
            seq=seq_of(message.id),
            id=text_in(meta["id"]),
            correlation_id=headers.get(CORRELATION),
            key=headers.get(KEY),
            headers={name: value for name, value in headers.items() if name not in _OURS},
            attempt=attempt,
            claim=claim,
        )
        text = message.payload.decode()
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidJob(f"message {message.id} is not a job: {type(error).__name__}") from error
    return replace(item, job=codec.decode(text))


def seq_of(message_id: str) -> int:
    """The sequence number: an id of a message is a number that grows with each enqueue."""
    return int(message_id.replace("-", ""), 16)


def _meta(message: ConsumeMessage | PeekedMessage, headers: Mapping[str, str]) -> dict[str, Any]:
    try:
        meta = json.loads(headers[META])
    except (KeyError, ValueError, RecursionError) as error:
        raise InvalidJob(f"message {message.id} is not a job: no {META} header that can be read") from error
    if not isinstance(meta, dict):
        raise InvalidJob(f"message {message.id} is not a job: its {META} header is not a JSON object")
    return meta
