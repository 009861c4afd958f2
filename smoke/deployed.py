"""What was deployed, as AWS tells it: nothing runs, and nothing is changed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from doctor.account import Account
from doctor.check import Level
from doctor.examine import examine
from functions.domain.jobs.submission_queues import refused_name
from smoke.check import Check, Phase
from smoke.faults import Wrong
from smoke.ground import Ground
from testkit.deployment import FUNCTIONS

_CONSUMERS = ("Worker", "DeadLetters")


@partial(Check, name="account", phase=Phase.LOOKS, is_quick=True)
def account(ground: Ground) -> str:
    """The account is prepared as `tickwheel doctor` asks; what it warns of is told, and passes."""
    found = examine(ground.stage, account=Account(**ground.options)).checks
    refused = [check for check in found if check.level is Level.REFUSED]
    if refused:
        raise Wrong("; ".join(map(str, refused)), expected="what `tickwheel doctor` calls ok or warns of")
    warnings = [
        f"warning: {check.name}: {check.seen}, needed {check.needed}" for check in found if check.level is Level.WARNING
    ]
    who = [check.seen for check in found if check.name in ("caller", "region")]
    return "; ".join([*who, *warnings])


@partial(Check, name="functions", phase=Phase.LOOKS, is_quick=True)
def functions(ground: Ground) -> str:
    """Each function can be invoked, and its last update has ended."""
    seen = {name: _state_of(ground, name) for name in FUNCTIONS}
    wrong = {name: state for name, state in seen.items() if state != "Active, Successful"}
    if wrong:
        raise Wrong(wrong, expected="Active, Successful")
    return f"{len(seen)} Active, Successful"


@partial(Check, name="event sources", phase=Phase.LOOKS, is_quick=True)
def event_sources(ground: Ground) -> str:
    """Every queue has a source that brings its messages, to a function or to an alias of one. Its owner reads that of refused ones."""
    refused = {refused_name(ground.stage.name, tenant) for tenant in ground.stage.submission_queues}
    queues = {url.rpartition("/")[2]: url for _, url in ground.resources.all("AWS::SQS::Queue")}
    found = {name: _states_of_sources(ground, url) for name, url in queues.items() if name not in refused}
    wrong = {name: ", ".join(states) or "no source" for name, states in found.items() if states != ["Enabled"]}
    if wrong or not found:
        raise Wrong("; ".join(f"{name}: {state}" for name, state in wrong.items()), expected="a source each, Enabled")
    return f"{len(found)} Enabled"


@partial(
    Check,
    name="recursion config",
    phase=Phase.LOOKS,
    is_quick=True,
    needs_aws="the local cloud ignores RecursiveLoop of a template, and counts chains by itself",
)
def recursion(ground: Ground) -> str:
    """Functions that send themselves messages on purpose may."""
    client = ground.aws("lambda")
    found = {
        name: client.get_function_recursion_config(FunctionName=ground.function(name)).get("RecursiveLoop")
        for name in _CONSUMERS
    }
    if set(found.values()) != {"Allow"}:
        raise Wrong(found, expected="Allow")
    return "Allow, of " + " and ".join(found)


@partial(Check, name="rules and permissions", phase=Phase.LOOKS, is_quick=True)
def rules(ground: Ground) -> str:
    """Every rule is enabled, and its function or queue lets it in by its name."""
    found = [physical.rpartition("|") for _, physical in ground.resources.all("AWS::Events::Rule")]
    targets = 0
    for bus, _, name in found:
        of_bus = {"EventBusName": bus} if bus else {}
        rule = ground.aws("events").describe_rule(Name=name, **of_bus)
        if rule["State"] != "ENABLED":
            raise Wrong(f"{name} is {rule['State']}", expected="ENABLED")
        for target in ground.aws("events").list_targets_by_rule(Rule=name, **of_bus)["Targets"]:
            targets += 1
            if not is_let_in(ground, rule["Arn"], target["Arn"]):
                raise Wrong(
                    f"{rule['Arn']}, and {list(_sources_allowed(ground, target['Arn']))}",
                    expected="a permission of its target that matches the rule",
                )
    return f"{len(found)} rules ENABLED with {targets} targets that let them in"


def is_let_in(ground: Ground, rule: str, target: str) -> bool:
    """Whether the policy of a function or a queue has a permission for a rule, both by their ARNs."""
    return any(fnmatchcase(rule, pattern) for pattern in _sources_allowed(ground, target))


@partial(
    Check,
    name="audit stream",
    phase=Phase.LOOKS,
    is_quick=True,
    needs_aws="the local cloud's streams are always active",
)
def audit_stream(ground: Ground) -> str:
    """Lines of the audit trail are taken."""
    ((_, name),) = ground.resources.all("AWS::KinesisFirehose::DeliveryStream")
    described = ground.aws("firehose").describe_delivery_stream(DeliveryStreamName=name)
    status = described["DeliveryStreamDescription"]["DeliveryStreamStatus"]
    if status != "ACTIVE":
        raise Wrong(status, expected="ACTIVE")
    return status


@partial(Check, name="clocks", phase=Phase.LOOKS, is_quick=True)
def clocks(ground: Ground) -> str:
    """This machine, the stage and AWS agree about the time, far within the skew that the wheel allows."""
    before = time.time()
    at = ground.client.health().at.timestamp()
    after = time.time()
    answer = ground.aws("sts").get_caller_identity()["ResponseMetadata"]
    offsets = {"stage": at - (before + after) / 2, "round trip": after - before}
    date = answer["HTTPHeaders"].get("date", "")
    skew = ground.stage.wheel.skew.total_seconds()
    if abs(offsets["stage"]) > skew / 2 + offsets["round trip"]:
        raise Wrong(f"{offsets['stage']:+.2f} s", expected=f"within {skew / 2:g} s")
    return f"stage {offsets['stage']:+.2f} s, with a round trip of {offsets['round trip']:.2f} s; AWS says {date}"


def _state_of(ground: Ground, name: str) -> str:
    found = ground.aws("lambda").get_function_configuration(FunctionName=ground.function(name))
    return f"{found.get('State')}, {found.get('LastUpdateStatus')}"


def _states_of_sources(ground: Ground, queue: str) -> list[str]:
    # By the queue: the name of a function may leave out the sources of its aliases, AWS does not say that it has them.
    # https://docs.aws.amazon.com/lambda/latest/api/API_ListEventSourceMappings.html
    asked = ground.aws("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    paginator = ground.aws("lambda").get_paginator("list_event_source_mappings")
    pages = paginator.paginate(EventSourceArn=asked["Attributes"]["QueueArn"])
    return [found["State"] for page in pages for found in page["EventSourceMappings"]]


def _sources_allowed(ground: Ground, target: str) -> Iterator[str]:
    try:
        policy = _policy_of(ground, target)
    except ClientError as error:
        raise Wrong(f"{target} has no policy: {error}", expected="a permission for its rules") from None
    statements: list[dict[str, Any]] = json.loads(policy)["Statement"]
    for statement in statements:
        if statement.get("Principal") == {"Service": "events.amazonaws.com"}:
            for values in statement["Condition"].values():
                for key, sources in values.items():
                    # Keys of conditions are the same in any case
                    # (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition.html).
                    if key.lower() == "aws:sourcearn":
                        yield from [sources] if isinstance(sources, str) else sources


def _policy_of(ground: Ground, target: str) -> str:
    if target.split(":")[2] == "sqs":
        url = ground.aws("sqs").get_queue_url(QueueName=target.rpartition(":")[2])["QueueUrl"]
        asked = ground.aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
        return asked.get("Attributes", {}).get("Policy", '{"Statement": []}')
    return ground.aws("lambda").get_policy(FunctionName=target)["Policy"]


CHECKS = (account, functions, event_sources, recursion, rules, audit_stream, clocks)
