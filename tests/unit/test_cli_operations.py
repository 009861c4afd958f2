"""The commands about many jobs against a real server: what they send, what they print and how they exit."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.api_server import Answer, ApiServer, Request
from tests.unit.test_client_operations import ID, PATH, WAITING, a_part, an_export, operation_json
from tickwheel.commands.operations import parse_due, parse_shift

EU = ["--tenant", "acme", "--tag", "eu"]
ASKED = {"tenant": "acme", "tag": "eu"}
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
ACCEPTED = Answer(202, WAITING)
DONE = Answer(200, operation_json())
COUNTED = Answer(200, operation_json(dry_run=True, done=0, examples=[{"job_id": "j1~x"}, {"job_id": "j1~y"}]))


run = partial(command_line.run, "operations")


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickwheel.client.calls.operations._FIRST_POLL", 0.0)


def bodies(server: ApiServer) -> list[dict[str, Any]]:
    return [request.json for request in server.requests if request.method == "POST"]


@pytest.mark.parametrize(
    ("arguments", "action", "sent"),
    [
        (["cancel", "--yes"], "cancel", {}),
        (["cancel", "--dry-run"], "cancel", {"dry_run": True}),
        (["run-now", "--rate", "7.5", "--yes"], "run_now", {"rate": 7.5}),
        (["run-now", "--dry-run"], "run_now", {"dry_run": True}),
        (["reschedule", "--by", "2h", "--yes"], "reschedule", {"by": 7_200}),
        (["reschedule", "--by", "-1d", "--yes"], "reschedule", {"by": -86_400}),
        (
            ["reschedule", "--to", "2030-01-31T10:00:00+01:00", "--spread", "1h", "--yes"],
            "reschedule",
            {"to": "2030-01-31T09:00:00Z", "spread": 3_600},
        ),
        (["export"], "export", {}),
    ],
)
def test_a_command_asks_for_what_was_said_and_follows_it_to_its_end(
    arguments: list[str], action: str, sent: dict[str, Any]
) -> None:
    end = operation_json(action=action, dry_run="dry_run" in sent)
    with ApiServer(ACCEPTED, Answer(200, end), ACCEPTED, Answer(200, end)) as server:
        people = run(*arguments, *EU, server=server)
        script = run(*arguments, *EU, "--json", server=server)

    assert (people.exit_code, script.exit_code) == (0, 0), people.output
    assert bodies(server) == [{**ASKED, "action": action, **sent}] * 2
    assert [request.path for request in server.requests] == ["/v1/operations", PATH] * 2
    assert json.loads(script.stdout) == end
    assert f"operation {ID}" in people.stderr
    assert "o111" not in people.stdout


def test_every_option_of_the_filter_reaches_the_scheduler() -> None:
    with ApiServer(ACCEPTED, DONE) as server:
        result = run(
            *["export", *EU, "--due-from", "2027-03-01T00:00:00Z", "--due-until", "2027-03-02T00:00:00+01:00"],
            *["--target", "https://example.com", "--schedule", "nightly", "--all"],
            server=server,
        )

    assert result.exit_code == 0, result.output
    assert bodies(server)[0] == {
        **ASKED,
        "action": "export",
        "due_from": "2027-03-01T00:00:00Z",
        "due_until": "2027-03-01T23:00:00Z",
        "target": "https://example.com",
        "schedule": "nightly",
        "all": True,
    }


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2h", NOON + timedelta(hours=2)),
        ("-30m", NOON - timedelta(minutes=30)),
        ("90", NOON + timedelta(seconds=90)),
        ("-PT90S", NOON - timedelta(seconds=90)),
        ("2027-02-28T00:00:00+01:00", datetime(2027, 2, 27, 23, tzinfo=UTC)),
    ],
)
def test_a_due_time_is_read_as_it_is_or_from_now(text: str, instant: datetime) -> None:
    assert parse_due(text, now=NOON) == instant


@pytest.mark.parametrize("text", ["tomorrow", "2027-02-28T00:00:00", "9999999999d", "--2h", "-"])
def test_any_other_due_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_due(text, now=NOON)


@pytest.mark.parametrize("text", ["soon", "--2h", "-", ""])
def test_any_other_shift_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_shift(text)


@pytest.mark.parametrize(
    ("arguments", "sent", "question"),
    [
        (["cancel"], {"action": "cancel"}, "Cancel 3 jobs for good?"),
        (["reschedule", "--by", "2h"], {"action": "reschedule", "by": 7_200}, "Reschedule 3 jobs?"),
        (["run-now", "--rate", "7"], {"action": "run_now", "rate": 7}, "Run 3 jobs now?"),
    ],
)
def test_what_changes_many_jobs_counts_first_shows_them_and_asks(
    arguments: list[str], sent: dict[str, Any], question: str
) -> None:
    done = Answer(200, operation_json(action=sent["action"]))
    with ApiServer(ACCEPTED, COUNTED, ACCEPTED, done) as server:
        result = run(*arguments, *EU, server=server, typed="y\n")

    assert result.exit_code == 0, result.output
    assert bodies(server) == [{**ASKED, **sent, "dry_run": True}, {**ASKED, **sent}]
    assert "j1~x" in result.stdout
    assert "3 match; these are the first 2" in result.stdout
    assert f"{question} At {server.url}." in result.stderr
    assert result.stdout.endswith("3 of 3\n")


@pytest.mark.parametrize("arguments", [["cancel"], ["reschedule", "--by", "2h"], ["run-now"]])
def test_what_is_not_confirmed_changes_nothing(arguments: list[str]) -> None:
    with ApiServer(ACCEPTED, COUNTED) as server:
        result = run(*arguments, *EU, server=server, typed="n\n")
        script = run(*arguments, *EU, "--json", server=server)

    assert (result.exit_code, script.exit_code) == (1, 2)
    assert "add --yes" in script.stderr
    assert [body.get("dry_run") for body in bodies(server)] == [True]


def test_where_nothing_matches_there_is_nothing_to_ask() -> None:
    with ApiServer(ACCEPTED, Answer(200, operation_json(dry_run=True, matched=0, done=0))) as server:
        result = run("cancel", *EU, server=server)

    assert (result.exit_code, result.stdout) == (0, "0 match\n")
    assert len(bodies(server)) == 1


def test_a_count_that_did_not_come_to_its_end_is_not_asked_about() -> None:
    stopped = operation_json(dry_run=True, state="stopped", share=0.5, done=0)
    with ApiServer(ACCEPTED, Answer(200, stopped)) as server:
        result = run("cancel", *EU, server=server, typed="y\n")

    assert (result.exit_code, result.stdout) == (1, "stopped at 50%: 3 match\n")
    assert len(bodies(server)) == 1


def test_without_waiting_the_id_is_reported_at_once() -> None:
    with ApiServer(ACCEPTED, ACCEPTED) as server:
        people = run("run-now", *EU, "--yes", "--no-wait", server=server)
        script = run("run-now", *EU, "--yes", "--no-wait", "--json", server=server)

    assert people.stdout == (f"accepted {ID}: show it with `tickwheel operations show {ID} --tenant acme`\n")
    assert json.loads(script.stdout)["id"] == ID
    assert len(server.requests) == 2


def test_what_was_refused_is_reported_with_why_and_is_an_error() -> None:
    example = {"job_id": "j1~x", "code": "too_late", "detail": "it is on its way"}
    end = operation_json(done=1, refused={"too_late": 1, "moved": 1}, examples=[example])
    with ApiServer(ACCEPTED, Answer(200, end), ACCEPTED, Answer(200, end)) as server:
        people = run("cancel", *EU, "--yes", server=server)
        script = run("cancel", *EU, "--yes", "--json", server=server)

    assert (people.exit_code, script.exit_code) == (1, 1)
    assert people.stdout == "cancelled 1 of 3, refused 2 (1 too_late, 1 moved)\n"
    assert "it is on its way" in people.stderr
    assert json.loads(script.stdout)["refused"] == {"too_late": 1, "moved": 1}


def test_an_operation_that_could_not_go_on_is_an_error() -> None:
    end = operation_json(state="failed", share=0.25, done=1, error="ClientError: throttled")
    with ApiServer(ACCEPTED, Answer(200, end)) as server:
        result = run("cancel", *EU, "--yes", server=server)

    assert (result.exit_code, result.stdout) == (1, "failed at 25%: cancelled 1 of 3\n")
    assert "the operation failed: ClientError: throttled" in result.stderr


def test_an_export_is_written_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    with ApiServer() as server:
        done = an_export(server, "/1")
        server.answer_with(Answer(202, operation_json(action="export")), done, a_part('{"id":"a"}'))
        result = run("export", *EU, "--out", str(file), server=server)

    assert (result.exit_code, result.stdout) == (0, "exported 3 of 3\n")
    assert file.read_text() == '{"id":"a"}\n'


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with ApiServer() as server:
        server.answer_with(Answer(202, operation_json(action="export")), an_export(server, "/1"))
        result = run("export", *EU, "--out", str(tmp_path / "none" / "jobs.jsonl"), server=server)

    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


def test_an_export_that_was_stopped_is_not_downloaded(tmp_path: Path) -> None:
    with ApiServer(Answer(202, operation_json(action="export", state="stopped", share=0.5))) as server:
        result = run("export", *EU, "--out", str(tmp_path / "jobs.jsonl"), server=server)

    assert (result.exit_code, result.stdout) == (1, "stopped at 50%: exported 3 of 3\n")
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1


def test_an_export_is_downloaded_later(tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    with ApiServer() as server:
        for _ in range(2):
            done = an_export(server, "/1")
            server.answer_with(done, done, a_part('{"id":"a"}'))
        people = run("download", ID, "--tenant", "acme", "--out", str(file), server=server)
        script = run("download", ID, "--tenant", "acme", "--out", str(file), "--json", server=server)

    assert people.stdout == f"wrote 1 jobs to {file}\n"
    assert json.loads(script.stdout) == {"jobs": 1, "file": str(file)}


def test_the_newest_operations_are_listed_first() -> None:
    listed = [
        operation_json(id=f"o{day}", created_at=f"2027-03-0{day}T12:00:00.000Z", refused={"moved": 2}, dry_run=day == 3)
        for day in (2, 3, 1)
    ]
    page = Answer(200, {"operations": listed, "next": None})
    with ApiServer(page, page) as server:
        people = run("list", "--tenant", "acme", server=server)
        script = run("list", "--tenant", "acme", "--limit", "2", "--json", server=server)

    rows = people.stdout.splitlines()[1:]
    assert [row.split()[-1] for row in rows] == ["o3", "o2", "o1"]
    assert "cancel (dry run)" in rows[0]
    assert rows[1].split()[4:8] == ["100%", "3", "3", "2"]
    assert [operation["id"] for operation in json.loads(script.stdout)["operations"]] == ["o3", "o2"]


@pytest.mark.parametrize("verb", ["show", "stop"])
def test_an_operation_is_shown_as_it_stands(verb: str) -> None:
    example = {"job_id": "j1~x", "code": "too_late", "detail": "it is [on] its way"}
    answer = operation_json(
        state="running", share=0.5, refused={"too_late": 1}, examples=[example], by="-PT1H", stop_requested=True
    )
    with ApiServer(otherwise=lambda _: Answer(200, answer)) as server:
        people = run(verb, ID, "--tenant", "acme", server=server)
        script = run(verb, ID, "--tenant", "acme", "--json", server=server)

    assert {_asked(request) for request in server.requests} == {
        ("GET", PATH) if verb == "show" else ("POST", f"{PATH}:stop")
    }
    for shown in (ID, "running", "50%", '{"too_late": 1}', "it is [on] its way", "-PT1H", "stop requested", '"tag"'):
        assert shown in people.stdout
    assert json.loads(script.stdout) == answer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cancel", "--tag", "eu"], "--tenant"),
        (["cancel", "--tenant", "acme"], "all: must be true to mean all jobs of the tenant"),
        (["cancel", *EU, "--json"], "add --yes"),
        (["cancel", *EU, "--due-from", "tomorrow"], "'tomorrow' is not a time"),
        (["reschedule", *EU], "a new time is required"),
        (["reschedule", *EU, "--by", "1h", "--to", "2h"], "a new time is required"),
        (["reschedule", *EU, "--by", "1h", "--spread", "2h"], "a new time is required"),
        (["reschedule", *EU, "--by", "soon"], "'soon' is not a duration"),
        (["export", *EU, "--out", "x", "--no-wait"], "--no-wait cannot be combined with --out"),
        (["export", *EU, "--out", "x", "--dry-run"], "--dry-run cannot be combined with --out"),
        (["download", ID, "--tenant", "acme"], "--out"),
        (["list"], "--tenant"),
        (["show", ID], "--tenant"),
        (["stop", "--tenant", "acme"], "ID"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_sent(arguments: list[str], said: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_refusal_is_reported_as_the_scheduler_words_it() -> None:
    problem = {"status": 404, "code": "operation_not_found", "title": "no", "detail": "tenant acme has no operation x"}
    with ApiServer(Answer(404, problem)) as server:
        result = run("show", ID, "--tenant", "acme", server=server)

    assert result.exit_code == 1
    assert "tenant acme has no operation x" in result.stderr


def _asked(request: Request) -> tuple[str, str]:
    return request.method, request.path
