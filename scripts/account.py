"""Before a stage is deployed: say into which account and region, and refuse what would stop half-way.

`python -m scripts.account STAGE`, with the credentials of whoever deploys. `--where` only says it.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.stage import Stage
from infra.stage_parts import InvalidStage

BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
"""Where `cdk bootstrap` keeps its version: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html"""

OLDEST_BOOTSTRAP = 6
"""What the rule `CheckBootstrapVersion` of every template asks for."""

CONCURRENCY_QUOTA = "L-B99A9384"
"""Of Lambda: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

_SCHEDULER = re.compile(r"Tickwheel-([a-z0-9]+)-Scheduler")

_NO_CREDENTIALS = """\
AWS does not know who deploys: {error}.
Log in (`aws sso login`, or AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), choose a region with AWS_REGION, and ask again."""


def main(arguments: list[str]) -> int:
    """Answer 0 where the deployment may begin."""
    only_where = "--where" in arguments
    try:
        stage = Stage.named(next(each for each in arguments if not each.startswith("--")))
        region, account = _announce(stage)
    except InvalidStage as error:
        return _refuse(str(error))
    except (BotoCoreError, ClientError) as error:
        return _refuse(_NO_CREDENTIALS.format(error=error))
    if only_where:
        return 0
    try:
        refusals = list(_refusals(region, account))
        for warning in _warnings(stage):
            print(f"warning: {warning}")
    except ClientError as error:  # who may deploy may not be allowed to look
        print(f"warning: the account could not be checked: {error}")
        return 0
    return _refuse(*refusals)


def _refuse(*sentences: str) -> int:
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


def _announce(stage: Stage) -> tuple[str, str]:
    session = boto3.Session()
    caller = session.client("sts").get_caller_identity()
    region = session.client("sts").meta.region_name
    print(f"stage {stage.name}, account {caller['Account']}, region {region}, as {caller['Arn']}")
    return region, caller["Account"]


def _refusals(region: str, account: str) -> Iterator[str]:
    ssm = boto3.client("ssm")
    try:
        version = int(ssm.get_parameter(Name=BOOTSTRAP)["Parameter"].get("Value", "0"))
    except ssm.exceptions.ParameterNotFound:
        yield f"account {account} is not prepared for the CDK in {region}: run `make bootstrap` once, then deploy again"
        return
    if version < OLDEST_BOOTSTRAP:
        yield (
            f"the CDK's bootstrap stack of account {account} in {region} has version {version}, and {OLDEST_BOOTSTRAP} is needed: "
            "run `make bootstrap`, which renews it"
        )


def _warnings(stage: Stage) -> Iterator[str]:
    others = [name for name in _stages_deployed() if name != stage.name]
    if others:
        yield f"this account has other stages here: {', '.join(others)}. They share its quotas, and nothing else"
    quota = boto3.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    if stage.concurrency > quota:
        yield (
            f"{stage.name} runs up to {stage.concurrency} functions at once, and this account {quota}: jobs will be late when all are "
            "busy. Ask for more: `aws service-quotas request-service-quota-increase --service-code lambda "
            f"--quota-code {CONCURRENCY_QUOTA} --desired-value {max(1_000, stage.concurrency)}`"
        )


def _stages_deployed() -> Iterator[str]:
    pages: Any = boto3.client("cloudformation").get_paginator("describe_stacks").paginate()
    for stack in (stack for page in pages for stack in page["Stacks"]):
        if found := _SCHEDULER.fullmatch(stack["StackName"]):
            yield found[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
