import dataclasses
from typing import Any

import pytest

from infra.stage import Stage
from tests.infra.synthesis import FUNCTIONS, Templates, synthesise

LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
TRACES = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]

MARKS = ["dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"]
"""What every function needs of the tenants table that puts jobs into the far ring."""

GRANTS = {
    "api": {
        "timers": ["dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem"],
        "ledger": [
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        ],
        "shards": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"],
        "schedulestate": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": [
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        ],
        "tenants": [
            *MARKS,
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        ],
        "operations": ["lambda:InvokeFunction"],
        "payloads": ["s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"],
        "webhookkeys": ["secretsmanager:GetSecretValue"],
        "ready": ["sqs:SendMessage"],
    },
    "scanner": {
        "timers": ["dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:Query"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:BatchGetItem"],
        "schedulestate": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
        "tenants": [*MARKS, "dynamodb:GetItem", "dynamodb:Query"],
        "ready": ["sqs:SendMessage"],
    },
    "worker": {
        "timers": ["dynamodb:PutItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
        "tenants": [*MARKS, "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem"],
        "payloads": ["s3:DeleteObject", "s3:GetObject", "s3:ListBucket"],
        "webhookkeys": ["secretsmanager:GetSecretValue"],
        "ready": [
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
            "sqs:SendMessage",
        ],
    },
    "sweeper": {
        "timers": ["dynamodb:PutItem", "dynamodb:Query"],
        "schedules": ["dynamodb:GetItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:Scan", "dynamodb:UpdateItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem"],
        "shards": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
        "tenants": MARKS,
        "ready": ["sqs:GetQueueAttributes", "sqs:SendMessage"],
    },
    "operations": {
        "timers": ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "tenants": [*MARKS, "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
        "payloads": ["s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"],
        "ready": ["sqs:SendMessage"],
    },
    "dead_letters": {
        "timers": ["dynamodb:PutItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
        "tenants": MARKS,
        "ready": ["sqs:SendMessage"],
        "ready_dead": [
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
        ],
    },
}
"""What each function may do, to what; nothing else is granted to anybody."""


LOCAL_TARGETS = {
    "arn:aws:lambda:*:000000000000:function:*": ["lambda:InvokeFunction"],
    "arn:aws:lambda:*:000000000000:function:*:*": ["lambda:InvokeFunction"],
    "arn:aws:sqs:*:000000000000:*": ["sqs:GetQueueUrl", "sqs:SendMessage"],
    "arn:aws:sns:*:000000000000:*": ["sns:Publish"],
    "arn:aws:events:*:000000000000:event-bus/*": ["events:PutEvents"],
    "arn:aws:states:*:000000000000:stateMachine:*": ["states:StartExecution"],
    "arn:aws:states:*:000000000000:stateMachine:*:*": ["states:StartExecution"],
}
"""What jobs of the local stage may call, and so its worker; the other stages allow no ARN."""


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def subject_of(resource: Any) -> str:
    """The short name of what an ARN in a template points at."""
    text = str(resource)
    if text == "*" or text.startswith("arn:"):
        return text
    if "Ready" in text:
        return "ready_dead" if "Dead" in text else "ready"
    if "Logs" in text:
        return "logs"
    if "OperationsFunction" in text:
        return "operations"
    subjects = (
        "Timers",
        "Ledger",
        "ScheduleState",
        "Schedules",
        "Tenants",
        "Shards",
        "DeadLetters",
        "Payloads",
        "WebhookKeys",
    )
    return next(subject for subject in subjects if subject in text.rsplit("Storage", maxsplit=1)[-1]).lower()


def grants_of(function: str, templates: Templates) -> dict[str, list[str]]:
    grants: dict[str, set[str]] = {}
    for statement in templates.statements(function):
        assert statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"]):
            grants.setdefault(subject_of(resource), set()).update(listed(statement["Action"]))
    return {subject: sorted(actions) for subject, actions in grants.items()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_and_no_more(function: str, any_stage: Stage, templates: Templates) -> None:
    targets = LOCAL_TARGETS if function == "worker" and any_stage.name == "local" else {}
    expected = GRANTS[function] | targets | {"logs": LOGS, "*": TRACES}
    assert grants_of(function, templates) == {subject: sorted(actions) for subject, actions in expected.items()}


def test_the_worker_may_call_exactly_the_arns_that_its_stage_allows() -> None:
    function = "arn:aws:lambda:eu-west-1:123456789012:function:billing"
    targets = ("https://*", function, f"{function}-live:live", "arn:aws:sqs:*:*:billing-*")
    templates = synthesise(dataclasses.replace(Stage.named("dev"), targets=targets))

    grants = grants_of("worker", templates)

    assert {subject: actions for subject, actions in grants.items() if subject.startswith("arn:")} == {
        function: ["lambda:InvokeFunction"],
        f"{function}:*": ["lambda:InvokeFunction"],
        f"{function}-live:live": ["lambda:InvokeFunction"],
        "arn:aws:sqs:*:*:billing-*": ["sqs:GetQueueUrl", "sqs:SendMessage"],
    }


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_traces_are_granted_on_everything(function: str, templates: Templates) -> None:
    for statement in templates.statements(function):
        assert "*" not in str(statement["Action"])
        if "*" in listed(statement["Resource"]):
            assert sorted(statement["Action"]) == TRACES


def test_no_role_has_a_managed_policy_or_another_principal_than_lambda(templates: Templates) -> None:
    for role in templates.of_type("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"]
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}
