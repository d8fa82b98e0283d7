"""The reconciliation service over the same reports and figures as a pipeline: its store, its rules, a clock of ours."""

import sqlite3

from fila.reconcile.domain.intake import counted_at_ms
from fila.reconcile.domain.models import ClaimedMetrics, Fetched, Observation, Post, Reason, Report
from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.reconciler import Reconciler
from fila.reconcile.store import PostTaken, Store, Submission, open_engine, upgrade


class Service:
    """One process that makes every attempt when it is due. Rows are those of `spark_reports`."""

    def __init__(self, folder, settings=DEFAULTS):
        self._file = folder / "service.db"
        engine = open_engine(f"sqlite:///{self._file}")
        upgrade(engine)
        self.store = Store(engine, settings)
        self.figures = {}
        self._now_ms = 0
        self._reconciler = Reconciler(self.store, self, settings, lambda: self._now_ms)
        self._fresh = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.store.close()

    def fetch(self, post, now_ms):
        seen = self.figures.get((post.platform, post.post_id))
        return Fetched(seen) if seen else Fetched(failure=Reason.ABSENT)

    def know(self, metrics):
        for row in metrics:
            counts = (row["views"], row["clicks"], row["conversions"])
            self.figures[row["platform"], row["post_id"]] = Observation(row["observed_at"], *counts)

    def submit(self, row, now_ms):
        """Whether it was taken."""
        try:
            self.submit_all([row], now_ms)
        except PostTaken:
            return False
        return True

    def submit_all(self, rows, now_ms):
        """Take these reports, of which none is refused, together."""
        submissions = []
        for row in rows:
            post = Post(row["platform"], row["post_id"], row["affiliate_id"], row["campaign_id"])
            claim = ClaimedMetrics(row["views"], row["clicks"], row["conversions"])
            report = Report(row["report_id"], post, claim, counted_at_ms(row["reported_at"], now_ms))
            submissions.append(Submission(report, ""))
        self.store.intake.submit(submissions, now_ms)
        self._fresh += [(row["reported_at"], row["report_id"], 1) for row in rows]

    def work(self, now_ms):
        """Make all attempts that are due: those of the same moment by the time and the id of their report."""
        self._now_ms = now_ms
        due = [(each.report_id, each.attempt) for each in self.store.due_reports.take(now_ms, 10**6, missed=False)]
        again = [(self._report(name).reported_at_ms, name, attempt) for name, attempt in due]
        for _, name, attempt in sorted(self._fresh + again):
            self._reconciler.attempt(name, attempt)
        self._fresh = []

    def alerts(self):
        """All that were raised: report, kind, severity, time."""
        rows = self.store.views.alerts(limit=10**6)
        return sorted((row.report_id, str(row.kind), str(row.severity), row.at_ms) for row in rows)

    def verdicts(self):
        """What holds of each report: status and level."""
        return {name: tuple(verdict) for name, *verdict in self._select("SELECT id, status, level FROM reports")}

    def steps(self):
        """The sum of the trust steps of each affiliate."""
        return dict(self._select("SELECT id, trust_total_bp FROM affiliates"))

    def _select(self, statement):
        with sqlite3.connect(self._file) as database:
            found = database.execute(statement).fetchall()
        database.close()
        return found

    def attempts(self, name):
        """The log of a report: status, when, and when again."""
        return [(str(row.status), row.at_ms, row.retry_at_ms) for row in self.store.views.report(name)[1]]

    def _report(self, name):
        return self.store.views.report(name)[0]
