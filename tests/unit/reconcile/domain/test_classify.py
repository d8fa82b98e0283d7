import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fila.reconcile.domain.classify import INTEGERS, classify, explain, features, rules
from fila.reconcile.domain.models import (
    FAILURES,
    METRICS,
    ClaimedMetrics,
    Fetched,
    Level,
    Observation,
    Post,
    Reason,
    Report,
    Status,
)
from fila.reconcile.domain.settings import BP, DEFAULTS, HOUR_MS, MAX_COUNT, Growth, Settings, Tiers

NOW = 1_700_000_000_000
POST = Post("clipshare", "p-1", "ada", "spring")
counts = st.integers(0, MAX_COUNT)
figures = st.none() | counts
leads = st.integers(-40 * HOUR_MS, 40 * HOUR_MS)


def verdict(claim, observed, lead_ms=0, settings=DEFAULTS):
    """The classification of a claim against figures that are `lead_ms` newer."""
    report = Report("r-1", POST, ClaimedMetrics(*claim), NOW)
    return classify(report, Fetched(Observation(NOW + lead_ms, *observed)), settings)


def of_views(claimed, observed, lead_ms=0, settings=DEFAULTS):
    return verdict((claimed, 10, 1), (observed, 10, 1), lead_ms, settings)


@pytest.mark.parametrize(
    "claimed, status, level",
    [
        (10_000, Status.MATCHED, Level.NONE),
        (10_500, Status.MATCHED, Level.NONE),
        (10_501, Status.DISCREPANCY_LOW, Level.LOW),
        (11_000, Status.DISCREPANCY_LOW, Level.LOW),
        (11_001, Status.DISCREPANCY_MEDIUM, Level.MEDIUM),
        (12_000, Status.DISCREPANCY_MEDIUM, Level.MEDIUM),
        (12_001, Status.AFFILIATE_OVERCLAIMED, Level.HIGH),
        (15_000, Status.AFFILIATE_OVERCLAIMED, Level.HIGH),
        (15_001, Status.AFFILIATE_OVERCLAIMED, Level.CRITICAL),
        (9_500, Status.MATCHED, Level.NONE),
        (9_499, Status.DISCREPANCY_LOW, Level.LOW),
        (9_000, Status.DISCREPANCY_LOW, Level.LOW),
        (8_999, Status.DISCREPANCY_MEDIUM, Level.MEDIUM),
        (8_000, Status.DISCREPANCY_MEDIUM, Level.MEDIUM),
        (7_999, Status.DISCREPANCY_HIGH, Level.HIGH),
        (0, Status.DISCREPANCY_HIGH, Level.HIGH),
    ],
)
def test_a_share_at_a_border_belongs_to_the_milder_side(claimed, status, level):
    found = of_views(claimed, 10_000)
    assert (found.status, found.level) == (status, level)


@pytest.mark.parametrize("scale", [1, 3, 7, 9_999_999])
@pytest.mark.parametrize("percent, beyond", [(5, "DISCREPANCY_LOW"), (10, "DISCREPANCY_MEDIUM"), (20, "OVERCLAIMED")])
def test_one_more_than_a_border_is_beyond_it_at_every_size(scale, percent, beyond):
    """One count in a thousand million tips it, and no rounding hides it."""
    observed = 100 * scale
    assert beyond not in of_views(observed + percent * scale, observed).status
    assert beyond in of_views(observed + percent * scale + 1, observed).status


def test_the_worst_metric_decides():
    assert verdict((100, 100, 100), (100, 100, 91)).status is Status.DISCREPANCY_LOW
    assert verdict((100, 100, 100), (100, 84, 91)).status is Status.DISCREPANCY_MEDIUM
    assert verdict((100, 100, 100), (200, 84, 91)).status is Status.DISCREPANCY_HIGH


def test_an_overclaim_outweighs_a_larger_underclaim():
    assert verdict((100, 100, 100), (1_000, 80, 100)).status is Status.AFFILIATE_OVERCLAIMED


def test_a_discrepancy_too_large_for_every_tier_can_be_no_overclaim_if_that_border_is_wider():
    settings = Settings(tiers=Tiers(overclaim_bp=4_000))
    assert of_views(130, 100, settings=settings).status is Status.DISCREPANCY_HIGH


def test_zero_on_both_sides_matches():
    assert verdict((0, 0, 0), (0, 0, 0)).status is Status.MATCHED


def test_a_claim_against_zero_is_an_overclaim_of_the_claim_itself():
    found = verdict((0, 0, 3), (0, 0, 0))
    assert (found.status, found.level, found.over_bp) == (Status.AFFILIATE_OVERCLAIMED, Level.CRITICAL, 3 * BP)


def test_small_counts_can_be_judged_more_mildly():
    settings = Settings(tiers=Tiers(min_base=20))
    assert verdict((100, 10, 1), (100, 10, 0), settings=settings).status is Status.MATCHED


@pytest.mark.parametrize("observed", [(None, 1, 1), (1, None, 1), (1, 1, None), (None, None, 9), (0, None, None)])
def test_a_partial_answer_is_incomplete_whatever_the_rest_says(observed):
    found = verdict((1_000, 1_000, 1_000), observed)
    assert (found.status, found.reason) == (Status.INCOMPLETE_PLATFORM_DATA, Reason.PARTIAL_ANSWER)
    assert found.confidence_bp == (3 - observed.count(None)) * BP // 3


def test_an_answer_without_figures_is_plain_absence():
    found = verdict((1, 1, 1), (None, None, None))
    assert (found.status, found.reason, found.confidence_bp) == (Status.MISSING_PLATFORM_DATA, Reason.ABSENT, 0)


@pytest.mark.parametrize("failure", FAILURES)
def test_missing_data_says_why(failure):
    report = Report("r-1", POST, ClaimedMetrics(1, 1, 1), NOW)
    found = classify(report, Fetched(failure=failure), DEFAULTS)
    assert (found.status, found.reason) == (Status.MISSING_PLATFORM_DATA, failure)
    assert explain(report.claimed, None, found)


class TestGrowth:
    def test_figures_that_are_newer_may_be_larger(self):
        assert of_views(1_000, 1_157, lead_ms=HOUR_MS).status is Status.MATCHED
        assert of_views(1_000, 1_158, lead_ms=HOUR_MS).difference_bp == 501  # 100 grown, 58 of 1,158 are left
        assert of_views(1_000, 1_157, lead_ms=0).status is Status.DISCREPANCY_MEDIUM

    @pytest.mark.parametrize("lead_ms", [-HOUR_MS, HOUR_MS])
    def test_growth_explains_only_the_later_side(self, lead_ms):
        claimed, observed = (1_100, 1_000) if lead_ms < 0 else (1_000, 1_100)
        assert of_views(claimed, observed, lead_ms).difference_bp == 0
        assert of_views(observed, claimed, lead_ms).difference_bp > 0

    def test_a_part_of_an_hour_counts_in_proportion(self):
        assert of_views(1_050, 1_000, -HOUR_MS // 2).difference_bp == 0
        assert of_views(1_051, 1_000, -HOUR_MS // 2).difference_bp == 10

    def test_growth_is_allowed_for_a_day_and_no_longer(self):
        at_the_limit = of_views(3_400, 1_000, -24 * HOUR_MS)
        assert at_the_limit.difference_bp == 0
        assert of_views(3_401, 1_000, -24 * HOUR_MS).difference_bp == 10
        assert of_views(3_401, 1_000, -1_000 * HOUR_MS).difference_bp == 10

    def test_it_can_be_switched_off(self):
        assert of_views(1_001, 1_000, -HOUR_MS, Settings(growth=Growth(per_hour_bp=0))).difference_bp == 10


class TestProperties:
    @given(counts, counts, counts, figures, figures, figures, leads)
    @example(MAX_COUNT, 0, 0, 0, 0, 0, 0)
    @example(MAX_COUNT, MAX_COUNT, 0, MAX_COUNT, None, None, 24 * HOUR_MS)
    def test_every_report_has_exactly_one_status_and_a_bounded_confidence(self, a, b, c, x, y, z, lead):
        found = verdict((a, b, c), (x, y, z), lead)
        observed = 3 - (x, y, z).count(None)
        assert found.confidence_bp == observed * BP // 3
        assert (found.status is Status.MISSING_PLATFORM_DATA) == (observed == 0)
        assert (found.status is Status.INCOMPLETE_PLATFORM_DATA) == (observed in {1, 2})

    @given(counts, counts, leads)
    def test_shares_are_the_exact_ones_rounded_up(self, claimed, observed, lead):
        grown = min(abs(lead), 24 * HOUR_MS) * 1_000 // HOUR_MS
        over = max(0, claimed - observed - (observed * grown // BP if lead < 0 else 0))
        found = of_views(claimed, observed, lead)
        for border in (0, 500, 1_000, 2_000, 5_000):
            assert (found.over_bp > border) == (over * BP > border * max(observed, 1))

    @given(counts, counts, leads, leads)
    def test_more_time_between_them_never_makes_it_worse(self, claimed, observed, first, second):
        if (first < 0) == (second < 0):
            near, far = sorted((first, second), key=abs)
            assert of_views(claimed, observed, far).difference_bp <= of_views(claimed, observed, near).difference_bp

    @given(counts, counts, leads)
    def test_the_allowance_is_bounded(self, claimed, observed, lead):
        """Beyond 3.4 times the earlier count nothing is explained by growth."""
        found = of_views(claimed, observed, lead)
        if claimed > 4 * observed + 4 or observed > 4 * claimed + 4:
            assert found.difference_bp > 0

    @given(counts, counts, counts, figures, figures, figures, leads | st.none())
    def test_no_step_leaves_64_bits(self, a, b, c, x, y, z, lead):
        settings = Settings(tiers=Tiers(min_base=MAX_COUNT), growth=Growth(per_hour_bp=BP, max_hours=720))
        for chosen in (DEFAULTS, settings):
            features(tuple(map(Narrow, (a, b, c))), (x, y, z), lead, chosen, Checked())


class Narrow(int):
    """An integer whose sums and products must fit into 64 bits, as a column's would have to."""

    def _checked(self, value):
        assert -(2**63) <= value < 2**63
        return Narrow(value)

    def __add__(self, other):
        return self._checked(int(self) + int(other))

    def __sub__(self, other):
        return self._checked(int(self) - int(other))

    def __mul__(self, other):
        return self._checked(int(self) * int(other))

    __radd__, __rmul__ = __add__, __mul__


class Checked:
    """The arithmetic of the rules on such integers."""

    def greatest(self, *values):
        return Narrow(max(values))

    def least(self, *values):
        return Narrow(min(values))

    def quotient(self, dividend, divisor):
        assert dividend >= 0
        assert divisor > 0
        return Narrow(int(dividend) // int(divisor))

    def known(self, value, otherwise):
        return Narrow(INTEGERS.known(value, otherwise))

    def unknown(self, value):
        return Narrow(INTEGERS.unknown(value))


def test_the_table_names_features_and_ends_with_a_row_that_always_holds():
    table = rules(DEFAULTS)
    assert {rule.feature for rule in table} == {"missing_metrics", "over_bp", "difference_bp"}
    assert {rule.status for rule in table} == set(Status)
    assert (table[-1].status, table[-1].above) == (Status.MATCHED, -1)
    assert table[0].above == len(METRICS) - 1


def test_a_verdict_can_be_said_in_one_line():
    claim = ClaimedMetrics(1_300, 10, 1)
    for observed, expected in [
        ((1_000, 10, 1), "views: 1,300 claimed, 1,000 on the platform, 30.00 % more than growth explains"),
        ((1_300, 20, 1), "clicks: 10 claimed, 20 on the platform, 50.00 % less than growth explains"),
        ((1_300, 10, 1), "claim and platform agree"),
        ((1_300, None, None), "the platform did not tell clicks and conversions"),
    ]:
        seen = Observation(NOW, *observed)
        found = classify(Report("r-1", POST, claim, NOW), Fetched(seen), DEFAULTS)
        assert explain(claim, seen, found) == expected


def test_the_example_of_rounding_in_the_documentation():
    """90 seconds allow 25 basis points: 2.5 views of 1,000, rounded down to 2."""
    assert features((1203, 0, 0), (1000, 0, 0), -90_000, DEFAULTS).over_bp == 2_010
    assert features((1202, 0, 0), (1000, 0, 0), -90_000, DEFAULTS).over_bp == 2_000
