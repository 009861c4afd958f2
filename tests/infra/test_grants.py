import dataclasses
from typing import Any

import pytest

from infra.stage import Stage
from tests.infra.synthesis import FUNCTIONS, Templates, synthesise

LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
TRACES = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]

PLACING = [
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
]
"""What comes before a job is put into the wheel: the mark of its day, its tenant's plan and rate."""

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
        "tenants": [*PLACING, "dynamodb:DeleteItem", "dynamodb:PutItem"],
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
        "tenants": PLACING,
        "ready": ["sqs:SendMessage"],
    },
    "worker": {
        "timers": ["dynamodb:PutItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "deadletters": ["dynamodb:PutItem"],
        "tenants": [*PLACING, "dynamodb:DeleteItem", "dynamodb:PutItem"],
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
        "tenants": PLACING,
        "ready": ["sqs:GetQueueAttributes", "sqs:SendMessage"],
    },
    "operations": {
        "timers": [
            "dynamodb:BatchWriteItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
        ],
        "ledger": [
            "dynamodb:BatchGetItem",
            "dynamodb:BatchWriteItem",
            "dynamodb:GetItem",
            "dynamodb:Scan",
            "dynamodb:UpdateItem",
        ],
        "schedules": ["dynamodb:BatchWriteItem", "dynamodb:Query"],
        "schedulestate": [
            "dynamodb:BatchWriteItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:Scan",
        ],
        "deadletters": ["dynamodb:BatchWriteItem", "dynamodb:Query"],
        "shards": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "tenants": [*PLACING, "dynamodb:DeleteItem", "dynamodb:PutItem"],
        "payloads": ["s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"],
        "ready": ["sqs:SendMessage"],
    },
    "dead_letters": {
        "timers": ["dynamodb:PutItem"],
        "ledger": ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"],
        "schedules": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "schedulestate": ["dynamodb:GetItem", "dynamodb:UpdateItem"],
        "shards": ["dynamodb:GetItem"],
        "deadletters": ["dynamodb:PutItem"],
        "tenants": PLACING,
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


def test_no_role_has_a_managed_policy_and_lambda_assumes_all_but_the_operators(templates: Templates) -> None:
    operator = operator_of(templates)
    for name, role in templates.of_type("AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role["Properties"]
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        if name != operator:
            assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_operators_are_whom_the_account_lets_be_and_may_call_the_api_and_nothing_else(templates: Templates) -> None:
    operator = operator_of(templates)
    (trust,) = templates.of_type("AWS::IAM::Role")[operator]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    (policy,) = (
        policy["Properties"]["PolicyDocument"]
        for policy in templates.of_type("AWS::IAM::Policy").values()
        if {"Ref": operator} in policy["Properties"]["Roles"]
    )
    (statement,) = policy["Statement"]
    (api,) = templates.of_type("AWS::ApiGatewayV2::Api")

    assert trust["Principal"]["AWS"]["Fn::Join"][1][-2:] == [{"Ref": "AWS::AccountId"}, ":root"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "execute-api:Invoke")
    assert statement["Resource"]["Fn::Join"][1][-2:] == [{"Ref": api}, "/*/*/*"]


def operator_of(templates: Templates) -> str:
    """The logical id of the role of the operators."""
    return templates.scheduler["Outputs"]["OperatorRoleArn"]["Value"]["Fn::GetAtt"][0]
