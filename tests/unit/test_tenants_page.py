"""docs/tenants.md: its examples are taken by what they are for, and its numbers are those of the code."""

import json
import re
import shlex
from typing import Any

import pytest

from functions.api.http.problem_table import TABLE
from functions.domain.instants import format_duration
from functions.domain.schedules.spread import MAX_DEFAULT_SPREAD
from functions.domain.tenants.access import caller_by_arn, may_act
from functions.domain.tenants.changes import EFFECTIVE_AFTER, TRANSITIONS
from functions.domain.tenants.plan import (
    BURST_SECONDS,
    LIMITS,
    SPREAD,
    TOP_PRIORITY,
    TenantPlan,
    TenantStatus,
    read_limits,
    write_limits,
)
from infra.stage_parts import Jwt
from tests.api_server import Answer, ApiServer, Request
from tests.command_line import run
from tests.pages import blocks, commands, read_page, values
from tests.unit.test_client_tenants import STAGE, tenant_json
from tests.unit.test_usage_command import TOLD as USAGE
from tickwheel.client import Client

PAGE = read_page("tenants.md")


def answer(request: Request) -> Answer:
    if "/usage" in request.path:
        return Answer(200, USAGE)
    return Answer(200, tenant_json() if request.path.startswith("/v1/tenants/") else STAGE)


@pytest.mark.parametrize("command", commands(PAGE))
def test_every_command_is_taken(command: str):
    with ApiServer(otherwise=answer) as server:
        result = run(*shlex.split(command, comments=True)[1:], server=server)

    assert result.exit_code == 0, result.output
    assert server.requests


def test_every_call_of_the_client_is_taken():
    calls, *_ = blocks(PAGE, "python")
    with ApiServer(otherwise=answer) as server, Client(server.url, region="us-east-1") as client:
        exec(calls, {"client": client})

    assert [request.method for request in server.requests] == ["PATCH", "POST", "GET", "GET"]


def test_every_limit_is_there_with_its_range_and_what_is_built_in():
    rows = {name: (low, high, usual) for name, low, high, usual, _ in values(PAGE, "| limit | from |")}
    built_in = write_limits(TenantPlan())
    shown: dict[str, tuple[str, str, str]] = {
        name: (f"{limit.lowest:g}", f"{int(limit.highest):,}", str(built_in[name]).removesuffix(".0"))
        for name, limit in LIMITS.items()
    }
    shown["submission_burst"] = (*shown["submission_burst"][:2], "ten seconds of its rate")

    assert BURST_SECONDS == 10
    longest = format_duration(MAX_DEFAULT_SPREAD)
    assert rows == {**shown, TOP_PRIORITY: ("low", "critical", "critical"), SPREAD: ("PT0S", longest, built_in[SPREAD])}


def test_which_limits_may_be_none_is_as_it_is_said():
    (said,) = re.findall(r"All but (.*) may be `unlimited`", PAGE)

    assert set(re.findall(r"`(\w+)`", said)) == {
        TOP_PRIORITY,
        SPREAD,
        *(name for name, limit in LIMITS.items() if not limit.may_be_unlimited),
    }


def test_every_status_is_there_with_what_follows_it():
    rows = {status: set(re.findall(r"\w+", after)) for status, _, _, after in values(PAGE, "| status | submissions")}

    assert set(re.findall(r"\w+", " ".join(rows))) == {status.value for status in TenantStatus}
    for status in (TenantStatus.ACTIVE, TenantStatus.PAUSED, TenantStatus.DRAINING):
        assert rows[status.value] == {
            after.value for after in TRANSITIONS[status] if after is not TenantStatus.DELETING
        }
        assert TenantPlan(status=status).is_closed is (
            "nothing" in PAGE.split(f"| `{status.value}` |")[1].split("|")[0]
        )


def test_every_code_that_is_named_is_one_of_a_problem():
    named = set(re.findall(r"4\d\d `(\w+)`", PAGE))

    assert named
    assert named <= {code for _, code, _ in TABLE.values()}
    for status, code in re.findall(r"(4\d\d) `(\w+)`", PAGE):
        assert int(status) in {int(found) for found, known, _ in TABLE.values() if known == code}


def test_the_plans_of_the_example_are_plans():
    examples: list[dict[str, dict[str, Any]]] = [eval(plans) for plans in re.findall(r"`plans=(\{.*?\}\})`", PAGE)]

    assert len(examples) == 2
    for plans in examples:
        assert [read_limits(limits) for limits in plans.values()]


def test_the_tokens_of_the_example_are_taken_by_a_stage():
    (example,) = [block for block in blocks(PAGE, "python") if "Jwt(" in block]
    made: dict[str, Any] = {"Jwt": Jwt}
    exec(example, made)

    assert made["jwt"].tenant_claim == "tenant"


def test_the_policy_of_the_example_is_json_that_allows_calls():
    (policy,) = (json.loads(block) for block in blocks(PAGE, "json"))

    assert policy["Statement"][0]["Action"] == "execute-api:Invoke"


def test_the_principal_of_the_example_names_the_roles_that_it_seems_to():
    pattern = shlex.split(commands(PAGE)[0])[-1]
    session = "arn:aws:sts::123456789012:assumed-role/{}/session"

    for role, is_allowed in (("billing-api", True), ("orders", False)):
        assert may_act(caller_by_arn(session.format(role)), "acme", principals=[pattern], operators=[]) is is_allowed


def test_a_change_takes_effect_as_soon_as_it_is_said():
    assert EFFECTIVE_AFTER.total_seconds() == 60
    assert "within a minute" in PAGE
