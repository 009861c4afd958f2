"""Names that we give are no longer than AWS takes: CloudFormation cuts some of its own, and none of ours."""

from __future__ import annotations

import json
from typing import Any

from scripts.synthesis import Templates

LONGEST = {
    # https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html
    ("AWS::Events::Rule", "Name"): 64,
    # https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html
    ("AWS::Lambda::Function", "FunctionName"): 64,
    # https://docs.aws.amazon.com/lambda/latest/api/API_CreateAlias.html
    ("AWS::Lambda::Alias", "Name"): 128,
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
    ("AWS::SQS::Queue", "QueueName"): 80,
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    ("AWS::IAM::Role", "RoleName"): 64,
    # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateTable.html
    ("AWS::DynamoDB::Table", "TableName"): 255,
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    ("AWS::S3::Bucket", "BucketName"): 63,
    # https://docs.aws.amazon.com/firehose/latest/APIReference/API_CreateDeliveryStream.html
    ("AWS::KinesisFirehose::DeliveryStream", "DeliveryStreamName"): 64,
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
    ("AWS::CloudWatch::Alarm", "AlarmName"): 255,
    ("AWS::CloudWatch::CompositeAlarm", "AlarmName"): 255,
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    # https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html
    ("AWS::SNS::Topic", "TopicName"): 256,
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutQueryDefinition.html
    ("AWS::Logs::QueryDefinition", "Name"): 255,
    # https://docs.aws.amazon.com/athena/latest/APIReference/API_WorkGroup.html
    ("AWS::Athena::WorkGroup", "Name"): 128,
    # https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateAlias.html
    ("AWS::KMS::Alias", "AliasName"): 256,
    # https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis.html
    ("AWS::ApiGatewayV2::Api", "Name"): 128,
    ("AWS::ApiGatewayV2::Stage", "StageName"): 128,
    # https://docs.aws.amazon.com/IAM/latest/APIReference/API_PutRolePolicy.html
    ("AWS::IAM::Policy", "PolicyName"): 128,
}

# Of what is a name only beside another: a column, a partition, a saved query of a workgroup.
UNBOUNDED = {"AWS::Glue::Table", "AWS::Glue::Database", "AWS::Athena::NamedQuery", "AWS::ApiGatewayV2::Authorizer"}

LONGEST_ACCOUNT, LONGEST_REGION = 12, len("ap-southeast-1")
"""What stands in the place of `AWS::AccountId` and `AWS::Region`."""


def longest(name: Any) -> int:
    """How long a name may become that is put together when it is deployed."""
    if isinstance(name, str):
        return len(name)
    match name:
        case {"Ref": "AWS::AccountId"}:
            return LONGEST_ACCOUNT
        case {"Ref": "AWS::Region"}:
            return LONGEST_REGION
        case {"Fn::Join": [separator, parts]}:
            return sum(map(longest, parts)) + len(separator) * (len(parts) - 1)
        case _:
            raise AssertionError(f"how long may this become? {json.dumps(name)}")


def test_each_name_that_a_stage_gives_is_as_long_as_aws_takes_it_or_shorter(templates: Templates) -> None:
    for template in (templates.storage, templates.scheduler):
        for logical_id, resource in template["Resources"].items():
            for (kind, field), most in LONGEST.items():
                name = resource.get("Properties", {}).get(field) if resource["Type"] == kind else None
                assert name is None or longest(name) <= most, f"{logical_id}: {name}"


def test_whatever_has_a_name_has_a_limit_here(templates: Templates) -> None:
    named = {
        (resource["Type"], field)
        for template in (templates.storage, templates.scheduler)
        for resource in template["Resources"].values()
        for field in resource.get("Properties", {})
        if field == "Name"
        or (field.endswith("Name") and field.removesuffix("Name") in resource["Type"].split("::")[-1])
    }

    assert {each for each in named if each[0] not in UNBOUNDED} <= set(LONGEST)
