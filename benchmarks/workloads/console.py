"""What the console costs: ten open pages of a queue with very many fairness keys, in a real browser."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, cpu_s, fresh_server
from benchmarks.workloads.base import Figure, Goal, Run, Workload
from fila import Client, OutgoingMessage
from fila.testing.console import ConsoleProcess, open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = 10
KEYS = 10_000
SETTLE_S = 5.0
"""Until pages have loaded and refresh at their pace."""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
PATIENCE_S = 30.0


def _sample(run: Run) -> Mapping[str, float]:
    seconds = max(2.0, run.scale.idle_seconds)
    with ExitStack() as stack:
        server = stack.enter_context(fresh_server(fairness_header=KEY_HEADER))
        run.say(f"{KEYS:,} keys")
        with Client(server.addr, timeout=60) as client:
            client.enqueue_many(QUEUE, [OutgoingMessage(b"x", {KEY_HEADER: f"key-{number}"}) for number in range(KEYS)])
        console = stack.enter_context(ConsoleProcess(server.addr))
        browser = stack.enter_context(open_browser())
        before = cpu_s(server.pid)
        time.sleep(seconds)
        idle = cpu_s(server.pid) - before
        paints = []
        for number in range(PAGES):
            run.say(f"page {number + 1}")
            page = browser.new_context().new_page()
            page.goto(f"{console.url}/queue?name={QUEUE}", wait_until="load")
            paints.append(_first_paint(page))
        run.say("all pages are open")
        time.sleep(SETTLE_S)
        broker, own = cpu_s(server.pid), cpu_s(console.pid)
        time.sleep(seconds)
        return {
            "first_paint_ms": sorted(paints)[len(paints) // 2],
            "slowest_paint_ms": max(paints),
            "broker_cpu_percent": 100 * max(0.0, cpu_s(server.pid) - broker - idle) / seconds,
            "console_cpu_percent": 100 * (cpu_s(console.pid) - own) / seconds,
        }


def _first_paint(page: "Page") -> float:
    """In milliseconds. Asked again from here, for the policy of the page forbids to poll in it."""
    deadline = time.monotonic() + PATIENCE_S
    while (paint := page.evaluate(PAINT)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing was painted within {PATIENCE_S:g} s")
        time.sleep(0.02)
    return float(paint)


CONSOLE = Workload(
    name="console",
    title="The console",
    setting=lambda s: (
        f"{PAGES} open pages of a queue with {KEYS:,} fairness keys in Chromium, refreshed every 2 s; CPU of the broker"
        f" beside that of an idle one, over {max(2.0, s.idle_seconds):g} s"
    ),
    figures=(
        Figure("first_paint_ms", "first contentful paint, median of the pages", "ms", Goal("<", 1500)),
        Figure("slowest_paint_ms", "first contentful paint, slowest page", "ms"),
        Figure("broker_cpu_percent", "CPU of the broker", "% of a core", Goal("<", 2)),
        Figure("console_cpu_percent", "CPU of the console", "% of a core", Goal("<", 10)),
    ),
    sample=_sample,
)
