"""The bucket of files of jobs: who may do what with it, and that a stage without it has nothing of it."""

import dataclasses
import json
from typing import Any

import pytest

from functions.domain.jobs.submission_files import LIFE
from infra.stage import OWN_KEY, Stage
from infra.stage_parts import InvalidStage
from scripts.check_templates import lint
from scripts.check_templates import synthesise as synthesise_and_check
from scripts.least_privilege.calls import kept
from scripts.least_privilege.report import reports_of
from scripts.synthesis import Templates, synthesise

STAGE = dataclasses.replace(Stage.named("dev"), submission_files=True)


@pytest.fixture(scope="module")
def filing() -> Templates:
    return synthesise(STAGE)


def test_a_stage_without_files_has_no_bucket_no_queue_and_no_poller_for_them(dev: Templates) -> None:
    assert not [name for name in dev.of_type("AWS::S3::Bucket") if name.startswith("Files")]
    assert not [name for name in dev.of_type("AWS::Lambda::EventSourceMapping") if name.startswith("Files")]
    environment = dev.environment("api")
    assert (environment["FILES_BUCKET"], environment["SUBMISSION_QUEUE_URLS"]) == ("[]", "[]")


def test_what_is_put_below_submissions_is_a_message_and_nothing_else_is(filing: Templates) -> None:
    (bucket,) = (
        each["Properties"] for name, each in filing.of_type("AWS::S3::Bucket").items() if name.startswith("Files")
    )
    (rule,) = (each for name, each in filing.of_type("AWS::Events::Rule").items() if name.startswith("FilesRule"))
    pattern = rule["Properties"]["EventPattern"]

    assert bucket["NotificationConfiguration"] == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    assert bucket["PublicAccessBlockConfiguration"]["RestrictPublicBuckets"] is True
    assert LIFE.days in [rule.get("ExpirationInDays") for rule in bucket["LifecycleConfiguration"]["Rules"]]
    # What the function itself puts makes no message: it would read its own results.
    assert pattern["detail"]["object"] == {"key": [{"prefix": "submissions/"}]}
    assert len(pattern["detail"]["bucket"]["name"]) == 1


def test_nobody_but_the_rule_of_the_bucket_may_send_by_the_policy_of_the_queue(filing: Templates) -> None:
    statements = [
        statement
        for name, policy in filing.of_type("AWS::SQS::QueuePolicy").items()
        if name.startswith("Files")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    (statement,) = statements
    assert (statement["Action"], statement["Principal"]) == ("sqs:SendMessage", {"Service": "events.amazonaws.com"})
    assert list(statement["Condition"]) == ["ArnEquals", "StringEquals"]


def test_the_function_may_do_what_it_does_with_files_and_no_more(filing: Templates) -> None:
    assert [finding for report in reports_of(filing, kept()) for finding in report.findings] == []
    assert not [
        statement
        for statement in filing.statements("api")
        if "s3:PutObject" in json.dumps(statement["Action"]) and "submissions" in json.dumps(statement["Resource"])
    ]


def test_its_source_has_a_turn_an_invocation_and_is_counted(filing: Templates) -> None:
    (source,) = (
        each["Properties"]
        for name, each in filing.of_type("AWS::Lambda::EventSourceMapping").items()
        if name.startswith("Files")
    )
    assert (source["BatchSize"], source["ScalingConfig"]["MaximumConcurrency"]) == (1, 2)
    assert STAGE.concurrency == Stage.named("dev").concurrency + 2


def test_files_take_the_place_of_a_queue_in_the_environment() -> None:
    with pytest.raises(InvalidStage, match="use at most 4"):
        dataclasses.replace(STAGE, submission_queues={f"t{number}": ("*",) for number in range(5)})


def test_a_stage_with_files_and_a_key_is_clean(tmp_path: Any) -> None:
    lint(synthesise_and_check(dataclasses.replace(STAGE, customer_key=OWN_KEY), into=tmp_path))
