"""`tickwheel schedule create` of an id that the tenant has: shown, asked, and never replaced without a word."""

import json

import pytest

from tests.api_server import Answer, ApiServer
from tests.command_line import run
from tests.unit.test_client_schedules import FIRE, schedule_json

CREATE = (
    "schedule",
    "create",
    "nightly",
    "--tenant",
    "acme",
    "--cron",
    "30 6 * * *",
    "--target",
    "https://example.com",
)
EXISTS = Answer(412, {"code": "schedule_exists", "title": "There is such a schedule already", "version": 7})
PRESENT = schedule_json(
    version=7,
    spread="PT15M",
    job={"target": "https://example.com", "timeout": "PT60S", "http": {"headers": {"X-Key": "s3cret"}}},
)
STORED = Answer(200, schedule_json(version=8))


def compared(change: str | None = "updated") -> Answer:
    moved = {**FIRE, "at": "2030-04-01T06:30:00.000Z", "local": "2030-04-01T06:30:00+00:00", "marks": []}
    said = {} if change is None else {"change": change}
    return Answer(200, {**said, "before": [FIRE], "after": [moved]})


def test_a_new_one_is_created_at_once_and_by_one_request() -> None:
    with ApiServer(STORED) as server:
        result = run(*CREATE, server=server)

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert (request.method, request.headers["if-none-match"]) == ("PUT", "*")


@pytest.mark.parametrize("change", ["updated", None], ids=["this release", "one that does not say what a put would do"])
def test_another_definition_is_shown_and_replaced_after_a_yes_and_only_as_it_was_shown(change: str | None) -> None:
    with ApiServer(EXISTS, Answer(200, PRESENT), compared(change), STORED) as server:
        options = ["--header", "X-Key=n3w", "--timeout", "60s", "--count", "3"]
        result = run(*CREATE, *options, server=server, typed="y\n")

    assert result.exit_code == 0, result.output
    assert f"Replace version 7 of the schedule nightly of acme? At {server.url}." in result.stderr
    lines = [line.split() for line in result.stderr.splitlines()]
    assert lines[:4] == [
        ["field", "is", "becomes"],
        ["cron", *["0", "3", "*", "*", "*"], *["30", "6", "*", "*", "*"]],
        ["job.http.headers.X-Key", "a", "value", "a", "value"],
        ["spread", "900", "default"],
    ]
    assert [line[0] for line in lines[5:7]] == ["-", "+"]
    assert not {"s3cret", "n3w"} & set(result.output.split())
    _, _, dry, put = server.requests
    assert dry.path == "/v1/schedules/nightly?tenant=acme&dry_run=true&count=3"
    assert (put.method, put.headers["if-match"]) == ("PUT", '"7"')
    assert "8" in result.stdout


def test_a_no_leaves_it() -> None:
    with ApiServer(EXISTS, Answer(200, {**PRESENT, "status": "paused"}), compared()) as server:
        result = run(*CREATE, server=server, typed="n\n")

    assert result.exit_code == 1
    assert "of acme, which is paused?" in result.stderr
    assert not [
        request for request in server.requests[1:] if "if-match" in request.headers and "dry_run" not in request.path
    ]


def test_a_script_that_cannot_be_asked_is_refused_with_what_to_add() -> None:
    with ApiServer(EXISTS, Answer(200, PRESENT), compared()) as server:
        result = run(*CREATE, "--json", server=server)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "add --yes to replace it, or --create-only to be refused" in result.stderr
    assert len(server.requests) == 3


def test_the_same_definition_again_asks_nothing_and_changes_nothing() -> None:
    with ApiServer(EXISTS, Answer(200, PRESENT), compared("unchanged")) as server:
        result = run(*CREATE, "--json", server=server)

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["version"] == 7
    assert len(server.requests) == 3


def test_with_yes_it_is_put_by_one_request_without_a_condition() -> None:
    with ApiServer(STORED) as server:
        result = run(*CREATE, "--yes", server=server)

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert not {"if-match", "if-none-match"} & set(request.headers)


def test_what_is_refused_for_another_reason_is_told_as_it_is() -> None:
    with ApiServer(Answer(422, {"code": "invalid_schedule", "title": "The schedule is refused"})) as server:
        result = run(*CREATE, server=server)

    assert result.exit_code == 1
    assert "The schedule is refused" in result.stderr
    assert len(server.requests) == 1
