"""Resources of users' stacks: the real function, asked as CloudFormation does, against the real API behind a real HTTP server."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from functions.adapters import operators_api
from testkit.events import Context, a_request
from tests.api_server import Answer, ApiServer, Request
from tests.integration.stage import Stage

OPERATOR = "arn:aws:iam::123456789012:role/Operator"
ROLE = "arn:aws:iam::123456789012:role/orders/Submitter"
NIGHTLY = {"cron": "0 3 * * *", "timezone": "Europe/Berlin", "job": {"target": "https://example.com/hook"}}
HOURLY = {"every": 3_600, "job": {"target": "https://example.com/hook", "payload": {"n": 1}}}


class Passing(Context):
    """An invocation whose time passes: five seconds each time that it is looked at."""

    def get_remaining_time_in_millis(self) -> int:
        left = super().get_remaining_time_in_millis()
        object.__setattr__(self, "remaining_ms", left - 5_000)
        return left


class CloudFormation:
    """A stack of one resource: what CloudFormation asks, in the order in which it does.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes.html
    """

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage, self.api = stage, stage.module("api")
        self.physical_id = ""
        self.answers: list[dict[str, Any]] = []
        self.loses_answers = 0
        self.fails = 0
        self.server = ApiServer(otherwise=self._answer)
        monkeypatch.setenv("API_ENDPOINT", f"http://127.0.0.1:{self.server.port}")
        monkeypatch.setenv("OPERATOR_ROLE", OPERATOR)
        monkeypatch.setenv("AWS_REGION", "us-east-1")

    def ask(
        self,
        what: str,
        properties: dict[str, Any],
        *,
        kind: str = "Custom::TickwheelSchedule",
        physical_id: str | None = None,
        before: dict[str, Any] | None = None,
        remaining_ms: int = 90_000,
        stack: str = "orders",
    ) -> dict[str, Any]:
        """The answer to one request."""
        event = {
            "RequestType": what,
            "ResponseURL": f"http://127.0.0.1:{self.server.port}/cloudformation?X-Amz-Signature=a%2Fb",
            "StackId": f"arn:aws:cloudformation:us-east-1:123456789012:stack/{stack}/1",
            "RequestId": str(uuid.uuid4()),
            "ResourceType": kind,
            "LogicalResourceId": "Nightly",
            "ResourceProperties": {"ServiceToken": "arn:aws:lambda:…", **properties},
            **({"PhysicalResourceId": physical_id} if physical_id is not None else {}),
            **({"OldResourceProperties": before} if before is not None else {}),
        }
        known = len(self.answers)
        self.module().handler(event, Passing(remaining_ms=remaining_ms))
        (answer,) = self.answers[known:]
        assert {name: answer[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
            name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")
        }
        assert answer["PhysicalResourceId"]
        return answer

    def module(self) -> ModuleType:
        """The function, as Lambda imports it."""
        return import_module("functions.resources.handler")

    def create(self, properties: dict[str, Any], **options: Any) -> dict[str, Any]:
        """And its rollback, where that failed: CloudFormation deletes by the id that the answer had."""
        answer = self.ask("Create", properties, **options)
        self.physical_id = answer["PhysicalResourceId"]
        if answer["Status"] == "FAILED":
            gone = self.ask("Delete", properties, physical_id=self.physical_id, **options)
            assert gone["Status"] == "SUCCESS", gone
        return answer

    def update(self, properties: dict[str, Any], *, before: dict[str, Any], **options: Any) -> dict[str, Any]:
        """And what follows: the former is deleted where it was replaced, and brought back where the update failed."""
        answer = self.ask("Update", properties, physical_id=self.physical_id, before=before, **options)
        if answer["Status"] == "FAILED":
            back = self.ask("Update", before, physical_id=self.physical_id, before=properties, **options)
            assert (back["Status"], back["PhysicalResourceId"]) == ("SUCCESS", self.physical_id), back
            return answer
        former, self.physical_id = self.physical_id, answer["PhysicalResourceId"]
        if former != self.physical_id:
            assert self.ask("Delete", before, physical_id=former, **options)["Status"] == "SUCCESS"
        return answer

    def _answer(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        if parts.path == "/cloudformation":
            assert parts.query == "X-Amz-Signature=a%2Fb"
            self.answers.append(request.json)
            return Answer(200, {})
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
        assert "x-amz-security-token" in request.headers
        if self.fails:
            self.fails -= 1
            return Answer(503, {"code": "unavailable"})
        answer = self.api.handler(
            a_request(
                request.method,
                parts.path,
                raw=request.body.decode() or None,
                headers=request.headers,
                query=dict(parse_qsl(parts.query)),
                caller="arn:aws:sts::123456789012:assumed-role/Operator/tickwheel-resources",
            ),
            Context(),
        )
        if self.loses_answers:
            self.loses_answers -= 1
            return Answer(0, None)
        return Answer(answer["statusCode"], answer["body"].encode())


@pytest.fixture
def stack(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    monkeypatch.setattr(operators_api.time, "sleep", lambda _: None)
    stack = CloudFormation(stage, monkeypatch)
    with stack.server:
        yield stack


def a_schedule(definition: Any = NIGHTLY, *, tenant: str = "acme", schedule_id: str = "nightly") -> dict[str, Any]:
    return {"Tenant": tenant, "ScheduleId": schedule_id, "Definition": json.dumps(definition)}


def stored(stage: Stage, schedule_id: str = "nightly", tenant: str = "acme") -> dict[str, Any] | None:
    status, body = stage.call("GET", f"/v1/schedules/{schedule_id}", query={"tenant": tenant})
    return body if status == 200 else None


def put(stage: Stage, definition: Any, schedule_id: str = "nightly") -> None:
    status, _ = stage.call("PUT", f"/v1/schedules/{schedule_id}", definition, query={"tenant": "acme"})
    assert status in (200, 201)


def test_a_schedule_is_created_changed_and_deleted_with_its_resource(stack: CloudFormation) -> None:
    created = stack.create(a_schedule())
    assert (created["Status"], created["PhysicalResourceId"]) == ("SUCCESS", "acme/nightly")
    assert created["Data"] == {"Tenant": "acme", "ScheduleId": "nightly"}
    there = stored(stack.stage)
    assert there is not None
    assert there["cron"] == "0 3 * * *"

    changed = stack.update(a_schedule(HOURLY), before=a_schedule())
    assert (changed["Status"], changed["PhysicalResourceId"]) == ("SUCCESS", "acme/nightly")
    there = stored(stack.stage)
    assert there is not None
    assert there["job"]["payload"] == {"n": 1}

    assert stack.ask("Delete", a_schedule(HOURLY), physical_id="acme/nightly")["Status"] == "SUCCESS"
    assert stored(stack.stage) is None


def test_a_request_that_comes_twice_is_answered_twice_and_done_once(stack: CloudFormation) -> None:
    assert stack.ask("Create", a_schedule())["Status"] == "SUCCESS"
    there = stored(stack.stage)
    assert stack.ask("Create", a_schedule())["Status"] == "SUCCESS"
    assert stored(stack.stage) == there
    for _ in range(2):
        assert stack.ask("Delete", a_schedule(), physical_id="acme/nightly")["Status"] == "SUCCESS"


def test_another_tenant_or_id_is_another_schedule_and_the_former_is_deleted(stack: CloudFormation) -> None:
    stack.create(a_schedule())

    stack.update(a_schedule(schedule_id="daily"), before=a_schedule())
    assert (stack.physical_id, stored(stack.stage), stored(stack.stage, "daily") is None) == ("acme/daily", None, False)

    stack.update(a_schedule(tenant="globex", schedule_id="daily"), before=a_schedule(schedule_id="daily"))
    assert (stack.physical_id, stored(stack.stage, "daily")) == ("globex/daily", None)
    assert stored(stack.stage, "daily", "globex") is not None


def test_what_the_api_refuses_fails_with_its_words_and_leaves_nothing(stack: CloudFormation) -> None:
    answer = stack.create(a_schedule({"cron": "0 25 * * *", "job": {"target": "https://example.com"}}))

    assert answer["Status"] == "FAILED"
    assert "422 invalid_schedule" in answer["Reason"]
    assert "cron" in answer["Reason"]
    assert stored(stack.stage) is None


@pytest.mark.parametrize("definition", [HOURLY, NIGHTLY], ids=["another", "the same"])
def test_a_schedule_that_somebody_else_has_made_is_neither_changed_nor_deleted(
    stack: CloudFormation, definition: Any
) -> None:
    put(stack.stage, definition)
    there = stored(stack.stage)

    answer = stack.create(a_schedule())

    assert "there is a schedule nightly of tenant acme, which this stack has not made" in answer["Reason"]
    assert stored(stack.stage) == there


def test_of_two_stacks_with_one_id_the_second_fails_and_takes_nothing_from_the_first(stack: CloudFormation) -> None:
    stack.create(a_schedule())

    assert stack.create(a_schedule(), stack="billing")["Status"] == "FAILED"

    assert stored(stack.stage) is not None


def test_a_replacement_by_an_id_that_is_taken_fails_and_both_schedules_stay(stack: CloudFormation) -> None:
    put(stack.stage, HOURLY, "daily")
    stack.create(a_schedule())
    there = stored(stack.stage, "daily")

    answer = stack.update(a_schedule(schedule_id="daily"), before=a_schedule())

    assert answer["Status"] == "FAILED"
    assert (stored(stack.stage, "daily"), stored(stack.stage) is None) == (there, False)


def test_a_replacement_that_is_taken_back_finds_what_it_took_the_place_of(stack: CloudFormation) -> None:
    """Another resource of the stack has failed: CloudFormation asks for the former, which it has not deleted yet."""
    first, second, third = a_schedule(), a_schedule(HOURLY), a_schedule(HOURLY, schedule_id="daily")
    stack.create(first)
    stack.update(second, before=first)
    replaced = stack.ask("Update", third, physical_id="acme/nightly", before=second)
    assert replaced["PhysicalResourceId"] == "acme/daily"

    back = stack.ask("Update", second, physical_id="acme/daily", before=third)

    assert (back["Status"], back["PhysicalResourceId"]) == ("SUCCESS", "acme/nightly")
    assert stack.ask("Delete", third, physical_id="acme/daily")["Status"] == "SUCCESS"
    there = stored(stack.stage)
    assert there is not None
    assert (there["every"], stored(stack.stage, "daily")) == ({"interval": "PT1H"}, None)


def test_a_lost_answer_is_asked_for_again(stack: CloudFormation) -> None:
    stack.loses_answers, stack.fails = 2, 2

    assert stack.create(a_schedule())["Status"] == "SUCCESS"

    assert stored(stack.stage) is not None


def test_a_creation_in_doubt_fails_in_time_and_what_it_has_made_goes_with_the_rollback(stack: CloudFormation) -> None:
    stack.loses_answers = 1

    answer = stack.create(a_schedule(), remaining_ms=35_000)

    assert (answer["Status"], answer["Reason"]) == ("FAILED", "the API of the stage did not answer in time")
    assert stored(stack.stage) is None


def test_a_creation_that_was_never_answered_goes_by_the_id_that_cloudformation_makes_up(stack: CloudFormation) -> None:
    stack.ask("Create", a_schedule())

    assert stack.ask("Delete", a_schedule(), physical_id="orders-Nightly-1ABC")["Status"] == "SUCCESS"

    assert stored(stack.stage) is None


def test_a_replacement_in_doubt_is_cleaned_up_when_the_stack_rolls_back(stack: CloudFormation) -> None:
    stack.create(a_schedule())
    stack.loses_answers = 1

    answer = stack.update(a_schedule(schedule_id="daily"), before=a_schedule(), remaining_ms=35_000)

    assert answer["Status"] == "FAILED"
    assert (stored(stack.stage, "daily"), stored(stack.stage) is None) == (None, False)


def test_what_somebody_has_deleted_meanwhile_is_deleted_and_made_again_by_a_change(stack: CloudFormation) -> None:
    stack.create(a_schedule())
    stack.stage.call("DELETE", "/v1/schedules/nightly", query={"tenant": "acme"})

    assert stack.update(a_schedule(HOURLY), before=a_schedule())["Status"] == "SUCCESS"
    assert stored(stack.stage) is not None
    stack.stage.call("DELETE", "/v1/schedules/nightly", query={"tenant": "acme"})
    assert stack.ask("Delete", a_schedule(HOURLY), physical_id="acme/nightly")["Status"] == "SUCCESS"


def test_a_schedule_that_somebody_has_paused_stays_paused_through_a_change(stack: CloudFormation) -> None:
    stack.create(a_schedule())
    stack.stage.call("POST", "/v1/schedules/nightly:pause", {"note": "why"}, query={"tenant": "acme"})

    stack.update(a_schedule(HOURLY), before=a_schedule())

    there = stored(stack.stage)
    assert there is not None
    assert (there["status"], there["every"]) == ("paused", {"interval": "PT1H"})


def test_a_deletion_that_fails_is_told_so_that_it_can_be_tried_again(stack: CloudFormation) -> None:
    stack.create(a_schedule())
    stack.fails = 1

    answer = stack.ask("Delete", a_schedule(), physical_id="acme/nightly", remaining_ms=35_000)

    assert (answer["Status"], "503" in answer["Reason"]) == ("FAILED", True)
    assert stack.ask("Delete", a_schedule(), physical_id="acme/nightly")["Status"] == "SUCCESS"


def test_the_schedules_of_a_deleted_tenant_are_deleted(stack: CloudFormation) -> None:
    stack.create(a_schedule())
    stack.stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})

    assert stack.ask("Delete", a_schedule(), physical_id="acme/nightly")["Status"] == "SUCCESS"


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"Tenant": "a b"}, "Tenant is 'a b', but must match"),
        ({"ScheduleId": "../tenants/acme"}, "ScheduleId is '../tenants/acme', but must match"),
        ({"ScheduleId": None}, "ScheduleId is None, but must match"),
        ({"Definition": "{"}, "Definition must be the JSON text of an object"),
        ({"Definition": {"every": "3600"}}, "Definition must be the JSON text of an object"),
        ({"Definition": "[" * 100_000}, "Definition must be the JSON text of an object"),
    ],
)
def test_properties_that_are_none_are_refused_by_name_and_can_be_rolled_back(
    stack: CloudFormation, properties: dict[str, Any], told: str
) -> None:
    answer = stack.create({**a_schedule(), **properties})

    assert answer["Status"] == "FAILED"
    assert told in answer["Reason"]


def test_a_type_that_is_none_of_ours_fails_and_does_not_hang(stack: CloudFormation) -> None:
    answer = stack.ask("Create", {}, kind="Custom::TickwheelSchedul")

    assert "use Custom::TickwheelSchedule or Custom::TickwheelPrincipal" in answer["Reason"]


def test_a_fault_of_our_own_fails_and_does_not_hang(stack: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a text with a secret")

    monkeypatch.setattr(stack.module(), "provide", broken)

    answer = stack.ask("Create", a_schedule())

    assert answer["Status"] == "FAILED"
    assert "RuntimeError" in answer["Reason"]
    assert "secret" not in answer["Reason"]


class TestPrincipals:
    KIND = "Custom::TickwheelPrincipal"

    def principals(self, stack: CloudFormation, tenant: str = "acme") -> list[str]:
        return stack.stage.call("GET", f"/v1/tenants/{tenant}")[1].get("principals", [])

    def test_a_role_may_act_for_a_tenant_for_as_long_as_its_resource_is_there(self, stack: CloudFormation) -> None:
        other = "arn:aws:iam::123456789012:user/ann"
        stack.stage.call("PUT", "/v1/tenants/acme", {"principals": [other], "note": "kept"})
        given = {"Tenant": "acme", "Principal": ROLE}

        for _ in range(2):
            assert stack.create(given, kind=self.KIND)["PhysicalResourceId"] == f"acme/{ROLE}"
            assert self.principals(stack) == [other, ROLE]
        for _ in range(2):
            stack.ask("Delete", given, kind=self.KIND, physical_id=f"acme/{ROLE}")
            assert self.principals(stack) == [other]
        assert stack.stage.call("GET", "/v1/tenants/acme")[1]["note"] == "kept"

    def test_another_tenant_is_a_replacement(self, stack: CloudFormation) -> None:
        given = {"Tenant": "acme", "Principal": ROLE}
        stack.create(given, kind=self.KIND)

        stack.update({"Tenant": "globex", "Principal": ROLE}, before=given, kind=self.KIND)

        assert (self.principals(stack), self.principals(stack, "globex")) == ([], [ROLE])

    def test_what_is_changed_by_two_at_once_has_both(
        self, stack: CloudFormation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = operators_api.OperatorsApi.ask
        others = iter([f"arn:aws:iam::123456789012:user/{number}" for number in range(3)])

        def meanwhile(api: Any, method: str, path: str, **options: Any) -> Any:
            if method == "PATCH" and (other := next(others, None)):
                stack.stage.call("PATCH", path, {"principals": [*self.principals(stack), other]})
            return asked(api, method, path, **options)

        monkeypatch.setattr(operators_api.OperatorsApi, "ask", meanwhile)

        assert stack.create({"Tenant": "acme", "Principal": ROLE}, kind=self.KIND)["Status"] == "SUCCESS"

        assert [each.rpartition("/")[2] for each in self.principals(stack)] == ["0", "1", "2", "Submitter"]

    def test_one_more_than_a_tenant_may_have_fails_with_the_remedy(self, stack: CloudFormation) -> None:
        there = [f"arn:aws:iam::123456789012:user/{number}" for number in range(20)]
        stack.stage.call("PUT", "/v1/tenants/acme", {"principals": there})

        answer = stack.create({"Tenant": "acme", "Principal": ROLE}, kind=self.KIND)

        assert "acme has 20 principals, and there can be no more" in answer["Reason"]
        assert self.principals(stack) == there

    def test_what_is_no_role_is_refused(self, stack: CloudFormation) -> None:
        answer = stack.create({"Tenant": "acme", "Principal": "arn:aws:iam::1:role/x"}, kind=self.KIND)

        assert "is no pattern of a role or a user" in answer["Reason"]

    def test_a_tenant_that_was_deleted_has_no_principals_left_to_take_away(self, stack: CloudFormation) -> None:
        given = {"Tenant": "acme", "Principal": ROLE}
        stack.create(given, kind=self.KIND)
        stack.stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})

        assert stack.ask("Delete", given, kind=self.KIND, physical_id=f"acme/{ROLE}")["Status"] == "SUCCESS"
