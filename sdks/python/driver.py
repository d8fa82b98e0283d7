"""The driver of the Python SDK for the conformance suite: sdks/conformance/DRIVER.md has its protocol."""

import asyncio
import base64
import json
import platform
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from fila import (
    TLS,
    AsyncClient,
    AsyncConsumeMessage,
    AsyncConsumer,
    ClientClosedError,
    EnqueueManyError,
    FilaError,
    QueueNotFoundError,
)
from sdks.python.values import (
    Table,
    UnsupportedOpError,
    described,
    enqueued,
    incoming,
    open_files,
    outgoing,
)

#: Of a client, so that the time of one request can be longer than the default of the SDK, which is the one of requests
#: that name none.
CLIENT_TIMEOUT_S = 120.0
DEFAULT_TIMEOUT_S = 5.0
PRODUCE_TIMEOUT_S = 60.0
_SHOWN_BYTES = 32


class Held:
    """A consumer, the messages that were taken from it, and those that the program asked for and nobody waits for."""

    def __init__(self, messages: AsyncConsumer[AsyncConsumeMessage]) -> None:
        self.messages = messages
        self.asked: asyncio.Future[AsyncConsumeMessage] | None = None

    async def next(self, count: int, timeout_s: float) -> list[AsyncConsumeMessage]:
        """Fewer when the time is over. What is asked for then goes to the next caller."""
        deadline = time.monotonic() + timeout_s
        taken: list[AsyncConsumeMessage] = []
        while len(taken) < count:
            if self.asked is None:
                self.asked = asyncio.ensure_future(anext(self.messages))
            done, _ = await asyncio.wait([self.asked], timeout=max(0.0, deadline - time.monotonic()))
            if not done:
                break
            asked, self.asked = self.asked, None
            taken.append(asked.result())
        return taken

    async def stop(self) -> None:
        if self.asked is not None:
            self.asked.cancel()
        await self.messages.stop()


class Driver:
    """Clients and consumers by name, and one method for each operation."""

    def __init__(self) -> None:
        self.clients: dict[str, AsyncClient] = {}
        self.consumers: dict[str, Held] = {}
        self.held: dict[str, AsyncConsumeMessage] = {}

    async def run(self, request: Table) -> Table:
        method: Callable[[Table], Awaitable[Table | None]] | None = getattr(self, f"op_{request['op']}", None)
        if method is None:
            raise UnsupportedOpError(request["op"])
        return await method(request) or {}

    def client(self, request: Table) -> AsyncClient:
        name = request.get("client", "c")
        if name not in self.clients:
            raise ClientClosedError(f"there is no client {name!r}")
        return self.clients[name]

    async def op_hello(self, _: Table) -> Table:
        return {
            "sdk": "python",
            "version": version("fila-client"),
            "language": f"Python {platform.python_version()}",
            "grpc": "its own HTTP/2",
        }

    async def op_connect(self, request: Table) -> None:
        tls = request.get("tls")
        self.clients[request.get("client", "c")] = AsyncClient(
            request["addresses"],
            timeout=CLIENT_TIMEOUT_S,
            api_key=request.get("api_key"),
            tls=False if tls is None else TLS(**tls),
        )

    async def op_close(self, request: Table) -> None:
        await self.clients.pop(request.get("client", "c")).close()

    async def op_describe(self, request: Table) -> Table:
        found = await timed(request, self.client(request).describe())
        return {"version": found.version, "max_payload_bytes": found.limits["max_payload_bytes"]}

    async def op_create_queue(self, request: Table) -> None:
        settings = dict(request.get("settings") or {})
        if "throttle_headers" in settings:
            settings["throttle_headers"] = settings["throttle_headers"]["names"]
        if "overflow" in settings:
            settings["overflow"] = settings["overflow"].removeprefix("OVERFLOW_").lower()
        await timed(request, self.client(request).create_queue(request["queue"], **settings))

    async def op_delete_queue(self, request: Table) -> None:
        await timed(request, self.client(request).delete_queue(request["queue"], force=True))

    async def op_list_queues(self, request: Table) -> Table:
        return {"queues": [queue.name for queue in await timed(request, self.client(request).list_queues())]}

    async def op_stats(self, request: Table) -> Table:
        client, queue = self.client(request), request["queue"]
        found = (await timed(request, client.queue_stats(queue))).summary
        dead = 0
        if found.dead_letter_queue:
            with suppress(QueueNotFoundError):
                dead = (await timed(request, client.queue_stats(found.dead_letter_queue))).summary.depth
        return {"depth": found.depth, "in_flight": found.in_flight, "dead_letters": dead}

    async def op_set_config(self, request: Table) -> None:
        await timed(request, self.client(request).set_config(request["key"], request["value"]))

    async def op_get_config(self, request: Table) -> Table:
        value = await timed(request, self.client(request).get_config(request["key"]))
        if value is None:
            error = FilaError(f"no entry {request['key']!r}")
            error.kind = "config_not_found"  # the SDK answers None, which is how Python says it
            raise error
        return {"value": value}

    async def op_delete_config(self, request: Table) -> None:
        await timed(request, self.client(request).delete_config(request["key"]))

    async def op_list_config(self, request: Table) -> Table:
        return {"entries": await timed(request, self.client(request).list_config(request.get("prefix", "")))}

    async def op_enqueue(self, request: Table) -> Table:
        message = outgoing(request)
        sent = self.client(request).enqueue(
            request["queue"],
            message.headers,
            message.payload,
            delay_ms=message.delay_ms,
            priority=message.priority,
            dedup_key=message.dedup_key,
        )
        return enqueued(await timed(request, sent))

    async def op_enqueue_many(self, request: Table) -> Table:
        messages = [outgoing(each) for each in request["messages"]]
        results: list[str | FilaError]
        try:
            results = list(await timed(request, self.client(request).enqueue_many(request["queue"], messages)))
        except EnqueueManyError as error:
            results = error.results
        return {
            "results": [
                {"error": described(result)} if isinstance(result, FilaError) else enqueued(result)
                for result in results
            ]
        }

    async def op_produce(self, request: Table) -> Table:
        client, count, size = self.client(request), request["count"], request.get("size", 0)
        ids: list[str | None] = [None] * count
        errors: list[Table] = []
        numbers = iter(range(count))
        request = {"timeout_ms": PRODUCE_TIMEOUT_S * 1000} | request

        async def producer() -> None:
            for number in numbers:
                payload = f"{number} ".encode().ljust(size, b"x")
                try:
                    ids[number] = await timed(
                        request, client.enqueue(request["queue"], request.get("headers"), payload)
                    )
                except (FilaError, TimeoutError) as error:
                    errors.append(described(error))

        began = time.perf_counter()
        await asyncio.gather(*(producer() for _ in range(request.get("concurrency", 1))))
        return {"ids": ids, "errors": errors, "seconds": time.perf_counter() - began}

    async def op_consume(self, request: Table) -> None:
        messages = self.client(request).consume(request["queue"], max_in_flight=request.get("max_in_flight", 100))
        self.consumers[request["consumer"]] = Held(messages)

    async def op_next(self, request: Table) -> Table:
        timeout_s = request.get("timeout_ms", DEFAULT_TIMEOUT_S * 1000) / 1000
        messages = await self.consumers[request["consumer"]].next(request["count"], timeout_s)
        self.held.update((message.id, message) for message in messages)
        return {"messages": [incoming(message) for message in messages]}

    async def op_ack(self, request: Table) -> None:
        await timed(request, self.held[request["message"]].ack())

    async def op_nack(self, request: Table) -> None:
        message, delay_ms = self.held[request["message"]], request.get("delay_ms", 0)
        await timed(request, message.nack(request.get("error", ""), delay_ms=delay_ms))

    async def op_release(self, request: Table) -> None:
        await timed(request, self.held[request["message"]].release())

    async def op_reject(self, request: Table) -> None:
        await timed(request, self.held[request["message"]].reject(request.get("error", "")))

    async def op_extend(self, request: Table) -> None:
        await timed(request, self.held[request["message"]].extend(request.get("extend_ms", 0)))

    async def op_ack_by_id(self, request: Table) -> None:
        await timed(request, self.client(request).ack(request["queue"], request["message"]))

    async def op_nack_by_id(self, request: Table) -> None:
        client = self.client(request)
        await timed(request, client.nack(request["queue"], request["message"], request.get("error", "")))

    async def op_stop(self, request: Table) -> None:
        await self.consumers.pop(request["consumer"]).stop()

    async def op_work(self, request: Table) -> Table:
        count, handler_s = request["count"], request.get("handler_ms", 0) / 1000
        ids: list[str] = []
        shown: list[str] = []
        begun = 0
        began = time.perf_counter()
        messages = self.client(request).consume(request["queue"], max_in_flight=request.get("max_in_flight", 100))
        turn = asyncio.Lock()

        async def worker() -> None:
            nonlocal begun
            while begun < count:
                async with turn:
                    if begun >= count:
                        return
                    message = await anext(messages)
                    begun += 1
                if handler_s:
                    await asyncio.sleep(handler_s)
                try:
                    await message.ack()
                except FilaError:
                    begun -= 1  # it will come again
                else:
                    ids.append(message.id)
                    shown.append(message.payload[:_SHOWN_BYTES].decode(errors="replace"))

        try:
            workers = (worker() for _ in range(request.get("concurrency", 1)))
            await timed({"timeout_ms": PRODUCE_TIMEOUT_S * 1000} | request, asyncio.gather(*workers))
        finally:
            await messages.stop()
        return {"ids": ids, "payloads": shown, "seconds": time.perf_counter() - began}

    async def op_explain(self, request: Table) -> Table:
        found = await timed(request, self.client(request).explain(request["queue"], request.get("message", "")))
        return {"reason": found.reasons[0].code.upper() if found.reasons else ""}

    async def op_redrive(self, request: Table) -> Table:
        return {"count": await timed(request, self.client(request).redrive(request["queue"]))}

    async def op_peek(self, request: Table) -> Table:
        page = await timed(request, self.client(request).peek(request["queue"], limit=request.get("count", 100)))
        return {"ids": [message.id for message in page.messages]}

    async def op_cancel_enqueue(self, request: Table) -> Table:
        sent = asyncio.ensure_future(
            self.client(request).enqueue(request["queue"], None, base64.b64decode(request.get("payload", "")))
        )
        await asyncio.wait([sent], timeout=request.get("after_ms", 0) / 1000)
        sent.cancel()
        return enqueued(await sent)

    async def op_resources(self, _: Table) -> Table:
        return {"threads": threading.active_count(), "tasks": len(asyncio.all_tasks()), "handles": open_files()}

    async def op_latency(self, request: Table) -> Table:
        client, queue, count = self.client(request), request["queue"], request["count"]
        took: list[float] = []
        consumer = client.consume(queue)

        async def receive() -> None:
            async for message in consumer:
                took.append(time.perf_counter() - float(message.headers["sent"]))
                calls.add(asyncio.ensure_future(message.ack()))
                if len(took) == count:
                    return

        calls: set[asyncio.Future[Any]] = set()
        receiving = asyncio.create_task(receive())
        began = time.perf_counter()
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / request["rate"] - time.perf_counter()))
            sent = client.enqueue(queue, {"sent": repr(time.perf_counter())}, bytes(request.get("size", 0)))
            calls.add(asyncio.ensure_future(sent))
        await receiving
        await asyncio.gather(*calls)
        await consumer.aclose()
        took.sort()
        return {"p50_us": took[len(took) // 2] * 1e6, "p99_us": took[len(took) * 99 // 100] * 1e6}

    async def op_lifecycle(self, request: Table) -> Table:
        began = time.perf_counter()
        await asyncio.gather(self.op_produce(request), self.op_work(request))
        return {"seconds": time.perf_counter() - began}


async def timed(request: Table, call: Awaitable[Any]) -> Any:
    async with asyncio.timeout(request.get("timeout_ms", DEFAULT_TIMEOUT_S * 1000) / 1000):
        return await call


async def main(driver: Driver) -> None:
    """Answer requests until standard input ends."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    async def answer(request: Table) -> None:
        given: Table
        try:
            given = {"ok": await driver.run(request)}
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # every error is an answer
            given = {"error": described(error)}
        sys.stdout.write(json.dumps({"id": request["id"]} | given, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    threading.Thread(target=read, daemon=True).start()
    running: set[asyncio.Task[None]] = set()
    while line := await lines.get():
        task = asyncio.create_task(answer(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()
    for client in driver.clients.values():
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(Driver()))
