"""The figures of a schedule, from its state, its definition and the rows of its last runs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.api.schedules.standing import Run, Standing
from functions.api.schedules.stats import Stats, stats_of
from functions.api.schedules.stats_answers import stats_body
from functions.domain.instants import DAY, HOUR, MINUTE, SECOND
from functions.domain.jobs.claims import LedgerRow, lease_of
from functions.domain.lifecycle import State
from functions.domain.schedules.fire_figures import FireFigures, bucket_of
from functions.domain.schedules.rules import At, Poisson
from functions.domain.schedules.state import SkipReason, Status
from functions.domain.schedules.step_budget import STEPS_OF_A_REQUEST, Budget
from functions.domain.targets.options import TargetOptions
from testkit.builders import NOON, a_link, a_schedule, a_state, a_stored_schedule, a_template, every
from testkit.scheduler import pass_time
from tests.unit.test_openapi import assert_described
from tests.unit.test_schedule_routes import HOURLY, Api

SINCE = NOON - HOUR
HOURLY_AT = tuple(NOON + number * HOUR for number in range(4))


def stats(schedule: Any = None, *, runs: Any = (), now: Any = NOON + DAY, **state: Any) -> Stats:
    stored = a_stored_schedule(schedule=schedule or a_schedule())
    found = Standing(stored=stored, state=a_state(**state), next_fire=None, fire_count=9, runs=runs)
    return stats_of(found, now=now, budget=Budget(STEPS_OF_A_REQUEST))


def a_run(fire_at: Any, *, lag: timedelta = SECOND, took: timedelta = SECOND, **row: Any) -> Run:
    """A run that began so long after its fire, and then took so long."""
    began_at = fire_at + lag
    fields = {
        "state": State.SUCCEEDED,
        "attempt": 1,
        "lease_until": lease_of(a_template().timeout, now=began_at),
        "updated_at": began_at + took,
    }
    return Run(fire_at=fire_at, job_id="j1~x", row=LedgerRow(**{**fields, **row}))


class TestGaps:
    def test_even_gaps_are_told_exactly_beside_those_that_are_expected(self):
        figures = FireFigures({bucket_of(HOUR): 40})

        body = stats_body(stats(figures=figures, recent=HOURLY_AT))

        assert body["gaps"] == {"count": 40, "p50_seconds": 3_600, "p95_seconds": 3_600}
        assert body.get("expected") == {"source": "rule", "count": 1_000, "p50_seconds": 3_600, "p95_seconds": 3_600}
        assert [(each["count"], each.get("expected_share")) for each in body["histogram"]] == [(40, 1.0)]

    def test_a_schedule_that_remembers_one_fire_knows_its_gap_by_the_next(self):
        daily = a_schedule(rule=every(days=1), history=1)
        link = a_link(NOON + DAY, previous_at=NOON)

        body = stats_body(stats(daily, figures=FireFigures({bucket_of(DAY): 3}), recent=(NOON,), link=link))

        assert body["gaps"]["p50_seconds"] == 86_400

    def test_gaps_of_the_version_before_are_not_taken_for_known(self):
        recent = (SINCE - 70 * MINUTE, SINCE, SINCE + HOUR)

        assert stats(recent=recent, link=None).known == []

    def test_a_late_gap_is_seen_beside_what_was_expected(self):
        figures = FireFigures({bucket_of(HOUR): 9, bucket_of(DAY): 1})

        body = stats_body(stats(figures=figures))

        assert 86_400 / 1.19 < (body["gaps"]["p95_seconds"] or 0) < 86_400 * 1.19
        assert [(each["count"], each.get("expected_share")) for each in body["histogram"]] == [(9, 1.0), (1, 0.0)]

    def test_from_end_to_start_the_expected_gaps_are_the_shortest(self):
        body = stats_body(stats(a_schedule(rule=every(minutes=5, from_end=True))))

        assert body.get("expected") == {
            "source": "rule",
            "count": 1_000,
            "p50_seconds": 300,
            "p95_seconds": 300,
            "is_shortest": True,
        }

    def test_of_a_new_schedule_only_what_is_expected_is_known(self):
        body = stats_body(stats(a_schedule(rule=Poisson(24))))

        assert body["gaps"] == {"count": 0, "p50_seconds": None, "p95_seconds": None}
        assert body.get("expected") == {"source": "distribution", "p50_seconds": 2495.33, "p95_seconds": 10784.636}
        assert sum(each.get("expected_share", 0) for each in body["histogram"]) == pytest.approx(1, abs=0.01)

    def test_of_a_single_fire_no_gaps_are_expected(self):
        body = stats_body(stats(a_schedule(rule=At(NOON))))

        assert ("expected" in body, body["histogram"]) == (False, [])

    def test_gaps_are_shown_without_a_share_where_none_can_be_expected(self):
        body = stats_body(stats(a_schedule(rule=At(NOON)), figures=FireFigures({40: 2})))

        assert body["histogram"] == [{"from_seconds": 5_931_641.602, "to_seconds": None, "count": 2}]


class TestRuns:
    def test_outcomes_and_lags_are_those_of_the_last_runs(self):
        runs = [
            a_run(NOON, lag=2 * SECOND, took=MINUTE),
            a_run(NOON + HOUR, lag=SECOND, state=State.FAILED),
            a_run(NOON + 2 * HOUR, lag=timedelta(0), state=State.RUNNING),
            Run(fire_at=NOON + 30 * DAY, job_id="j1~x", row=None),
        ]

        body = stats_body(stats(runs=runs, now=NOON + 3 * HOUR))

        assert body["runs"] == {
            "count": 4,
            "outcomes": {"failed": 1, "running": 1, "scheduled": 1, "succeeded": 1},
            "lag": {"count": 3, "p50_seconds": 1.0, "p95_seconds": 2.0},
            "ended_after": {"count": 2, "p50_seconds": 2.0, "p95_seconds": 62.0},
        }

    @pytest.mark.parametrize(
        "row",
        [{"attempt": 2}, {"rescue_count": 1}, {"lease_until": None}],
        ids=["another attempt", "a rescue", "never begun"],
    )
    def test_what_began_otherwise_than_at_first_has_no_lag(self, row: dict[str, Any]):
        assert stats(runs=[a_run(NOON, **row)]).lags == []

    def test_a_held_attempt_has_no_lag_because_its_lease_is_prolonged(self):
        held = a_schedule(job=a_template(options=TargetOptions(is_async=True)))

        assert stats(held, runs=[a_run(NOON)]).lags == []

    def test_runs_of_the_version_before_are_left_out(self):
        body = stats_body(stats(runs=[a_run(SINCE), a_run(NOON)]))

        assert body["runs"]["count"] == 1

    def test_a_clock_that_is_behind_makes_no_lag_negative(self):
        assert stats(runs=[a_run(NOON, lag=-SECOND)]).lags == [timedelta(0)]


def test_waits_are_told_with_their_mean():
    body = stats_body(stats(figures=FireFigures({}, 4, 6 * HOUR)))

    assert body["waits"] == {"count": 4, "mean_seconds": 5_400}


def test_counts_of_all_versions_are_told_as_the_schedule_tells_them():
    body = stats_body(stats(skips={SkipReason.MISSED: 2}, misfire_count=3, status=Status.PAUSED))

    assert (body["fires"], body["misfires"], body["skips"], body["status"]) == (9, 3, {"missed": 2}, "paused")


def test_a_definition_that_cannot_be_computed_any_more_has_figures_all_the_same():
    found = stats(figures=FireFigures({3: 1}))
    broken = replace(found, expected=None)

    assert stats_body(broken)["gaps"]["count"] == 1


class TestTheRoute:
    """On the whole scheduler on fakes."""

    def test_the_figures_of_a_schedule_that_has_run_are_told(self):
        api = Api()
        api.put()
        pass_time(api, until=NOON + 5 * HOUR + MINUTE)

        status, answer = api.call("GET", "/v1/schedules/nightly:stats")

        assert status == 200
        assert (answer["fires"], answer["gaps"]) == (5, {"count": 4, "p50_seconds": 3_600, "p95_seconds": 3_600})
        assert answer["runs"]["outcomes"] == {"succeeded": 5}
        assert answer["runs"]["lag"]["count"] == 5
        assert answer["runs"]["lag"]["p95_seconds"] < 60
        assert answer["since"] == "2027-03-01T12:00:00.000Z"
        assert_described(answer, "ScheduleStats")

    def test_another_version_is_counted_anew(self):
        api = Api()
        api.put()
        pass_time(api, until=NOON + 5 * HOUR + MINUTE)
        api.call("PATCH", "/v1/schedules/nightly", {"every": 1_800})
        pass_time(api, until=NOON + 7 * HOUR + MINUTE)

        _, answer = api.call("GET", "/v1/schedules/nightly:stats")

        assert (answer["fires"], answer["gaps"]) == (9, {"count": 3, "p50_seconds": 1_800, "p95_seconds": 1_800})
        assert answer["runs"]["count"] == 4

    def test_fires_that_wait_for_an_opening_are_counted_with_how_long_they_wait(self):
        api = Api()
        windows = [{"start": "14:00", "end": "14:01"}]
        api.call("PUT", "/v1/schedules/nightly", {**HOURLY, "windows": windows, "window_mode": "defer"})
        pass_time(api, until=NOON + 50 * HOUR)

        _, answer = api.call("GET", "/v1/schedules/nightly:stats")

        # Of each day the fire of 14:00, and one for all those that waited for it.
        assert (answer["fires"], answer["waits"]["count"]) == (6, 3)
        assert answer["waits"]["mean_seconds"] > 0
        assert answer["expected"]["source"] == "rule"
