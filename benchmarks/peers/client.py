"""What every broker's client can do here. One object in one client process, in the broker's best batch mode.

Rules of this file:
- `send` and `send_one` return when the broker has confirmed everything, under the durability that the peer states.
- `receive` returns when the broker has the acknowledgement of everything that was taken: a request that it answers
  follows the last one wherever acknowledgements are not answered themselves.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice

#: Handed each batch as it comes; False ends the receiving.
Take = Callable[[Sequence[bytes]], bool]

#: Messages of one request, where a client makes its batches itself.
BATCH = 500
#: Messages that may be unconfirmed, or unacknowledged.
WINDOW = 4000


class Client(ABC):
    """A connection to one queue."""

    @abstractmethod
    def send(self, payloads: Iterable[bytes], tenant: str = "") -> None: ...

    @abstractmethod
    def send_one(self, payload: bytes) -> None: ...

    @abstractmethod
    def send_paced(self, count: int, per_s: float, make: Callable[[], bytes]) -> list[float]:
        """Send at fixed times, whether or not earlier ones are confirmed. Returns how late each call was."""

    @abstractmethod
    def receive(self, take: Take) -> None: ...

    def close(self) -> None:  # noqa: B027  most have nothing that outlives their process
        """Leave the broker, where somebody waits for that."""


def batches(payloads: Iterable[bytes]) -> Iterator[list[bytes]]:
    left = iter(payloads)
    while batch := list(islice(left, BATCH)):
        yield batch


def pace(count: int, per_s: float, post: Callable[[], None], wait: Callable[[float], object]) -> list[float]:
    """Call `post` at fixed times, and `wait` in between."""
    late: list[float] = []
    start = time.monotonic()
    for number in range(count):
        due = start + number / per_s
        while (left := due - time.monotonic()) > 0:
            wait(left)
        late.append(time.monotonic() - due)
        post()
    return late


async def pace_async(count: int, per_s: float, post: Callable[[], Awaitable[object]]) -> list[float]:
    """The same on an event loop. Returns when all that was posted is confirmed."""
    late: list[float] = []
    confirmed: list[asyncio.Task[object]] = []

    async def run() -> object:
        return await post()

    start = time.monotonic()
    for number in range(count):
        due = start + number / per_s
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        late.append(time.monotonic() - due)
        confirmed.append(asyncio.create_task(run()))
    await asyncio.gather(*confirmed)
    return late
