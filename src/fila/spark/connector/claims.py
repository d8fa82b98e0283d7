"""`spark.readStream`: a queue in numbered claims. The offset of a query is `{"claim": n}`.

Rules of this file:
- A batch is one claim: the one that its end offset names. `latestOffset` makes it, or finds it again after a crash.
- Spark asks for the offset after `start` only once `start` is in its commit log, so that is when `start` is acked.
  `commit` comes later, with the next batch, and never for the last one before a pause.
- While a batch that was full is read, the broker makes the next claim, so that the next batch need not wait for it.
  Whether it is asked for is all that this decides: `latestOffset` finds that claim as it finds one after a crash.
- The first call of a start raises the group's epoch: a query that was thought dead is refused from then on.
- All methods but `read` run in one process on the driver's machine for as long as the query lives. `read` runs in
  executors, on a copy of the reader.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from fila.client import Claim, ClaimLostError, FencedError, FilaError, Group
from fila.spark.connector.batch import DataLoss
from fila.spark.connector.link import client_of
from fila.spark.connector.options import StreamRead
from fila.spark.connector.rows import bare_is_enough, message_batches

_log = logging.getLogger(__name__)

Offset = dict[str, Any]


@dataclass(frozen=True)
class ClaimSlice(InputPartition):
    """Positions of a claim from `low` up to, not including, `high`; nothing when they are the same."""

    number: int
    low: int
    high: int


class ClaimReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a queue for a group."""

    def __init__(self, options: StreamRead) -> None:
        self._options = options
        self._held: _Held | None = None
        self._initial: Offset | None = None
        self._cap = 0
        self._wait_ms = options.poll_ms
        self._most = options.max_messages

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where the group stands: a new checkpoint goes on where the old one was. Asked for twice."""
        if self._initial is None:
            self._initial = {"claim": self._started().group.floor().floor}
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is enqueued from now on is not for this run."""
        self._cap = max(1, self._started().group.floor().newest)
        self._wait_ms = 0

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Ack all up to `start`, then make the next claim. `start` itself when there is nothing to claim."""
        held = self._started()
        self._most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_messages
        after = _number(start)
        try:
            held.ack(after)
            claim = self._claim(held, after, self._wait_ms)
        except ClaimLostError as error:
            if self._options.fail_on_data_loss:
                raise DataLoss(f"{error}. {_ADVICE}") from error
            after = held.group.floor().floor
            _log.warning("%s: going on behind claim %s", error, after)
            claim = self._claim(held, after, self._wait_ms)
        return start if claim is None else {"claim": claim.number}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """For the query's progress: the last claim, and how many messages wait."""
        floor = self._started().group.floor()
        return {"claim": floor.last, "ready": floor.ready, "delayed": floor.delayed}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        number = _number(end)
        if number == _number(start):
            return [ClaimSlice(number, 0, 0)]
        held = self._started()
        try:
            size = held.group.describe(number).messages
        except ClaimLostError as error:
            if self._options.fail_on_data_loss:
                raise DataLoss(f"{error}. {_ADVICE}") from error
            _log.warning("%s: left out", error)
            return [ClaimSlice(number, 0, 0)]
        if size >= self._most:  # there is probably more
            held.ahead(partial(self._claim, held, number, wait_ms=0))
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
        if self._held is not None:
            self._held.stop()

    def _started(self) -> "_Held":
        """What this query holds of the broker. Raises FencedError once another one has taken over."""
        if self._held is None:
            self._held = _Held(self._options)
        self._held.check()
        return self._held

    def _claim(self, held: "_Held", after: int, wait_ms: int) -> Claim | None:
        return held.group.claim(
            after, max_messages=self._most, lease_ms=self._options.lease_ms, cap=self._cap, wait_ms=wait_ms
        )


class _Held:
    """The group under this start's epoch, and the heartbeat that keeps its claims."""

    def __init__(self, options: StreamRead) -> None:
        self._options = options
        client = client_of(options.broker)
        # Greater than any before, also than that of a query which starts at the same moment.
        epoch = max(client.group(options.queue, options.group).floor().epoch + 1, time.time_ns())
        self.group: Group = client.group(options.queue, options.group, epoch=epoch)
        self._acked = -1
        self._fenced: FencedError | None = None
        self._stopped = threading.Event()
        # At once: what the start took was time of the leases that the last one left.
        self.group.extend(options.lease_ms)
        threading.Thread(target=self._beat, name="fila-heartbeat", daemon=True).start()

    def check(self) -> None:
        """Raises FencedError once another query reads for the group."""
        if self._fenced is not None:
            raise self._fenced

    def ack(self, upto: int) -> None:
        if upto > self._acked:
            acked = self.group.ack(upto)
            self._acked = upto
            if acked.expired:
                _log.warning("claims %s of %s expired: their messages come again", acked.expired, self.group.group)

    def ahead(self, work: Callable[[], object]) -> None:
        """Have something done that will be needed soon. If it fails, whoever needs it will be told."""

        def run() -> None:
            with suppress(FilaError):
                work()

        threading.Thread(target=run, name="fila-ahead", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(self._options.lease_ms / 3000):
            try:
                self.group.extend(self._options.lease_ms)
            except FencedError as error:
                self._fenced = error
                return
            except FilaError as error:
                _log.warning("the claims of %s could not be extended: %s", self.group.group, error)


_ADVICE = (
    "Either this checkpoint is older than what the group has acked, or it belongs to another queue or group. Use the "
    "right checkpoint, or set failOnDataLoss to false to go on behind what was acked"
)


def _number(offset: Offset) -> int:
    number = offset.get("claim")
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{offset} is no offset of this source: the checkpoint belongs to another query")
    return number
