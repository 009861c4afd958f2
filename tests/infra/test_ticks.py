import dataclasses
import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from infra.stage import LONGEST_NAME, Stage
from scripts.synthesis import Templates

RESOURCE_LIMIT = 500
BYTES_LIMIT = 1_000_000

LONGEST_RULE_NAME = 64
"""https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html"""


@pytest.fixture(scope="session")
def large(templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(Stage.named("scale"))


def targets_of(function: str, templates: Templates) -> list[dict[str, Any]]:
    arn = next(
        {"Fn::GetAtt": [name, "Arn"]}
        for name, resource in templates.of_type("AWS::Lambda::Function").items()
        if resource is templates.functions()[function]
    )
    return [
        target
        for rule in templates.of_type("AWS::Events::Rule").values()
        for target in rule["Properties"]["Targets"]
        if target["Arn"] == arn
    ]


def test_512_shards_fit_into_a_stack_with_one_permission(large: Templates) -> None:
    assert len(large.scheduler["Resources"]) < RESOURCE_LIMIT
    assert len(json.dumps(large.scheduler)) < BYTES_LIMIT
    permissions = [
        permission["Properties"]
        for permission in large.of_type("AWS::Lambda::Permission").values()
        if permission["Properties"]["Principal"] == "events.amazonaws.com"
    ]
    assert len(permissions) == 3  # one for the scanner, one for the sweeper, one for the operations


def test_every_shard_is_ticked_once(large: Templates) -> None:
    inputs = [json.loads(target["Input"]) for target in targets_of("scanner", large)]
    assert inputs == [{"shard": shard} for shard in range(512)]


@pytest.mark.parametrize("function", ["sweeper", "operations"])
def test_what_sees_the_whole_stage_is_ticked_once(function: str, templates: Templates) -> None:
    assert [json.loads(target["Input"]) for target in targets_of(function, templates)] == [{}]


def test_a_rule_fires_each_minute_for_at_most_five_targets(large: Templates) -> None:
    for rule in large.of_type("AWS::Events::Rule").values():
        assert rule["Properties"]["ScheduleExpression"] == "rate(1 minute)"
        assert len(rule["Properties"]["Targets"]) <= 5


def test_a_tick_is_never_repeated_and_never_late(templates: Templates) -> None:
    for function in ("scanner", "sweeper", "operations"):
        for target in targets_of(function, templates):
            assert target["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    configured = [config["Properties"] for config in templates.of_type("AWS::Lambda::EventInvokeConfig").values()]
    assert [(config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) for config in configured] == [
        (0, 60),
        (0, 60),
        (0, 60),
    ]


def test_the_permission_covers_every_rule_of_its_stage_and_no_other(large: Templates) -> None:
    patterns = [
        "".join(permission["Properties"]["SourceArn"]["Fn::Join"][1][-1:]).split("rule/")[1]
        for permission in large.of_type("AWS::Lambda::Permission").values()
        if permission["Properties"]["Principal"] == "events.amazonaws.com"
    ]
    for rule in large.of_type("AWS::Events::Rule").values():
        name = rule["Properties"]["Name"]
        assert sum(fnmatchcase(name, pattern) for pattern in patterns) == 1
        assert not any(fnmatchcase(name.replace("-scale-", "-dev-"), pattern) for pattern in patterns)


def test_no_name_of_a_rule_is_too_long_for_eventbridge(templates_of: Callable[[Stage], Templates]) -> None:
    longest = dataclasses.replace(Stage.named("dev"), name="a" * LONGEST_NAME)
    names = [rule["Properties"]["Name"] for rule in templates_of(longest).of_type("AWS::Events::Rule").values()]
    assert len(set(names)) == len(names) > 2
    assert max(map(len, names)) <= LONGEST_RULE_NAME
