"""A job as a message of the broker: the payload is the job, headers say the rest.

    correlation-id     as it is, for whoever else reads the message
    fila-job-key       the fairness key, which the queue is told to go by
    fila-job           what else the jobs layer needs to know, as JSON
    fila-job-error     why a message that is no job was put among the dead
    (others)           the job's own headers

A message is never changed. A job that is put off without counting the attempt is therefore a new message, with the
attempt so far in it, and `hop` one higher; under the dedup key "<job id>:<hop>" it is enqueued once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fila.client import ConsumeMessage
from fila.jobs.codec import JobCodec
from fila.jobs.errors import InvalidJob
from fila.jobs.item import QueueItem

META = "fila-job"
#: Why a message that is no job was put among the dead.
ERROR = "fila-job-error"
KEY = "fila-job-key"
CORRELATION = "correlation-id"
_OURS = frozenset({META, KEY, CORRELATION})


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to settle a delivery, as the text that an item carries."""

    message_id: str
    lease_id: str
    hop: int

    def __str__(self) -> str:
        return f"{self.message_id}/{self.lease_id}/{self.hop}"

    @classmethod
    def of(cls, item: QueueItem) -> Claim:
        """Raises InvalidJob for an item that was not claimed here."""
        parts = item.claim.split("/")
        if len(parts) != 3:
            raise InvalidJob(f"job {item.id} was not claimed from this queue")
        return cls(parts[0], parts[1], int(parts[2]))


def headers_of(item: QueueItem, *, hop: int = 0, error: str = "") -> dict[str, str]:
    """The headers of an item that becomes a message. Raises InvalidJob for a header that means something here."""
    meta: dict[str, Any] = {
        "id": item.id,
        "label": item.priority_label,
        "at": item.enqueued_at,
        "ready": item.ready_at,
        "attempt": item.attempt,
        "hop": hop,
    }
    if error:
        meta["error"] = error
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
    """The item of a delivered message. Raises InvalidJob when nobody of the jobs layer wrote it."""
    headers = message.headers
    meta = _meta(message, headers)
    leased_at = message.leased_at.timestamp()
    try:
        item = QueueItem(
            job=None,
            priority_label=str(meta["label"]),
            priority_value=message.priority,
            enqueued_at=float(meta["at"]),
            # When a nacked message became ready again is the broker's secret.
            ready_at=leased_at if message.attempt_count else float(meta["ready"]),
            seq=seq_of(message.id),
            id=str(meta["id"]),
            correlation_id=headers.get(CORRELATION),
            key=headers.get(KEY),
            headers={name: value for name, value in headers.items() if name not in _OURS},
            attempt=int(meta["attempt"]) + message.attempt_count,
            claim=str(Claim(message.id, message.lease_id, int(meta["hop"]))),
        )
        text = message.payload.decode()
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidJob(f"message {message.id} is not a job: {type(error).__name__}") from error
    return replace(item, job=codec.decode(text))


def error_of(message: ConsumeMessage) -> str:
    """Why a dead job was given up: what was said when it was buried, or when the broker gave it up by itself."""
    letter = message.dead_letter
    if letter is not None:
        return (letter.attempts[-1].error if letter.attempts else "") or letter.reason
    try:
        return str(_meta(message, message.headers).get("error", "unknown"))
    except InvalidJob:
        return message.headers.get(ERROR, "unknown")


def died_at(message: ConsumeMessage) -> float:
    letter = message.dead_letter
    return (message.enqueued_at if letter is None else letter.died_at).timestamp()


def seq_of(message_id: str) -> int:
    """Ids of messages grow with each enqueue, and so do the numbers that they are."""
    return int(message_id.replace("-", ""), 16)


def _meta(message: ConsumeMessage, headers: Mapping[str, str]) -> dict[str, Any]:
    try:
        meta = json.loads(headers[META])
    except (KeyError, ValueError, RecursionError) as error:
        raise InvalidJob(f"message {message.id} is not a job: no {META} header that can be read") from error
    if not isinstance(meta, dict):
        raise InvalidJob(f"message {message.id} is not a job: its {META} header says nothing")
    return meta
