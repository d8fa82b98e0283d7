from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from fila.reconcile.domain.models import Reason, Status
from fila.reconcile.domain.settings import DEFAULTS, HOUR_MS
from fila.reconcile.store import KeyReused, PostTaken, Store, StoreError, open_engine
from fila.reconcile.store.tables import (
    AffiliateRow,
    AlertRow,
    AttemptRow,
    ReportRow,
    SnapshotRow,
    TrustEventRow,
)
from tests.helpers.reconcile import HIGH, NOW, OVERCLAIMED, attempt, missing, submission


def count(store, table):
    with store._database.reading() as session:
        return session.scalar(select(func.count()).select_from(table))


def taken(store, **given):
    """A report that was submitted just now."""
    one = submission(**given)
    store.intake.submit([one], NOW)
    return one.report


class TestIntake:
    def test_a_report_is_open_until_an_attempt_ends_it(self, store):
        report = taken(store)
        held = store.attempts.open_report(report.report_id)
        assert (held.report, held.attempts, held.submitted_at_ms) == (report, 0, NOW)
        store.attempts.record(attempt(report))
        assert store.attempts.open_report(report.report_id) is None

    def test_an_unknown_report_is_not_open(self, store):
        assert store.attempts.open_report("nobody") is None

    def test_the_same_report_under_one_key_is_taken_once(self, store):
        first, again = (store.intake.submit([submission(key="k")], NOW)[0] for _ in range(2))
        assert (first.repeated, again.repeated) == (False, True)
        assert again.report_id == first.report_id
        assert store.views.affiliate("ada").reports == count(store, ReportRow) == 1

    def test_a_key_may_repeat_inside_a_batch(self, store):
        first, second, third = store.intake.submit([submission(key="k"), submission(key="k"), submission()], NOW)
        assert first.report_id == second.report_id != third.report_id
        assert [first.repeated, second.repeated, third.repeated] == [False, True, False]

    def test_keys_of_different_affiliates_have_nothing_to_do_with_each_other(self, store):
        results = store.intake.submit([submission("ada", "p-1", key="k"), submission("bob", "p-2", key="k")], NOW)
        assert not any(result.repeated for result in results)

    def test_a_key_with_a_different_report_is_refused_and_nothing_of_the_batch_is_taken(self, store):
        store.intake.submit([submission(key="k")], NOW)
        with pytest.raises(KeyReused) as refused:
            store.intake.submit([submission("bob", "p-9"), submission(key="k", claim=(1, 1, 1))], NOW)
        assert refused.value.index == 1
        assert count(store, ReportRow) == 1
        assert store.views.affiliate("bob") is None

    def test_a_post_belongs_to_who_reported_it_first(self, store):
        store.intake.submit([submission("ada", "p-1")], NOW)
        with pytest.raises(PostTaken):
            store.intake.submit([submission("bob", "p-1")], NOW)
        with pytest.raises(PostTaken) as refused:
            store.intake.submit([submission("ada", "p-2"), submission("bob", "p-2")], NOW)
        assert refused.value.index == 1

    def test_suspicion_knows_the_trust_of_the_affiliate(self, store):
        for number in range(3):
            store.attempts.record(attempt(taken(store, post=f"p-{number}"), observed=OVERCLAIMED))
        [result] = store.intake.submit([submission(post="p-9")], NOW)
        assert result.admission.signals == ("low_trust",)

    def test_one_key_submitted_by_many_at_once_makes_one_report(self, store):
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: store.intake.submit([submission(key="k")], NOW)[0], range(24)))
        assert len({result.report_id for result in results}) == 1
        assert sum(not result.repeated for result in results) == 1


class TestAttempts:
    def test_log_snapshot_trust_and_alert_are_written_together(self, store):
        report = taken(store)
        assert store.attempts.record(attempt(report, observed=OVERCLAIMED))
        row, [line] = store.views.report(report.report_id)
        assert (row.status, row.attempts, row.due_at_ms, row.done_at_ms) == ("AFFILIATE_OVERCLAIMED", 1, None, NOW)
        assert (line.over_bp, line.views_bp, line.level) == (15_000, 15_000, "critical")
        assert store.views.affiliate("ada").trust_total_bp == -1_000
        [alert] = store.views.alerts(limit=9)
        assert (alert.kind, alert.severity, alert.affiliate_id) == ("fraud", "critical", "ada")
        assert count(store, SnapshotRow) == count(store, TrustEventRow) == 1

    def test_an_attempt_takes_effect_once(self, store):
        report = taken(store)
        assert [store.attempts.record(attempt(report)) for _ in range(3)] == [True, False, False]
        assert store.views.affiliate("ada").trust_total_bp == 100
        assert count(store, AttemptRow) == 1

    def test_an_attempt_run_by_many_at_once_takes_effect_once(self, store):
        reports = [taken(store, post=f"p-{number}") for number in range(4)]
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(store.attempts.record, [attempt(each, observed=HIGH) for each in reports * 6]))
        assert sum(done) == 4
        assert store.views.affiliate("ada").trust_total_bp == 4 * -500
        severities = [each.severity for each in reversed(store.views.alerts(limit=9))]
        assert severities == ["medium", "high", "high", "critical"]

    def test_an_attempt_out_of_turn_changes_nothing(self, store):
        report = taken(store)
        assert not store.attempts.record(attempt(report, number=2))
        assert count(store, AttemptRow) == count(store, TrustEventRow) == 0

    def test_a_report_that_is_done_takes_no_further_attempt(self, store):
        report = taken(store)
        store.attempts.record(attempt(report))
        assert not store.attempts.record(attempt(report, number=2, observed=OVERCLAIMED))
        assert store.views.affiliate("ada").trust_total_bp == 100

    def test_a_failure_in_the_middle_leaves_nothing_behind(self, store):
        report = taken(store)
        broken = attempt(report)
        object.__setattr__(broken, "delta_bp", 10**30)
        with pytest.raises((StoreError, OverflowError)):
            store.attempts.record(broken)
        assert count(store, AttemptRow) == count(store, TrustEventRow) == 0
        assert store.attempts.record(attempt(report))

    def test_silence_of_a_platform_leaves_trust_alone(self, store):
        report = taken(store)
        store.attempts.record(missing(report, retry_at_ms=NOW + 1))
        held = store.attempts.open_report(report.report_id)
        assert (held.attempts, held.missing, held.incomplete) == (1, 1, 0)
        assert count(store, TrustEventRow) == count(store, AlertRow) == count(store, SnapshotRow) == 0
        store.attempts.record(missing(report, number=2, reason=Reason.AUTH_FAILED))
        [alert] = store.views.alerts(limit=9)
        assert (alert.kind, alert.severity) == ("system_health", "high")

    def test_repeats_are_counted_within_their_window(self, store):
        window = DEFAULTS.alerts.repeat_window_ms
        for number, at_ms in enumerate([NOW, NOW + window, NOW + window + 1]):
            store.attempts.record(attempt(taken(store, post=f"p-{number}"), observed=HIGH, at_ms=at_ms))
        assert [each.severity for each in store.views.alerts(limit=9)] == ["high", "high", "medium"]


class TestAgenda:
    def test_a_report_whose_job_was_lost_is_due_again(self, store):
        report = taken(store)
        assert store.due_reports.take(NOW + 59_999, 10, missed=True) == []
        [due] = store.due_reports.take(NOW + 60_000, 10, missed=True)
        assert (due.report_id, due.attempt, due.affiliate_id) == (report.report_id, 1, "ada")
        assert store.due_reports.take(NOW + 60_000, 10, missed=True) == []
        assert len(store.due_reports.take(NOW + 120_000, 10, missed=True)) == 1

    @pytest.mark.parametrize("missed", [True, False])
    def test_a_retry_is_due_at_its_time(self, store, missed):
        report = taken(store)
        store.attempts.record(missing(report, retry_at_ms=NOW + HOUR_MS))
        assert store.due_reports.take(NOW + HOUR_MS - 1, 10, missed=missed) == []
        assert [due.attempt for due in store.due_reports.take(NOW + HOUR_MS, 10, missed=missed)] == [2]
        assert store.due_reports.take(NOW * 2, 10, missed=False) == []

    def test_what_may_still_wait_in_a_long_queue_is_not_queued_twice(self, store):
        taken(store)
        assert store.due_reports.take(NOW * 2, 10, missed=False) == []
        assert len(store.due_reports.take(NOW * 2, 10, missed=True)) == 1

    def test_what_is_done_is_never_due(self, store):
        store.attempts.record(attempt(taken(store)))
        assert store.due_reports.take(NOW * 2, 10, missed=True) == []

    def test_a_job_that_waits_on_purpose_is_not_missed(self, store):
        report = taken(store)
        store.due_reports.postpone(report.report_id, 1, NOW + HOUR_MS)
        assert store.due_reports.take(NOW + HOUR_MS, 10, missed=True) == []
        assert len(store.due_reports.take(NOW + HOUR_MS + 60_000, 10, missed=True)) == 1

    def test_what_the_queue_did_not_take_is_due_again_at_its_own_time(self, store):
        report = taken(store)
        store.attempts.record(missing(report, retry_at_ms=NOW + 5_000))
        [due] = store.due_reports.take(NOW + 10_000, 10, missed=True)
        assert due.due_at_ms == NOW + 5_000
        store.due_reports.release([due])
        assert store.due_reports.take(NOW + 4_999, 10, missed=True) == []
        assert store.due_reports.take(NOW + 5_000, 10, missed=True) == [due]

    @pytest.mark.parametrize("known", ["lost", "waiting"])
    def test_what_is_known_of_an_attempt_that_was_made_does_not_move_the_next_one(self, store, known):
        """As when the queue took a job and did not say so, or two jobs for one attempt met an open breaker."""
        report = taken(store)
        [due] = store.due_reports.take(NOW + 60_000, 10, missed=True)
        store.attempts.record(missing(report, retry_at_ms=NOW + HOUR_MS))
        if known == "lost":
            store.due_reports.release([due])
        else:
            store.due_reports.postpone(report.report_id, due.attempt, NOW + 2 * HOUR_MS)
        assert store.due_reports.take(NOW + HOUR_MS - 1, 10, missed=True) == []
        assert [due.attempt for due in store.due_reports.take(NOW + HOUR_MS, 10, missed=False)] == [2]

    def test_two_who_ask_at_once_are_not_told_the_same(self, store):
        ids = {taken(store, post=f"p-{number}").report_id for number in range(40)}
        with ThreadPoolExecutor(8) as pool:
            named = [
                d.report_id
                for due in pool.map(lambda _: store.due_reports.take(NOW * 2, 5, missed=True), range(30))
                for d in due
            ]
        assert len(named) == len(set(named))
        named += [due.report_id for due in store.due_reports.take(NOW * 2, 100, missed=True)]
        assert set(named) == ids


class TestViews:
    def test_lists_are_read_in_pages(self, store):
        for number in range(5):
            report = taken(store, affiliate=f"a-{number}", post=f"p-{number}")
            store.attempts.record(attempt(report, observed=OVERCLAIMED))
        first = store.views.alerts(limit=2)
        rest = store.views.alerts(limit=9, before=first[-1].id)
        assert [each.affiliate_id for each in (*first, *rest)] == ["a-4", "a-3", "a-2", "a-1", "a-0"]
        page = store.views.affiliates(limit=2)
        assert [each.id for each in (*page, *store.views.affiliates(limit=9, after=page[-1].id))] == [
            f"a-{n}" for n in range(5)
        ]
        assert [each.affiliate_id for each in store.views.alerts(limit=9, affiliate_id="a-3", kind="fraud")] == ["a-3"]
        assert store.views.alerts(limit=9, kind="system_health") == []

    def test_outcomes_are_counted(self, store):
        store.attempts.record(attempt(taken(store)))
        store.attempts.record(missing(taken(store, post="p-2"), retry_at_ms=NOW + 1))
        taken(store, post="p-3")
        assert store.views.outcomes() == {
            (Status.MATCHED, True): 1,
            (Status.MISSING_PLATFORM_DATA, False): 1,
            ("PENDING", False): 1,
        }
        store.attempts.record(attempt(taken(store, post="p-4"), observed=HIGH))
        assert store.views.alert_counts() == {("data_quality", "medium"): 1}
        assert [row.id for row in store.views.least_trusted(5)] == ["ada"]


def test_what_was_written_is_there_after_a_restart(store, url):
    report = taken(store)
    store.attempts.record(attempt(report))
    again = Store(open_engine(url), DEFAULTS)
    assert again.views.report(report.report_id)[0].status == "MATCHED"
    with again._database.reading() as session:
        assert session.scalar(select(AffiliateRow.trust_total_bp)) == 100
    again.close()
