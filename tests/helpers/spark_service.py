"""The reconciliation service over the same reports and figures as a pipeline: its store, its rules, a clock of ours."""

from fila.reconcile.domain.intake import counted_at_ms
from fila.reconcile.domain.models import ClaimedMetrics, Fetched, Observation, Post, Reason, Report
from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.reconciler import Reconciler
from fila.reconcile.store import PostTaken, Store, Submission, open_engine, upgrade


class Service:
    """One process that makes every attempt when it is due. Rows are those of `spark_reports`."""

    def __init__(self, folder, settings=DEFAULTS):
        engine = open_engine(f"sqlite:///{folder / 'service.db'}")
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
        post = Post(row["platform"], row["post_id"], row["affiliate_id"], row["campaign_id"])
        claim = ClaimedMetrics(row["views"], row["clicks"], row["conversions"])
        report = Report(row["report_id"], post, claim, counted_at_ms(row["reported_at"], now_ms))
        try:
            self.store.intake.submit([Submission(report, "")], now_ms)
        except PostTaken:
            return False
        self._fresh.append((row["reported_at"], row["report_id"], 1))
        return True

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

    def attempts(self, name):
        """The log of a report: status, when, and when again."""
        return [(str(row.status), row.at_ms, row.retry_at_ms) for row in self.store.views.report(name)[1]]

    def _report(self, name):
        return self.store.views.report(name)[0]
