"""What this machine can do at this moment without a broker, measured right before each repeat of a workload.

Machines differ, and a shared one differs from minute to minute. A figure divided by the floor beside it can be compared
across both. The floors have nothing of Fila in them:

- `grpc_batches`: a bidirectional grpc.aio stream to a process that answers each 500 KB request with a few bytes, eight
  under way, as `enqueue_many` has them. Counted as 500 messages of 1 KB each.
- `grpc_round_trip`: the same stream with one request of 1 KB at a time.
- `rocksdb_puts`: batches of 500 puts of 1 KB into RocksDB with its log on, no network.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import grpc
import uvloop
from rocksdict import DBCompressionType, Options, Rdict, WriteBatch

from benchmarks.harness import ClientProcess, Gate, Measured, run_together
from benchmarks.stats import percentile

_METHOD = "/floor/Answer"
_BATCH = 500
_MESSAGE_BYTES = 1024
_UNDER_WAY = 8
_LARGEST = [("grpc.max_receive_message_length", -1)]

Figures = dict[str, float]


def grpc_batches(seconds: float) -> Figures:
    measured = _against_bare_server(_send_batches, seconds)
    return measured.per_message(measured.clients[0].result)


def grpc_round_trip(seconds: float) -> Figures:
    measured = _against_bare_server(_round_trips, seconds)
    times: list[float] = measured.clients[0].result
    return {
        "p50_ms": percentile(times, 50) * 1000,
        "p99_ms": percentile(times, 99) * 1000,
        **measured.per_message(len(times)),
    }


def rocksdb_puts(seconds: float) -> Figures:
    measured = run_together(None, [ClientProcess(_put_batches, seconds)])
    return {
        "messages_per_s": measured.clients[0].result / measured.seconds,
        "cpu_s_per_100k": measured.client_cpu_s / measured.clients[0].result * 100_000,
    }


FLOORS: Mapping[str, Callable[[float], Figures]] = MappingProxyType(
    {"grpc_batches": grpc_batches, "grpc_round_trip": grpc_round_trip, "rocksdb_puts": rocksdb_puts}
)


def _against_bare_server(work: Callable[..., Any], seconds: float) -> Measured:
    server = ClientProcess(_serve)
    try:
        port = server.receive()
        return run_together(server.pid, [ClientProcess(work, port, seconds)])
    finally:
        server.kill()


def _serve(gate: Gate) -> None:
    async def answer(_: object, context: Any) -> None:
        while (request := await context.read()) is not grpc.aio.EOF:
            await context.write(request[:16])

    async def run() -> None:
        server = grpc.aio.server(options=_LARGEST)
        handler: Any = grpc.stream_stream_rpc_method_handler(answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor", {"Answer": handler}),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        gate.tell(port)
        await server.wait_for_termination()

    uvloop.run(run())


def _send_batches(gate: Gate, port: int, seconds: float) -> int:
    async def run() -> int:
        request = b"x" * (_BATCH * _MESSAGE_BYTES)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=_LARGEST) as channel:
            call: Any = channel.stream_stream(_METHOD)()
            await _exchange(call, request)
            room = asyncio.Semaphore(_UNDER_WAY)

            async def read_answers() -> int:
                answered = 0
                while await call.read() is not grpc.aio.EOF:
                    room.release()
                    answered += 1
                return answered

            with gate:
                reader = asyncio.create_task(read_answers())
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    await room.acquire()
                    await call.write(request)
                await call.done_writing()
                return _BATCH * await reader

    return asyncio.run(run())


def _round_trips(gate: Gate, port: int, seconds: float) -> list[float]:
    async def run() -> list[float]:
        request = b"x" * _MESSAGE_BYTES
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.stream_stream(_METHOD)()
            await _exchange(call, request)
            times: list[float] = []
            with gate:
                end = time.monotonic() + seconds
                while (began := time.monotonic()) < end:
                    await _exchange(call, request)
                    times.append(time.monotonic() - began)
            call.cancel()
            return times

    return asyncio.run(run())


async def _exchange(call: Any, request: bytes) -> None:
    await call.write(request)
    await call.read()


def _put_batches(gate: Gate, seconds: float) -> int:
    payload = b"x" * _MESSAGE_BYTES
    with tempfile.TemporaryDirectory(prefix="fila-floor-") as folder:
        options = Options(raw_mode=True)
        options.set_compression_type(DBCompressionType.none())
        db = Rdict(folder, options)
        number = 0
        with gate:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                batch = WriteBatch(raw_mode=True)
                for _ in range(_BATCH):
                    batch.put(number.to_bytes(8, "big"), payload)
                    number += 1
                db.write(batch)
        db.close()
    return number
