"""The commands about jobs that were submitted, against a real server."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.command_line import assert_wrong_usage, run
from tests.unit.test_client_job_control import BEAT, ENDED, EXPLANATION, JOB, PATH, WAITING

EXPLAINED = {name: value for name, value in EXPLANATION.items() if name != "would_change_it"}
"""What the command prints: the remedy alone, without its earlier name."""


@pytest.mark.parametrize(
    ("arguments", "method", "path", "body", "answer"),
    [
        (["run-now", JOB], "POST", f"{PATH}:run-now", None, WAITING),
        (["reschedule", JOB, "--in", "2h"], "PATCH", PATH, {"delay": 7_200}, WAITING),
        (
            ["reschedule", JOB, "--at", "2030-01-31T10:00:00+01:00"],
            "PATCH",
            PATH,
            {"run_at": "2030-01-31T09:00:00Z"},
            WAITING,
        ),
        (["explain", JOB], "GET", f"{PATH}/explain", None, EXPLAINED),
        (["heartbeat", JOB, "--fence", "3"], "POST", f"{PATH}/heartbeat", {"fence": 3}, BEAT),
        (
            ["heartbeat", JOB, "--fence", "3", "--lease", "5m"],
            "POST",
            f"{PATH}/heartbeat",
            {"fence": 3, "lease": 300},
            BEAT,
        ),
        (
            ["complete", JOB, "--fence", "3", "--result", '{"a": 1}'],
            "POST",
            f"{PATH}/complete",
            {"fence": 3, "result": {"a": 1}},
            ENDED,
        ),
        (
            ["fail", JOB, "--fence", "3", "--error", "no stock", "--permanent", "--retry-after", "90s"],
            "POST",
            f"{PATH}/fail",
            {"fence": 3, "error": "no stock", "permanent": True, "retry_after": 90},
            ENDED,
        ),
    ],
)
def test_a_command_asks_for_what_was_said(
    arguments: list[str], method: str, path: str, body: Any, answer: dict[str, Any]
) -> None:
    with ApiServer(Answer(200, answer), Answer(200, answer)) as server:
        result = run(*arguments, server=server)
        as_json = run(*arguments, "--json", server=server)

    assert (result.exit_code, as_json.exit_code) == (0, 0)
    assert [(request.method, request.path) for request in server.requests] == [(method, path)] * 2
    assert (server.requests[0].json if server.requests[0].body else None) == body
    assert answer["state"] in result.stdout
    assert {name: value for name, value in json.loads(as_json.stdout).items() if value is not None} == answer


def test_a_payload_is_shown_as_json() -> None:
    answer = {"id": JOB, "payload": {"städte": ["Köln"]}}
    with ApiServer(Answer(200, answer), Answer(200, answer)) as server:
        result = run("payload", JOB, server=server)
        as_json = run("payload", JOB, "--json", server=server)

    assert [(request.method, request.path) for request in server.requests] == [("GET", f"{PATH}/payload")] * 2
    assert json.loads(result.stdout) == answer["payload"]
    assert "Köln" in result.stdout
    assert json.loads(as_json.stdout) == answer


def test_a_job_is_shown_with_what_was_asked_for_and_its_attempts() -> None:
    failed = {
        "attempt": 1,
        "ended_at": "2030-01-31T09:00:00Z",
        "error_class": "http_503",
        "error": "the target answered 503",
        "took": "PT1.5S",
    }
    asked = {"target": "https://example.com/hook", "tags": ["eu"], "submitted_at": "2030-01-30T09:00:00Z"}
    job = {"id": JOB, "tenant": "acme", "state": "retrying", "due_at": "2030-01-31T09:05:00Z"}
    answer = Answer(200, {**job, "attempts": [failed], "job": asked})
    with ApiServer(answer, answer) as server:
        result = run("get", JOB, server=server)
        as_json = json.loads(run("get", JOB, "--json", server=server).stdout)

    assert "https://example.com/hook" in result.stdout
    assert "http_503" in result.stdout
    assert as_json["job"] == asked
    assert [(past["attempt"], past["took"]) for past in as_json["attempts"]] == [(1, 1.5)]


def test_a_long_result_is_shortened_for_people_and_whole_for_scripts() -> None:
    rows = ["row"] * 1_000
    job = {"id": JOB, "tenant": "acme", "state": "succeeded", "due_at": "2030-01-31T09:05:00Z", "result": rows}
    answer = Answer(200, job)
    with ApiServer(answer, answer, answer, answer) as server:
        shown = run("get", JOB, server=server).stdout
        as_json = json.loads(run("get", JOB, "--json", server=server).stdout)
        alone = json.loads(run("get", JOB, "--result", server=server).stdout)
        alone_as_json = json.loads(run("get", JOB, "--result", "--json", server=server).stdout)

    assert "7,000 characters" in "".join(shown.split("\n")) or "7,000" in shown
    assert shown.count("row") < 100
    assert as_json["result"] == alone == alone_as_json == rows


def test_an_edit_names_only_what_is_to_change(tmp_path: Path) -> None:
    payload = tmp_path / "payload.json"
    payload.write_text('{"n": 2}')
    with ApiServer(Answer(200, WAITING)) as server:
        result = run(
            *["edit", JOB, "--payload", f"@{payload}", "--target", "handler:other", "--timeout", "5s"],
            *["--retry-attempts", "2", "--header", "X-Team=billing", "--tag", "eu", "--unset", "priority"],
            *["--unset", "http.headers.X-Old"],
            server=server,
        )

    assert result.exit_code == 0
    assert server.requests[0].json == {
        "payload": {"n": 2},
        "target": "handler:other",
        "timeout": 5,
        "retry": {"attempts": 2},
        "http": {"headers": {"X-Team": "billing", "X-Old": None}},
        "tags": ["eu"],
        "priority": None,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["edit", JOB], "nothing to change"),
        (["edit", JOB, "--timeout", "5s", "--unset", "timeout"], "--unset timeout contradicts another option"),
        (["edit", JOB, "--timeout", "5s", "--unset", "timeout.x"], "--unset timeout.x contradicts another option"),
        (["edit", JOB, "--delivery", "at_most_once"], "No such option"),
        (["reschedule", JOB], "a new time is required"),
        (["reschedule", JOB, "--in", "2h", "--at", "2030-01-31T09:00:00Z"], "a new time is required"),
        (["heartbeat", JOB], "--fence"),
        (["complete", JOB, "--fence", "0"], "--fence"),
        (["complete", JOB, "--fence", "1", "--result", "{oops"], "--result is not JSON"),
        (["fail", JOB, "--fence", "1"], "--error"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_sent(arguments: list[str], said: str) -> None:
    assert_wrong_usage(*arguments, said=said)


def test_a_refusal_is_reported_with_its_code() -> None:
    late = {"status": 409, "code": "too_late", "title": "On its way", "detail": "it is due at noon"}
    with ApiServer(Answer(409, late)) as server:
        result = run("run-now", JOB, server=server)

    assert result.exit_code == 1
    assert "it is due at noon [409 too_late]" in result.stderr
