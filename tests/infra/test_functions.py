from collections.abc import Callable
from importlib.util import find_spec

import pytest

from infra.stage import Stage
from scripts.synthesis import FUNCTIONS, Templates

NAMED_BY_AWS = {
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Lambda::LayerVersion": "LayerName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SQS::Queue": "QueueName",
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_small_traced_and_logs_to_a_group_of_its_own(function: str, dev: Templates) -> None:
    properties = dev.functions()[function]["Properties"]
    assert properties["Handler"] == f"functions.{function}.handler.handler"
    assert (properties["Runtime"], properties["Architectures"]) == ("python3.13", ["arm64"])
    ticked = function in ("scanner", "sweeper", "operations")
    assert properties["TracingConfig"] == {"Mode": "PassThrough" if ticked else "Active"}
    assert len(properties["Layers"]) == 1
    group = dev.of_type("AWS::Logs::LogGroup")[properties["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Properties"]["RetentionInDays"] == 7


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_a_stage_without_traces_begins_none(
    function: str, templates_of: Callable[[Stage], Templates]
) -> None:
    templates = templates_of(Stage.named("small"))
    assert templates.functions()[function]["Properties"]["TracingConfig"] == {"Mode": "PassThrough"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_handler_is_in_the_zip(function: str) -> None:
    assert find_spec(f"functions.{function}.handler") is not None


def test_nothing_reserves_concurrency_because_a_new_account_has_ten(templates: Templates) -> None:
    for function in templates.functions().values():
        assert "ReservedConcurrentExecutions" not in function["Properties"]


def test_no_resource_has_a_physical_name_unless_aws_asks_for_one(templates: Templates) -> None:
    named = {
        resource["Properties"][attribute]
        for kind, attribute in NAMED_BY_AWS.items()
        for resource in templates.of_type(kind).values()
        if attribute in resource["Properties"]
    }
    assert named == {f"/aws/vendedlogs/Tickwheel-{templates.environment('api')['STAGE']}-Scheduler/api"}


def test_the_longest_attempt_leaves_the_worker_time_to_settle(any_stage: Stage, templates: Templates) -> None:
    timeout = templates.functions()["worker"]["Properties"]["Timeout"]
    assert templates.environment("api")["MAX_TIMEOUT_SECONDS"] == str(timeout - 10)
    assert any_stage.longest_attempt.total_seconds() == timeout - 10


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_on_a_laptop_a_function_waits_longer_for_its_stores(
    function: str, any_stage: Stage, templates: Templates
) -> None:
    assert templates.environment(function).get("PATIENCE") == ("4" if any_stage.emulated else None)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_what_sends_to_its_own_queue_may_loop(function: str, templates: Templates) -> None:
    allowed = "Allow" if function in {"worker", "dead_letters"} else None
    assert templates.functions()[function]["Properties"].get("RecursiveLoop") == allowed
