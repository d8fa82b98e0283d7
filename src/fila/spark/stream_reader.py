"""`spark.readStream`: a queue in numbered claims. The offset of a query is `{"claim": n}`.

Rules of this file:
- A batch is one claim: the one that its end offset names. `latestOffset` makes it, or finds it again after a crash.
- Spark asks for the offset after `start` only once `start` is in its commit log, so that is when `start` is acked.
  `commit` comes later, with the next batch, and never for the last one before a pause.
- Prefetch: while a full batch is read, the next claim is made, so that the next batch does not wait for it.
  `latestOffset` finds that claim as it finds one after a crash.
- Fencing: the first call of a start raises the group's epoch. An older query of the group is refused from then on.
- All methods but `read` run in one process on the driver's machine for as long as the query lives. `read` runs in
  executors, on a copy of the reader.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from fila.client import ClaimInfo, ClaimLostError
from fila.spark.connections import client_of
from fila.spark.errors import DataLoss, OptionError
from fila.spark.group_session import GroupSession
from fila.spark.options import StreamRead
from fila.spark.patience import Patience
from fila.spark.rows import bare_is_enough, message_batches

_log = logging.getLogger(__name__)

Offset = dict[str, Any]


@dataclass(frozen=True)
class ClaimSlice(InputPartition):
    """Positions of a claim from `low` up to, not including, `high`; nothing when they are the same."""

    number: int
    low: int
    high: int


class RefusingReader(DataSourceStreamReader):
    """Stands in for a reader whose options are wrong.

    Spark hides an error of `streamReader` behind an UnboundLocalError of its own. It shows one of the first call.
    """

    def __init__(self, error: OptionError) -> None:
        self._error = error

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        raise self._error

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802
        raise self._error

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:  # noqa: ARG002
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        raise self._error


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a queue for a group."""

    def __init__(self, options: StreamRead) -> None:
        self._options = options
        self._session: GroupSession | None = None
        self._initial: Offset | None = None
        self._cap = 0
        self._wait_ms = options.poll_ms
        self._max_messages = options.trigger.most
        self._patience = Patience(options.trigger)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where the group stands: a new checkpoint goes on where the old one was. Asked for twice."""
        if self._initial is None:
            self._initial = {"claim": self._open().group.floor().floor}
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.trigger.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is enqueued from now on is not for this run."""
        self._cap = max(1, self._open().group.floor().newest)
        self._wait_ms = 0

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Ack all up to `start`, then make the next claim. `start` itself when there is not enough to claim."""
        session = self._open()
        self._max_messages = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.trigger.most
        after = _number(start)
        try:
            session.ack(after)
            if not self._enough(session, after):
                return start
            claim = self._claim(session, after, self._wait_ms)
        except ClaimLostError as error:
            if self._options.fail_on_data_loss:
                raise DataLoss(f"{error}. {_ADVICE}") from error
            after = session.group.floor().floor
            _log.warning("%s: going on behind claim %s", error, after)
            claim = self._claim(session, after, self._wait_ms)
        if claim is None:
            return start
        self._patience.taken()
        return {"claim": claim.number}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """For the query's progress: the last claim, and how many messages wait."""
        floor = self._open().group.floor()
        return {"claim": floor.last, "ready": floor.ready, "delayed": floor.delayed}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        number = _number(end)
        if number == _number(start):
            return [ClaimSlice(number, 0, 0)]
        session = self._open()
        try:
            size = session.group.describe(number).messages
        except ClaimLostError as error:
            if self._options.fail_on_data_loss:
                raise DataLoss(f"{error}. {_ADVICE}") from error
            _log.warning("%s: left out", error)
            return [ClaimSlice(number, 0, 0)]
        if size >= self._max_messages:  # there is probably more
            session.prefetch(partial(self._claim, session, number, wait_ms=0))
        step = max(1, -(-size // self._options.partitions))
        return [ClaimSlice(number, low, min(low + step, size)) for low in range(0, size, step)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ClaimSlice)
        options = self._options
        if partition.low == partition.high:
            return iter(())
        group = client_of(options.broker).group(options.queue, options.group)
        bare = bare_is_enough(options.columns)
        pieces = group.read_packed(partition.number, partition.low, partition.high, bare=bare)
        return message_batches(pieces, options.columns)

    def commit(self, end: Offset) -> None:
        """Nothing is left to do: see the rules above."""

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _open(self) -> GroupSession:
        """The session of this start. Raises FencedError once another query has taken over."""
        if self._session is None:
            self._session = GroupSession(self._options)
        self._session.check()
        return self._session

    def _enough(self, session: GroupSession, after: int) -> bool:
        """Whether there is enough for a batch. A claim that was made already is one."""
        if self._cap or self._patience.always:
            return True
        floor = session.group.floor()
        if floor.last > after or self._patience.enough(floor.ready):
            return True
        time.sleep(self._wait_ms / 1000)
        return False

    def _claim(self, session: GroupSession, after: int, wait_ms: int) -> ClaimInfo | None:
        return session.group.claim(
            after, max_messages=self._max_messages, lease_ms=self._options.lease_ms, cap=self._cap, wait_ms=wait_ms
        )


_ADVICE = (
    "Either this checkpoint is older than what the group has acked, or it belongs to another queue or group. Use the "
    "right checkpoint, or set failOnDataLoss to false to go on behind what was acked"
)


def _number(offset: Offset) -> int:
    number = offset.get("claim")
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{offset} is no offset of this source: the checkpoint belongs to another query")
    return number
