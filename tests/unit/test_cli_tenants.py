"""The commands about tenants and the stage against a real server: what they send, what they print and how they exit."""

import json
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.command_line import assert_wrong_usage, run
from tests.unit.test_client_tenants import DELETION, ROLE, STAGE, UNLIMITED, tenant_json
from tickwheel.commands.tenants import Amount, parse_limit, parse_rate

TOLD = Answer(200, tenant_json())
OTHER = "arn:aws:iam::123456789012:role/other"


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (["--plan", "gold"], {"plan": "gold"}),
        (["--weight", "3"], {"limits": {"weight": 3}}),
        (["--execution-rate", "100/s"], {"limits": {"execution_rate": 100}}),
        (["--execution-rate", "unlimited"], {"limits": {"execution_rate": "unlimited"}}),
        (
            ["--submission-rate", "30/m", "--submission-burst", "5"],
            {"limits": {"submission_rate": 0.5, "submission_burst": 5}},
        ),
        (
            ["--max-concurrency", "10", "--max-pending", "unlimited"],
            {"limits": {"max_concurrency": 10, "max_pending": "unlimited"}},
        ),
        (["--read-rate", "300/m"], {"limits": {"read_rate": 5}}),
        (
            ["--max-schedules", "50", "--max-fires-per-minute", "unlimited"],
            {"limits": {"max_schedules": 50, "max_fires_per_minute": "unlimited"}},
        ),
        (["--subshards", "8", "--top-priority", "high"], {"limits": {"subshards": 8, "top_priority": "high"}}),
        (["--spread", "4m"], {"limits": {"spread": 240}}),
        (["--spread", "0"], {"limits": {"spread": 0}}),
        (["--unset", "spread"], {"limits": {"spread": None}}),
        (["--unset", "weight", "--unset", "note"], {"note": None, "limits": {"weight": None}}),
        (["--note", ""], {"note": ""}),
    ],
)
def test_what_is_said_of_a_tenant_is_changed_and_nothing_else(options: list[str], sent: dict[str, Any]) -> None:
    with ApiServer(TOLD) as server:
        result = run("tenant", "set", "acme", *options, server=server)

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert (request.method, request.path, request.json) == ("PATCH", "/v1/tenants/acme", sent)


def test_a_principal_is_added_to_those_there_are_of_the_version_that_was_seen() -> None:
    with ApiServer(TOLD, TOLD) as server:
        result = run("tenant", "set", "acme", "--principal", OTHER, "--principal", ROLE, server=server)

    assert result.exit_code == 0, result.output
    assert [request.method for request in server.requests] == ["GET", "PATCH"]
    assert server.requests[1].json == {"principals": [ROLE, OTHER], "version": 3}


def test_a_principal_is_removed_from_those_there_are() -> None:
    with ApiServer(TOLD, TOLD) as server:
        run("tenant", "set", "acme", "--principal", OTHER, "--remove-principal", ROLE, "--weight", "2", server=server)

    assert server.requests[1].json == {"principals": [OTHER], "version": 3, "limits": {"weight": 2}}


def test_a_large_tenant_is_spread_and_capped() -> None:
    with ApiServer(TOLD) as server:
        result = run("tenant", "shard", "acme", "--subshards", "8", "--cap", "2000/s", server=server)

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert (request.method, request.json) == ("PATCH", {"limits": {"subshards": 8, "execution_rate": 2000}})


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
def test_a_tenant_is_turned(verb: str) -> None:
    with ApiServer(TOLD) as server:
        result = run("tenant", verb, "acme", "--note", "why", server=server)

    assert result.exit_code == 0, result.output
    assert (server.requests[0].path, server.requests[0].json) == (f"/v1/tenants/acme:{verb}", {"note": "why"})
    assert "paused: why" in result.stdout


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_the_whole_stage_is_turned(verb: str) -> None:
    with ApiServer(Answer(200, STAGE), Answer(200, STAGE)) as server:
        people = run(verb, "--note", "why", server=server, typed="y\n")
        script = run(verb, "--json", *(["--yes"] if verb == "pause" else []), server=server)

    assert (people.exit_code, script.exit_code) == (0, 0)
    assert [(request.path, request.json) for request in server.requests] == [
        (f"/v1/{verb}", {"note": "why"}),
        (f"/v1/{verb}", {"note": ""}),
    ]
    assert "2030-01-31T10:01:00Z" in people.stdout
    assert json.loads(script.stdout)["status"] == "paused"


@pytest.mark.parametrize(("arguments", "typed", "code"), [([], "n\n", 1), ([], None, 1), (["--json"], "y\n", 2)])
def test_a_pause_of_all_tenants_is_asked_for_and_names_the_scheduler(
    arguments: list[str], typed: str | None, code: int
) -> None:
    with ApiServer(Answer(200, STAGE)) as server:
        result = run("pause", *arguments, server=server, typed=typed)

    assert result.exit_code == code
    assert server.requests == []
    said = "add --yes" if arguments else f"Pause all jobs of all tenants? At {server.url}."
    assert said in result.stderr


def test_a_pause_of_all_tenants_that_is_confirmed_beforehand_asks_nothing() -> None:
    with ApiServer(Answer(200, STAGE)) as server:
        result = run("pause", "--yes", server=server)

    assert result.exit_code == 0
    assert result.stderr == ""


def test_a_tenant_is_shown_with_what_is_its_own_and_when_it_is_in_effect() -> None:
    with ApiServer(TOLD, TOLD) as server:
        shown = run("tenant", "show", "acme", server=server).stdout
        answer = json.loads(run("tenant", "show", "acme", "--json", server=server).stdout)

    lines = {" ".join(line.split()) for line in shown.splitlines()}
    assert {"weight 3 (own)", "max concurrency unlimited", "plan gold", f"principals {ROLE}"} <= lines
    assert "in effect by 2030-01-31T10:01:00Z" in lines
    assert (answer["limits"]["weight"], answer["in_effect_by"]) == (3, "2030-01-31T10:01:00Z")


def test_a_tenant_is_shown_with_what_its_schedules_come_to_where_the_stage_says_it() -> None:
    load = {"count": 1_234, "max_schedules": 10_000, "fires_per_minute": 20.57, "max_fires_per_minute": 600}
    answer = Answer(200, tenant_json(schedules=load))
    with ApiServer(answer, answer, TOLD) as server:
        shown = run("tenant", "show", "acme", server=server).stdout
        body = json.loads(run("tenant", "show", "acme", "--json", server=server).stdout)
        without = run("tenant", "show", "acme", server=server).stdout

    lines = {" ".join(line.split()) for line in shown.splitlines()}
    assert {"max schedules 10000", "schedules 1,234", "fires per minute 20.57"} <= lines
    assert body["schedules"] == load
    assert "\nschedules" not in without


def test_a_tenant_of_a_stage_that_knows_fewer_limits_is_shown_with_those() -> None:
    limits = {name: limit for name, limit in UNLIMITED.items() if name != "read_rate"}
    with ApiServer(Answer(200, tenant_json(limits=limits))) as server:
        assert "read rate" not in run("tenant", "show", "acme", server=server).stdout


def test_a_tenant_that_nobody_may_act_for_says_so() -> None:
    with ApiServer(Answer(200, tenant_json(principals=[]))) as server:
        assert "operators only" in run("tenant", "show", "acme", server=server).stdout


def test_tenants_are_listed_a_row_each() -> None:
    page = Answer(200, {"tenants": [tenant_json()], "next": None})
    with ApiServer(page, page) as server:
        (_, row) = run("tenant", "list", server=server).stdout.splitlines()
        answer = json.loads(run("tenant", "list", "--json", server=server).stdout)

    assert row.split() == ["acme", "gold", "paused:", "why", "weight", "3", ROLE]
    assert answer["tenants"][0]["own_limits"] == ["weight"]


def test_a_stage_whose_tenants_were_never_changed_says_so() -> None:
    with ApiServer(Answer(200, {"tenants": [], "next": None})) as server:
        assert "every tenant has the default plan" in run("tenant", "list", server=server).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tenant", "set", "acme"], "nothing to change"),
        (["tenant", "shard", "acme"], "--subshards or --cap is required"),
        (["tenant", "set", "acme", "--execution-rate", "fast"], "'fast' is not a rate"),
        (["tenant", "set", "acme", "--execution-rate", "1.2.3/s"], "'1.2.3' is not a number"),
        (["tenant", "set", "acme", "--max-pending", "-1"], "'-1' is not a whole number"),
        (["tenant", "set", "acme", "--weight", "heavy"], "--weight"),
        (["tenant", "set"], "ID"),
    ],
)
def test_what_is_not_said_well_is_wrong_usage(arguments: list[str], said: str) -> None:
    assert_wrong_usage(*arguments, said=said)


def test_what_is_set_and_unset_is_wrong_usage() -> None:
    with ApiServer() as server:
        result = run("tenant", "set", "acme", "--plan", "gold", "--unset", "plan", server=server)

    assert (result.exit_code, server.requests) == (2, [])
    assert "plan: is set and unset at the same time" in result.stderr


def test_what_is_refused_ends_the_command_with_1() -> None:
    problem = {"status": 403, "code": "forbidden", "title": "The caller may not do this", "detail": "ask an operator"}
    with ApiServer(Answer(403, problem)) as server:
        result = run("tenant", "pause", "acme", server=server)

    assert result.exit_code == 1
    assert "ask an operator" in result.stderr


@pytest.mark.parametrize(
    ("text", "rate"),
    [("100", 100), ("100/s", 100), ("30/m", 0.5), ("7200/h", 2), ("2.5", 2.5), ("unlimited", "unlimited")],
)
def test_a_rate_is_read_as_jobs_a_second(text: str, rate: float | str) -> None:
    assert parse_rate(text) == Amount(rate)


@pytest.mark.parametrize("text", ["", "/s", "-1", "1/d", "1e3", "∞", "²", "."])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["", "1.5", "+1", "²", "none"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        parse_limit(text)


def test_a_tenant_is_deleted_when_its_id_is_said_again() -> None:
    with ApiServer(Answer(202, tenant_json(status="deleting", note="", deletion=DELETION))) as server:
        result = run("tenant", "delete", "acme", "--confirm", "acme", server=server)

    assert result.exit_code == 0, result.output
    (request,) = server.requests
    assert (request.method, request.path) == ("DELETE", "/v1/tenants/acme?confirm=acme&ledger=scan")
    assert "1 operations, 1,200 timers" in result.stdout
    assert "deleting" in result.stdout


def test_nobody_deletes_a_tenant_by_accident() -> None:
    with ApiServer() as server:
        result = run("tenant", "delete", "acme", "--confirm", "acme2", server=server)

    assert result.exit_code == 2
    assert server.requests == []


def test_the_ledger_may_be_left_alone() -> None:
    with ApiServer(TOLD) as server:
        run("tenant", "delete", "acme", "--confirm", "acme", "--keep-ledger", server=server)

    assert server.requests[0].path.endswith("ledger=ttl")
