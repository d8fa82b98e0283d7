"""What watches a server, put together, on a broker in the test's own process."""

import asyncio
from contextlib import asynccontextmanager

from fila.broker.broker import Broker
from fila.config import TelemetryConfig
from fila.telemetry.loop_watchdog import LoopWatchdog
from fila.telemetry.telemetry import Telemetry
from tests.helpers.broker import Driver


async def status(telemetry, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", telemetry.prometheus_port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


@asynccontextmanager
async def watched(**settings):
    driver = Driver()
    broker = Broker(driver.engine, driver.store, lambda: driver.now)
    telemetry = Telemetry(TelemetryConfig(**settings), broker, "me", LoopWatchdog(0))
    await telemetry.start()
    try:
        yield broker, telemetry
    finally:
        await telemetry.stop()
        broker.close()


def test_a_server_is_ready_from_the_moment_it_serves_until_it_stops():
    async def run():
        async with watched(prometheus_listen="127.0.0.1:0") as (broker, telemetry):
            seen = [(await status(telemetry, "/healthz"), await status(telemetry, "/readyz"))]
            telemetry.serving = True
            seen.append((await status(telemetry, "/healthz"), await status(telemetry, "/readyz")))
            await broker.stop()
            seen.append((await status(telemetry, "/healthz"), await status(telemetry, "/readyz")))
            broker.failed.set_exception(RuntimeError())
            seen.append((await status(telemetry, "/healthz"), await status(telemetry, "/readyz")))
            assert broker.failed.exception()
            return seen

    assert asyncio.run(run()) == [(200, 503), (200, 200), (200, 503), (503, 503)]


def test_many_scrapes_at_once_are_answered_by_one_look(monkeypatch):
    async def run():
        async with watched(prometheus_listen="127.0.0.1:0") as (_, telemetry):
            looks = []
            look = telemetry._look

            async def slow_look():
                looks.append(1)
                await asyncio.sleep(0.2)
                return await look()

            monkeypatch.setattr(telemetry, "_look", slow_look)
            answers = await asyncio.gather(*(status(telemetry, "/metrics") for _ in range(10)))
            return answers, len(looks)

    answers, looks = asyncio.run(run())
    assert answers == [200] * 10
    assert looks < 10


def test_without_an_address_nothing_is_watched():
    async def run():
        async with watched() as (broker, telemetry):
            assert telemetry.tracer is None
            assert telemetry.prometheus_port == 0
            await broker.create_queue(Driver().create("q").record)
            assert broker.state.queues["q"].departed is None

    asyncio.run(run())


def test_spans_are_noted_only_for_a_collector():
    async def tracer(**settings):
        async with watched(**settings) as (_, telemetry):
            return telemetry.tracer

    assert asyncio.run(tracer(prometheus_listen="127.0.0.1:0")) is None
    assert asyncio.run(tracer(otlp_endpoint="http://127.0.0.1:1", traces=False)) is None
