import dataclasses
from typing import Any

import pytest

from infra.stage import Stage
from scripts.least_privilege.policies import role_of
from scripts.synthesis import FUNCTIONS, Templates, synthesise

TRACES = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_worker_may_call_exactly_the_arns_that_its_stage_allows() -> None:
    function = "arn:aws:lambda:eu-west-1:123456789012:function:billing"
    targets = ("https://*", function, f"{function}-live:live", "arn:aws:sqs:*:*:billing-*")
    templates = synthesise(dataclasses.replace(Stage.named("dev"), targets=targets))

    granted: dict[str, set[str]] = {}
    for grant in role_of("worker", templates).grants:
        granted.setdefault(grant.resource, set()).add(grant.action)

    assert {arn: sorted(actions) for arn, actions in granted.items() if arn.startswith("arn:")} == {
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


def test_no_role_has_a_managed_policy_and_only_its_service_assumes_it_but_for_operators(templates: Templates) -> None:
    operator = operator_of(templates)
    for name, role in templates.of_type("AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role["Properties"]
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        if name.startswith("AuditStreamRole"):
            assert statement["Principal"] == {"Service": "firehose.amazonaws.com"}
            assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": {"Ref": "AWS::AccountId"}}}
        elif name != operator:
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
