"""Drivers that lie, one thing at a time: `python -m sdks.conformance.lies <lie>`. The suite must find each of them out.

Each lie is the driver of the Python SDK with one operation that does or says something else.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from fila import FilaError, MessageNotFoundError
from sdks.python.driver import Driver
from sdks.python.values import Table


class DropsAnEnqueue(Driver):
    """Says that a message was enqueued, and does not send it."""

    async def op_enqueue(self, request: Table) -> Table:
        self.client(request)
        return {"id": str(uuid4()), "duplicate": False}


class LosesOneOfMany(Driver):
    """Leaves one message of a thousand out."""

    async def op_produce(self, request: Table) -> Table:
        made = await super().op_produce({**request, "count": request["count"] - 1})
        return {**made, "ids": [*made["ids"], str(uuid4())]}


class SendsAgainAsNew(Driver):
    """Takes a slow answer for a lost one, and enqueues once more."""

    async def op_enqueue(self, request: Table) -> Table:
        first = asyncio.ensure_future(super().op_enqueue(request))
        done, _ = await asyncio.wait([first], timeout=0.2)
        if not done:
            await super().op_enqueue(request)
        return await first


class HidesDuplicates(Driver):
    """Says of a duplicate that it was enqueued."""

    async def op_enqueue(self, request: Table) -> Table:
        return {**await super().op_enqueue(request), "duplicate": False}


class AcksTwice(Driver):
    """Sends each ack two times."""

    async def op_ack(self, request: Table) -> None:
        await super().op_ack(request)
        await super().op_ack(request)


class ForgetsAcks(Driver):
    """Says that a message was acked, and does nothing."""

    async def op_ack(self, request: Table) -> None:
        assert request["message"] in self.held


class TakesEveryRefusalForDone(Driver):
    """Says that an ack was carried out whose lease had ended."""

    async def op_ack(self, request: Table) -> None:
        try:
            await super().op_ack(request)
        except MessageNotFoundError:
            return


class CountsFromOne(Driver):
    """Says of the first attempt that it is the second."""

    async def op_next(self, request: Table) -> Table:
        given = await super().op_next(request)
        for message in given["messages"]:
            message["attempt_count"] += 1
        return given


class ForgetsHeaders(Driver):
    """Delivers messages without their headers."""

    async def op_next(self, request: Table) -> Table:
        given = await super().op_next(request)
        return {"messages": [{**message, "headers": {}} for message in given["messages"]]}


class NacksInsteadOfReleasing(Driver):
    """Counts an attempt where none was made."""

    async def op_release(self, request: Table) -> None:
        await self.op_nack(request)


class SwallowsKinds(Driver):
    """Says of every refusal that it is an internal error."""

    async def run(self, request: Table) -> Table:
        try:
            return await super().run(request)
        except FilaError as error:
            raise RuntimeError("something went wrong") from error


class StopsByClosing(Driver):
    """Ends a consumer at once: what the application holds is taken away."""

    async def op_stop(self, request: Table) -> None:
        await self.consumers[request["consumer"]].messages.aclose()
        await super().op_stop(request)


class IgnoresCredit(Driver):
    """Prefetches as many messages as it likes."""

    async def op_consume(self, request: Table) -> None:
        await super().op_consume({**request, "max_in_flight": 1000})


class IgnoresDeadlines(Driver):
    """Waits as long as it takes."""

    async def op_enqueue(self, request: Table) -> Table:
        return await super().op_enqueue({**request, "timeout_ms": 30_000})


class LeaksClients(Driver):
    """Says that a client was closed, and keeps it."""

    kept: list[Any]

    async def op_close(self, request: Table) -> None:
        self.kept = [*getattr(self, "kept", []), self.clients.pop(request.get("client", "c"))]


class TrustsEveryone(Driver):
    """Talks to a server whatever certificate it shows, as far as a wrong name goes."""

    async def op_connect(self, request: Table) -> None:
        tls = request.get("tls")
        if tls is not None:
            request = {**request, "tls": {key: value for key, value in tls.items() if key != "server_name"}}
        await super().op_connect(request)
        if tls is not None and "server_name" in tls:
            await self.client(request).create_queue("q")


class ListsOnePage(Driver):
    """Leaves the pages after the first out."""

    async def op_list_queues(self, request: Table) -> Table:
        return {"queues": (await super().op_list_queues(request))["queues"][:1000]}


class DoesNotKnowIt(Driver):
    """Cannot do one of the operations."""

    async def run(self, request: Table) -> Table:
        return await super().run({**request, "op": "explain!"} if request["op"] == "explain" else request)


#: The scenario that finds each lie out.
FOUND_BY: Mapping[type[Driver], str] = {
    DropsAnEnqueue: "lifecycle",
    LosesOneOfMany: "fifty_producers",
    SendsAgainAsNew: "lost_answer_of_enqueue",
    HidesDuplicates: "dedup_is_told",
    AcksTwice: "lifecycle",
    ForgetsAcks: "lifecycle",
    TakesEveryRefusalForDone: "expired",
    CountsFromOne: "nack_counts",
    ForgetsHeaders: "unicode_and_binary",
    NacksInsteadOfReleasing: "release_counts_nothing",
    SwallowsKinds: "unknown_queue",
    StopsByClosing: "stop_lets_finish",
    IgnoresCredit: "credit",
    IgnoresDeadlines: "deadline_of_silent_server",
    LeaksClients: "nothing_leaks",
    TrustsEveryone: "wrong_name",
    ListsOnePage: "all_pages_of_queues",
    DoesNotKnowIt: "explain",
}


def _main(name: str) -> None:
    from sdks.python.driver import main

    [lie] = [lie for lie in FOUND_BY if lie.__name__ == name]
    asyncio.run(main(lie()))


if __name__ == "__main__":
    _main(sys.argv[1])
