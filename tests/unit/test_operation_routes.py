"""The routes of operations on fakes: what they take, what they answer, and what they refuse."""

import json
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.http.answers import problem_answer
from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.router import serve
from functions.api.operations.manager import MOST_OPEN
from functions.api.operations.routes import routes
from functions.domain.errors import TickwheelError
from functions.domain.instants import HOUR
from functions.domain.operations.operation import Example, JobFilter, OperationKind, OperationState, Shift
from testkit.builders import NOON
from testkit.events import Context, a_request
from tests.page_queries import REFUSED_QUERIES
from tests.unit.test_dead_letter_answers import assert_described
from tests.unit.test_operations import ANN, Office

CANCEL = {"tenant": "acme", "action": "cancel", "tag": "eu"}
MOVE = {"tenant": "acme", "action": "reschedule", "tag": "eu"}


class Api(Office):
    """The routes over a manager of operations."""

    def __init__(self) -> None:
        super().__init__()
        self.app = APIGatewayHttpResolver()
        serve(self.app, routes, self.manager, checks=())
        self.app.exception_handler([Misshapen, TickwheelError])(_refuse)
        self.headers: dict[str, str] = {}

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None, **query: Any) -> Any:
        headers = {"idempotency-key": key} if key is not None else {}
        event = a_request(method, path, body, query=query, headers=headers, caller=ANN)
        context: Any = Context()
        answer = self.app.resolve(event, context)
        self.headers = answer["headers"]
        return answer["statusCode"], json.loads(answer["body"])

    def post(self, body: Any, *, key: str | None = None) -> Any:
        return self.call("POST", "/v1/operations", body, key=key)


def _refuse(error: Exception) -> Response[str]:
    return problem_answer(problem_of(error))


def test_an_operation_is_accepted_and_reported_as_it_is_described():
    api = Api()

    status, answer = api.post(CANCEL)

    assert status == 202
    assert_described(answer, "Operation")
    assert answer == {
        "id": answer["id"],
        "tenant": "acme",
        "action": "cancel",
        "dry_run": False,
        "state": "waiting",
        "stop_requested": False,
        "caller": ANN,
        "created_at": "2027-03-01T12:00:00.000Z",
        "filter": {"due_from": "2027-03-01T11:00:00.000Z", "tag": "eu"},
        "share": 0.0,
        "examined": 0,
        "matched": 0,
        "done": 0,
        "refused": {},
        "examples": [],
    }
    assert [identity for _, identity in api.operations.rows] == [answer["id"]]


def test_all_that_a_filter_can_say_reaches_the_rules():
    api = Api()
    said = {
        "due_from": "2027-03-01T13:00:00+01:00",
        "due_until": "2027-03-02T12:00:00Z",
        "target": "https://example.com/hook",
        "schedule": "nightly",
        "tag": "team:billing",
    }

    status, answer = api.post({"tenant": "acme", "action": "export", **said, "dry_run": True})

    (operation,) = api.operations.rows.values()
    assert status == 202
    assert (operation.action, operation.dry_run, operation.shift) == (OperationKind.EXPORT, True, None)
    assert operation.wanted == JobFilter(
        tenant="acme",
        due_from=NOON,
        due_until=NOON + 24 * HOUR,
        target="https://example.com/hook",
        schedule_id="nightly",
        tag="team:billing",
    )
    assert answer["filter"] == {
        **said,
        "due_from": "2027-03-01T12:00:00.000Z",
        "due_until": "2027-03-02T12:00:00.000Z",
    }


@pytest.mark.parametrize("said", ["due_from", "due_until"])
def test_a_due_time_alone_says_which_jobs_are_selected(said: str):
    assert Api().post({"tenant": "acme", "action": "cancel", said: "2027-03-01T12:00:00Z"})[0] == 202


def test_all_jobs_of_a_tenant_are_selected_only_when_that_is_said():
    api = Api()

    status, problem = api.post({"tenant": "acme", "action": "cancel"})
    assert (status, problem["code"]) == (422, "invalid_input")
    assert problem["detail"] == (
        "all must be true to mean all jobs of the tenant; or say which, by due_from, due_until, target, schedule, tag"
    )
    assert api.operations.rows == {}

    assert api.post({"tenant": "acme", "action": "cancel", "all": True})[0] == 202


@pytest.mark.parametrize(
    ("shift", "parsed", "given"),
    [
        ({"by": 90}, Shift(by=timedelta(seconds=90)), {"by": "PT1M30S"}),
        ({"by": -90.5}, Shift(by=timedelta(seconds=-90.5)), {"by": "-PT1M30.5S"}),
        ({"by": "-P1DT2H"}, Shift(by=timedelta(hours=-26)), {"by": "-P1DT2H"}),
        ({"by": "PT1H", "spread": 0}, Shift(by=HOUR), {"by": "PT1H"}),
        (
            {"to": "2027-03-01T13:00:00Z"},
            Shift(to=NOON + HOUR),
            {"to": "2027-03-01T13:00:00.000Z", "spread": "PT0S"},
        ),
        (
            {"to": "2027-03-01T13:00:00Z", "spread": "PT30M"},
            Shift(to=NOON + HOUR, spread=HOUR / 2),
            {"to": "2027-03-01T13:00:00.000Z", "spread": "PT30M"},
        ),
    ],
)
def test_a_reschedule_says_by_how_much_or_to_when(shift: dict[str, Any], parsed: Shift, given: dict[str, str]):
    api = Api()

    status, body = api.post({**MOVE, **shift})

    (operation,) = api.operations.rows.values()
    assert (status, operation.shift) == (202, parsed)
    assert {name: body[name] for name in ("by", "to", "spread") if name in body} == given
    assert_described(body, "Operation")


@pytest.mark.parametrize(("rate", "meant"), [({}, 50.0), ({"rate": 1}, 1.0), ({"rate": 1_000}, 1_000.0)])
def test_jobs_are_run_at_a_rate(rate: dict[str, Any], meant: float):
    status, answer = Api().post({**CANCEL, "action": "run_now", **rate})

    assert (status, answer["rate"]) == (202, meant)
    assert_described(answer, "Operation")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "tenant is required"),
        ({"tenant": "a#b"}, "tenant must match"),
        ({"action": "purge"}, "action Input should be 'cancel', 'reschedule', 'run_now' or 'export'"),
        ({"due_from": "yesterday"}, "due_from must be an RFC 3339 instant"),
        ({"due_until": 7}, "due_until must be an RFC 3339 text"),
        (
            {"due_from": "2027-03-02T00:00:00Z", "due_until": "2027-03-01T00:00:00Z"},
            "due_from must be before due_until",
        ),
        ({"due_from": "2026-03-02T00:00:00Z"}, "due_from must not be before 2027-02-15T12:00:00.000Z"),
        ({"target": "example.com"}, "target has an unknown scheme"),
        ({"schedule": "a/b"}, "schedule must match"),
        ({"schedule": ""}, "schedule must match"),
        ({"tag": "a b"}, "tag must match"),
        ({"all": 1, "tag": None}, "all Input should be a valid boolean"),
        ({"dry_run": "yes"}, "dry_run Input should be a valid boolean"),
        ({"colour": "red"}, "colour is not a field here"),
        ({"rate": 5}, "rate is for the action run_now only"),
        ({"by": 60}, "by is for the action reschedule only"),
        ({"to": "2027-03-02T00:00:00Z"}, "to is for the action reschedule only"),
        ({"spread": 60}, "spread is for the action reschedule only"),
        ({"action": "run_now", "rate": 0.5}, "rate Input should be greater than or equal to 1"),
        ({"action": "run_now", "rate": 1_001}, "rate Input should be less than or equal to 1000"),
        ({"action": "run_now", "rate": "5"}, "rate Input should be a valid number"),
        ({"action": "reschedule"}, "to or by is needed for a reschedule, and not both"),
        (
            {"action": "reschedule", "by": 60, "to": "2027-03-02T00:00:00Z"},
            "to or by is needed for a reschedule, and not both",
        ),
        ({"action": "reschedule", "by": 60, "spread": 60}, "spread goes with to only"),
        ({"action": "reschedule", "by": 0}, "by must not be 0"),
        ({"action": "reschedule", "by": True}, "by must be seconds, or an ISO 8601 duration"),
        ({"action": "reschedule", "by": "--PT1H"}, "by must be seconds, or an ISO 8601 duration"),
        ({"action": "reschedule", "by": "-"}, "by must be seconds, or an ISO 8601 duration"),
        ({"action": "reschedule", "by": "P5000D"}, "by is more than ten years"),
        ({"action": "reschedule", "by": -400_000_000}, "by is more than ten years"),
        ({"action": "reschedule", "by": 1e300}, "by must be a number of seconds that a calendar can hold"),
        ({"action": "reschedule", "to": "2027-03-01T12:01:00Z"}, "to must be at least 330 s ahead"),
        (
            {"action": "reschedule", "to": "2027-03-01T13:00:00Z", "spread": "P3653D"},
            "the end of its spread, is more than ten years ahead",
        ),
        ({"action": "reschedule", "to": "2027-03-01T13:00:00Z", "spread": -1}, "spread must be a number of seconds"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_do(body: dict[str, Any], said: str):
    api = Api()

    status, problem = api.post({**CANCEL, **body} if body else {})

    assert (status, problem["code"]) == (422, "invalid_input")
    assert said in problem["detail"]
    assert api.operations.rows == {}


@pytest.mark.parametrize("body", [[], "cancel", None, 7])
def test_what_is_no_object_is_refused(body: Any):
    assert Api().post(body)[0] == 422


def test_a_refused_target_that_may_hold_a_password_is_not_repeated():
    status, problem = Api().post({**CANCEL, "target": "https://user:hunter2@example.com"})

    assert status == 422
    assert "hunter2" not in json.dumps(problem)


def test_a_used_key_answers_with_its_operation_and_another_request_with_its_id():
    api = Api()
    _, first = api.post(CANCEL, key="k")

    assert api.post({**CANCEL, "due_until": None}, key="k") == (202, first)
    status, problem = api.post({**CANCEL, "dry_run": True}, key="k")

    assert (status, problem["code"], problem["id"]) == (409, "key_reused", first["id"])


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_what_is_no_key_is_refused(key: str):
    status, problem = Api().post(CANCEL, key=key)

    assert (status, problem["code"]) == (422, "invalid_input")


def test_too_many_open_operations_are_refused_until_later():
    api = Api()
    for _ in range(MOST_OPEN):
        assert api.post(CANCEL)[0] == 202

    status, problem = api.post(CANCEL)

    assert (status, problem["code"], problem["retry_after"]) == (429, "too_many_operations", 60)
    assert api.headers["Retry-After"] == "60"


def test_progress_is_reported_with_what_was_refused_and_why():
    api = Api()
    ended = api.ended(
        api.accept(),
        OperationState.FAILED,
        share=1 / 3,
        examined=9,
        matched=4,
        done=2,
        refused={"too_late": 1, "moved": 1},
        examples=(Example("j1~x", "too_late", "it is on its way"), Example("j1~y")),
        failures=10,
        error="ClientError: " + "x" * 1_000,
    )

    status, answer = api.call("GET", f"/v1/operations/acme/{ended.operation_id}")

    assert status == 200
    assert_described(answer, "Operation")
    assert (answer["state"], answer["share"], answer["examined"]) == ("failed", 0.3333, 9)
    assert (answer["matched"], answer["done"], answer["refused"]) == (4, 2, {"too_late": 1, "moved": 1})
    assert answer["examples"] == [
        {"job_id": "j1~x", "code": "too_late", "detail": "it is on its way"},
        {"job_id": "j1~y"},
    ]
    assert (answer["ended_at"], len(answer["error"])) == ("2027-03-01T12:00:00.000Z", 500)
    assert "parts" not in answer


def test_an_export_that_is_done_says_where_its_files_are_when_it_is_asked_for_by_itself():
    api = Api()
    operation = api.ended(api.accept(action=OperationKind.EXPORT), OperationState.DONE, parts=2)

    _, answer = api.call("GET", f"/v1/operations/acme/{operation.operation_id}")
    _, listed = api.call("GET", "/v1/operations", tenant="acme")

    assert_described(answer, "Operation")
    assert [url.rpartition("/")[2] for url in answer["parts"]] == ["1", "2"]
    assert "parts" not in listed["operations"][0]


def test_an_export_of_nothing_has_no_files():
    api = Api()
    operation = api.ended(api.accept(action=OperationKind.EXPORT), OperationState.DONE)

    assert api.call("GET", f"/v1/operations/acme/{operation.operation_id}")[1]["parts"] == []


def test_operations_are_reported_page_by_page():
    api = Api()
    ids = sorted(api.post(CANCEL)[1]["id"] for _ in range(3))

    _, first = api.call("GET", "/v1/operations", tenant="acme", limit=2)
    _, second = api.call("GET", "/v1/operations", tenant="acme", limit=2, after=first["next"])

    assert_described(first, "Operations")
    assert [each["id"] for each in (*first["operations"], *second["operations"])] == ids
    assert (first["next"], second["next"]) == (ids[1], None)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *REFUSED_QUERIES,
        ({"tenant": "acme", "after": "x"}, "after"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused_with_its_field(query: dict[str, Any], field: str):
    status, problem = Api().call("GET", "/v1/operations", **query)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == [field]


def test_a_stop_is_taken_and_a_stop_of_what_is_over_says_how_it_ended():
    api = Api()
    operation = api.accept()
    path = f"/v1/operations/acme/{operation.operation_id}:stop"

    status, answer = api.call("POST", path)
    assert (status, answer["state"], answer["stop_requested"]) == (202, "waiting", True)

    api.ended(operation, OperationState.STOPPED)
    status, answer = api.call("POST", path)
    assert (status, answer["state"]) == (200, "stopped")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/acme/x", "operation_not_found"),
        ("GET", "/a%23b/o0000000000000000000000000", "operation_not_found"),
        ("POST", "/acme/offfffffffffffffffffffffff:stop", "operation_not_found"),
        ("POST", "/acme/offfffffffffffffffffffffff:start", "no_such_route"),
        ("POST", "/acme/offfffffffffffffffffffffff", "no_such_route"),
    ],
)
def test_what_there_is_not_is_not_found(method: str, path: str, code: str):
    status, problem = Api().call(method, f"/v1/operations{path}")

    assert (status, problem["code"]) == (404, code)
