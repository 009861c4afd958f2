"""Conditional changes of schedules: If-None-Match and If-Match, whoever else changes the schedule, and repeats of a lost answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.domain.errors import ScheduleChanged, ScheduleExists
from functions.domain.schedules.change_condition import MOST_REQUESTS, ChangeCondition, remembered
from testkit.fakes import InMemoryScheduleStore
from tests.unit.test_schedule_routes import HOURLY, Api

PATH = "/v1/schedules/nightly"
CREATE = {"If-None-Match": "*"}
OTHER = {**HOURLY, "every": 1_800}

CHANGES: list[tuple[str, str, Any]] = [
    ("PUT", PATH, OTHER),
    ("PATCH", PATH, {"every": 1_800}),
    ("DELETE", PATH, None),
    ("POST", f"{PATH}:pause", {"note": "why"}),
]
EVERY_CHANGE = pytest.mark.parametrize(("method", "path", "body"), CHANGES)


def lowered(headers: dict[str, str]) -> dict[str, str]:
    """As the gateway hands them on."""
    return {name.lower(): value for name, value in headers.items()}


def change(api: Api, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.call(method, path, body, headers=lowered(named))


def create(api: Api, body: Any = HOURLY, **headers: str) -> tuple[int, Any]:
    return change(api, "PUT", PATH, body, **{"If_None_Match": "*", **headers})


class Meanwhile(InMemoryScheduleStore):
    """Somebody else makes a change between what a request has seen and what it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.steps_in: Callable[[], object] | None = None

    def change(self, *args: Any, **options: Any) -> bool:
        steps_in, self.steps_in = self.steps_in, None
        if steps_in is not None:
            steps_in()
        return super().change(*args, **options)


class LosesAnswers(InMemoryScheduleStore):
    """A write is made, and its answer comes as that of a lost race: as when the SDK has sent it twice."""

    def change(self, *args: Any, **options: Any) -> bool:
        super().change(*args, **options)
        return False


class TestCreateOnly:
    def test_a_schedule_is_created_where_there_is_none(self):
        api = Api()

        status, answer = create(api)

        assert (status, answer) == (201, api.get())

    @pytest.mark.parametrize("body", [HOURLY, OTHER], ids=["the same definition", "another"])
    def test_one_that_is_there_is_left_alone_and_the_problem_names_its_version(self, body: Any):
        api = Api()
        there = api.put()

        status, problem = create(api, body)

        assert (status, problem["code"], problem["version"]) == (412, "schedule_exists", there["version"])
        assert f"in version {there['version']}" in problem["detail"]
        assert api.get() == there

    def test_a_deleted_one_is_created_again(self):
        api = Api()
        api.put()
        api.call("DELETE", PATH)

        assert create(api)[0] == 201

    def test_of_two_who_create_at_once_one_learns_that_it_was_the_other(self):
        store = Meanwhile()
        api = Api(store)
        store.steps_in = lambda: create(api, OTHER)

        status, problem = create(api)

        assert (status, problem["code"]) == (412, "schedule_exists")
        assert api.get()["every"] == {"interval": "PT30M"}

    def test_a_repeat_with_its_key_is_answered_as_the_first_was(self):
        api = Api()
        first = create(api, Idempotency_Key="one")

        assert create(api, Idempotency_Key="one") == first
        assert api.get()["version"] == first[1]["version"]

    def test_a_repeat_is_known_also_after_somebody_else_s_change_and_undoes_nothing(self):
        api = Api()
        create(api, Idempotency_Key="one")
        api.call("PATCH", PATH, {"every": 1_800})

        status, answer = create(api, Idempotency_Key="one")

        assert (status, answer["every"]) == (201, {"interval": "PT30M"})

    @pytest.mark.parametrize(
        ("body", "key"), [(OTHER, "one"), (HOURLY, "two")], ids=["another definition", "another key"]
    )
    def test_what_is_no_repeat_learns_that_there_is_one(self, body: Any, key: str):
        api = Api()
        create(api, Idempotency_Key="one")

        assert create(api, body, Idempotency_Key=key)[0] == 412

    def test_who_has_created_it_is_not_told_otherwise_when_its_own_write_comes_back_as_lost(self):
        api = Api(LosesAnswers())

        assert create(api)[0] == 201

    def test_a_dry_run_says_that_there_is_one(self):
        api = Api()
        api.put()

        status, problem = api.call("PUT", PATH, OTHER, query={"dry_run": "true"}, headers=lowered(CREATE))

        assert (status, problem["code"]) == (412, "schedule_exists")

    def test_nothing_of_its_tenant_s_rate_is_taken_by_a_schedule_that_is_there(self, monkeypatch: pytest.MonkeyPatch):
        api = Api()
        api.put()
        begun: list[str] = []
        monkeypatch.setattr(type(api.gate), "begin", lambda _, tenant: begun.append(tenant))

        create(api, OTHER)

        assert begun == []


class TestIfMatch:
    @EVERY_CHANGE
    def test_the_version_that_was_seen_is_changed(self, method: str, path: str, body: Any):
        api = Api()
        seen = api.put()["version"]

        status, _ = change(api, method, path, body, If_Match=f'"{seen}"')

        assert status == 200

    @EVERY_CHANGE
    @pytest.mark.parametrize("written", ['"{}"', "{}", '"1", "{}"'], ids=["quoted", "bare", "one of two"])
    def test_another_version_is_left_alone_and_the_problem_names_the_one_there_is(
        self, method: str, path: str, body: Any, written: str
    ):
        api = Api()
        there = api.put()
        stale = there["version"] - 1

        status, problem = change(api, method, path, body, If_Match=written.format(stale))

        assert (status, problem["code"], problem["version"]) == (412, "schedule_changed", there["version"])
        assert f"version {there['version']}, not" in problem["detail"]
        assert api.get() == there

    @EVERY_CHANGE
    def test_a_change_that_somebody_else_makes_meanwhile_is_not_lost(self, method: str, path: str, body: Any):
        store = Meanwhile()
        api = Api(store)
        seen = api.put()["version"]
        store.steps_in = lambda: api.call("PATCH", PATH, {"history": 9})

        status, problem = change(api, method, path, body, If_Match=f'"{seen}"')

        assert (status, problem["version"]) == (412, seen + 1)
        assert api.get()["history"] == 9

    def test_a_resume_is_conditional_too(self):
        api = Api()
        seen = api.put()["version"]
        api.call("POST", f"{PATH}:pause")

        refused, _ = change(api, "POST", f"{PATH}:resume", If_Match=f'"{seen}"')
        taken, answer = change(api, "POST", f"{PATH}:resume", If_Match=f'"{seen + 1}"')

        assert (refused, taken, answer["status"]) == (412, 200, "active")

    @EVERY_CHANGE
    def test_a_repeat_with_its_key_has_no_further_effect(self, method: str, path: str, body: Any):
        api = Api()
        headers = {"If_Match": f'"{api.put()["version"]}"', "Idempotency_Key": "one"}
        first = change(api, method, path, body, **headers)

        assert change(api, method, path, body, **headers) == first

    def test_a_key_that_is_used_again_for_another_change_is_no_repeat(self):
        api = Api()
        headers = {"If_Match": f'"{api.put()["version"]}"', "Idempotency_Key": "one"}
        change(api, "PATCH", PATH, {"every": 1_800}, **headers)

        assert change(api, "PATCH", PATH, {"every": 900}, **headers)[0] == 412

    @pytest.mark.parametrize(
        ("method", "body", "status"), [("PUT", OTHER, 200), ("PATCH", {"every": 1_800}, 412), ("DELETE", None, 200)]
    )
    def test_without_a_key_a_repeat_passes_where_all_of_it_is_in_place(self, method: str, body: Any, status: int):
        api = Api()
        seen = f'"{api.put()["version"]}"'
        change(api, method, PATH, body, If_Match=seen)

        assert change(api, method, PATH, body, If_Match=seen)[0] == status

    def test_any_version_is_changed_and_none_created(self):
        api = Api()

        missing, problem = change(api, "PUT", PATH, HOURLY, If_Match="*")
        api.put()
        there, _ = change(api, "PUT", PATH, OTHER, If_Match="*")

        assert (missing, problem["code"], "version" in problem) == (412, "schedule_changed", False)
        assert there == 200

    @pytest.mark.parametrize("tag", ['W/"{}"', '"v{}"', '"{}.0"', '""', '"²"'])
    def test_a_tag_that_is_weak_or_no_version_of_a_schedule_matches_none(self, tag: str):
        api = Api()
        there = api.put()

        status, problem = change(api, "PATCH", PATH, {"every": 1_800}, If_Match=tag.format(there["version"]))

        assert (status, problem["version"]) == (412, there["version"])
        assert f'send If-Match: "{there["version"]}"' in problem["detail"]

    @pytest.mark.parametrize(
        ("header", "value"),
        [("If_Match", "seven"), ("If_Match", '"7'), ("If_Match", '"7" "8"'), ("If_None_Match", '"7"')],
    )
    def test_a_header_that_says_nothing_is_refused_with_what_to_write(self, header: str, value: str):
        api = Api()
        there = api.put()

        status, problem = change(api, "PUT", PATH, OTHER, **{header: value})

        assert (status, problem["code"]) == (422, "invalid_input")
        assert problem["detail"].startswith(f"{header.replace('_', '-')} is {value!r}, but must be ")
        assert api.get() == there

    def test_a_schedule_that_is_not_there_is_not_found_whatever_its_version_was_to_be(self):
        assert change(Api(), "PATCH", PATH, {"every": 1_800}, If_Match='"7"')[0] == 404


def test_an_answer_with_a_schedule_has_its_version_as_entity_tag():
    api = Api()

    answers = [
        api.ask("PUT", PATH, HOURLY),
        api.ask("GET", PATH),
        api.ask("PATCH", PATH, {"every": 1_800}),
        api.ask("POST", f"{PATH}:pause"),
        api.ask("POST", f"{PATH}:resume"),
    ]

    assert [answer["headers"]["ETag"] for answer in answers] == [
        f'"{json.loads(answer["body"])["version"]}"' for answer in answers
    ]


def test_the_last_requests_are_remembered_and_not_all():
    requests: tuple[str, ...] = ()
    for number in range(MOST_REQUESTS + 2):
        requests = remembered(requests, str(number))

    assert requests == tuple(str(number) for number in range(2, MOST_REQUESTS + 2))
    assert remembered(requests, "") == requests


def test_both_conditions_hold_or_neither():
    both = ChangeCondition(is_new=True, versions=frozenset({7}))

    with pytest.raises(ScheduleExists):
        both.check("acme", "nightly", 7)
    with pytest.raises(ScheduleChanged):
        both.check("acme", "nightly", None)
