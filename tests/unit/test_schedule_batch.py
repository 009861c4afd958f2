"""Many schedules in one request, each judged by itself: on fakes."""

import json
from collections.abc import Sequence
from typing import Any

from functions.api.schedules.batch import BEGIN_WITHIN
from functions.domain.errors import NewerVersion, ScheduleBusy
from functions.domain.instants import HOUR, SECOND
from functions.domain.schedules.load import LoadLimits
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.schedules import ScheduleAndState, ScheduleWrite
from testkit.fakes import InMemoryScheduleStore
from tests.unit.test_schedule_routes import HOURLY, JOB, Api


class CountedStore(InMemoryScheduleStore):
    """together, alone: how many schedules were written in one request, and by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[int] = []
        self.alone: list[str] = []
        self.advanced = 0

    def change_together(self, writes: Any) -> bool:
        self.together.append(len(writes))
        return super().change_together(writes)

    def change(self, new: Any, state: Any, **given: Any) -> bool:
        self.alone.append(new.schedule.schedule_id)
        return super().change(new, state, **given)

    def advance(self, key: str, *given: Any, **named: Any) -> Any:
        self.advanced += 1
        return super().advance(key, *given, **named)


def named(schedule_id: str, tenant: str = "acme", **definition: Any) -> dict[str, Any]:
    return {"tenant": tenant, "id": schedule_id, **HOURLY, **definition}


def batch(api: Api, *schedules: Any) -> list[dict[str, Any]]:
    status, answer = api.call("POST", "/v1/schedules:batch", {"schedules": list(schedules)}, tenant=None)
    assert status == 200, answer
    return answer["results"]


def outcomes(results: list[dict[str, Any]]) -> list[Any]:
    return [result.get("change") or result["problem"]["code"] for result in results]


def test_each_schedule_is_created_replaced_or_left_as_it_is():
    api = Api()
    api.put("old")
    api.put("same")

    results = batch(api, named("new"), named("old", every=7_200), named("same"))

    assert [(result["status"], result["change"]) for result in results] == [
        (201, "created"),
        (200, "updated"),
        (200, "unchanged"),
    ]
    assert [result["schedule"]["id"] for result in results] == ["new", "old", "same"]
    for result in results:
        found = api.get(result["schedule"]["id"])
        assert result["schedule"] == {name: found[name] for name in result["schedule"]}
    assert api.get("old")["every"] == {"interval": "PT2H"}


def test_a_schedule_that_is_refused_holds_up_no_other():
    api = Api()

    results = batch(
        api,
        named("one"),
        {},
        named("two", cron="no cron"),
        {"id": "three", **HOURLY},
        named("four", at="2001-01-01T00:00:00Z", every=None),
        named("five", every={"interval": 60, "phase": 90}),
        named("one", every=60),
        named("six"),
    )

    assert outcomes(results) == [
        "created",
        *["invalid_schedule"] * 6,
        "created",
    ]
    assert [result["status"] for result in results] == [201, *[422] * 6, 201]
    assert "also that of schedule 0" in results[6]["problem"]["detail"]
    assert results[3]["problem"]["errors"][0]["field"] == "tenant"
    assert api.get("one")["every"] == {"interval": "PT1H"}


def test_those_of_a_tenant_are_written_in_one_request_and_their_first_fires_are_placed():
    store = CountedStore()
    api = Api(store)

    batch(api, *(named(f"s{number}") for number in range(5)), *(named(f"t{number}", "umbrella") for number in range(3)))

    assert store.together == [5, 3]
    assert store.advanced == 8
    assert all(state.read().alarm_at is not None for state in store.rows.values())
    assert (store.load("acme").schedules, store.load("umbrella").schedules) == (5, 3)


def test_schedules_that_are_as_they_should_be_are_not_written():
    store = CountedStore()
    api = Api(store)
    batch(api, named("a"), named("b"))
    store.together.clear()
    store.alone.clear()
    store.advanced = 0

    assert outcomes(batch(api, named("a"), named("b"))) == ["unchanged", "unchanged"]
    assert (store.together, store.alone, store.advanced) == ([], [], 0)


def test_a_schedule_whose_first_fire_was_not_placed_is_carried_on_by_the_next_batch():
    store = CountedStore()
    api = Api(store)
    batch(api, named("a"))
    row = store.rows["acme#a"]
    store._update("acme#a", alarm_at=None)  # the process died between its two writes

    assert outcomes(batch(api, named("a"))) == ["unchanged"]
    assert store.rows["acme#a"].read().alarm_at == row.read().alarm_at is not None


class Contended(CountedStore):
    """Whose rows somebody else changes between the read and the write, once."""

    meanwhile = True

    def change_together(self, writes: Any) -> bool:
        if self.meanwhile:
            self.meanwhile = False
            first: ScheduleWrite = writes[0]
            assert self.change(first.new, first.state, seen=first.seen)
        return super().change_together(writes)


def test_where_one_has_changed_meanwhile_each_is_written_by_itself():
    store = Contended()
    api = Api(store)

    assert outcomes(batch(api, named("a"), named("b"))) == ["unchanged", "created"]
    assert store.load("acme").schedules == 2


def test_the_first_ones_come_in_that_fit_into_the_quota():
    api = Api()
    api.limits = LoadLimits(schedules=2)

    results = batch(api, named("a"), named("b"), named("c"))

    assert outcomes(results) == ["created", "created", "schedules_exceeded"]
    assert api.schedules.load("acme").schedules == 2
    assert outcomes(batch(api, named("b", every=60), named("a"))) == ["updated", "unchanged"]


def test_each_schedule_that_begins_to_fire_takes_from_the_rate_of_its_tenant():
    api = Api()
    api.plans.plans["acme"] = TenantPlan(submission_rate=0.1, submission_burst=2)

    results = batch(api, named("a"), named("b"), named("c"), named("d", "umbrella"))

    assert outcomes(results) == ["created", "created", "rate_exceeded", "created"]
    assert results[2]["problem"]["retry_after"] > 0
    assert outcomes(batch(api, named("a"), named("b"))) == ["unchanged", "unchanged"]


def test_a_tenant_that_is_closed_is_refused_and_no_other():
    api = Api()
    api.plans.plans["acme"] = TenantPlan(status=TenantStatus.DRAINING)

    assert outcomes(batch(api, named("a"), named("b", "umbrella"))) == ["tenant_closed", "created"]


def test_who_changed_what_is_in_the_audit_trail_line_by_line():
    api = Api()
    batch(api, named("a"), named("b", cron="no"), named("c", "umbrella"))

    assert [(line.tenant, line.subject, line.before) for line in api.trail.actions] == [
        ("acme", "a", None),
        ("umbrella", "c", None),
    ]


class Failing(CountedStore):
    """Which fails whoever reads or writes something of one tenant."""

    def get_many(self, keys: Sequence[str]) -> dict[str, ScheduleAndState]:
        if keys[0].startswith("acme#"):
            raise ConnectionError("a secret address")
        return super().get_many(keys)


def test_a_store_that_fails_for_one_tenant_fails_for_no_other():
    results = batch(Api(Failing()), named("a"), named("b", "umbrella"))

    assert outcomes(results) == ["not_placed", "created"]
    assert "secret" not in json.dumps(results)


class Unreadable(CountedStore):
    """Of which one row was written by a newer release."""

    def get(self, key: str) -> ScheduleAndState:
        if key == "acme#newer":
            raise NewerVersion("a newer Tickwheel")
        return super().get(key)


def test_a_row_that_cannot_be_read_holds_up_no_other():
    results = batch(Api(Unreadable()), named("a"), named("newer"), named("b"))

    assert [result["status"] for result in results] == [201, 500, 201]


class Busy(CountedStore):
    def change_together(self, writes: Any) -> bool:
        raise ScheduleBusy("a")


def test_where_others_change_the_same_sum_all_the_time_each_is_told_to_come_again():
    results = batch(Api(Busy()), named("a"), named("b"))

    assert outcomes(results) == ["schedule_busy", "schedule_busy"]
    assert {result["problem"]["retry_after"] for result in results} == {1}


class Slow(CountedStore):
    """Each write takes five seconds, and none is made together."""

    api: Api

    def change_together(self, writes: Any) -> bool:
        return False

    def change(self, new: Any, state: Any, **given: Any) -> bool:
        self.api.clock.sleep(5 * SECOND)
        return super().change(new, state, **given)


def test_what_there_is_no_time_for_is_told_to_come_again_and_is_not_written():
    store = Slow()
    store.api = api = Api(store)

    results = batch(api, *(named(name) for name in "abcd"))

    assert 5 < BEGIN_WITHIN < 10
    assert outcomes(results) == ["created", "created", "busy", "busy"]
    assert sorted(store.rows) == ["acme#a", "acme#b"]


def test_a_batch_has_at_least_one_schedule_and_at_most_25():
    api = Api()
    for schedules in ([], [named("a")] * 26):
        status, answer = api.call("POST", "/v1/schedules:batch", {"schedules": schedules})
        assert (status, answer["code"]) == (422, "invalid_input")
    status, answer = api.call(
        "POST", "/v1/schedules:batch", {"schedules": [named("a")]}, headers={"Idempotency-Key": "k"}
    )
    assert (status, answer["code"]) == (422, "invalid_input")
    assert api.schedules.load("acme").schedules == 0


def test_a_large_payload_is_kept_apart_and_its_definition_is_not_in_the_answer():
    api = Api()
    large = "x" * 200_000

    (result,) = batch(api, named("a", job={**JOB, "payload": large}))

    assert result["change"] == "created"
    assert len(json.dumps(result)) < 2_000
    assert api.get("a")["job"]["payload"] == large
    assert outcomes(batch(api, named("a", job={**JOB, "payload": large}))) == ["unchanged"]


def test_a_schedule_that_is_behind_is_caught_up_before_it_is_changed():
    api = Api()
    api.put("a")
    api.clock.sleep(3 * HOUR)

    assert outcomes(batch(api, named("a", every=7_200), named("b"))) == ["updated", "created"]
    assert api.get("a")["fires"] + sum(api.get("a")["skips"].values()) >= 3


def test_a_paused_schedule_stays_paused():
    api = Api()
    api.put("a")
    api.call("POST", "/v1/schedules/a:pause")

    (result,) = batch(api, named("a", every=60))

    assert (result["change"], result["schedule"]["status"]) == ("updated", "paused")
