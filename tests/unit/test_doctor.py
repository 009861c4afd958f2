"""`tickwheel doctor`, of an account that answers on the loopback."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from doctor.examine import OLDEST_BOOTSTRAP, examine
from infra.capacity import CONCURRENCY, IN_FLIGHT, REQUESTS, TABLE_WRITES, UNRESERVED
from infra.stage import Stage
from tests.command_line import assert_wrong_usage, run
from tickwheel.commands.doctor import parse_rate
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

NUMBER = "123456789012"
STS = """
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::{number}:user/alice</Arn><UserId>A</UserId><Account>{number}</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
STACKS = """
<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks>{members}</Stacks>
</DescribeStacksResult></DescribeStacksResponse>"""
STACK = "<member><StackName>{name}</StackName><StackStatus>CREATE_COMPLETE</StackStatus></member>"


class Account(LoopbackServer):
    """bootstrap: its version, None where there is none. concurrency: of invocations. reserved: by functions of others. stacks: names of them.

    applied, defaults: of Service Quotas, by code. denied: operations that the caller may not call.
    """

    def __init__(self) -> None:
        self.bootstrap: int | None = OLDEST_BOOTSTRAP
        self.concurrency = 1_000
        self.reserved = 0
        self.stacks: list[str] = []
        self.applied: dict[str, float] = {}
        self.defaults: dict[str, float] = {}
        self.denied: set[str] = set()
        ours = self

        class Request(KeptAliveRequest):
            def do_POST(self) -> None:
                body = self.read_body()
                operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
                if not operation:
                    self.answer_query(parse_qs(body.decode())["Action"][0])
                    return
                status, found = ours.answer_json(operation, json.loads(body))
                self.send_text(status, json.dumps(found))

            def answer_query(self, action: str) -> None:
                if action == "GetCallerIdentity":
                    self.send_text(200, STS.format(number=NUMBER))
                else:
                    self.send_text(200, STACKS.format(members="".join(STACK.format(name=name) for name in ours.stacks)))

            def do_GET(self) -> None:
                if "GetAccountSettings" in ours.denied:
                    self.send_text(403, json.dumps({"__type": "AccessDeniedException", "Message": "alice may not"}))
                    return
                limit = {
                    "ConcurrentExecutions": ours.concurrency,
                    "UnreservedConcurrentExecutions": ours.concurrency - ours.reserved,
                }
                self.send_text(200, json.dumps({"AccountLimit": limit}))

            def send_text(self, status: int, text: str) -> None:
                body = text.strip().encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Request, poll_seconds=0.05)

    def answer_json(self, operation: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if operation in self.denied:
            return 400, {"__type": "AccessDeniedException", "Message": "alice may not"}
        match operation:
            case "GetParameter" if self.bootstrap is None:
                return 400, {"__type": "ParameterNotFound"}
            case "GetParameter":
                return 200, {"Parameter": {"Value": str(self.bootstrap)}}
            case "GetServiceQuota" if asked["QuotaCode"] not in self.applied:
                return 400, {"__type": "NoSuchResourceException"}
            case "GetServiceQuota":
                return 200, {"Quota": {"Value": self.applied[asked["QuotaCode"]]}}
            case _:
                return 200, {"Quota": {"Value": self.defaults.get(asked["QuotaCode"], 10_000_000)}}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with Account() as aws:
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-south-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        yield aws


@pytest.fixture
def keeping_two_started() -> Stage:
    return replace(Stage.named("dev"), ready_critical=2)


def diagnosed(*arguments: str, exit_code: int = 0) -> dict[str, dict[str, Any]]:
    """Its checks by name."""
    result = run("doctor", "--json", *arguments)
    assert result.exit_code == exit_code, result.output
    report = json.loads(result.stdout)
    assert report["deployable"] is (exit_code == 0)
    return {check["name"]: check for check in report["checks"]}


@pytest.mark.usefixtures("aws")
def test_a_prepared_account_is_named_and_each_check_has_a_line() -> None:
    result = run("doctor", "--stage", "dev")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "stage dev"
    assert f"ok        caller: arn:aws:iam::{NUMBER}:user/alice" in lines
    assert f"ok        account: {NUMBER}" in lines
    assert "ok        region: eu-south-1" in lines
    assert "ok        bootstrap: version 6; needed: version 6" in lines
    assert "ok        other stages: none" in lines
    assert any(line.startswith(f"ok        {CONCURRENCY.name}: 1,000; needed: 14 (8 workers") for line in lines)
    assert {line.split()[0] for line in lines[1:]} == {"ok"}


@pytest.mark.parametrize(
    ("version", "seen"), [(None, "none in account"), (OLDEST_BOOTSTRAP - 1, "version 5 in account")]
)
def test_an_account_whose_bootstrap_is_missing_or_old_is_refused_with_the_command_to_run(
    aws: Account, version: int | None, seen: str
) -> None:
    aws.bootstrap = version

    found = diagnosed(exit_code=1)["bootstrap"]

    assert found["level"] == "refused"
    assert found["seen"].startswith(seen)
    assert (found["needed"], found["command"]) == ("version 6", "make bootstrap")


def test_other_stages_of_the_account_are_named_and_stop_nothing(aws: Account) -> None:
    aws.stacks = ["Tickwheel-prod-Scheduler", "Tickwheel-dev-Scheduler", "Tickwheel-prod-Storage", "Other"]

    found = diagnosed("--stage", "dev")["other stages"]

    assert (found["level"], found["seen"].partition(";")[0]) == ("warning", "prod")


def test_a_new_account_that_runs_ten_functions_is_warned_with_the_request_to_make(aws: Account) -> None:
    aws.concurrency = 10

    found = diagnosed("--stage", "dev")[CONCURRENCY.name]

    assert (found["level"], found["seen"]) == ("warning", "10")
    assert found["needed"].startswith(f"{Stage.named('dev').concurrency} (8 workers")
    assert found["command"].endswith("--service-code lambda --quota-code L-B99A9384 --desired-value 1000")


@pytest.mark.parametrize(
    ("concurrency", "reserved", "asks_for"),
    [(10, 0, 1_000), (101, 0, 1_000), (1_000, 950, 1_052), (3_000, 2_950, 3_052)],
)
def test_workers_that_are_kept_started_stop_a_deployment_where_aws_would_have_no_others_left(
    aws: Account, keeping_two_started: Stage, concurrency: int, reserved: int, asks_for: int
) -> None:
    aws.concurrency, aws.reserved = concurrency, reserved

    diagnosis = examine(keeping_two_started)

    (found,) = [check for check in diagnosis.checks if check.name == UNRESERVED.name]
    assert not diagnosis.is_deployable
    assert (found.level, found.seen) == ("refused", str(concurrency - reserved))
    assert found.needed == "102 (ready_critical is 2, and AWS leaves 100 to all functions)"
    assert found.command.startswith("set ready_critical of the stage to 0, or ask for more: aws service-quotas ")
    assert found.command.endswith(f"--quota-code L-B99A9384 --desired-value {asks_for}")


def test_workers_are_kept_started_where_a_hundred_are_left(aws: Account, keeping_two_started: Stage) -> None:
    aws.concurrency = 102

    assert examine(keeping_two_started).is_deployable


def test_what_may_not_be_asked_stops_no_stage_that_keeps_workers_started(
    aws: Account, keeping_two_started: Stage
) -> None:
    aws.denied = {"GetAccountSettings"}

    assert examine(keeping_two_started).is_deployable


def test_a_quota_that_was_raised_counts_and_not_the_default(aws: Account) -> None:
    aws.applied["L-AB614373"] = 250_000

    found = diagnosed("--for", "100000/s")[TABLE_WRITES.name]

    assert (found["level"], found["seen"]) == ("ok", "250,000")


def test_a_rate_that_a_quota_does_not_allow_is_warned_with_what_to_ask_for(aws: Account) -> None:
    aws.defaults["L-AB614373"] = 40_000

    found = diagnosed("--for", "100K/s")[TABLE_WRITES.name]

    assert (found["level"], found["seen"]) == ("warning", "40,000")
    assert found["needed"].startswith("200,000 (2 an execution")
    assert found["command"].endswith("--quota-code L-AB614373 --desired-value 200000")


def test_tables_that_cannot_be_made_as_warm_as_the_stage_says_stop_a_deployment(aws: Account) -> None:
    aws.defaults["L-AB614373"] = 40_000

    found = diagnosed("--stage", "scale", exit_code=1)[TABLE_WRITES.name]

    assert (found["level"], found["seen"]) == ("refused", "40,000")
    assert found["needed"] == "300,000 (the warm throughput of a table)"

    aws.applied["L-AB614373"] = 300_000
    assert diagnosed("--stage", "scale")[TABLE_WRITES.name]["level"] == "ok"


def test_where_the_caller_may_not_ask_the_default_of_the_region_is_assumed_and_said_so(aws: Account) -> None:
    aws.denied = {"GetServiceQuota"}

    checks = diagnosed("--for", "70000/s")

    found = checks[REQUESTS.name]
    assert found["seen"].startswith("2,500 (AWS's default, assumed: ")
    assert "AccessDenied" in found["seen"]
    assert (found["level"], found["needed"].split()[0]) == ("warning", "2,800")
    assert "Service Quotas does not have it" in checks[IN_FLIGHT.name]["seen"]


def test_a_bootstrap_that_the_caller_may_not_see_stops_nothing(aws: Account) -> None:
    aws.denied = {"GetParameter"}

    found = diagnosed()["bootstrap"]

    assert found["level"] == "warning"
    assert "could not be asked" in found["seen"]
    assert "AccessDenied" in found["seen"]


@pytest.mark.usefixtures("aws")
def test_where_says_it_and_asks_for_nothing_else() -> None:
    assert list(diagnosed("--where")) == ["caller", "account", "region"]


def test_without_credentials_nothing_is_deployed_and_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    (found,) = diagnosed(exit_code=1).values()

    assert found["seen"].startswith("AWS does not know who deploys")
    assert "aws sso login" in found["command"]


@pytest.mark.usefixtures("aws")
def test_the_region_is_the_one_that_the_cdk_deploys_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    assert diagnosed("--where")["region"]["seen"] == "eu-west-1"


def test_an_unknown_stage_and_what_is_no_rate_are_wrong_usage() -> None:
    assert_wrong_usage("doctor", "--stage", "nope", said="there is no stage 'nope'")
    assert_wrong_usage("doctor", "--for", "many", said="is not a rate such as 100000/s")


@pytest.mark.parametrize(("text", "rate"), [("100000/s", 100_000), ("10K/s", 10_000), ("1,000/s", 1_000)])
def test_a_rate_is_written_with_its_unit(text: str, rate: float) -> None:
    assert parse_rate(text) == rate
