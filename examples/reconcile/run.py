"""Reconciliation with everything that goes wrong: platforms that fail, affiliates that cheat, one that floods.

The API, the workers and the simulated platforms are the ones that ship, on their defaults: a SQLite file and a queue in
memory. Only waits are shorter, so that half a day of retries passes in seconds.
"""

import argparse
import logging
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import httpx

from examples.reconcile.cast import (
    AFFILIATES,
    FLOODER,
    LOCKED,
    OUT_FOR_A_WHILE,
    PLATFORMS,
    SHAKY,
    Affiliate,
    report,
    script,
)
from examples.reconcile.screen import ReportScreen
from fila.jobs.breaker import BreakerSettings
from fila.reconcile.api import ApiSettings
from fila.reconcile.config import Config, StoreSettings
from fila.reconcile.domain.models import Status
from fila.reconcile.domain.settings import Retries, Settings
from fila.reconcile.domain.trust import deltas, score_bp
from fila.reconcile.platforms import Platform
from fila.reconcile.service import Parts
from fila.reconcile.serving import HttpServer
from fila.reconcile.simulator import Faults, Simulator
from fila.reconcile.simulator.server import TOKEN

OUTAGE_S = (1.5, 5.0)
"""From when to when one of the platforms is down."""
BATCH = 8
PACE_S = 0.2
FLOOD = 30
"""Requests of the flooder, and reports in each: two of them hold as many as it may send at once."""
GIVE_UP_S = 90.0
RULES = Settings(retries=Retries(missing_after_ms=600, incomplete_after_ms=500, incomplete_retries=4))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=20, help="reports of each affiliate (default 20)")
    options = parser.parse_args()
    if options.reports < 10:
        parser.error("--reports must be at least 10")
    logging.disable(logging.CRITICAL)  # the screen tells what happens
    try:
        with tempfile.TemporaryDirectory(prefix="fila-reconcile-") as folder, Simulator() as simulator:
            return Demo(Path(folder), simulator, options.reports, ReportScreen()).run()
    except KeyboardInterrupt:
        return 130


class Demo:
    """One run: submit under fire, wait for the end, judge."""

    def __init__(self, folder: Path, simulator: Simulator, reports: int, screen: ReportScreen) -> None:
        self.simulator = simulator
        self.reports = reports
        self.show = screen
        self.refused: Counter[str] = Counter()
        self.accepted: dict[str, str] = {}  # report id to the status it must come to
        self.urgent = 0
        self.parts = Parts.open(
            Config(
                rules=RULES,
                store=StoreSettings(url=f"sqlite:///{folder}/reconcile.db"),
                api=replace(ApiSettings(), affiliate_per_minute=600, affiliate_burst=60),
                breaker=BreakerSettings(failure_threshold=4, open_cooldown_seconds=1.0),
                platforms=tuple(
                    Platform(name, f"{simulator.url}/{name}", token=TOKEN, timeout_ms=1_000, internal=True)
                    for name in PLATFORMS
                ),
            )
        )

    def run(self) -> int:
        self._introduce()
        server = HttpServer(self.parts.api())
        with server, self.parts.worker(), self.show.watching():
            flood = threading.Thread(target=self._flood, args=(server.url,))
            outage = threading.Thread(target=self._outage)
            for thread in (flood, outage):
                thread.start()
            self._submit(server.url)
            flood.join()
            self.show.event(f"all reports are in; {FLOODER.name} was refused {self.refused[FLOODER.name]} times")
            outage.join()
            finished = self._await_end()
        code = self._judge(finished)
        self.parts.close()
        return code

    def _introduce(self) -> None:
        self.simulator.set(SHAKY, Faults(error_bp=800, partial_bp=800, absent_bp=400))
        self.simulator.set(LOCKED, Faults(locked=True))
        self.show.title("Eight affiliates report what their posts brought, four platforms know better")
        self.show.say(f"{SHAKY} fails, forgets and answers in part now and then")
        self.show.say(f"{OUT_FOR_A_WHILE} will be down for a while, {LOCKED} does not accept our password")
        self.show.say(f"{FLOODER.name} sends as fast as the line allows")
        self.show.title("API, workers and platforms at work")

    def _submit(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as http:
            reports = list(script(self.reports))
            for start in range(0, len(reports), BATCH):
                self._send(http, reports[start : start + BATCH])
                self._look()
                time.sleep(PACE_S)

    def _flood(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as http:
            for number in range(FLOOD):
                self._send(http, [(FLOODER, report(FLOODER, PLATFORMS[0], FLOOD * number + n)) for n in range(FLOOD)])

    def _send(self, http: httpx.Client, batch: list[tuple[Affiliate, dict[str, object]]]) -> None:
        answer = http.post("/v1/reports/batch", json={"reports": [body for _, body in batch]})
        if answer.status_code == 429:
            self.refused[batch[0][0].name] += 1
            return
        answer.raise_for_status()
        for (affiliate, body), taken in zip(batch, answer.json()["reports"], strict=True):
            self.urgent += taken["priority"] == "high"
            lost = body["platform"] == LOCKED
            self.accepted[taken["report_id"]] = "MISSING_PLATFORM_DATA" if lost else affiliate.status

    def _outage(self) -> None:
        begin, end = OUTAGE_S
        time.sleep(begin)
        self.simulator.set(OUT_FOR_A_WHILE, Faults(down=True))
        self.show.event(f"[bold red]{OUT_FOR_A_WHILE} goes down[/]: its breaker will open, its reports wait")
        time.sleep(end - begin)
        self.simulator.set(OUT_FOR_A_WHILE, Faults())
        self.show.event(f"[bold green]{OUT_FOR_A_WHILE} is back[/]")

    def _look(self) -> None:
        waiting = self.parts.queue.snapshot()["depth"]
        self.show.update(self.parts.store.views.outcomes(), waiting, self.refused.total())

    def _await_end(self) -> bool:
        deadline = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline:
            self._look()
            if not any(not final for _, final in self.parts.store.views.outcomes()):
                self.show.event("every report has its verdict")
                return True
            time.sleep(0.1)
        return False

    def _judge(self, finished: bool) -> int:
        views, trust = self.parts.store.views, RULES.trust
        self.show.title("Outcomes")
        self.show.outcomes(views.outcomes())
        self.show.title("Trust: everybody began at 0.50")
        rows = [(each, views.affiliate(each.name)) for each in (*AFFILIATES, FLOODER)]
        self.show.trust(
            [(a.name, a.character, row.reports, score_bp(row.trust_total_bp, trust)) for a, row in rows if row]
        )
        self.show.title("Alerts")
        newest = [views.alerts(limit=1, kind=kind) for kind in ("fraud", "data_quality", "system_health")]
        self.show.alerts(
            views.alert_counts(), [(row.severity, row.affiliate_id, row.text) for found in newest for row in found]
        )
        found = {report_id: views.report(report_id) for report_id in self.accepted}
        wrong = [each for each, status in self.accepted.items() if found[each] and found[each][0].status != status]
        locked = sum(status == "MISSING_PLATFORM_DATA" for status in self.accepted.values())
        steps = {a.name: sum(self._step(s) for s in self._statuses(found, a.name)) for a, _ in rows}
        others = self.refused.total() - self.refused[FLOODER.name]
        claims = [
            (f"all {len(self.accepted)} accepted reports have a verdict", finished and all(found.values())),
            (f"each has the one its affiliate deserves ({len(wrong)} have not)", not wrong),
            (
                "trust is the sum of one step per report, to the last hundredth of a per cent",
                all(row is not None and row.trust_total_bp == steps[a.name] for a, row in rows),
            ),
            (
                f"{locked} reports that no retry could help became alerts of system health",
                views.alert_counts().get(("system_health", "high"), 0) == locked,
            ),
            (
                f"the flooder was refused {self.refused[FLOODER.name]} times, the others {others} times",
                self.refused[FLOODER.name] > 0 and others == 0,
            ),
            (f"{self.urgent} impossible claims went ahead of the rest", self.urgent >= self.reports),
        ]
        self.show.title("Verdict")
        for text, holds in claims:
            self.show.claim(text, holds=holds)
        failed = sum(not holds for _, holds in claims)
        self.show.verdict(failed)
        return 1 if failed else 0

    def _statuses(self, found: dict, name: str) -> list[str]:
        return [entry[0].status for entry in found.values() if entry and entry[0].affiliate_id == name]

    def _step(self, status: str) -> int:
        return deltas(RULES)[Status(status)]


if __name__ == "__main__":
    sys.exit(main())
