"""The spread of schedules that say none: whose default they take, when, and for how long."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.api.schedules.fire_counts import minutes_of
from functions.api.schedules.manager import ScheduleManager
from functions.domain.errors import InvalidInput
from functions.domain.instants import HOUR, MINUTE, SECOND, parse_duration
from functions.domain.schedules.default_spread import with_default_spread
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.record import decode_schedule, encode_stored
from functions.domain.schedules.rules import At, CronRule, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.shifts import spread_of
from functions.domain.schedules.spread import DefaultSpread, SpreadFrom
from functions.domain.tenants.plan import Limits, Tenant, read_limits
from testkit.builders import NOON, a_schedule, every
from tests.unit.test_schedule_routes import Api
from tickwheel.client.schedules import NewSchedule
from tickwheel.demo.schedules import NEVER, OWN_TENANT, plan_schedules

ROOT = Path(__file__).parents[2]
MIDNIGHT = NOON.replace(hour=0)
TEN_MINUTES = DefaultSpread(10 * MINUTE, SpreadFrom.TENANT)
ON_THE_HOUR = CronRule("0 * * * *")
JOB = {"target": "https://example.com/hook"}


class Spread(Api):
    """The routes of schedules, with a default that changes."""

    def __init__(self, default: DefaultSpread | None) -> None:
        super().__init__()
        self.default = default

    @property
    def manager(self) -> ScheduleManager:
        return self.build(
            ScheduleManager, gate=self.gate, limits=lambda _: self.limits, default_spread=lambda _: self.default
        )

    def hourly(self, **definition: Any) -> dict[str, Any]:
        """Whatever the routes answer to it."""
        _, answer = self.call("PUT", "/v1/schedules/nightly", {"cron": "0 * * * *", "job": JOB, **definition})
        return answer

    def patch(self, **patch: Any) -> dict[str, Any]:
        status, answer = self.call("PATCH", "/v1/schedules/nightly", patch)
        assert status == 200, answer
        return answer


class TestWhose:
    @pytest.mark.parametrize(
        ("plans", "tenant", "expected"),
        [
            ({}, Tenant(), None),
            ({"default": {"spread": 60}}, Tenant(), DefaultSpread(MINUTE, SpreadFrom.STAGE)),
            ({"default": {"spread": "PT1M"}}, Tenant(plan="gone"), DefaultSpread(MINUTE, SpreadFrom.STAGE)),
            (
                {"default": {"spread": 60}, "gold": {"weight": 3}},
                Tenant(plan="gold"),
                DefaultSpread(MINUTE, SpreadFrom.STAGE),
            ),
            (
                {"default": {"spread": 60}, "gold": {"spread": 120}},
                Tenant(plan="gold"),
                DefaultSpread(2 * MINUTE, SpreadFrom.PLAN),
            ),
            (
                {"default": {"spread": 60}, "gold": {"spread": 120}},
                Tenant(plan="gold", limits={"spread": "PT3M"}),
                DefaultSpread(3 * MINUTE, SpreadFrom.TENANT),
            ),
            ({"default": {"spread": 60}}, Tenant(limits={"spread": 0}), None),
            ({"default": {"spread": 60}, "gold": {"spread": 0}}, Tenant(plan="gold"), None),
        ],
    )
    def test_the_nearest_default_counts_and_none_at_all_is_a_default_too(
        self, plans: dict[str, Limits], tenant: Tenant, expected: DefaultSpread | None
    ):
        assert tenant.plan_among(plans).default_spread == expected

    @pytest.mark.parametrize("value", [True, "five minutes", -1, 1.5, "PT1H1S", 3_601, None, {}, float("nan")])
    def test_what_is_no_default_is_refused_by_its_name_with_what_to_write(self, value: Any):
        with pytest.raises(InvalidInput, match=r"spread is .*, but must be whole seconds .* from 0 to PT1H"):
            read_limits({"spread": value})


class TestWhich:
    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            (ON_THE_HOUR, 10 * MINUTE),
            (CronRule("* * * * *"), MINUTE),
            (CronRule("0,5 9 * * *"), 5 * MINUTE),
            (every(hours=1), 10 * MINUTE),
            (every(seconds=30), 30 * SECOND),
            (every(seconds=1.5), SECOND),
            (RecurrenceRule("FREQ=DAILY", NOON.replace(tzinfo=None)), 10 * MINUTE),
            (RecurrenceRule("FREQ=MINUTELY;INTERVAL=2", NOON.replace(tzinfo=None)), 2 * MINUTE),
            (RecurrenceRule("FREQ=DAILY;COUNT=1", NOON.replace(tzinfo=None)), 10 * MINUTE),
        ],
        ids=str,
    )
    def test_it_is_never_longer_than_the_shortest_time_between_two_fires(self, rule: Rule, expected: timedelta):
        schedule = with_default_spread(a_schedule(rule=rule), TEN_MINUTES)

        assert (schedule.spread, schedule.spread_from) == (expected, SpreadFrom.TENANT)

    @pytest.mark.parametrize(
        "schedule",
        [
            a_schedule(rule=At(NOON)),
            a_schedule(rule=Poisson(5)),
            a_schedule(rule=every(hours=1, from_end=True)),
            a_schedule(rule=ON_THE_HOUR, spread=5 * MINUTE),
            a_schedule(rule=ON_THE_HOUR, spread_from=SpreadFrom.SCHEDULE),
        ],
        ids=["at", "poisson", "from end to start", "a spread of its own", "says that it has none"],
    )
    def test_a_schedule_whose_times_are_its_own_takes_none(self, schedule: Schedule):
        assert with_default_spread(schedule, TEN_MINUTES) is schedule

    def test_it_fires_as_one_that_says_the_same(self):
        taken = with_default_spread(a_schedule(rule=ON_THE_HOUR), TEN_MINUTES)
        said = a_schedule(rule=ON_THE_HOUR, spread=10 * MINUTE)

        assert spread_of(taken) == spread_of(said) > timedelta(0)
        assert next_fire(taken, after=NOON) == next_fire(said, after=NOON)


class TestStored:
    @pytest.mark.parametrize(
        ("schedule", "written"),
        [
            (a_schedule(), {}),
            (a_schedule(spread=MINUTE), {"spread": "PT1M"}),
            (a_schedule(spread_from=SpreadFrom.SCHEDULE), {"spread": "PT0S"}),
            (a_schedule(spread=MINUTE, spread_from=SpreadFrom.PLAN), {"spread": "PT1M", "spread_from": "plan"}),
        ],
    )
    def test_it_is_read_as_it_was_written_and_an_earlier_release_fires_at_the_same_time(
        self, schedule: Schedule, written: dict[str, str]
    ):
        stored = encode_stored(schedule)

        assert {name: value for name, value in stored.items() if name.startswith("spread")} == written
        # All that an earlier release looks at.
        assert parse_duration(stored.get("spread", 0)) == schedule.spread
        read = decode_schedule(json.dumps(stored), tenant=schedule.tenant, schedule_id=schedule.schedule_id)
        assert read == schedule


class TestAnswers:
    def test_the_answer_and_the_preview_say_what_was_taken_and_from_where(self):
        api = Spread(TEN_MINUTES)

        answer = api.hourly()

        assert answer["default_spread"] == {"spread": "PT10M", "from": "tenant"}
        assert "spread" not in answer
        (fire,) = api.call("GET", "/v1/schedules/nightly:preview", query={"count": 1})[1]["fires"]
        delay = spread_of(a_schedule(tenant="acme", schedule_id="nightly", spread=10 * MINUTE))
        (mark,) = fire["marks"]
        assert mark["by"] == "spread"
        assert mark["reason"].endswith("by its spread of 10 min, from the default of its tenant")
        assert answer["next_fire"]["at"] == fire["at"]
        assert delay > timedelta(0)
        assert fire["at"] != answer["next_fire"]["nominal_at"]

    def test_an_answer_can_be_put_again_and_is_the_same_definition(self):
        api = Spread(TEN_MINUTES)
        answer = api.hourly()

        again = api.hourly(**{name: answer[name] for name in ("cron", "job")})

        assert again == answer

    @pytest.mark.parametrize("said", [0, "PT0S", "PT20M"])
    def test_a_schedule_that_says_its_spread_keeps_to_it(self, said: Any):
        answer = Spread(TEN_MINUTES).hourly(spread=said)

        assert "default_spread" not in answer
        assert parse_duration(answer["spread"]) == parse_duration(said)

    def test_a_default_that_moves_the_only_fire_behind_the_end_is_refused_with_what_to_say(self):
        api = Spread(DefaultSpread(HOUR, SpreadFrom.PLAN))
        definition = {"cron": "0 13 * * *", "end": "2027-03-01T13:00:01Z", "job": JOB}

        status, problem = api.call("PUT", "/v1/schedules/nightly", definition)
        exact, _ = api.call("PUT", "/v1/schedules/nightly", {**definition, "spread": 0})

        assert (status, exact) == (422, 201)
        (error,) = problem["errors"]
        assert error["field"] == "end"
        assert error["message"].endswith("the default of its plan: say spread 0 for none")

    def test_the_counts_of_new_definitions_have_the_default_that_they_would_take(self):
        api = Spread(TEN_MINUTES)
        definitions = [{"tenant": "acme", "id": "nightly", "cron": "0 * * * *", "job": JOB}]
        body = {"schedules": definitions, "hours": 1, "start": "2027-03-01T12:00:00Z"}

        _, counted = api.call("POST", "/v1/schedules:fires", body, tenant=None)
        api.default = None
        _, at_noon = api.call("POST", "/v1/schedules:fires", body, tenant=None)

        minute = spread_of(a_schedule(tenant="acme", schedule_id="nightly", spread=10 * MINUTE)) // MINUTE
        assert counted["results"][0]["minutes"] == {str(minute): 1}
        assert at_noon["results"][0]["minutes"] == {"0": 1}


CHANGED = [None, DefaultSpread(2 * MINUTE, SpreadFrom.TENANT), DefaultSpread(HOUR, SpreadFrom.STAGE)]


class TestChanges:
    @pytest.mark.parametrize("default", CHANGED)
    def test_a_changed_default_changes_no_schedule_that_there_is(self, default: DefaultSpread | None):
        api = Spread(TEN_MINUTES)
        before = api.hourly()
        api.default = default

        assert api.get() == before
        assert api.hourly() == before
        assert api.patch(history=10) == before

    def test_one_that_took_none_stays_without(self):
        api = Spread(None)
        before = api.hourly()
        api.default = TEN_MINUTES

        assert api.hourly() == before
        assert "default_spread" not in api.patch(history=5)

    def test_a_change_of_something_else_keeps_what_was_taken(self):
        api = Spread(TEN_MINUTES)
        before = api.hourly()
        api.default = None

        after = api.patch(history=5)
        paused = api.call("POST", "/v1/schedules/nightly:pause")[1]
        resumed = api.call("POST", "/v1/schedules/nightly:resume")[1]

        for answer in (after, paused, resumed):
            assert answer["default_spread"] == before["default_spread"]
        assert resumed["next_fire"] == after["next_fire"] == before["next_fire"]

    def test_null_takes_the_default_of_now_and_a_dry_run_shows_it(self):
        api = Spread(None)
        api.hourly()
        api.default = TEN_MINUTES

        query = {"dry_run": "true", "count": 1}
        _, difference = api.call("PATCH", "/v1/schedules/nightly", {"spread": None}, query=query)
        after = api.patch(spread=None)

        assert after["default_spread"] == {"spread": "PT10M", "from": "tenant"}
        assert [fire["at"] for fire in difference["before"]] == ["2027-03-01T13:00:00.000Z"]
        assert [fire["at"] for fire in difference["after"]] == [after["next_fire"]["at"]]

    def test_null_in_place_of_a_spread_of_its_own_takes_the_default(self):
        api = Spread(TEN_MINUTES)
        api.hourly(spread="PT20M")

        assert api.patch(spread=None)["default_spread"] == {"spread": "PT10M", "from": "tenant"}

    def test_another_rule_takes_the_default_of_now(self):
        api = Spread(TEN_MINUTES)
        api.hourly()
        api.default = DefaultSpread(2 * MINUTE, SpreadFrom.PLAN)

        assert api.patch(cron="30 * * * *")["default_spread"] == {"spread": "PT2M", "from": "plan"}
        assert "default_spread" not in api.patch(cron=None, poisson={"per_day": 5})
        assert api.hourly()["default_spread"] == {"spread": "PT2M", "from": "plan"}

    def test_a_schedule_that_is_created_again_takes_the_default_of_now(self):
        api = Spread(TEN_MINUTES)
        api.hourly()
        api.default = None
        api.call("DELETE", "/v1/schedules/nightly")

        assert "default_spread" not in api.hourly()

    def test_the_audit_trail_says_what_was_taken(self):
        api = Spread(TEN_MINUTES)

        api.hourly()

        (line,) = api.trail.actions
        assert line.after is not None
        assert line.after["default_spread"] == {"spread": "PT10M", "from": "tenant"}


def test_the_figures_of_the_decision_are_those_of_the_example():
    page = (ROOT / "docs" / "decisions" / "0046-a-default-spread-is-taken-once.md").read_text()
    schedules = [
        a_schedule(tenant=each.tenant, schedule_id=each.id, rule=rule)
        for each in plan_schedules(example_rows(), sink="https://example.com")
        if each.tenant != OWN_TENANT and (rule := rule_of(each)) is not None
    ]

    plain, a_minute, four = (fires_of_a_day(schedules, spread) for spread in (None, MINUTE, 4 * MINUTE))

    assert f"Of the {len(schedules):,} schedules" in page
    on_the_hour = sum(count for minute, count in plain.items() if not minute % 60)
    assert f"{on_the_hour / plain.total():.1%}".replace("%", " % of all fires") in page
    assert f"has {max(plain.values())} fires where the mean is {plain.total() / 1_440:.1f}" in page
    assert f"still has {max(a_minute.values())} fires, with four {max(four.values())}" in page


def example_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "examples" / "kubernetes-periodics.jsonl").read_text().splitlines()]


def rule_of(schedule: NewSchedule) -> Rule | None:
    """None for those that never fire, and for those whose fires depend on their runs."""
    if schedule.cron is not None:
        return None if schedule.cron in NEVER else CronRule(schedule.cron)
    return every(seconds=schedule.every.total_seconds()) if isinstance(schedule.every, timedelta) else None


def fires_of_a_day(schedules: Sequence[Schedule], spread: timedelta | None) -> Counter[int]:
    default = None if spread is None else DefaultSpread(spread, SpreadFrom.STAGE)
    found: Counter[int] = Counter()
    for schedule in schedules:
        found.update(minutes_of(with_default_spread(schedule, default), start=MIDNIGHT, hours=24))
    return found
