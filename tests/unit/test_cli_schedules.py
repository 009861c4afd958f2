"""The commands about schedules against a real server: what they send, what they print and how they exit."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import LOST, Answer, ApiServer, Request
from tests.command_line import JOB_OF_OPTIONS, JOB_OPTIONS, assert_wrong_usage, run
from tests.unit.test_client_schedules import FIRE, RAN, put_result, refused, schedule_json, take_batch

ACME = ["--tenant", "acme"]
NIGHTLY = {"tenant": "acme", "id": "nightly", "cron": "0 3 * * *", "job": {"target": "handler:echo"}}
STORED = Answer(200, schedule_json())


def test_every_option_of_a_definition_reaches_the_scheduler() -> None:
    with ApiServer(STORED) as server:
        result = run(
            *["schedule", "create", "nightly", *ACME, "--cron", "30 6 * * mon-fri", "--timezone", "Europe/Berlin"],
            *["--gap", "skip", "--fold", "both", "--window", "mon-fri 09:00-17:00", "--window", "22:00-00:00"],
            *["--window-mode", "defer", "--exclude", "2030-12-24", "--exclude", "2030-12-31", "--holidays", "DE"],
            *["--holidays", "NYSE", "--exclude-weekends", "--roll", "after", "--spread", "15m", "--jitter", "30s"],
            *["--start", "2030-01-01T00:00:00+01:00", "--end", "2031-01-01T00:00:00Z", "--max-runs", "9"],
            *["--misfire", "coalesce", "--max-lateness", "1h", "--overlap", "forbid", "--pause-after-failures", "5"],
            *["--history", "20", "--success-history", "3", "--failure-history", "10"],
            *["--target", "handler:echo", "--payload", '{"n": 1}', "--priority", "high"],
            *["--delivery", "exactly_once", *JOB_OPTIONS],
            server=server,
        )

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert (request.method, request.path) == ("PUT", "/v1/schedules/nightly?tenant=acme")
    assert request.json == {
        "cron": "30 6 * * mon-fri",
        "timezone": "Europe/Berlin",
        "gap": "skip",
        "fold": "both",
        "windows": [
            {"start": "09:00", "end": "17:00", "days": ["mon", "tue", "wed", "thu", "fri"]},
            {"start": "22:00", "end": "00:00"},
        ],
        "window_mode": "defer",
        "calendar": {
            "exclude": ["2030-12-24", "2030-12-31"],
            "holidays": ["DE", "NYSE"],
            "weekends": True,
            "roll": "after",
        },
        "spread": 900,
        "jitter": 30,
        "start": "2029-12-31T23:00:00Z",
        "end": "2031-01-01T00:00:00Z",
        "max_runs": 9,
        "misfire": "coalesce",
        "max_lateness": 3600,
        "overlap": "forbid",
        "pause_after_failures": 5,
        "history": 20,
        "success_history": 3,
        "failure_history": 10,
        "job": {
            "target": "handler:echo",
            "payload": {"n": 1},
            "priority": "high",
            "delivery": "exactly_once",
            **JOB_OF_OPTIONS,
        },
    }


@pytest.mark.parametrize(
    ("command", "header"),
    [
        (["create", "nightly", *ACME, "--cron", "@daily", "--target", "x", "--create-only"], ("if-none-match", "*")),
        (["create", "nightly", *ACME, "--cron", "@daily", "--target", "x", "--if-version", "7"], ("if-match", '"7"')),
        (["update", "nightly", *ACME, "--spread", "5m", "--if-version", "7"], ("if-match", '"7"')),
        (["pause", "nightly", *ACME, "--if-version", "7"], ("if-match", '"7"')),
        (["resume", "nightly", *ACME, "--if-version", "7"], ("if-match", '"7"')),
        (["delete", "nightly", *ACME, "--yes", "--if-version", "7"], ("if-match", '"7"')),
    ],
)
def test_a_condition_reaches_the_scheduler(command: list[str], header: tuple[str, str]) -> None:
    with ApiServer(STORED) as server:
        result = run("schedule", *command, server=server)

    assert result.exit_code == 0, result.output
    assert server.requests[0].headers[header[0]] == header[1]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--every", "5m"], {"every": {"interval": 300}}),
        (["--every", "1h", "--phase", "5m"], {"every": {"interval": 3600, "phase": 300}}),
        (["--every", "90s", "--from-end"], {"every": {"interval": 90, "from": "end"}}),
        (["--at", "2030-01-31T09:00:00+01:00"], {"at": "2030-01-31T08:00:00Z"}),
        (
            ["--rrule", "FREQ=MONTHLY;BYDAY=-1FR", "--starts-at", "2030-01-25T09:00:00"],
            {"rrule": {"rule": "FREQ=MONTHLY;BYDAY=-1FR", "starts_at": "2030-01-25T09:00:00"}},
        ),
        (["--poisson", "12"], {"poisson": {"per_day": 12}}),
    ],
)
def test_every_kind_of_rule_has_its_option(options: list[str], rule: dict[str, Any]) -> None:
    with ApiServer(STORED) as server:
        result = run("schedule", "create", "nightly", *ACME, *options, "--target", "handler:echo", server=server)

    assert result.exit_code == 0, result.output
    assert server.requests[0].json == {**rule, "job": {"target": "handler:echo"}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "nightly"], "--tenant"),
        (["create", *ACME], "ID"),
        (["create", "nightly", *ACME, "--target", "handler:echo"], "rule: give exactly one of at, cron, every"),
        (["create", "nightly", *ACME, "--cron", "@daily"], "job.target: is required"),
        (["create", "nightly", *ACME, "--cron", "@daily", "--every", "5m", "--target", "x"], "not cron and every"),
        (["create", "nightly", *ACME, "--every", "soon"], "'soon' is not a duration"),
        (["create", "nightly", *ACME, "--window", "9-17"], "'9-17' is not a window"),
        (["create", "nightly", *ACME, "--exclude", "25.12."], "'25.12.' is not a date"),
        (["create", "nightly", *ACME, "--rrule", "X", "--starts-at", "2030-01-01T00:00:00Z"], "has an offset"),
        (["create", "nightly", *ACME, "--rrule", "FREQ=DAILY", "--target", "x"], "starts_at"),
        (["create", "nightly", *ACME, "--cron", "@daily", "--target", "x", "--roll", "next"], "before, after, skip"),
        (["create", "nightly", *ACME, "--payload", "{oops"], "{oops"),
        (["create", "nightly", *ACME, "--file", "/no/such/file"], "/no/such/file"),
        (["create", "nightly", *ACME, "--file", "x", "--cron", "@daily"], "--file cannot be combined with cron"),
        (["create", "nightly", *ACME, "--count", "101"], "'--count'"),
        (
            ["create", "nightly", *ACME, "--cron", "@daily", "--target", "x", "--create-only", "--if-version", "7"],
            "--create-only cannot be combined",
        ),
        (["update", "nightly", *ACME], "nothing to change"),
        (["update", "nightly", *ACME, "--spread", "5m", "--unset", "spread"], "contradicts another option"),
        (["update", "nightly", *ACME, "--spread", "5m", "--unset", "spread.x"], "contradicts another option"),
        (["backfill", "nightly", *ACME, "--start", "2030-01-01T00:00:00Z"], "--end"),
        (
            ["backfill", "nightly", *ACME, "--start", "monday", "--end", "2030-01-01T00:00:00Z"],
            "'monday' is not a time",
        ),
        (["preview", "nightly", *ACME, "--after", "now"], "'now' is not a time"),
    ],
)
def test_wrong_usage_is_explained_with_its_value_and_exits_with_2(arguments: list[str], said: str) -> None:
    assert_wrong_usage("schedule", *arguments, said=said)


def test_a_definition_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nightly.json"
    file.write_text(json.dumps({"cron": "0 3 * * *", "job": {"target": "handler:echo"}}))
    with ApiServer(STORED) as server:
        result = run("schedule", "create", "nightly", *ACME, "--file", str(file), server=server)

    assert result.exit_code == 0
    assert server.requests[0].json == {"cron": "0 3 * * *", "job": {"target": "handler:echo"}}


def test_what_show_prints_as_json_can_be_put_again(tmp_path: Path) -> None:
    file = tmp_path / "nightly.json"
    with ApiServer(STORED, STORED) as server:
        file.write_text(run("schedule", "show", "nightly", *ACME, "--json", server=server).stdout)
        result = run("schedule", "create", "nightly", *ACME, "--file", str(file), server=server)

    assert result.exit_code == 0, result.output
    assert server.requests[1].json == {"cron": "0 3 * * *", "job": {"target": "https://example.com"}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"id": "other"}', "has id 'other', not 'nightly'"),
        ('{"tenant": "globex"}', "has tenant 'globex', not 'acme'"),
        ("[]", "is not a JSON object"),
        ("{oops", "is not JSON"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, body: str, said: str) -> None:
    file = tmp_path / "nightly.json"
    file.write_text(body)

    result = run("schedule", "create", "nightly", *ACME, "--file", str(file))

    assert result.exit_code == 2
    assert said in result.stderr


def test_an_update_sends_only_what_it_changes() -> None:
    with ApiServer(STORED) as server:
        options = ["--every", "1h", "--priority", "high", "--unset", "calendar", "--unset", "job.payload"]
        result = run("schedule", "update", "nightly", *ACME, *options, server=server)

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert request.method == "PATCH"
    assert request.json == {
        "every": {"interval": 3600},
        "job": {"priority": "high", "payload": None},
        "calendar": None,
    }


@pytest.mark.parametrize("verb", ["create", "update"])
def test_a_dry_run_shows_the_fires_before_and_after(verb: str) -> None:
    moved = {**FIRE, "at": "2030-04-01T00:30:00.000Z", "local": "2030-04-01T02:30:00+02:00", "marks": []}
    options = ["--cron", "@daily", "--target", "handler:echo", "--dry-run", "--count", "3"]
    with ApiServer(Answer(200, {"before": [FIRE], "after": [moved]})) as server:
        result = run("schedule", verb, "nightly", *ACME, *options, server=server)

    assert server.requests[0].path == "/v1/schedules/nightly?tenant=acme&dry_run=true&count=3"
    *_, gone, new = result.stdout.splitlines()
    assert gone.split()[:4] == ["-", "Sun", "2030-03-31", "03:00:00"]
    assert "gap: 02:30 does not exist" in gone
    assert new.split()[:4] == ["+", "Mon", "2030-04-01", "02:30:00"]


def test_a_dry_run_is_json_for_scripts() -> None:
    with ApiServer(Answer(200, {"change": "updated", "before": [], "after": [FIRE]})) as server:
        result = run("schedule", "update", "nightly", *ACME, "--cron", "@daily", "--dry-run", "--json", server=server)

    answer = json.loads(result.stdout)
    assert answer["change"] == "updated"
    assert answer["before"] == []
    assert answer["after"][0]["local"] == "2030-03-31T03:00:00+02:00"
    assert answer["after"][0]["marks"] == [{"by": "gap", "reason": "02:30 does not exist"}]


def test_schedules_are_listed_as_a_table_for_people() -> None:
    second = schedule_json(
        id="poll", cron=None, every={"interval": "PT5M", "from": "end"}, status="paused", note="[why]"
    )
    with ApiServer(Answer(200, {"schedules": [schedule_json(), second], "next": None})) as server:
        result = run("schedule", "list", *ACME, server=server)

    nightly, poll = result.stdout.splitlines()[1:]
    assert nightly.split()[:7] == ["nightly", "cron", "0", "3", "*", "*", "*"]
    assert "2030-02-01 03:00:00" in nightly
    assert "paused" in poll
    assert "[why]" in poll


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"every": {"interval": "PT5M", "from": "end"}}, "every PT5M from end to start"),
        ({"every": {"interval": "PT1H", "phase": "PT5M"}}, "every PT1H + PT5M"),
        ({"poisson": {"per_day": 12.0}}, "poisson 12.0 a day"),
        (
            {"rrule": {"rule": "FREQ=DAILY", "starts_at": "2030-01-01T09:00:00"}, "timezone": "Europe/Berlin"},
            "rrule FREQ=DAILY from 2030-01-01T09:00:00 Europe/Berlin",
        ),
        ({"at": "2030-01-01T09:00:00.000Z"}, "at 2030-01-01T09:00:00.000Z"),
    ],
)
def test_every_kind_of_rule_is_shown_in_words(rule: dict[str, Any], said: str) -> None:
    answer = schedule_json(**rule)
    del answer["cron"]
    with ApiServer(Answer(200, answer)) as server:
        result = run("schedule", "show", "nightly", *ACME, server=server)

    assert said in result.stdout


def test_a_default_spread_is_shown_with_where_it_comes_from() -> None:
    answer = schedule_json(default_spread={"spread": "PT4M", "from": "plan"})
    with ApiServer(Answer(200, answer)) as server:
        result = run("schedule", "show", "nightly", *ACME, server=server)

    assert result.exit_code == 0, result.output
    assert "default spread" in result.stdout
    assert "4m 00s, from its plan" in result.stdout


def test_lists_are_one_json_object_for_scripts() -> None:
    pages = [
        Answer(200, {"schedules": [schedule_json(id="a")], "next": "a"}),
        Answer(200, {"schedules": [schedule_json(id="b")], "next": None}),
    ]
    with ApiServer(*pages) as server:
        result = run("schedule", "list", *ACME, "--json", server=server)

    assert [schedule["id"] for schedule in json.loads(result.stdout)["schedules"]] == ["a", "b"]


def test_the_headers_of_a_schedule_are_shown_to_people_by_their_names_and_reported_to_scripts() -> None:
    http = {"method": "PUT", "headers": {"X-Key": "hush"}}
    answer = Answer(200, schedule_json(job={"target": "https://example.com", "http": http}))
    with ApiServer(answer, answer) as server:
        table = run("schedule", "show", "nightly", *ACME, server=server)
        script = run("schedule", "show", "nightly", *ACME, "--json", server=server)

    assert '"http": {"method": "PUT", "headers": ["X-Key"]}' in table.stdout
    assert "hush" not in table.stdout
    assert json.loads(script.stdout)["job"]["http"] == http


def test_a_header_of_a_schedule_is_removed_by_itself() -> None:
    with ApiServer(STORED) as server:
        options = ["--header", "X-Key=new", "--unset", "job.http.headers.X-Team"]
        result = run("schedule", "update", "nightly", *ACME, *options, server=server)

    assert result.exit_code == 0, result.output
    assert server.requests[0].json == {"job": {"http": {"headers": {"X-Key": "new", "X-Team": None}}}}


def test_a_schedule_is_shown_with_its_runs_and_what_it_skipped() -> None:
    answer = schedule_json(
        **{**RAN, "failures_in_a_row": 1, "misfires": 4},
        calendar={"holidays": ["DE"]},
        runs=[
            {
                "fire_at": "2030-01-31T03:00:00Z",
                "job_id": "j1~x",
                "state": "failed",
                "attempt": 5,
                "error": "[red]boom",
                "origin": "backfilled",
            }
        ],
    )
    with ApiServer(Answer(200, answer)) as server:
        result = run("schedule", "show", "nightly", *ACME, server=server)

    assert "2 overlap" in result.stdout
    assert "overlap at 2030-01-30T03:00:00Z" in result.stdout
    assert '{"holidays": ["DE"]}' in result.stdout
    assert "[red]boom" in result.stdout
    assert "j1~x" in result.stdout
    assert "backfilled" in result.stdout


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_note_is_sent_along(verb: str) -> None:
    with ApiServer(STORED) as server:
        result = run("schedule", verb, "nightly", *ACME, "--note", "why", server=server)

    assert result.exit_code == 0
    assert server.requests[0].path == f"/v1/schedules/nightly:{verb}?tenant=acme"
    assert server.requests[0].json == {"note": "why"}


def test_a_trigger_says_which_job_runs() -> None:
    with ApiServer(Answer(202, {"job": "j1~x"}), Answer(202, {"job": "j1~x"})) as server:
        for_people = run("schedule", "trigger", "nightly", *ACME, "--idempotency-key", "k", server=server)
        for_scripts = run("schedule", "trigger", "nightly", *ACME, "--overlap", "forbid", "--json", server=server)

    assert "j1~x" in for_people.stdout
    assert json.loads(for_scripts.stdout) == {"job": "j1~x"}
    assert server.requests[0].headers["idempotency-key"] == "k"
    assert server.requests[1].json == {"overlap": "forbid"}


@pytest.mark.parametrize(("options", "said"), [([], "runs 2 fires"), (["--dry-run"], "would run 2 fires")])
def test_a_backfill_says_how_much_it_runs_and_until_when(options: list[str], said: str) -> None:
    answer = {
        "backfill": "k1",
        "count": 2,
        "first": "2030-01-01T03:00:00Z",
        "last": "2030-01-02T03:00:00Z",
        "ends_at": "2030-01-31T09:00:01Z",
        "jobs": [],
    }
    arguments = ["--start", "2030-01-01T00:00:00Z", "--end", "2030-01-03T00:00:00Z", "--per-minute", "30"]
    with ApiServer(Answer(202, answer), Answer(202, answer)) as server:
        result = run("schedule", "backfill", "nightly", *ACME, *arguments, *options, server=server)
        as_json = run("schedule", "backfill", "nightly", *ACME, *arguments, *options, "--json", server=server)

    assert said in result.stdout
    assert "2030-01-31T09:00:01Z" in result.stdout
    assert server.requests[0].json["per_minute"] == 30
    assert json.loads(as_json.stdout)["count"] == 2


A_PART = {
    "backfill": "k1",
    "count": 2,
    "first": "2030-01-01T03:00:00Z",
    "last": "2030-01-02T03:00:00Z",
    "ends_at": "2030-01-31T09:00:01Z",
    "jobs": ["a", "b"],
}
A_RANGE = ["--start", "2030-01-01T00:00:00Z", "--end", "2030-01-09T00:00:00Z"]


def test_a_backfill_goes_on_until_all_of_it_has_come_in() -> None:
    last = {**A_PART, "count": 1, "jobs": ["c"], "last": "2030-01-03T03:00:00Z"}
    with ApiServer(Answer(202, {**A_PART, "next": "1~2~k1"}), Answer(202, last)) as server:
        result = run("schedule", "backfill", "nightly", *ACME, *A_RANGE, "--json", server=server)

    answer = json.loads(result.stdout)
    assert (answer["count"], answer["jobs"], answer["next"]) == (3, ["a", "b", "c"], None)
    assert (answer["first"], answer["last"]) == ("2030-01-01T03:00:00Z", "2030-01-03T03:00:00Z")
    assert [request.json.get("after") for request in server.requests] == [None, "1~2~k1"]


def test_a_backfill_that_is_refused_on_its_way_says_how_to_go_on() -> None:
    refused = Answer(409, {"code": "tenant_closed", "title": "The tenant takes nothing in", "status": 409})
    with ApiServer(Answer(202, {**A_PART, "next": "1~2~k1"}), refused) as server:
        result = run("schedule", "backfill", "nightly", *ACME, *A_RANGE, server=server)

    assert result.exit_code == 1
    assert "2 fires run; continue after them with --after 1~2~k1" in result.stderr
    with ApiServer(Answer(202, A_PART)) as server:
        run("schedule", "backfill", "nightly", *ACME, *A_RANGE, "--after", "1~2~k1", server=server)
    assert server.requests[0].json["after"] == "1~2~k1"


def test_a_backfill_of_nothing_says_so() -> None:
    arguments = ["--start", "2030-01-01T00:00:00Z", "--end", "2030-01-03T00:00:00Z"]
    with ApiServer(Answer(202, {"backfill": "x", "count": 0, "jobs": []})) as server:
        result = run("schedule", "backfill", "nightly", *ACME, *arguments, server=server)

    assert result.stdout == "no fires in that range\n"


def test_a_preview_shows_both_clocks_and_what_moves_a_fire() -> None:
    with ApiServer(Answer(200, {"fires": [FIRE]}), Answer(200, {"fires": [FIRE]})) as server:
        result = run("schedule", "preview", "nightly", *ACME, "--count", "1", server=server)
        as_json = run("schedule", "preview", "nightly", *ACME, "--json", server=server)

    assert "Sun 2030-03-31 03:00:00 +02:00" in result.stdout
    assert "2030-03-31 01:00:00" in result.stdout
    assert "gap: 02:30 does not exist" in result.stdout
    assert json.loads(as_json.stdout)["fires"][0]["at"] == "2030-03-31T01:00:00Z"


def test_a_deletion_is_confirmed() -> None:
    with ApiServer(Answer(200, {}), Answer(200, {})) as server:
        refused = run("schedule", "delete", "nightly", *ACME, server=server, typed="n\n")
        unasked = run("schedule", "delete", "nightly", *ACME, "--json", server=server)
        assert server.requests == []
        result = run("schedule", "delete", "nightly", *ACME, server=server, typed="y\n")
        as_json = run("schedule", "delete", "nightly", *ACME, "--yes", "--json", server=server)

    assert (refused.exit_code, unasked.exit_code) == (1, 2)
    assert f"Delete the schedule nightly of acme for good? At {server.url}." in result.stderr
    assert result.stdout.endswith("deleted nightly\n")
    assert json.loads(as_json.stdout) == {"id": "nightly", "tenant": "acme", "status": "deleted"}


def test_what_to_write_instead_of_another_programs_rule_is_shown_as_options() -> None:
    message = 'is EventBridge\'s cron(…); write {"cron": "30 6 * * mon-fri"}'
    instead = [
        {"cron": "30 6 * * mon-fri", "timezone": "Europe/Berlin", "gap": "skip"},
        {"every": {"interval": "PT1H", "phase": "PT1M"}},
        {"every": "PT5M"},
    ]
    errors = [{"field": "cron", "message": message, "value": "cron(30 6 ? * 2-6 *)", "instead": instead}]
    problem = {"status": 422, "code": "invalid_schedule", "title": "The schedule is refused", "errors": errors}
    problem["detail"] = f"cron {message}"
    options = ["--cron", "cron(30 6 ? * 2-6 *)", "--target", "handler:echo"]
    with ApiServer(Answer(422, problem), Answer(422, problem), STORED, STORED) as server:
        result = run("schedule", "create", "nightly", *ACME, *options, server=server)
        as_json = run("schedule", "update", "nightly", *ACME, *options, "--json", server=server)
        shown = [line.removeprefix("instead: ") for line in result.stderr.splitlines() if line.startswith("instead: ")]
        for line in shown[:2]:
            pasted = run("schedule", "create", "nightly", *ACME, *shlex.split(line), *options[2:], server=server)
            assert pasted.exit_code == 0, pasted.output

    assert result.stderr.count(message) == 1
    assert shown == [
        "--cron '30 6 * * mon-fri' --timezone Europe/Berlin --gap skip",
        "--every PT1H --phase PT1M",
        "--every PT5M",
    ]
    assert json.loads(as_json.stdout)["error"]["errors"][0]["instead"] == instead
    assert server.requests[2].json.items() >= instead[0].items()
    assert server.requests[3].json["every"] == {"interval": 3_600, "phase": 60}


def test_a_refusal_names_its_fields_and_exits_with_1() -> None:
    errors = [{"field": "timezone", "message": "is not an IANA time zone", "value": "Berlin"}]
    problem = {"status": 422, "code": "invalid_schedule", "title": "The schedule is refused", "errors": errors}
    options = ["--cron", "@daily", "--timezone", "Berlin", "--target", "handler:echo"]
    with ApiServer(Answer(422, problem), Answer(422, problem)) as server:
        result = run("schedule", "create", "nightly", *ACME, *options, server=server)
        as_json = run("schedule", "create", "nightly", *ACME, *options, "--json", server=server)

    assert result.exit_code == as_json.exit_code == 1
    assert "timezone: is not an IANA time zone (got 'Berlin')" in result.stderr
    assert json.loads(as_json.stdout)["error"]["code"] == "invalid_schedule"


class TestImport:
    def test_every_line_is_put(self, tmp_path: Path) -> None:
        file = a_file(tmp_path, {**NIGHTLY, "id": "a"}, {**NIGHTLY, "id": "b", "tenant": "globex"})
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", str(file), server=server)

        assert result.exit_code == 0, result.output
        assert "stored 2, refused 0 (created 2, changed 0, unchanged 0)" in result.stdout
        (request,) = server.requests
        assert [(each["tenant"], each["id"]) for each in request.json["schedules"]] == [("acme", "a"), ("globex", "b")]
        assert list(tmp_path.iterdir()) == [file]

    def test_lines_that_are_refused_are_named_and_kept_and_the_others_put(self, tmp_path: Path) -> None:
        def refuse_d(request: Request) -> Answer:
            answers = [
                refused(422, "invalid_schedule") if each["id"] == "d" else put_result(each["id"])
                for each in request.json["schedules"]
            ]
            return Answer(200, {"results": answers})

        lines: list[Any] = [
            {**NIGHTLY, "id": "a"},
            "{oops",
            {**NIGHTLY, "id": "c", "job": {}},
            {**NIGHTLY, "id": "d"},
            {**NIGHTLY, "id": "a"},
        ]
        file = a_file(tmp_path, *lines)
        with ApiServer(otherwise=refuse_d) as server:
            result = run("import", str(file), server=server)

        assert result.exit_code == 1
        assert "stored 1, refused 4" in result.stdout
        assert "line 2: line: is not JSON" in result.stderr
        assert "line 3: job.target: is required" in result.stderr
        assert "line 4: The schedule is refused" in result.stderr
        assert "line 5: id: is also that of line 1 (got 'a')" in result.stderr
        assert (tmp_path / "schedules.refused.jsonl").read_text().splitlines() == file.read_text().splitlines()[1:]
        assert not (tmp_path / "schedules.jsonl.journal").exists()

    def test_a_line_with_another_programs_rule_learns_what_to_write(self, tmp_path: Path) -> None:
        message = 'is a line of a crontab, with its command; write {"cron": "0 5 * * *"}'
        errors = [{"field": "cron", "message": message, "instead": [{"cron": "0 5 * * *"}]}]
        results = {"results": [refused(422, "invalid_schedule", errors=errors)]}
        file = tmp_path / "schedules.jsonl"
        file.write_text(json.dumps(NIGHTLY) + "\n")
        with ApiServer(Answer(200, results), Answer(200, results)) as server:
            result = run("import", str(file), server=server)
            as_json = run("import", str(file), "--json", server=server)

        assert f"line 1: The schedule is refused [422 invalid_schedule]: cron: {message}" in result.stderr
        (answer,) = json.loads(as_json.stdout)["problems"]
        assert answer["errors"][0]["instead"] == [{"cron": "0 5 * * *"}]

    def test_an_import_is_one_json_object_for_scripts(self, tmp_path: Path) -> None:
        file = a_file(tmp_path, {**NIGHTLY, "id": "a"}, {**NIGHTLY, "cron": None})
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", str(file), "--json", server=server)

        answer = json.loads(result.stdout)
        assert (answer["stored"], answer["created"], answer["refused"], answer["never_sent"]) == (1, 1, 1, 0)
        assert answer["schedules"] == [{"line": 1, "tenant": "acme", "id": "a", "version": 1, "change": "created"}]
        assert answer["problems"][0]["line"] == 2
        assert Path(answer["files"]["refused"]).exists()

    def test_standard_input_is_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", "-", server=server, typed=f"{json.dumps(NIGHTLY)}\n{{oops\n")

        assert "stored 1, refused 1" in result.stdout
        assert [path.name for path in tmp_path.iterdir()] == ["stdin.refused.jsonl"]

    def test_a_file_that_cannot_be_read_or_is_empty_is_wrong_usage(self, tmp_path: Path) -> None:
        result = run("import", "/no/such/file")

        assert result.exit_code == 2
        assert "/no/such/file" in result.stderr
        assert_wrong_usage("import", str(a_file(tmp_path)), said="has no lines")

    def test_lines_without_an_answer_are_kept_apart(self, tmp_path: Path) -> None:
        file = a_file(tmp_path, {**NIGHTLY, "id": "a"})
        with ApiServer(otherwise=lambda _: LOST) as server:
            result = run("import", str(file), server=server)

        assert result.exit_code == 1
        assert "stored 0, refused 0, unanswered 1" in result.stdout
        assert (tmp_path / "schedules.unanswered.jsonl").read_text() == file.read_text()

    def test_a_line_without_a_tenant_has_that_of_the_command(self, tmp_path: Path) -> None:
        line = {name: value for name, value in NIGHTLY.items() if name != "tenant"}
        file = a_file(tmp_path, line, {**NIGHTLY, "id": "b"})
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", str(file), "--tenant", "globex", server=server)

        assert result.exit_code == 0, result.output
        assert [each["tenant"] for each in server.requests[0].json["schedules"]] == ["globex", "acme"]


def a_file(folder: Path, *lines: Any) -> Path:
    file = folder / "schedules.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file
