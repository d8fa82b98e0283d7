"""A job as Redis keeps it: what its producer said, as one JSON text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fila.jobs.codec import JobCodec, number_in, text_in
from fila.jobs.errors import InvalidJob
from fila.jobs.item import QueueItem

#: As in queue.lua: score = priority * 2^44 + seq.
_PRIORITY_UNIT = 2**44


def encode(item: QueueItem, text: str) -> str:
    """The record of an item whose job has this text."""
    record: dict[str, Any] = {"job": text, "label": item.priority_label, "at": item.enqueued_at}
    if item.correlation_id is not None:
        record["correlation"] = item.correlation_id
    if item.key is not None:
        record["key"] = item.key
    if item.headers:
        record["headers"] = dict(item.headers)
    return json.dumps(record, separators=(",", ":"))


def decode(codec: JobCodec, fields: tuple[bytes, ...]) -> QueueItem:
    """The item of an id, score, ready_at, attempt and record. Raises InvalidJob when it was not written by us."""
    job_id, score, ready_at, attempt, record = fields
    try:
        said = json.loads(record)
        priority, seq = divmod(int(float(score)), _PRIORITY_UNIT)
        item = QueueItem(
            job=None,
            priority_label=text_in(said["label"]),
            priority_value=priority,
            enqueued_at=number_in(said["at"]),
            ready_at=int(ready_at) / 1000,
            seq=seq,
            id=job_id.decode(),
            correlation_id=_text_or_none(said.get("correlation")),
            key=_text_or_none(said.get("key")),
            headers={name: text_in(value) for name, value in said.get("headers", {}).items()},
            attempt=int(attempt),
        )
        text = text_in(said["job"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidJob(f"job {job_id!r} has a record that cannot be read: {type(error).__name__}") from error
    return replace(item, job=codec.decode(text))


def _text_or_none(value: object) -> str | None:
    return None if value is None else text_in(value)
