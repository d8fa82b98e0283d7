"""Fair delivery under a noisy tenant, and a crash in the middle that loses nothing.

A real server process, real consumer processes and producers, all through the SDK. One tenant fills the queue with a
backlog; others with larger weights and smaller backlogs come after it, and quiet ones send a message now and then.
While all of them wait for the same consumers, the server is killed with kill -9 and started again.

    python -m examples.demo.run [--messages N] [--stay]

The console shows all of it in a browser, also that the broker is away and comes back: open the link that is printed.
With --stay it can be looked at in peace afterwards, until Ctrl-C.

Exit code 0 if every claim of the verdict holds, 1 if one does not.
"""

import argparse
import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from examples.demo.display import Display
from examples.demo.ledger import Ledger, Tenant
from examples.demo.workers import QUEUE, TENANT_HEADER, WEIGHT_HEADER, Confirmed, QuietProducer, Received, fill, work
from fila import Client, QueueInfo
from fila.testing import ServerProcess
from fila.testing.console import ConsoleProcess

CONSUMERS = 3
SECONDS_OF_WORK = 0.001
"""What a consumer does with one message takes this long, so all together handle somewhat less than 3,000 a second."""
QUIET_PAUSE_S = 0.1
OUTAGE_S = 1.0
VISIBILITY_TIMEOUT_MS = 1000
"""Less than the outage with the restart: what consumers held when the server died is then delivered again."""
SHARE_TOLERANCE = 0.01
QUIET_LIMIT = 100
"""Deliveries to others that a message of a quiet tenant may have to wait for."""
PATIENCE_S = 60.0
"""Gives up when no consumer has said anything for so long, however long the whole takes: the machine may be busy."""
CONFIG = "[journal]\nenabled = true\n"
"""The broker writes down what it decides, and is judged by that."""


def main() -> int:
    """Runs the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=20_000, help="backlog of the noisy tenant (default 20,000)")
    parser.add_argument("--stay", action="store_true", help="keep broker and console running at the end, until Ctrl-C")
    options = parser.parse_args()
    if options.messages < 1000:
        parser.error("--messages must be at least 1000: shares of fewer say nothing")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server does not outlive us
    try:
        return Demo(cast(options.messages), Display(), stay=options.stay).run()
    except KeyboardInterrupt:
        return 130


def cast(noisy_backlog: int) -> list[Tenant]:
    """Who takes part. The weighted tenants together bring three quarters of what the noisy one does."""
    unit = noisy_backlog // 20
    return [
        Tenant("noisy", 1, noisy_backlog),
        Tenant("basic", 2, 2 * unit),
        Tenant("plus", 3, 3 * unit),
        Tenant("pro", 4, 4 * unit),
        Tenant("vip", 5, 5 * unit),
        Tenant("quiet-1", 1),
        Tenant("quiet-2", 1),
        Tenant("quiet-3", 1),
    ]


def held_by(summary: QueueInfo) -> int:
    """What is still in the queue, delivered or not."""
    return summary.depth + summary.in_flight


class Demo:
    """One run: fill, consume with a crash in between, judge."""

    def __init__(self, tenants: Sequence[Tenant], display: Display, *, stay: bool = False) -> None:
        self.ledger = Ledger(tenants)
        self.show = display
        self.stay = stay
        self.backlog = sum(tenant.backlog for tenant in tenants)
        self.contended = sum(tenant.backlog for tenant in tenants if tenant.name != "noisy")
        self.last_report = time.monotonic()

    def run(self) -> int:
        """Returns the exit code."""
        with (
            ServerProcess(config=CONFIG) as server,
            ConsoleProcess(server.addr) as console,
            Client(server.addr, timeout=30) as client,
        ):
            link = f"{console.url}/queue?name={QUEUE}"
            self._fill(server, client, link)
            with self._consumers(server.addr), self._quiet_producers(client) as producers, self.show.watching():
                self._watch(server, client, producers)
            self.ledger.journal = list(client.read_journal(from_seq=1, queue=QUEUE))
            code = self._judge(held_by(client.queue_stats(QUEUE).summary))
            if self.stay:
                self.show.say(f"\n  broker at {server.addr}, console at {link}: Ctrl-C ends both")
                with suppress(KeyboardInterrupt):
                    signal.pause()
            return code

    def _fill(self, server: ServerProcess, client: Client, link: str) -> None:
        self.show.title("A queue with a backlog")
        self.show.say(f"fila-server runs at {server.addr}, its data in a temporary directory")
        self.show.say(f"watch it in a browser: [bold]{link}[/]")
        client.create_queue(
            QUEUE,
            fairness_header=TENANT_HEADER,
            weight_header=WEIGHT_HEADER,
            visibility_timeout_ms=VISIBILITY_TIMEOUT_MS,
        )
        started = time.monotonic()
        for tenant in self.ledger.tenants:
            fill(client, tenant, self.ledger)
            if tenant.backlog:
                self.show.say(f"{tenant.name:<8} weight {tenant.weight}, {tenant.backlog:6,} messages waiting")
        quiet = sum(tenant.quiet for tenant in self.ledger.tenants)
        took = time.monotonic() - started
        self.show.say(f"{self.backlog:,} enqueued, each acknowledged as durable, in {took:.1f} s")
        self.show.say(f"and {quiet} quiet tenants that send a message now and then")
        self.show.title(f"{CONSUMERS} consumer processes, the server killed on the way")

    def _watch(self, server: ServerProcess, client: Client, producers: Sequence[QuietProducer]) -> None:
        crash_at, calm_at = 2 * self.contended // 5, self.backlog * 9 // 10
        crashed = calm = False
        while not (calm and held_by(client.queue_stats(QUEUE).summary) == 0) and self._hears():
            time.sleep(0.1)
            self.show.update(self.ledger)
            if not crashed and len(self.ledger.delivered) >= crash_at:
                crashed = True
                self._crash(server)
            if not calm and len(self.ledger.delivered) >= calm_at:
                calm = True
                for producer in producers:
                    producer.stop()
                for producer in producers:
                    producer.join()
        self.show.event(f"{len(self.ledger.delivered):,} deliveries, {len(self.ledger.acked):,} acks confirmed")

    def _hears(self) -> bool:
        return time.monotonic() - self.last_report < PATIENCE_S

    def _crash(self, server: ServerProcess) -> None:
        delivered = len(self.ledger.delivered)
        server.kill()
        self.show.event(f"[bold red]kill -9[/] of the server after {delivered:,} deliveries")
        time.sleep(OUTAGE_S)
        started = time.monotonic()
        server.start()
        took = time.monotonic() - started
        self.show.event(f"[bold green]started again[/] on the same data: serving after {took:.2f} s")

    def _judge(self, left: int) -> int:
        shares, waits = self.ledger.shares(), self.ledger.waits()
        contended = sum(each.delivered for each in shares)
        self.show.title(f"Shares of the first {contended:,} deliveries, while all of these had a backlog")
        self.show.shares(shares)
        self.show.title("From enqueue to delivery, by the broker's journal: deliveries to others in between / time")
        self.show.waits(waits)
        off = max(abs(each.got - each.entitled) for each in shares)
        slowest = max((max(each.deliveries) for each in waits if each.tenant.quiet), default=0)
        lost, back = self.ledger.lost(), self.ledger.came_back()
        claims = [
            (f"every share is within 1 point of its entitlement (worst: {100 * off:.2f})", off <= SHARE_TOLERANCE),
            (f"quiet tenants wait for at most {QUIET_LIMIT} deliveries (worst: {slowest})", slowest <= QUIET_LIMIT),
            (f"of {len(self.ledger.enqueued):,} acknowledged enqueues {len(lost)} are lost", not lost),
            (f"of {len(self.ledger.acked):,} confirmed acks {len(back)} came back", not back),
            (f"{left} messages are left in the queue", left == 0),
        ]
        self.show.title("Verdict")
        for text, holds in claims:
            self.show.claim(text, holds=holds)
        again = self.ledger.redelivered()
        self.show.say(f"     {again} deliveries were repeated: in hand when the server died, and not yet acked")
        failed = sum(not holds for _, holds in claims)
        self.show.verdict(failed)
        return 1 if failed else 0

    @contextmanager
    def _quiet_producers(self, client: Client) -> Iterator[list[QuietProducer]]:
        tenants = [tenant for tenant in self.ledger.tenants if tenant.quiet]
        producers = [QuietProducer(client, tenant, self.ledger, QUIET_PAUSE_S) for tenant in tenants]
        for producer in producers:
            producer.start()
        try:
            yield producers
        finally:
            for producer in producers:
                producer.stop()

    @contextmanager
    def _consumers(self, addr: str) -> Iterator[None]:
        context = multiprocessing.get_context("spawn")  # gRPC does not survive a fork
        reports = context.SimpleQueue()
        collector = threading.Thread(target=self._collect, args=(reports,), daemon=True)
        collector.start()
        workers = [context.Process(target=work, args=(addr, SECONDS_OF_WORK, reports)) for _ in range(CONSUMERS)]
        for worker in workers:
            worker.start()
        try:
            self._await_first_delivery()
            yield
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.join()
            reports.put(None)  # behind all that they had to say
            collector.join()

    def _await_first_delivery(self) -> None:
        self.last_report = time.monotonic()
        while not self.ledger.delivered:
            if not self._hears():
                raise TimeoutError(f"no consumer received anything within {PATIENCE_S:g} s")
            time.sleep(0.01)

    def _collect(self, reports: Any) -> None:
        while (report := reports.get()) is not None:
            self.last_report = time.monotonic()
            match report:
                case Received(deliveries):
                    self.ledger.receive(deliveries)
                case Confirmed(ids):
                    self.ledger.acked.update(ids)


if __name__ == "__main__":
    sys.exit(main())
