"""enqueue_many, all but the waiting: which chunks to send, how many ahead, and what came of them.

bulk = Bulk(queue, messages)
for chunk in bulk.chunks():     # encodes as it goes; ends early when a chunk or a message is hopeless
    ...send it; when `bulk.window` are under way, first wait for the oldest and hand its outcome to `add`
...wait for the rest in order
return bulk.ids()
"""

from collections.abc import Iterable, Iterator

from fila.client.encoding import Chunk, OutgoingMessage, encode_all
from fila.client.errors import EnqueueManyError, FilaError, InvalidArgumentError, LimitExceededError
from fila.client.stream import WINDOW
from fila.v1 import service_pb2


class Bulk:
    """Many messages for one queue, in order."""

    #: Chunks under way: what the stream holds, and two more so that it never runs dry.
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
        self._hopeless: FilaError | None = None

    def chunks(self) -> Iterator[Chunk]:
        try:
            for chunk in encode_all(self._queue, self._messages):
                if self._broken:
                    return
                yield chunk
        except (InvalidArgumentError, LimitExceededError) as error:
            self._hopeless = error

    def add(self, chunk: Chunk, outcome: list[str | FilaError] | FilaError) -> None:
        """Note the results of the oldest chunk under way, or the error that all of it met."""
        if isinstance(outcome, FilaError):
            self._broken = True
            self._results.extend([outcome] * chunk.count)
        else:
            self._results.extend(outcome)

    def ids(self) -> list[str]:
        """Raises EnqueueManyError if any message was not accepted."""
        if self._hopeless is not None and not self._broken:
            self._results.append(self._hopeless)
        ids = [result for result in self._results if isinstance(result, str)]
        if len(ids) != len(self._results):
            raise EnqueueManyError(self._results)
        return ids
