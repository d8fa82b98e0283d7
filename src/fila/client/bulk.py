"""The logic of enqueue_many without the waiting: which chunks to send, how many at once, and their results.

bulk = Bulk(queue, messages)
for chunk in bulk.chunks():     # encodes as it goes; ends early after a failed chunk or a message that cannot be sent
    ...send it; when `bulk.window` are in flight, wait for the oldest and pass its outcome to `add`
...wait for the rest in order
return bulk.ids()
"""

from collections.abc import Iterable, Iterator

from fila.client.batch_stream import WINDOW
from fila.client.encoding import Chunk, OutgoingMessage, encode_all
from fila.client.errors import EnqueueManyError, FilaError, InvalidArgumentError, LimitExceededError
from fila.v1 import service_pb2


class Bulk:
    """Many messages for one queue, in order."""

    #: Chunks in flight: the window of the stream, and two more so that it never runs dry.
    window = WINDOW + 2

    def __init__(self, queue: str, messages: Iterable[OutgoingMessage | bytes]) -> None:
        try:
            service_pb2.EnqueueBatchRequest(queue=queue)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(str(error)) from error
        self._queue = queue
        self._messages = messages
        self._results: list[str | FilaError] = []
        self._broken = False
        self._unsendable: FilaError | None = None

    def chunks(self) -> Iterator[Chunk]:
        try:
            for chunk in encode_all(self._queue, self._messages):
                if self._broken:
                    return
                yield chunk
        except (InvalidArgumentError, LimitExceededError) as error:
            self._unsendable = error

    def add(self, chunk: Chunk, outcome: list[str | FilaError] | FilaError) -> None:
        """Note the results of the oldest chunk in flight, or the error with which all of it failed."""
        if isinstance(outcome, FilaError):
            self._broken = True
            self._results.extend([outcome] * chunk.count)
        else:
            self._results.extend(outcome)

    def ids(self) -> list[str]:
        """Raises EnqueueManyError if the broker did not accept a message."""
        if self._unsendable is not None and not self._broken:
            self._results.append(self._unsendable)
        ids = [result for result in self._results if isinstance(result, str)]
        if len(ids) != len(self._results):
            raise EnqueueManyError(self._results)
        return ids
