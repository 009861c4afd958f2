"""The command line against a real server: what it prints, what it writes and how it exits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api_server import LOST, Answer, ApiServer, Request, accept_all, job_json
from tests.command_line import JOB_OF_OPTIONS, JOB_OPTIONS, assert_wrong_usage, run


def a_file(folder: Path, *lines: str) -> Path:
    file = folder / "jobs.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def a_line(target: str = "handler:echo", **fields) -> str:
    return json.dumps({"tenant": "acme", "target": target, **fields})


def test_an_arn_is_submitted_as_it_is() -> None:
    arn = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"
    with ApiServer() as server:
        result = run("submit", arn, "--tenant", "acme", server=server)

    assert result.exit_code == 0
    assert server.requests[0].json == {"tenant": "acme", "target": arn}


def test_every_option_of_a_submission_reaches_the_scheduler(tmp_path: Path) -> None:
    payload = tmp_path / "payload.json"
    payload.write_text('{"deep": [1, 2]}')
    with ApiServer() as server:
        result = run(
            *["submit", "https://example.com", "--tenant", "acme", "--payload", f"@{payload}"],
            *["--run-at", "2030-01-31T10:00:00+01:00", "--idempotency-key", "k", "--priority", "low"],
            *["--delivery", "at_most_once", *JOB_OPTIONS],
            server=server,
        )

    assert result.exit_code == 0
    assert server.requests[0].json == {
        "tenant": "acme",
        "target": "https://example.com",
        "payload": {"deep": [1, 2]},
        "run_at": "2030-01-31T09:00:00Z",
        "idempotency_key": "k",
        "priority": "low",
        "delivery": "at_most_once",
        **JOB_OF_OPTIONS,
    }


def test_a_submission_without_options_says_nothing_of_them() -> None:
    with ApiServer() as server:
        run("submit", "handler:echo", "--tenant", "acme", server=server)

    assert server.requests[0].json == {"tenant": "acme", "target": "handler:echo"}


@pytest.mark.parametrize("header", ["hush", "=hush", "Authorization: hush", "Authorization: a=hush", "two words=hush"])
def test_a_header_that_is_not_understood_is_not_repeated(header: str) -> None:
    with ApiServer() as server:
        result = run("submit", "https://example.com", "--tenant", "acme", "--header", header, server=server)

    assert result.exit_code == 2
    assert "is not NAME=VALUE" in result.stderr
    assert "hush" not in result.output
    assert server.requests == []


def test_an_accepted_job_is_a_table_for_people() -> None:
    with ApiServer() as server:
        result = run("submit", "handler:echo", "--tenant", "acme", "--delay", "5m", server=server)

    assert server.requests[0].json["delay"] == 300
    assert "j1~acme~x" in result.stdout
    assert "2030-01-31T09:00:00Z" in result.stdout


def test_an_accepted_job_is_one_json_object_for_scripts() -> None:
    with ApiServer() as server:
        result = run("submit", "handler:echo", "--tenant", "acme", "--json", server=server)

    assert json.loads(result.stdout) == job_json()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["submit"], "--tenant"),
        (["submit", "handler:echo"], "--tenant"),
        (["submit", "handler:echo", "--tenant", "a", "--delay", "soon"], "'soon' is not a duration"),
        (["submit", "handler:echo", "--tenant", "a", "--run-at", "2030-01-01T00:00:00"], "has no offset"),
        (["submit", "handler:echo", "--tenant", "a", "--priority", "urgent"], "critical, high, normal, low"),
        (["submit", "handler:echo", "--tenant", "a", "--http-method", "HEAD"], "POST, PUT, PATCH, DELETE, GET"),
        (["submit", "handler:echo", "--tenant", "a", "--http-success", "ok"], "'--http-success'"),
        (["submit", "handler:echo", "--tenant", "a", "--retry-max-age", "soon"], "'soon' is not a duration"),
        (["submit", "handler:echo", "--tenant", "a", "--retry-interval", "soon"], "'soon' is not a duration"),
        (["submit", "handler:echo", "--tenant", "a", "--retry-jitter", "some"], "none, full, equal"),
        (["submit", "handler:echo", "--tenant", "a", "--payload", "{oops"], "{oops"),
        (["submit", "handler:echo", "--tenant", "a", "--payload", "@/no/such/file"], "/no/such/file"),
        (["submit", "handler:echo", "--tenant", "a", "--delay", "1s", "--run-at", "2030-01-01T00:00:00Z"], "not both"),
        (["submit", "handler:echo", "--file", "x"], "leave"),
        (["submit", "--file", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_usage_is_explained_with_its_value_and_exits_with_2(arguments: list[str], said: str) -> None:
    assert_wrong_usage(*arguments, said=said)


def test_a_refusal_names_its_fields_and_exits_with_1() -> None:
    errors = [{"field": "run_at", "message": "is in the past", "value": "2001-01-01T00:00:00Z"}]
    problem = {"status": 422, "code": "invalid", "title": "Invalid job", "errors": errors}
    with ApiServer(Answer(422, problem)) as server:
        result = run("submit", "handler:echo", "--tenant", "acme", server=server)

    assert result.exit_code == 1
    assert "run_at: is in the past (got '2001-01-01T00:00:00Z')" in result.stderr


def test_a_refusal_is_json_when_json_was_asked_for() -> None:
    with ApiServer(Answer(404, {"status": 404, "code": "not_found", "title": "No such job"})) as server:
        result = run("get", "j1~acme~x", "--json", server=server)

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "not_found"


def test_a_scheduler_that_cannot_be_reached_is_not_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with ApiServer() as server:
        pass
    result = run("get", "x", server=server)

    assert result.exit_code == 1
    assert "no answer from http://127.0.0.1" in result.stderr


def test_a_job_is_shown_as_it_stands() -> None:
    job = {"id": "x", "tenant": "acme", "state": "failed", "due_at": "2030-01-31T09:00:00Z", "error": "[red]boom[/red]"}
    with ApiServer(Answer(200, job)) as server:
        result = run("get", "x", server=server)

    assert "failed" in result.stdout
    assert "[red]boom[/red]" in result.stdout


@pytest.mark.parametrize(("state", "said"), [("cancelled", "cancelled x"), ("cancel_requested", "asked to stop")])
def test_a_cancellation_says_what_it_did(state: str, said: str) -> None:
    with ApiServer(Answer(200, {"id": "x", "state": state})) as server:
        result = run("cancel", "x", server=server)

    assert said in result.stdout


def test_a_file_of_good_jobs_is_accepted_whole(tmp_path: Path) -> None:
    file = a_file(tmp_path, a_line("handler:a", delay="PT5S"), "", a_line("handler:b", run_at="2030-01-31T09:00:00Z"))
    with ApiServer() as server:
        result = run("submit", "--file", str(file), server=server)

    assert result.exit_code == 0
    assert "accepted 2, refused 0" in result.stdout
    assert [job["target"] for job in server.requests[0].json["jobs"]] == ["handler:a", "handler:b"]
    assert list(tmp_path.iterdir()) == [file]


def test_lines_that_are_no_jobs_are_named_and_kept_and_the_others_sent(tmp_path: Path) -> None:
    bad = ["{oops", '{"tenant": "acme"}', a_line(colour="red"), a_line(run_at="2030-01-31T09:00:00"), "[]"]
    file = a_file(tmp_path, a_line(), *bad, a_line())
    with ApiServer() as server:
        result = run("submit", "--file", str(file), server=server)

    assert result.exit_code == 1
    assert "accepted 2, refused 5" in result.stdout
    for complaint in (
        "line 2: line: is not JSON",
        "line 3: target: is required",
        "line 4: colour: is not a field of a job",
        "line 5: run_at: '2030-01-31T09:00:00' has no offset",
        "line 6: job: is a JSON object",
    ):
        assert complaint in result.stderr
    assert (tmp_path / "jobs.refused.jsonl").read_text().splitlines() == bad


def test_lines_that_the_scheduler_refuses_are_kept_with_their_numbers(tmp_path: Path) -> None:
    def refuse_b(request: Request) -> Answer:
        answer = accept_all(request)
        answer.body["results"][1] = {"status": 422, "problem": {"code": "invalid", "title": "Invalid job"}}
        return answer

    file = a_file(tmp_path, a_line("handler:a"), a_line("handler:b"), a_line("handler:c"))
    with ApiServer(otherwise=refuse_b) as server:
        result = run("submit", "--file", str(file), "--json", server=server)

    summary = json.loads(result.stdout)
    assert (summary["accepted"], summary["refused"], summary["unanswered"]) == (2, 1, 0)
    assert [job["line"] for job in summary["jobs"]] == [1, 3]
    assert (summary["problems"][0]["line"], summary["problems"][0]["code"]) == (2, "invalid")
    assert Path(summary["files"]["refused"]).read_text() == f"{a_line('handler:b')}\n"


def test_lines_without_an_answer_are_kept_apart_because_they_may_have_been_taken(tmp_path: Path) -> None:
    file = a_file(tmp_path, a_line("handler:a"))
    with ApiServer(LOST) as server:
        result = run("submit", "--file", str(file), "--no-keys", server=server)

    assert result.exit_code == 1
    assert "accepted 0, refused 0, unanswered 1" in result.stdout
    assert "idempotency_key" in result.stderr
    assert (tmp_path / "jobs.unanswered.jsonl").read_text() == f"{a_line('handler:a')}\n"


def test_a_module_beside_the_others_is_enough_for_a_new_command(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(
        "from tickwheel.commands.api import Output\n"
        "from tickwheel.commands.registry import commands\n"
        "@commands.add()\n"
        "def greet(name: str, *, output: Output) -> None:\n"
        "    output.print({'greeted': name}, f'hello {name}')\n"
    )
    script = (
        f"from tickwheel import commands; commands.__path__.append({str(tmp_path)!r}); "
        "from tickwheel.cli import app; app(['greet', 'acme', '--json'])"
    )

    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert json.loads(printed) == {"greeted": "acme"}


@pytest.mark.parametrize(
    ("arguments", "answer", "said"),
    [
        (["schedule", "list"], {"schedules": [], "next": None}, "tenant acmee has no schedules\n"),
        (
            ["operations", "list"],
            {"operations": [], "next": None},
            "tenant acmee has no operations of the last 30 days\n",
        ),
        (["dead-letters", "list"], {"dead_letters": [], "next": None}, "tenant acmee has no dead letters that match\n"),
        (["flow", "list"], {"flows": [], "next": None}, "no flow of acmee has limits\n"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_list_of_nothing_says_of_which_tenant(arguments: list[str], answer: dict, said: str) -> None:
    with ApiServer(Answer(200, answer)) as server:
        result = run(*arguments, "--tenant", "acmee", server=server)

    assert (result.exit_code, result.stdout) == (0, said), result.output


def test_an_answer_that_says_only_its_status_is_not_said_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with ApiServer(*[Answer(500, "oops")] * 6) as server:
        result = run("get", "x", server=server)

    assert result.stderr.splitlines()[-1] == "error: HTTP 500"


def test_a_profile_that_there_is_not_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with ApiServer() as server:
        result = run("get", "x", server=server)

    assert result.exit_code == 1
    assert result.stderr.startswith("error: the AWS credentials cannot be used: ")
    assert "(nope)" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_wait_that_the_scheduler_asks_for_is_told(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickwheel.client.backoff.random.uniform", lambda _low, _high: 0)
    slow = Answer(429, {"code": "rate_exceeded", "title": "Too fast"}, (("Retry-After", "1"),))
    with ApiServer(slow) as server:
        result = run("submit", "handler:echo", "--tenant", "acme", *arguments, server=server)

    assert result.stderr == "waiting 1 s: Too fast [429 rate_exceeded]\n"
    assert result.exit_code == 0
    assert len(server.requests) == 2
