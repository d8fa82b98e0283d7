"""Settings, models, trust, retries, alerts, suspicion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.reconcile.domain.alerts import Alert, Kind, alert_for, escalated
from fila.reconcile.domain.models import (
    ClaimedMetrics,
    Fetched,
    InvalidReport,
    Level,
    Observation,
    Post,
    Reason,
    Status,
)
from fila.reconcile.domain.retry import Past, next_attempt_ms
from fila.reconcile.domain.settings import (
    DEFAULTS,
    HOUR_MS,
    MAX_COUNT,
    MINUTE_MS,
    Alerts,
    Retries,
    Settings,
    Suspicion,
    Tiers,
    Trust,
)
from fila.reconcile.domain.suspicion import admit
from fila.reconcile.domain.trust import TrustEvent, deltas, score_bp, total_bp
from fila.settings import SettingsError

NOW = 1_700_000_000_000


class TestSettings:
    def test_the_defaults_are_the_documented_ones(self):
        tiers, growth, trust = DEFAULTS.tiers, DEFAULTS.growth, DEFAULTS.trust
        assert (tiers.tolerance_bp, tiers.low_bp, tiers.medium_bp) == (500, 1_000, 2_000)
        assert (tiers.overclaim_bp, tiers.overclaim_critical_bp) == (2_000, 5_000)
        assert (growth.per_hour_bp, growth.max_hours) == (1_000, 24)
        assert (trust.lowest_bp, trust.initial_bp, trust.highest_bp) == (0, 5_000, 10_000)
        assert list(deltas(DEFAULTS).values()) == [100, -100, -300, -500, -1_000, 0, 0]

    def test_sections_are_read_and_the_rest_keeps_its_defaults(self):
        read = Settings.from_mapping({"tiers": {"tolerance_bp": 100}})
        assert read == Settings(tiers=Tiers(tolerance_bp=100))

    @pytest.mark.parametrize(
        "tables, complaint",
        [
            ({"teirs": {}}, "unknown section 'teirs'"),
            ({"tiers": {"tolerance": 1}}, "unknown key tiers.tolerance"),
            ({"tiers": 5}, "expected a section"),
            ({"tiers": {"tolerance_bp": -1}}, "tolerance_bp = -1: expected a whole number from 0"),
            ({"tiers": {"tolerance_bp": True}}, "expected a whole number"),
            ({"tiers": {"tolerance_bp": 0.5}}, "expected a whole number"),
            ({"tiers": {"tolerance_bp": 1_500}}, "tolerance_bp <= low_bp"),
            ({"tiers": {"overclaim_bp": 6_000}}, "overclaim_bp <= overclaim_critical_bp"),
            ({"trust": {"lowest_bp": 6_000}}, "lowest_bp <= initial_bp"),
            ({"alerts": {"escalate_at": 9}}, "escalate_at <= critical_at"),
        ],
    )
    def test_what_makes_no_sense_is_refused_by_name(self, tables, complaint):
        with pytest.raises(SettingsError, match=complaint):
            Settings.from_mapping(tables)


class TestModels:
    @pytest.mark.parametrize("value", [-1, MAX_COUNT + 1, 1.0, True, "1"])
    def test_a_count_is_a_whole_number_within_its_limits(self, value):
        with pytest.raises(InvalidReport, match="clicks must be a whole number"):
            ClaimedMetrics(1, value, 1)
        with pytest.raises(InvalidReport, match="views must be a whole number"):
            Observation(NOW, value)

    def test_names_have_limits(self):
        with pytest.raises(InvalidReport, match="post_id"):
            Post("clipshare", "", "ada")
        with pytest.raises(InvalidReport, match="campaign_id"):
            Post("clipshare", "p", "ada", "x" * 129)

    def test_a_fetch_has_figures_or_a_reason_and_never_both(self):
        with pytest.raises(ValueError, match="either"):
            Fetched()
        with pytest.raises(ValueError, match="either"):
            Fetched(Observation(NOW), Reason.ABSENT)
        with pytest.raises(ValueError, match="not a reason"):
            Fetched(failure=Reason.DIFFERS)


events = st.builds(
    TrustEvent,
    st.just("ada"),
    st.sampled_from(["r-1", "r-2", "r-3"]),
    st.integers(1, 3),
    st.sampled_from(list(deltas(DEFAULTS).values())),
)


class TestTrust:
    @given(st.lists(st.sampled_from(list(deltas(DEFAULTS).values()))))
    def test_it_stays_in_its_bounds(self, steps):
        assert 0 <= score_bp(sum(steps), DEFAULTS.trust) <= 10_000

    def test_it_starts_in_the_middle_and_moves_by_small_steps(self):
        assert score_bp(0, DEFAULTS.trust) == 5_000
        assert score_bp(100 - 1_000, DEFAULTS.trust) == 4_100

    def test_bounds_can_be_narrower(self):
        narrow = Trust(lowest_bp=4_000, highest_bp=6_000)
        assert [score_bp(total, narrow) for total in (-5_000, 0, 5_000)] == [4_000, 5_000, 6_000]

    @given(st.lists(events), st.randoms())
    def test_a_step_that_is_delivered_again_or_in_another_order_changes_nothing(self, log, random):
        unique = list({(event.report_id, event.attempt): event for event in log}.values())
        shuffled = unique + unique[: len(unique) // 2]
        random.shuffle(shuffled)
        assert total_bp(shuffled) == sum(event.delta_bp for event in unique)

    def test_every_status_has_a_step(self):
        assert set(deltas(DEFAULTS)) == set(Status)


def decide(status, attempt=1, waited_ms=0, retry_after_ms=0, retries=DEFAULTS.retries):
    missing = attempt if status is Status.MISSING_PLATFORM_DATA else 0
    incomplete = attempt if status is Status.INCOMPLETE_PLATFORM_DATA else 0
    past = Past(NOW - waited_ms, attempt, missing, incomplete)
    at = next_attempt_ms(status, past, NOW, retries, retry_after_ms)
    return None if at is None else at - NOW


class TestRetries:
    @pytest.mark.parametrize("attempt, minutes", [(1, 30), (2, 60), (3, 90), (4, 120), (5, 150), (6, None), (7, None)])
    def test_missing_data_is_asked_for_five_more_times_ever_later(self, attempt, minutes):
        expected = None if minutes is None else minutes * MINUTE_MS
        assert decide(Status.MISSING_PLATFORM_DATA, attempt) == expected

    def test_incomplete_data_is_asked_for_once_more(self):
        assert decide(Status.INCOMPLETE_PLATFORM_DATA, 1) == 15 * MINUTE_MS
        assert decide(Status.INCOMPLETE_PLATFORM_DATA, 2) is None

    def test_the_two_are_counted_apart(self):
        past = Past(NOW, attempt=2, missing=1, incomplete=1)
        for status, minutes in [(Status.INCOMPLETE_PLATFORM_DATA, 15), (Status.MISSING_PLATFORM_DATA, 60)]:
            assert next_attempt_ms(status, past, NOW, DEFAULTS.retries) == NOW + minutes * MINUTE_MS

    def test_nothing_is_tried_later_than_a_day_after_the_report(self):
        border = 24 * HOUR_MS - 30 * MINUTE_MS
        assert decide(Status.MISSING_PLATFORM_DATA, waited_ms=border) == 30 * MINUTE_MS
        assert decide(Status.MISSING_PLATFORM_DATA, waited_ms=border + 1) is None

    def test_a_platform_that_asks_for_more_time_gets_it(self):
        assert decide(Status.MISSING_PLATFORM_DATA, retry_after_ms=HOUR_MS) == HOUR_MS
        assert decide(Status.MISSING_PLATFORM_DATA, retry_after_ms=1) == 30 * MINUTE_MS
        assert decide(Status.MISSING_PLATFORM_DATA, retry_after_ms=25 * HOUR_MS) is None

    @pytest.mark.parametrize("status", [s for s in Status if "PLATFORM_DATA" not in s])
    def test_a_verdict_is_not_tried_again(self, status):
        assert decide(status) is None

    def test_it_can_be_switched_off(self):
        assert decide(Status.MISSING_PLATFORM_DATA, retries=Retries(missing_retries=0)) is None


class TestAlerts:
    @pytest.mark.parametrize("level", [Level.HIGH, Level.CRITICAL])
    def test_an_overclaim_is_a_matter_of_fraud(self, level):
        found = alert_for(
            Status.AFFILIATE_OVERCLAIMED, level, Reason.CLAIM_EXCEEDS_PLATFORM, DEFAULTS.alerts, final=True
        )
        assert found == Alert(Kind.FRAUD, level)

    def test_a_high_discrepancy_escalates_on_repeat(self):
        found = [
            alert_for(Status.DISCREPANCY_HIGH, Level.HIGH, Reason.DIFFERS, DEFAULTS.alerts, final=True, repeats=repeats)
            for repeats in (1, 2, 3, 4, 5)
        ]
        assert {alert.kind for alert in found} == {Kind.DATA_QUALITY}
        assert [alert.severity for alert in found] == ["medium", "high", "high", "critical", "critical"]

    @pytest.mark.parametrize("reason, severity", [(Reason.ABSENT, Level.MEDIUM), (Reason.AUTH_FAILED, Level.HIGH)])
    def test_data_missing_for_good_is_a_matter_of_system_health(self, reason, severity):
        found = alert_for(Status.MISSING_PLATFORM_DATA, Level.NONE, reason, DEFAULTS.alerts, final=True)
        assert found == Alert(Kind.SYSTEM_HEALTH, severity)

    def test_data_that_may_still_come_alerts_nobody(self):
        status = Status.MISSING_PLATFORM_DATA
        assert alert_for(status, Level.NONE, Reason.ABSENT, DEFAULTS.alerts, final=False) is None

    @pytest.mark.parametrize(
        "status",
        [
            Status.MATCHED,
            Status.DISCREPANCY_LOW,
            Status.DISCREPANCY_MEDIUM,
            Status.INCOMPLETE_PLATFORM_DATA,
        ],
    )
    def test_the_rest_alerts_nobody(self, status):
        assert alert_for(status, Level.LOW, Reason.DIFFERS, DEFAULTS.alerts, final=True) is None

    @given(st.integers(1, 100), st.integers(1, 100))
    def test_more_repeats_are_never_less_grave(self, one, other):
        order = list(Level)
        few, many = sorted((one, other))
        alerts = Alerts(escalate_at=3, critical_at=30)
        assert order.index(escalated(few, alerts)) <= order.index(escalated(many, alerts))


class TestSuspicion:
    @pytest.mark.parametrize(
        "claim, trust_bp, score, signals, priority",
        [
            ((1_000, 100, 10), 5_000, 0, (), "normal"),
            ((1_000, 300, 10), 5_000, 0, (), "normal"),
            ((1_000, 301, 10), 5_000, 25, ("unusual_click_through",), "normal"),
            ((1_000, 1_001, 10), 5_000, 60, ("more_clicks_than_views",), "high"),
            ((1_000, 100, 51), 5_000, 25, ("unusual_conversion",), "normal"),
            ((1_000, 100, 101), 5_000, 60, ("more_conversions_than_clicks",), "high"),
            ((1_000, 400, 300), 5_000, 50, ("unusual_click_through", "unusual_conversion"), "high"),
            ((1_000, 100, 10), 2_499, 25, ("low_trust",), "normal"),
            ((0, 1, 2), 0, 100, ("more_clicks_than_views", "more_conversions_than_clicks", "low_trust"), "high"),
        ],
    )
    def test_an_impossible_claim_goes_first(self, claim, trust_bp, score, signals, priority):
        found = admit(ClaimedMetrics(*claim), trust_bp, DEFAULTS.suspicion)
        assert (found.score, found.signals, found.priority) == (score, signals, priority)

    def test_reports_of_the_little_trusted_can_be_made_to_wait_unless_they_are_urgent(self):
        patient = Suspicion(low_trust_delay_ms=60_000)
        assert admit(ClaimedMetrics(1_000, 10, 1), 0, patient).delay_ms == 60_000
        assert admit(ClaimedMetrics(1_000, 2_000, 1), 0, patient).delay_ms == 0
        assert admit(ClaimedMetrics(1_000, 10, 1), 5_000, patient).delay_ms == 0
