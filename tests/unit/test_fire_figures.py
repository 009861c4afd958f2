from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil, log
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from functions.domain.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.schedules.due_fires import figures_of
from functions.domain.schedules.expected_gaps import MOST_GAPS, Source, expected_gaps
from functions.domain.schedules.fire_figures import (
    LAST_BUCKET,
    FireFigures,
    bounds_of,
    bucket_of,
    counted,
    middle_of,
    quantile,
)
from functions.domain.schedules.firing import fires
from functions.domain.schedules.rules import At, CronRule, Poisson
from functions.domain.schedules.schedule import WindowMode
from functions.domain.schedules.step_budget import STEPS_OF_A_REQUEST, Budget
from testkit.builders import NOON, a_link, a_schedule, a_window, every

LONGEST = int(400 * DAY / MILLISECOND)
GAPS = st.lists(
    st.one_of(st.integers(1, LONGEST), st.integers(1, 100_000)).map(lambda ms: ms * MILLISECOND),
    min_size=1,
    max_size=60,
)
BEFORE = NOON - DAY


def fires_apart(gaps: list[timedelta], *, since: datetime = NOON) -> list[tuple[datetime, datetime | None]]:
    """The fires with the one before each, the first with one of an earlier version."""
    at, found = since + MILLISECOND, [(since + MILLISECOND, since - HOUR)]
    for gap in gaps:
        found.append((at + gap, at))
        at += gap
    return [(at, before) for at, before in found]


def figures(gaps: list[timedelta]) -> FireFigures:
    return counted(fires_apart(gaps), (), since=NOON)


def true_quantile(gaps: list[timedelta], thousandths: int) -> timedelta:
    return sorted(gaps)[max(1, ceil(len(gaps) * thousandths / 1_000)) - 1]


class TestBuckets:
    def test_there_are_41_and_each_begins_where_the_one_before_it_ends(self):
        bounds = [bounds_of(bucket) for bucket in range(LAST_BUCKET + 1)]

        assert len(bounds) == 41
        assert all(before[1] == low for before, (low, _) in pairwise(bounds))
        assert (bounds[0][0], bounds[-1][1]) == (timedelta(0), None)

    @pytest.mark.parametrize(
        ("gap", "bucket"),
        [
            (MILLISECOND, 0),
            (SECOND - MILLISECOND, 0),
            (SECOND, 1),
            (63 * SECOND, 6),
            (64 * SECOND, 7),
            (90 * SECOND, 7),
            (91 * SECOND, 8),
            (128 * SECOND, 9),
            (HOUR, 18),
            (DAY, 27),
            (68 * DAY, 39),
            (69 * DAY, 40),
            (3_650 * DAY, 40),
        ],
    )
    def test_a_gap_is_counted_where_it_always_was(self, gap: timedelta, bucket: int):
        # Counts that are stored rest on this.
        assert bucket_of(gap) == bucket

    @settings(deadline=None)
    @given(st.integers(1, LONGEST))
    def test_a_gap_lies_within_the_bounds_of_its_bucket(self, ms: int):
        low, high = bounds_of(bucket_of(ms * MILLISECOND))

        assert low <= ms * MILLISECOND + timedelta(microseconds=1)
        assert high is None or ms * MILLISECOND <= high

    @pytest.mark.parametrize("bucket", range(1, LAST_BUCKET))
    def test_the_middle_of_a_bucket_is_as_many_times_its_beginning_as_its_end_is_its(self, bucket: int):
        low, high = bounds_of(bucket)
        assert high is not None

        assert middle_of(bucket) / low == pytest.approx(high / middle_of(bucket), rel=1e-5)


class TestCounts:
    @settings(deadline=None)
    @given(GAPS)
    def test_counts_add_up_to_one_less_than_the_fires(self, gaps: list[timedelta]):
        assert figures(gaps).gap_count == len(gaps)

    @settings(deadline=None)
    @given(GAPS, st.integers(0, 60))
    def test_counting_in_parts_comes_to_the_same(self, gaps: list[timedelta], cut: int):
        found = fires_apart(gaps)
        parts = [counted(part, (), since=NOON) for part in (found[:cut], found[cut:])]

        assert parts[0] + parts[1] == figures(gaps)

    def test_a_gap_from_a_fire_of_an_earlier_version_is_not_counted(self):
        fires_of_both: list[tuple[datetime, datetime | None]] = [
            (NOON + MINUTE, None),
            (NOON + MINUTE, NOON),
            (NOON + 2 * MINUTE, NOON + MINUTE),
        ]

        assert counted(fires_of_both, (), since=NOON).gaps == {bucket_of(MINUTE): 1}

    def test_fires_that_waited_for_an_opening_are_counted_with_how_long(self):
        nine = a_schedule(windows=(a_window("09:00", "10:00"),), window_mode=WindowMode.DEFER)
        on_time = a_link(NOON - 3 * HOUR)
        waited = a_link(NOON + 21 * HOUR + MINUTE, nominal_at=NOON, previous_at=on_time.at)

        assert figures_of(nine, [on_time, waited], since=BEFORE) == FireFigures(
            {bucket_of(DAY + MINUTE): 1}, waits=1, waited=21 * HOUR + MINUTE
        )

    def test_a_schedule_that_is_always_open_has_no_waits(self):
        late = a_link(NOON + MINUTE, nominal_at=NOON)

        assert figures_of(a_schedule(spread=5 * MINUTE), [late], since=BEFORE) == FireFigures()


class TestQuantiles:
    def test_nothing_has_no_quantiles(self):
        assert quantile({}, 500) is None

    @settings(deadline=None)
    @given(GAPS, st.sampled_from([500, 950]))
    @example([timedelta(hours=1)] * 20, 950)
    def test_a_quantile_lies_in_the_bucket_of_the_true_one_with_or_without_known_gaps(
        self, gaps: list[timedelta], thousandths: int
    ):
        bucket = bucket_of(true_quantile(gaps, thousandths))

        assert [
            bucket_of(found)
            for known in ((), gaps[-10:], gaps)
            if (found := quantile(figures(gaps).gaps, thousandths, known=known))
        ] == [bucket] * 3

    @settings(deadline=None)
    @given(GAPS.map(lambda gaps: [gap for gap in gaps if 64 * SECOND <= gap < 60 * DAY]), st.sampled_from([500, 950]))
    def test_above_64_s_a_quantile_without_known_gaps_is_off_by_a_fifth_at_most(
        self, gaps: list[timedelta], thousandths: int
    ):
        if not gaps:
            return
        found = quantile(figures(gaps).gaps, thousandths)
        assert found is not None

        assert 1 / 1.19 <= found / true_quantile(gaps, thousandths) <= 1.19

    def test_a_schedule_of_even_gaps_has_them_exactly(self):
        hourly = [HOUR] * 30

        assert quantile(figures(hourly).gaps, 950, known=hourly[-3:]) == HOUR

    def test_a_known_gap_of_another_bucket_does_not_count(self):
        assert quantile({bucket_of(HOUR): 10}, 500, known=[MINUTE]) == middle_of(bucket_of(HOUR))


def expected(schedule: Any, *, steps: int = STEPS_OF_A_REQUEST) -> Any:
    return expected_gaps(schedule, since=NOON, budget=Budget(steps))


class TestExpected:
    def test_an_interval_expects_itself(self):
        found = expected(a_schedule(rule=every(minutes=10)))

        assert (found.source, found.p50, found.p95, found.count) == (
            Source.RULE,
            10 * MINUTE,
            10 * MINUTE,
            MOST_GAPS,
        )
        assert found.shares == {bucket_of(10 * MINUTE): 1.0}

    def test_windows_make_long_gaps_part_of_what_a_rule_expects(self):
        found = expected(a_schedule(rule=every(hours=1), windows=(a_window("09:00", "13:00"),)))

        assert (found.p50, found.p95) == (HOUR, 21 * HOUR)
        assert found.shares[bucket_of(21 * HOUR)] == pytest.approx(0.25, abs=0.01)

    def test_fewer_gaps_are_expected_of_a_schedule_with_a_last_run(self):
        assert expected(a_schedule(max_runs=4)).count == 3
        assert expected(a_schedule(max_runs=1)) is None

    def test_nothing_is_expected_of_a_single_fire(self):
        assert expected(a_schedule(rule=At(NOON + HOUR))) is None

    def test_independent_events_have_the_quantiles_of_an_exponential_distribution(self):
        found = expected(a_schedule(rule=Poisson(24)))

        assert (found.source, found.count) == (Source.DISTRIBUTION, None)
        assert found.p50 / HOUR == pytest.approx(log(2), rel=1e-6)
        assert found.p95 / HOUR == pytest.approx(log(20), rel=1e-6)
        assert sum(found.shares.values()) == pytest.approx(1)

    def test_the_events_of_a_schedule_have_the_gaps_that_are_expected_of_them(self):
        schedule = a_schedule(rule=Poisson(2_000))
        at = [fire.at for _, fire in zip(range(4_001), fires(schedule, after=NOON), strict=False)]
        gaps = figures([later - earlier for earlier, later in pairwise(at)]).gaps
        shares = expected(schedule).shares

        # Four standard errors of a share of 4,000.
        assert all(abs(gaps.get(bucket, 0) / 4_000 - share) < 0.032 for bucket, share in shares.items())

    def test_independent_events_in_windows_are_held_against_those_of_another_name(self):
        schedule = a_schedule(rule=Poisson(48), windows=(a_window("09:00", "17:00"),))
        own = [fire.at for _, fire in zip(range(300), fires(schedule, after=NOON), strict=False)]
        found = expected(schedule)

        # 48 a day in eight hours: ten minutes apart on average, and one gap in 48 is a night.
        assert found.source is Source.SAMPLE
        assert 5 * MINUTE < found.p50 < 9 * MINUTE
        assert 24 * MINUTE < found.p95 < 45 * MINUTE
        other = expected_gaps(
            a_schedule(rule=Poisson(48), windows=(a_window("09:00", "17:00"),), schedule_id="x"),
            since=NOON,
            budget=Budget(STEPS_OF_A_REQUEST),
        )
        assert other == found
        assert sorted(later - earlier for earlier, later in pairwise(own))[150] != found.p50

    def test_a_definition_that_takes_much_work_expects_what_its_steps_allow(self):
        hourly = a_schedule(rule=CronRule("0 * * * *"))

        assert 0 < expected(hourly, steps=500).count < expected(hourly, steps=5_000).count
        assert expected(hourly, steps=1) is None

    def test_from_end_to_start_the_shortest_gaps_are_expected(self):
        assert expected(a_schedule(rule=every(minutes=5, from_end=True))).p95 == 5 * MINUTE
