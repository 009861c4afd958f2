"""Over every resource of every stage: what nobody outside may reach, and nobody may read on the way."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from infra.stage import OWN_KEY, STAGES, Stage
from infra.stage_parts import Jwt
from scripts.synthesis import ROOT, Templates

JWT = Jwt(issuer="https://login.example.com/", audience=("tickwheel",), tenant_claim="tenant")
VARIANTS = {stage.name: stage for stage in STAGES} | {
    "dev with a key and tokens": dataclasses.replace(Stage.named("dev"), customer_key=OWN_KEY, jwt=JWT)
}
NOT_OVER_TLS = {"Bool": {"aws:SecureTransport": "false"}}
POLICIES = {
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::S3::BucketPolicy": ("PolicyDocument", "Bucket"),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", "Topics"),
    "AWS::SecretsManager::ResourcePolicy": ("ResourcePolicy", "SecretId"),
}
"""Policies of things, and what names the things."""

EVERY_ACTION = {"AWS::SQS::Queue": "sqs:*", "AWS::S3::Bucket": "s3:*", "AWS::SNS::Topic": "sns:Publish"}
"""What is refused without TLS, where a policy can say so."""


@pytest.fixture(scope="module", params=VARIANTS)
def all_of_it(request: pytest.FixtureRequest, templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(VARIANTS[request.param])


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def policies(templates: Templates) -> Iterator[tuple[list[Any], list[dict[str, Any]]]]:
    """The things that a policy is of, and its statements."""
    for kind, (document, things) in POLICIES.items():
        for policy in templates.of_type(kind).values():
            properties = policy["Properties"]
            yield listed(properties[things]), properties[document]["Statement"]


def is_anybody(principal: Any) -> bool:
    return "*" in listed(principal["AWS"] if isinstance(principal, dict) and "AWS" in principal else principal)


@pytest.mark.parametrize("kind", EVERY_ACTION)
def test_every_queue_bucket_and_topic_refuses_whoever_comes_without_tls(kind: str, all_of_it: Templates) -> None:
    refusing = [
        thing["Ref"]
        for things, statements in policies(all_of_it)
        for thing in things
        for statement in statements
        if statement["Effect"] == "Deny"
        and is_anybody(statement["Principal"])
        and EVERY_ACTION[kind] in listed(statement["Action"])
        and statement["Condition"] == NOT_OVER_TLS
    ]
    assert set(all_of_it.of_type(kind)) <= set(refusing)
    assert all_of_it.of_type(kind)


def test_what_is_refused_of_a_bucket_is_the_bucket_and_every_object(all_of_it: Templates) -> None:
    for policy in all_of_it.of_type("AWS::S3::BucketPolicy").values():
        bucket = policy["Properties"]["Bucket"]["Ref"]
        arn = {"Fn::GetAtt": [bucket, "Arn"]}
        (deny,) = [
            each
            for each in policy["Properties"]["PolicyDocument"]["Statement"]
            if each.get("Condition") == NOT_OVER_TLS
        ]
        assert deny["Resource"] == [arn, {"Fn::Join": ["", [arn, "/*"]]}]


def test_no_policy_lets_anybody_in(all_of_it: Templates) -> None:
    keys = [key["Properties"]["KeyPolicy"]["Statement"] for key in all_of_it.of_type("AWS::KMS::Key").values()]
    for statements in [*(statements for _, statements in policies(all_of_it)), *keys]:
        for statement in statements:
            assert statement["Effect"] == "Deny" or not is_anybody(statement["Principal"])
            assert "NotPrincipal" not in statement


def test_services_are_let_in_for_this_account_or_this_thing_alone(all_of_it: Templates) -> None:
    keys = [key["Properties"]["KeyPolicy"]["Statement"] for key in all_of_it.of_type("AWS::KMS::Key").values()]
    for statements in [*(statements for _, statements in policies(all_of_it)), *keys]:
        for statement in statements:
            if statement["Effect"] == "Allow" and "Service" in statement["Principal"]:
                assert "AccountId" in json.dumps(statement["Condition"])
    for permission in all_of_it.of_type("AWS::Lambda::Permission").values():
        assert permission["Properties"]["Principal"].endswith(".amazonaws.com")
        assert "SourceArn" in permission["Properties"]


def test_no_bucket_can_be_made_public(all_of_it: Templates) -> None:
    closed = dict.fromkeys(("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True)
    for bucket in all_of_it.of_type("AWS::S3::Bucket").values():
        properties = bucket["Properties"]
        assert properties["PublicAccessBlockConfiguration"] == closed
        assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
        assert not {"AccessControl", "WebsiteConfiguration", "CorsConfiguration"} & set(properties)


def test_what_keeps_data_keeps_it_encrypted(all_of_it: Templates) -> None:
    for queue in all_of_it.of_type("AWS::SQS::Queue").values():
        assert queue["Properties"].get("SqsManagedSseEnabled") or queue["Properties"]["KmsMasterKeyId"]
    # Topics carry names of alarms, and are on disks that SNS encrypts; with a customer's key they have one of their own.
    has_key = bool(all_of_it.of_type("AWS::KMS::Key"))
    for topic in all_of_it.of_type("AWS::SNS::Topic").values():
        assert ("KmsMasterKeyId" in topic["Properties"]) is has_key
    for bucket in all_of_it.of_type("AWS::S3::Bucket").values():
        assert bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    for key in all_of_it.of_type("AWS::KMS::Key").values():
        assert key["Properties"]["EnableKeyRotation"] is True


def test_no_function_has_an_address_of_its_own_and_no_route_is_open(all_of_it: Templates) -> None:
    assert not all_of_it.of_type("AWS::Lambda::Url")
    routes = all_of_it.of_type("AWS::ApiGatewayV2::Route")
    assert routes
    for route in routes.values():
        assert route["Properties"]["AuthorizationType"] in ("AWS_IAM", "JWT")
    for api in all_of_it.of_type("AWS::ApiGatewayV2::Api").values():
        assert "CorsConfiguration" not in api["Properties"]


def test_every_secret_is_generated_by_secrets_manager_and_stands_in_no_template(all_of_it: Templates) -> None:
    secrets = all_of_it.of_type("AWS::SecretsManager::Secret")
    assert secrets or is_arn_of_secret(all_of_it.environment("worker")["WEBHOOK_SECRET"])
    for secret in secrets.values():
        assert "GenerateSecretString" in secret["Properties"]
        assert "SecretString" not in secret["Properties"]
    assert "{{resolve:" not in json.dumps([all_of_it.storage, all_of_it.scheduler])


def test_functions_are_reported_where_a_secret_is_and_never_what_it_is(all_of_it: Templates) -> None:
    for function in all_of_it.functions().values():
        for name, value in function["Properties"]["Environment"]["Variables"].items():
            if any(word in name for word in ("SECRET", "TOKEN", "PASSWORD", "PRIVATE", "API_KEY")):
                assert list(value) in (["Fn::ImportValue"], ["Ref"], ["Fn::GetAtt"]) or is_arn_of_secret(value), name


def is_arn_of_secret(value: Any) -> bool:
    """Of one that is not in the template, because a function makes it."""
    return list(value) == ["Fn::Join"] and ":secret:Tickwheel-" in str(value["Fn::Join"][1][-1])


def test_powertools_writes_no_event_answer_or_exception_of_its_own_accord(all_of_it: Templates) -> None:
    for function in all_of_it.functions().values():
        variables = function["Properties"]["Environment"]["Variables"]
        assert variables["POWERTOOLS_LOGGER_LOG_EVENT"] == "false"
        assert "POWERTOOLS_DEV" not in variables
        assert variables["LOG_LEVEL"] in ("INFO", "DEBUG")  # of our own lines alone


def test_nothing_traces_that_would_write_answers_and_exceptions_into_traces() -> None:
    """Powertools' tracer does, unless it is told not to; it needs this package, and is not imported."""
    assert "xray" not in (ROOT / "functions" / "requirements.txt").read_text()
    for file in (ROOT / "functions").rglob("*.py"):
        assert "Tracer" not in file.read_text(), file


def test_an_access_log_says_who_asked_for_which_route_and_nothing_of_what_was_sent(all_of_it: Templates) -> None:
    for stage in all_of_it.of_type("AWS::ApiGatewayV2::Stage").values():
        fields = json.loads(stage["Properties"]["AccessLogSettings"]["Format"]).values()
        assert fields
        for each in fields:
            assert each.startswith("$context.")
            # A path, a query, an Authorization header or a claim beside the subject may hold a secret.
            assert not any(word in each for word in ("path", "query", "header", "body", "email", "input"))
