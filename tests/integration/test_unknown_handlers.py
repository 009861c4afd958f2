"""A target that names a handler which the stage does not have is refused where it is submitted, by whatever way it comes."""

import json
from typing import Any

import pytest

from tests.integration import test_submission_file, test_submission_queue
from tests.integration.stage import Stage

JOB: dict[str, Any] = {"tenant": "acme", "target": "handler:echo"}
DAILY: dict[str, Any] = {"cron": "0 6 * * *", "job": {"target": "handler:echo"}}
MEANT = "names no handler of this stage: did you mean handler:echo?"


def refused_field(answer: tuple[int, Any]) -> dict[str, Any]:
    status, problem = answer
    assert (status, problem["code"]) == (422, "unknown_handler")
    assert problem["title"] == "The stage has no such handler"
    (field,) = problem["errors"]
    assert problem["detail"] == f"{field['field']} {field['message']}"
    return field


def test_a_job_is_refused_with_its_field_its_value_and_what_was_meant(stage: Stage):
    field = refused_field(stage.call("POST", "/v1/jobs", {**JOB, "target": "handler:ech"}))

    assert field == {"field": "target", "message": MEANT, "value": "handler:ech"}


def test_a_name_that_is_like_no_other_is_refused_with_those_that_there_are(stage: Stage):
    field = refused_field(stage.call("POST", "/v1/jobs", {**JOB, "target": "handler:zzzzzz"}))

    assert field["message"] == (
        "names no handler of this stage, which has deep, echo, leak, long, nobody, none, none-of-this-name, nothing, report, "
        "trial: use one of them, or deploy yours with `handlers`"
    )


@pytest.mark.parametrize("name", ["on_success", "on_failure", "on_end"])
def test_a_callback_is_refused_as_its_job_would_be(stage: Stage, name: str):
    field = refused_field(stage.call("POST", "/v1/jobs", {**JOB, name: "handler:ech"}))

    assert (field["field"], field["message"]) == (name, MEANT)


def test_of_a_batch_each_such_job_is_refused_by_itself(stage: Stage):
    status, body = stage.call("POST", "/v1/jobs:batch", {"jobs": [JOB, {**JOB, "target": "handler:ech"}, JOB]})

    assert status == 200
    assert [result["status"] for result in body["results"]] == [202, 422, 202]
    assert body["results"][1]["problem"]["code"] == "unknown_handler"


def test_a_schedule_is_refused_when_it_is_made_and_when_it_is_changed(stage: Stage):
    path, query = "/v1/schedules/nightly", {"tenant": "acme"}
    unknown = {"job": {"target": "handler:ech"}}

    made = refused_field(stage.call("PUT", path, {**DAILY, **unknown}, query=query))
    assert stage.call("PUT", path, DAILY, query=query)[0] == 201
    changed = refused_field(stage.call("PATCH", path, unknown, query=query))

    assert (made["field"], changed["field"]) == ("job.target", "job.target")
    assert made["message"] == changed["message"] == MEANT


def test_a_waiting_job_does_not_change_to_it(stage: Stage):
    job_id = stage.submit(delay=3_600)["id"]

    assert refused_field(stage.call("PATCH", f"/v1/jobs/{job_id}", {"target": "handler:ech"}))["field"] == "target"


def test_with_other_mistakes_it_is_one_of_what_is_wrong(stage: Stage):
    status, problem = stage.call("POST", "/v1/jobs", {**JOB, "target": "handler:ech", "timeout": "PT9H"})

    assert (status, problem["code"]) == (422, "invalid_job")
    assert {field["field"] for field in problem["errors"]} == {"target", "timeout"}


def test_a_message_of_a_submission_queue_comes_into_the_queue_of_the_refused(stage: Stage):
    test_submission_queue.send(stage, {"target": "handler:ech"})

    assert test_submission_queue.take(stage) == []

    (refused,) = stage.receive(test_submission_queue.REFUSED)
    (each,) = json.loads(refused["MessageAttributes"]["problems"]["StringValue"])
    assert each["problem"]["code"] == "unknown_handler"


def test_a_line_of_a_file_is_refused(stage: Stage):
    test_submission_file.put(stage, json.dumps({"target": "handler:ech"}))

    assert test_submission_file.take(stage) == []

    (line,) = test_submission_file.result(stage, "refused/000000000001.jsonl").splitlines()
    assert json.loads(line)["problem"]["code"] == "unknown_handler"


def test_a_job_whose_handler_is_gone_becomes_a_dead_letter_that_says_so(stage: Stage):
    stage.submit(target="handler:none-of-this-name", delay=0)
    stage.work(within_seconds=2)

    (letter,) = stage.call("GET", "/v1/dead-letters", query={"tenant": "acme"})[1]["dead_letters"]
    assert letter["error_class"] == "handler_missing"
    assert letter["error"] == "there is no handler 'none-of-this-name'; registered are: echo, trial"
