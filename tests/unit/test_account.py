"""What is said before a deployment, and what is refused, of an account that answers on the loopback."""

import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qs

import boto3
import pytest

from infra.stage import Stage
from scripts import account
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
    """bootstrap: its version, None where there is none. quota: of concurrent invocations. stacks: names of them."""

    def __init__(self) -> None:
        self.bootstrap: int | None = account.OLDEST_BOOTSTRAP
        self.quota = 1_000
        self.stacks: list[str] = []
        ours = self

        class Request(KeptAliveRequest):
            def do_POST(self) -> None:
                action = parse_qs(self.read_body().decode()).get("Action", [""])[0]
                if action == "GetCallerIdentity":
                    self.send_text(200, STS.format(number=NUMBER))
                elif action == "DescribeStacks":
                    self.send_text(200, STACKS.format(members="".join(STACK.format(name=name) for name in ours.stacks)))
                elif ours.bootstrap is None:
                    self.send_text(400, json.dumps({"__type": "ParameterNotFound"}))
                else:
                    self.send_text(200, json.dumps({"Parameter": {"Value": str(ours.bootstrap)}}))

            def do_GET(self) -> None:
                self.send_text(200, json.dumps({"AccountLimit": {"ConcurrentExecutions": ours.quota}}))

            def send_text(self, status: int, text: str) -> None:
                body = text.strip().encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Request, poll_seconds=0.05)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with Account() as aws:
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        yield aws


def test_an_account_that_is_not_bootstrapped_is_refused_with_the_command_to_run(
    aws: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.bootstrap = None

    assert account.main(["dev"]) == 1

    said = capsys.readouterr()
    assert re.match(r"stage dev, account \d{12}, region eu-west-1, as arn:aws:iam:", said.out)
    assert "not prepared for the CDK in eu-west-1: run `make bootstrap`" in said.err


def test_a_bootstrap_that_is_too_old_is_refused(aws: Account, capsys: pytest.CaptureFixture[str]) -> None:
    aws.bootstrap = account.OLDEST_BOOTSTRAP - 1

    assert account.main(["dev"]) == 1

    assert "has version 5, and 6 is needed" in capsys.readouterr().err


@pytest.mark.usefixtures("aws")
def test_a_prepared_account_is_named_and_may_be_deployed_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert account.main(["dev"]) == 0

    said = capsys.readouterr()
    assert "stage dev, account" in said.out
    assert said.err == ""


def test_other_stages_of_the_account_are_named(aws: Account, capsys: pytest.CaptureFixture[str]) -> None:
    aws.stacks = ["Tickwheel-prod-Scheduler", "Tickwheel-dev-Scheduler", "Tickwheel-prod-Storage", "Other"]

    assert account.main(["dev"]) == 0

    assert "other stages here: prod. They share" in capsys.readouterr().out


def test_a_stage_that_wants_more_than_the_account_runs_is_deployed_with_a_warning(
    aws: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.quota = 10

    assert account.main(["dev"]) == 0

    said = capsys.readouterr().out
    assert f"up to {Stage.named('dev').concurrency} functions at once, and this account 10" in said
    assert "request-service-quota-increase" in said


@pytest.mark.usefixtures("aws")
def test_where_says_it_and_asks_for_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert account.main(["--where", "dev"]) == 0
    assert "region eu-west-1" in capsys.readouterr().out


def test_without_credentials_nothing_is_deployed_and_the_remedy_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    assert account.main(["dev"]) == 1

    assert "AWS does not know who deploys" in capsys.readouterr().err


def test_an_unknown_stage_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert account.main(["nope"]) == 1
    assert "there is no stage 'nope'" in capsys.readouterr().err
