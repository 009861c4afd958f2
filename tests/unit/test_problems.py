import json
import re
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from functions.api.http.problem_table import TABLE
from functions.api.http.problems import Misshapen, problem, problem_of
from functions.api.http.requests import Rules
from functions.api.jobs.bodies import BatchBody, JobBody
from functions.api.schedules.requests import TenantQuery
from functions.domain import errors
from functions.domain.instants import SECOND
from testkit.builders import NOON


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.InvalidInput("is bad"), 422, "invalid_input"),
        (errors.KeyReused("j1~x"), 409, "key_reused"),
        (errors.KeyReused("o1", kind="operation"), 409, "key_reused"),
        (errors.InvalidJobId("x"), 404, "not_a_job_id"),
        (errors.JobNotFound("j1~x"), 404, "job_not_found"),
        (errors.ScheduleNotFound("acme", "nightly"), 404, "schedule_not_found"),
        (errors.InvalidDeadLetterId("x"), 404, "not_a_dead_letter_id"),
        (errors.DeadLetterNotFound("d1~x"), 404, "dead_letter_not_found"),
        (errors.FlowNotFound("stripe", tenant="acme"), 404, "flow_not_found"),
        (errors.FlowsExceeded("acme", count=1_000, limit=1_000), 409, "flows_exceeded"),
        (errors.OperationNotFound("acme", "o1"), 404, "operation_not_found"),
        (errors.TooManyOperations("acme", limit=10, retry_after=60 * SECOND), 429, "too_many_operations"),
        (errors.NotReplayable("d1~x", "it holds no job"), 409, "not_replayable"),
        (errors.PayloadGone("d1~x"), 409, "payload_gone"),
        (errors.JobNotFailed("d1~x", state="running"), 409, "job_not_failed"),
        (errors.ScheduleExists("acme", "nightly", version=7), 412, "schedule_exists"),
        (errors.ScheduleChanged("acme", "nightly", seen=[6], version=7), 412, "schedule_changed"),
        (errors.ScheduleBusy("nightly"), 409, "schedule_busy"),
        (errors.JobBusy("j1~x"), 409, "job_busy"),
        (errors.Busy(), 409, "busy"),
        (errors.Forbidden("ann", tenant="acme", remedy="ask"), 403, "forbidden"),
        (errors.TenantBusy("tenant acme"), 409, "tenant_busy"),
        (errors.TenantChanged("tenant acme", seen=1, version=2), 409, "tenant_changed"),
        (errors.TenantDeleted("acme", is_over=True), 409, "tenant_deleted"),
        (errors.TenantClosed("acme", "draining"), 409, "tenant_closed"),
        (errors.PriorityNotAllowed("acme", priority="high", top="low"), 422, "priority_not_allowed"),
        (errors.AlreadySettled("j1~x", state="failed"), 409, "already_settled"),
        (errors.TooLate("j1~x"), 409, "too_late"),
        (errors.NotPlaced(["throttled"]), 503, "not_placed"),
        (errors.WheelChanged("BUCKET"), 500, "internal"),
        (errors.Undecodable("?"), 500, "internal"),
        (errors.ClockSkewed(offset=timedelta(seconds=40), limit=timedelta(seconds=30)), 500, "internal"),
    ],
)
def test_an_error_is_reported_by_the_nearest_row_of_the_table(error: errors.TickwheelError, status: int, code: str):
    answer = problem_of(error)

    assert (answer["status"], answer["code"], answer["type"]) == (status, code, f"urn:tickwheel:problem:{code}")
    assert answer["detail"] == str(error)
    assert answer["title"]


def test_every_error_of_the_tree_has_a_status():
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TickwheelError)
    ]

    assert len(kinds) > 10
    for kind in kinds:
        assert any(base in TABLE for base in kind.__mro__)


def test_every_error_stands_in_the_tree_under_its_base():
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TickwheelError)
    ]
    above: list[str] = []
    bases: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^((?:│   |    )*(?:├── |└── )?)([A-Z]\w+)(?:  |$)", line)
        if found is not None:
            depth = len(found[1]) // 4
            above = [*above[:depth], found[2]]
            bases[found[2]] = above[depth - 1] if depth else ""

    assert bases == {kind.__name__: "" if kind is errors.TickwheelError else kind.__mro__[1].__name__ for kind in kinds}


@pytest.mark.parametrize("error", [errors.Busy(), errors.JobBusy("j1~x"), errors.ScheduleBusy("nightly")])
def test_what_others_are_changing_may_be_asked_for_again_in_a_second(error: errors.TickwheelError):
    assert problem_of(error)["retry_after"] == 1


def test_what_is_too_costly_names_its_rule():
    answer = problem_of(errors.TooCostly(field="rrule"))

    assert (answer["status"], answer["code"], answer["errors"][0]["field"]) == (422, "too_costly", "rrule")


def test_codes_are_distinguished():
    rows = {row[1]: row for row in TABLE.values()}

    # A job that breaks a rule is one problem, whether its shape or its meaning was refused.
    assert [kind for kind, (_, code, _) in TABLE.items() if code == "invalid_job"] == [
        ValidationError,
        errors.InvalidJob,
    ]
    assert len(rows) == len(TABLE) - 1
    assert set(TABLE.values()) == set(rows.values())


def test_a_job_that_the_domain_refuses_is_reported_like_one_that_its_shape_refuses():
    answer = problem_of(errors.InvalidJob("is in the past", field="run_at", value="2027-03-01T11:00:00.000Z"))

    assert (answer["status"], answer["code"], answer["detail"]) == (422, "invalid_job", "run_at is in the past")
    assert answer["errors"] == [{"field": "run_at", "message": "is in the past", "value": "2027-03-01T11:00:00.000Z"}]


def test_a_schedule_that_the_domain_refuses_is_reported_like_one_that_its_shape_refuses():
    answer = problem_of(errors.InvalidSchedule("must be after start", field="end", value="2027-03-01T11:00:00.000Z"))

    assert (answer["status"], answer["code"], answer["detail"]) == (422, "invalid_schedule", "end must be after start")
    assert answer["errors"] == [{"field": "end", "message": "must be after start", "value": "2027-03-01T11:00:00.000Z"}]


@pytest.mark.parametrize(
    ("refused_as", "code"), [(errors.InvalidSchedule, "invalid_schedule"), (errors.InvalidInput, "invalid_input")]
)
def test_a_misshapen_request_is_reported_as_what_it_is(refused_as: type[errors.InvalidInput], code: str):
    with pytest.raises(ValidationError) as error:
        TenantQuery.model_validate({"tenant": "a b"})

    answer = problem_of(Misshapen(refused_as, error.value))

    assert (answer["status"], answer["code"]) == (422, code)
    assert answer["errors"] == [{"field": "tenant", "message": "must match [A-Za-z0-9._-]{1,64}", "value": "a b"}]


def test_a_used_key_is_reported_with_the_id_of_its_job():
    assert problem_of(errors.KeyReused("j1~x"))["id"] == "j1~x"


def test_a_problem_may_have_members_of_its_own():
    assert problem(problem_status(), "gone", "It is gone", id="j1~x") == {
        "type": "urn:tickwheel:problem:gone",
        "title": "It is gone",
        "status": 422,
        "code": "gone",
        "id": "j1~x",
    }


def test_a_refused_value_is_shown_cut_when_it_is_long():
    shown = refused({"tenant": "x" * 5_000, "target": "handler:x"})[0]["value"]

    assert len(shown) <= 201
    assert shown.endswith("…")


def test_a_refused_payload_is_never_shown_because_it_may_be_secret():
    errors = refused({"tenant": "acme", "target": "handler:x", "payload": float("inf")})

    assert "value" not in errors[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"http": "hush"},
        {"http": ["hush"]},
        {"http": {"headers": "hush"}},
        {"http": {"headers": ["hush"]}},
        {"http": {"headers": {"X-Key": ["hush"]}}},
        {"http": {"headers": {"X-Key": {"hush": 1}}}},
        {"http": {"headers": {"X-Key": "hush\n"}}},
        {"http": {"headers": {"X-Key: hush": "x"}}},
        {"http": {"headers": {"Host": "hush"}}},
        {"http": {"headers": {f"X{number}": "hush" for number in range(21)}}},
        {"http": {"header": {"X-Key": "hush"}}},
        {"http": {"header": "X-Key: hush"}},
        {"headers": {"X-Key": "hush"}},
        {"authorization": "hush"},
    ],
    ids=str,
)
def test_what_a_refused_header_holds_is_never_shown(fields: dict[str, object]):
    answer = refusal_of({"tenant": "acme", "target": "https://example.com", **fields})

    assert "hush" not in json.dumps(answer)


@pytest.mark.parametrize("body", ["hush", ["hush"], [{"payload": "hush"}]])
def test_a_body_that_is_no_job_is_never_shown_because_it_may_hold_secrets(body: object):
    assert "hush" not in json.dumps(refusal_of(body))


def test_a_batch_of_too_many_jobs_is_not_shown():
    with pytest.raises(ValidationError) as error:
        BatchBody.model_validate({"jobs": [{"payload": "hush"}] * 501})

    assert "hush" not in json.dumps(problem_of(error.value))


def test_a_password_in_a_target_stays_in_its_own_request():
    error = errors.InvalidJob("must not carry a user name or password", field="target", value="https://…@example.com")

    assert "secret" not in json.dumps(problem_of(error))


@pytest.mark.parametrize("target", ["https://me:secret@example.com/", "ftp://me:secret@x", "me:secret@x", ["@secret"]])
def test_a_refused_target_that_may_hold_a_password_is_not_shown(target: object):
    errors = refused({"tenant": "acme", "target": target})

    assert errors[0]["field"] == "target"
    assert "value" not in errors[0]
    assert "secret" not in json.dumps(errors)


def test_a_refused_target_without_a_password_is_shown():
    assert refused({"tenant": "acme", "target": "ftp://x"})[0]["value"] == "ftp://x"


def test_a_number_that_json_cannot_say_is_shown_as_text():
    errors = refused({"tenant": "acme", "target": "handler:x", "delay": json.loads("1e999")})

    assert errors[0]["value"] == "Infinity"
    json.dumps(errors, allow_nan=False)


def test_half_a_surrogate_pair_can_be_reported():
    errors = refused({"tenant": json.loads('"\\ud800"'), "target": "handler:x"})

    assert json.loads(json.dumps(errors)) == errors


def refused(body: object) -> Any:
    return refusal_of(body)["errors"]


def refusal_of(body: object) -> Any:
    rules = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
    with pytest.raises(ValidationError) as error:
        JobBody.model_validate(body, context=rules)
    return problem_of(error.value)


def problem_status():
    return TABLE[ValidationError][0]
