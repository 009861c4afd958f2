from typing import Any

import pytest

from tests.infra.synthesis import FUNCTIONS, Templates

LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
TRACES = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]

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
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"],
        "schedulestate": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "payloads": ["s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"],
        "ready": ["sqs:SendMessage"],
    },
    "scanner": {
        "timers": ["dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:Query"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:BatchGetItem"],
        "schedulestate": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
        "ready": ["sqs:SendMessage"],
    },
    "worker": {
        "timers": ["dynamodb:PutItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
        "payloads": ["s3:DeleteObject", "s3:GetObject", "s3:ListBucket"],
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
        "shards": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "ready": ["sqs:SendMessage"],
    },
    "dead_letters": {
        "timers": ["dynamodb:PutItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
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


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def subject_of(resource: Any) -> str:
    """The short name of what an ARN in a template points at."""
    text = str(resource)
    if text == "*":
        return "*"
    if "Ready" in text:
        return "ready_dead" if "Dead" in text else "ready"
    if "Logs" in text:
        return "logs"
    subjects = ("Timers", "Ledger", "ScheduleState", "Schedules", "Tenants", "Shards", "DeadLetters", "Payloads")
    return next(subject for subject in subjects if subject in text.rsplit("Storage", maxsplit=1)[-1]).lower()


def grants_of(function: str, templates: Templates) -> dict[str, list[str]]:
    grants: dict[str, set[str]] = {}
    for statement in templates.statements(function):
        assert statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"]):
            grants.setdefault(subject_of(resource), set()).update(listed(statement["Action"]))
    return {subject: sorted(actions) for subject, actions in grants.items()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_and_no_more(function: str, templates: Templates) -> None:
    assert grants_of(function, templates) == GRANTS[function] | {"logs": LOGS, "*": TRACES}


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
