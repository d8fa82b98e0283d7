"""What a streaming query holds at the broker: its consumer group under one epoch, with heartbeat and prefetch."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from fila.client import FencedError, FilaError, Group
from fila.spark.connections import client_of
from fila.spark.options import StreamRead

_log = logging.getLogger(__name__)


class GroupSession:
    """A consumer group under the epoch of this start, and the heartbeat that extends its leases."""

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

    def prefetch(self, work: Callable[[], object]) -> None:
        """Do work in the background whose result will be needed soon. If it fails, whoever needs it repeats it."""

        def run() -> None:
            with suppress(FilaError):
                work()

        threading.Thread(target=run, name="fila-prefetch", daemon=True).start()

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
