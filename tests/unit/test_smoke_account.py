"""Checks of `make smoke` that ask or change the account, on one that moto plays and with a CDK that only writes down its calls."""

import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from infra.stage import Stage
from smoke import deployed, patience
from smoke.faults import NotPossible, Wrong
from smoke.ground import Ground
from testkit.resources import Resources
from tests.api_server import Answer, ApiServer, Request, job_json
from tests.unit.test_client_tenants import tenant_json

DEV = Stage.named("dev")
CDK = """#!/bin/sh
echo "$(cat app.py): $*" >> {log}
case "$(cat app.py): $*" in {fails}) echo "no such stage" >&2; exit 1;; esac
"""
SCHEDULER = "deploy dev/Scheduler --exclusively --require-approval never --context stage=dev --no-notices"


def answer(request: Request) -> Answer:
    """Of a stage whose jobs were due at once, and have run."""
    job = job_json(due_at=datetime.now(UTC).isoformat())
    if request.path.startswith("/v1/jobs:batch"):
        return Answer(200, {"results": [{"status": 202, "job": job}] * len(request.json["jobs"])})
    if request.path.startswith("/v1/jobs/"):
        return Answer(200, {**job, "state": "succeeded"})
    if request.path.startswith("/v1/tenants/"):
        return Answer(202, tenant_json(status="deleting"))
    return Answer(202, job)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(otherwise=answer) as server:
        yield server


@pytest.fixture
def ground(server: ApiServer) -> Iterator[Ground]:
    with mock_aws():
        ground = Ground(DEV, {"region_name": "eu-west-1"}, endpoint=server.url)
        yield ground
        ground.close()


class Stacks:
    """CloudFormation, of a stack that consists of these queues."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls

    def get_paginator(self, _: str) -> "Stacks":
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        kind = "AWS::SQS::Queue"
        found = [{"ResourceType": kind, "LogicalResourceId": url, "PhysicalResourceId": url} for url in self._urls]
        yield {"StackResourceSummaries": found}


class Sources:
    """The event sources of two queues, of a function and of its alias."""

    def __init__(self, ground: Ground) -> None:
        urls = [ground.aws("sqs").create_queue(QueueName=name)["QueueUrl"] for name in ("critical", "low")]
        ground.resources = Resources(Stacks(urls), ["Tickwheel-dev-Scheduler"])
        iam, self.client = ground.aws("iam"), ground.aws("lambda")
        role = iam.create_role(RoleName="worker", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        self.client.create_function(
            FunctionName="worker", Runtime="python3.13", Role=role, Handler="x.y", Code={"ZipFile": b"x"}, Publish=True
        )

    def add(self, queue: str, function: str) -> str:
        arn = f"arn:aws:sqs:eu-west-1:123456789012:{queue}"
        return self.client.create_event_source_mapping(EventSourceArn=arn, FunctionName=function)["UUID"]


def test_a_queue_whose_source_is_that_of_an_alias_is_read(ground: Ground) -> None:
    sources = Sources(ground)
    sources.client.create_alias(FunctionName="worker", Name="critical", FunctionVersion="1")
    sources.add("critical", "worker:critical")
    sources.add("low", "worker")

    assert deployed.event_sources(ground) == "2 Enabled"


def test_queues_without_a_source_or_with_one_that_is_disabled_are_named(ground: Ground) -> None:
    sources = Sources(ground)
    disabled = sources.add("low", "worker")
    sources.client.update_event_source_mapping(UUID=disabled, Enabled=False)

    with pytest.raises(Wrong, match="critical: no source; low: Disabled; expected: a source each, Enabled"):
        deployed.event_sources(ground)


class Repository:
    """A checkout with two releases, of which `app.py` says the name, and a CDK that writes down what it is asked."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / ".calls"
        for folder in ("tickwheel", "infra", "tests/e2e", ".venv/bin", ".tools/node/bin", ".tools/node_modules/.bin"):
            (root / folder).mkdir(parents=True)
        for tool in (".venv/bin/python", ".tools/node/bin/node"):
            (root / tool).touch()
        self.cdk_fails("nothing")
        for file in ("tickwheel/kept", "infra/kept", "cdk.json"):
            (root / file).touch()
        (root / "app.py").write_text("before")
        self._git("init", "-q")
        self._git("add", "app.py", "cdk.json", "tickwheel", "infra")
        self._git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "before")
        (root / "tests/e2e/previous_release.txt").write_text(self._git("rev-parse", "HEAD"))
        (root / "app.py").write_text("this")

    def cdk_fails(self, *calls: str) -> None:
        """For these, as the shell matches them."""
        cdk = self.root / ".tools/node_modules/.bin/cdk"
        cdk.write_text(CDK.format(log=self.log, fails="|".join(calls)))
        cdk.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def _git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The one that is deployed from: it has to be there before the ground."""
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path)


def test_jobs_wait_while_the_release_before_is_deployed_over_this_one_and_this_one_over_that(
    repository: Repository, ground: Ground
) -> None:
    seen = patience.rolled_back(ground)

    assert "fired after the way back and forth" in seen
    assert repository.calls == [
        "before: list --context stage=dev --no-notices",
        f"before: {SCHEDULER}",
        f"this: {SCHEDULER}",
    ]


def test_without_the_commit_of_the_release_before_nothing_is_deployed_and_the_reason_is_told(
    repository: Repository, server: ApiServer
) -> None:
    with mock_aws():
        ground = Ground(DEV, {"region_name": "eu-west-1"}, endpoint=server.url, previous="v0.0.9")

        with pytest.raises(NotPossible, match=r"v0\.0\.9, is not in this repository's history .*--previous"):
            patience.rolled_back(ground)
        ground.close()

    assert repository.calls == []


def test_a_release_before_that_does_not_know_the_stage_is_not_deployed(repository: Repository, ground: Ground) -> None:
    repository.cdk_fails('"before: list"*')

    with pytest.raises(NotPossible, match=r"cannot deploy dev: .*no such stage"):
        patience.rolled_back(ground)

    assert [call for call in repository.calls if "deploy" in call] == []


def test_this_release_is_deployed_again_at_the_end_of_a_run_that_stopped_half_way(
    repository: Repository, ground: Ground
) -> None:
    repository.cdk_fails('"before: deploy"*')
    with pytest.raises(Wrong, match="`cdk deploy`"):
        patience.rolled_back(ground)

    ground.clean_up()

    assert repository.calls[-1] == f"this: {SCHEDULER}"
