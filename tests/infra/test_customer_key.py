import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.customer_key import requests_a_month
from bench.prices import read_prices
from infra.stage import OWN_KEY, Stage
from infra.stage_parts import InvalidStage
from scripts.synthesis import FUNCTIONS, ROOT, Resource, Templates

DEV = Stage.named("dev")
PAGE = ROOT / "docs" / "security.md"
GIVEN = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER = GIVEN.replace("1234abcd", "9876abcd")
ENCRYPTED = {
    "AWS::DynamoDB::Table": lambda it: it["SSESpecification"]["KMSMasterKeyId"],
    "AWS::S3::Bucket": lambda it: it["BucketEncryption"]["ServerSideEncryptionConfiguration"][0][
        "ServerSideEncryptionByDefault"
    ]["KMSMasterKeyID"],
    "AWS::SecretsManager::Secret": lambda it: it["KmsKeyId"],
    "AWS::SQS::Queue": lambda it: it["KmsMasterKeyId"],
    "AWS::Logs::LogGroup": lambda it: it["KmsKeyId"],
    "AWS::KinesisFirehose::DeliveryStream": lambda it: it["DeliveryStreamEncryptionConfigurationInput"]["KeyARN"],
    "AWS::Athena::WorkGroup": lambda it: it["WorkGroupConfiguration"]["ResultConfiguration"]["EncryptionConfiguration"][
        "KmsKey"
    ],
}
"""What keeps data, and where it names its key."""

ROLE_LIMIT = 10_240
"""Characters of all inline policies of a role: IAM's limit."""


@pytest.fixture(scope="module")
def own(templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(dataclasses.replace(DEV, customer_key=OWN_KEY))


@pytest.fixture(scope="module")
def given(templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(dataclasses.replace(DEV, customer_key=GIVEN))


@pytest.fixture(scope="module")
def former(templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(dataclasses.replace(DEV, former_keys=(GIVEN, OTHER)))


def keys_of(templates: Templates) -> set[str]:
    return {
        json.dumps(key_of(resource["Properties"]))
        for kind, key_of in ENCRYPTED.items()
        for resource in templates.of_type(kind).values()
    }


def key_of_data(templates: Templates) -> tuple[str, Resource]:
    """The key that the stage made for what it keeps: the storage stack has no other."""
    ((name, key),) = (
        (name, resource)
        for name, resource in templates.storage["Resources"].items()
        if resource["Type"] == "AWS::KMS::Key"
    )
    return name, key


def key_statements(function: str, templates: Templates) -> list[dict[str, Any]]:
    return [each for each in templates.statements(function) if "kms:" in str(each["Action"])]


def opened_by(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """What they let the key open: the name of a thing in the encryption context, and the thing."""
    for statement in statements:
        for context, things in statement["Condition"]["StringEquals"].items():
            if context.startswith("kms:EncryptionContext:") and "kms:Decrypt" in listed(statement["Action"]):
                yield from ((context, json.dumps(thing)) for thing in listed(things))


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def services_of(function: str, templates: Templates) -> set[str]:
    found = {str(each["Condition"]["StringEquals"]["kms:ViaService"]) for each in key_statements(function, templates)}
    return {name for name in ("dynamodb", "s3", "secretsmanager", "sqs") if any(f"'{name}." in via for via in found)}


def resolved(value: Any) -> Any:
    """A policy as long as it can be deployed: every reference as an ARN of the longest usual length."""
    if isinstance(value, dict):
        if "Ref" in value or "Fn::GetAtt" in value or "Fn::ImportValue" in value:
            return "arn:aws:dynamodb:ap-southeast-2:111122223333:table/Tickwheel-production-Storage-ScheduleStateAAAAAAAA-BBBBBBBBBBBBB"
        if "Fn::Join" in value:
            return "".join(map(str, resolved(value["Fn::Join"][1])))
        if "Fn::Select" in value:
            return "Tickwheel-production-Storage-ScheduleStateAAAAAAAA-BBBBBBBBBBBBB"
        return {name: resolved(each) for name, each in value.items()}
    return [resolved(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "word", ["", "alias/tickwheel", "arn:aws:kms:eu-west-1:111122223333:alias/tickwheel", GIVEN[:-1], "yes"]
)
def test_what_is_no_key_is_refused(word: str) -> None:
    with pytest.raises(InvalidStage, match=r"customer_key is .*the whole ARN of a key"):
        dataclasses.replace(DEV, customer_key=word)


def test_a_key_that_is_given_encrypts_all_that_a_stage_keeps_and_no_other_is_made(given: Templates) -> None:
    assert keys_of(given) == {json.dumps(GIVEN)}
    assert [name[:-8] for name in given.of_type("AWS::KMS::Key")] == ["TopicsKey"]


def test_a_key_of_its_own_encrypts_all_that_a_stage_keeps(own: Templates) -> None:
    name, key = key_of_data(own)
    (exported,) = [
        output["Export"]["Name"]
        for output in own.storage["Outputs"].values()
        if output["Value"] == {"Fn::GetAtt": [name, "Arn"]}
    ]

    assert keys_of(own) == {json.dumps({"Fn::GetAtt": [name, "Arn"]}), json.dumps({"Fn::ImportValue": exported})}
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["Properties"]["PendingWindowInDays"] == 30


def test_without_one_nothing_is_encrypted_at_a_price(dev: Templates) -> None:
    for table in dev.of_type("AWS::DynamoDB::Table").values():
        assert table["Properties"]["SSESpecification"] == {"SSEEnabled": False}
    for function in FUNCTIONS:
        assert not key_statements(function, dev)


def test_a_bucket_asks_for_its_own_key_and_a_queue_once_an_hour(own: Templates) -> None:
    for bucket in own.of_type("AWS::S3::Bucket").values():
        (rule,) = bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["BucketKeyEnabled"] is True
    for queue in own.of_type("AWS::SQS::Queue").values():
        assert queue["Properties"]["KmsDataKeyReusePeriodSeconds"] == 3_600
        assert "SqsManagedSseEnabled" not in queue["Properties"]


def test_what_writes_the_audit_trail_uses_the_key_through_s3_for_that_bucket_alone(own: Templates) -> None:
    (policy,) = (
        resource["Properties"]["PolicyDocument"]["Statement"]
        for name, resource in own.of_type("AWS::IAM::Policy").items()
        if name.startswith("AuditStreamRole")
    )
    (statement,) = (each for each in policy if "kms:" in str(each["Action"]))
    bucket = next(name for name in own.of_type("AWS::S3::Bucket") if name.startswith("Audit"))
    conditions = statement["Condition"]["StringEquals"]
    assert conditions["kms:EncryptionContext:aws:s3:arn"] == {"Fn::GetAtt": [bucket, "Arn"]}
    assert conditions["kms:ViaService"]["Fn::Join"][1][0] == "s3."


@pytest.mark.parametrize("function", ["api", "worker", "operations"])
def test_an_object_is_opened_by_the_arn_of_its_bucket_which_is_all_that_s3_tells_of_it(
    function: str, own: Templates
) -> None:
    told = {thing for context, thing in opened_by(key_statements(function, own)) if context.endswith(":aws:s3:arn")}

    assert told == {json.dumps({"Fn::ImportValue": "Tickwheel-dev-Payloads"})}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_uses_the_key_only_through_services_and_for_the_things_that_it_may_use_anyway(
    function: str, own: Templates
) -> None:
    granted = {
        str(action).partition(":")[0]
        for statement in own.statements(function)
        for action in listed(statement["Action"])
        # Beside what sending, reading and writing need: a grant to list a bucket opens no object.
        if action not in ("s3:ListBucket", "s3:DeleteObject", "sqs:GetQueueAttributes")
    }
    assert services_of(function, own) == granted & {"dynamodb", "s3", "secretsmanager", "sqs"}
    for statement in key_statements(function, own):
        (condition,) = statement["Condition"].values()
        contexts = [key for key in condition if key.startswith("kms:EncryptionContext:")]
        assert list(statement["Condition"]) == ["StringEquals"]
        assert "kms:ViaService" in condition
        assert contexts or listed(statement["Action"]) == ["kms:DescribeKey"]
        assert "*" not in json.dumps([statement["Action"], statement["Resource"], condition])


def test_who_only_sends_may_not_open_what_is_in_the_dead_letter_queues(own: Templates) -> None:
    for function in FUNCTIONS:
        opened = [
            arn
            for statement in key_statements(function, own)
            for arn in listed(statement["Condition"]["StringEquals"].get("kms:EncryptionContext:aws:sqs:arn", []))
        ]
        assert any("Dead" in str(arn) for arn in opened) is (function == "dead_letters")


def test_targets_that_a_stage_allows_are_no_business_of_its_key(templates_of: Callable[[Stage], Templates]) -> None:
    stage = dataclasses.replace(DEV, customer_key=GIVEN, targets=("arn:aws:sqs:*:*:billing-*",))
    templates = templates_of(stage)
    assert any("billing" in str(statement["Resource"]) for statement in templates.statements("worker"))
    assert "billing" not in str(key_statements("worker", templates))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_was_written_with_a_former_key_can_be_read_and_nothing_is_written_with_it(
    function: str, former: Templates, own: Templates
) -> None:
    received = {
        json.dumps(queue)
        for statement in own.statements(function)
        if "sqs:ReceiveMessage" in listed(statement["Action"])
        for queue in listed(statement["Resource"])
    }
    opened, openable = (set(opened_by(key_statements(function, each))) for each in (former, own))
    # Whoever only sends to a queue opens no message of it.
    readable = {(context, thing) for context, thing in openable if "sqs" not in context or thing in received}
    assert opened == readable
    assert opened
    for statement in key_statements(function, former):
        assert (statement["Action"], listed(statement["Resource"])) == ("kms:Decrypt", [GIVEN, OTHER])
        assert list(statement["Condition"]) == ["StringEquals"]
        assert len(statement["Condition"]["StringEquals"]) == 2


def test_nothing_is_encrypted_with_a_former_key(former: Templates, dev: Templates) -> None:
    changed = {"AWS::IAM::Policy"}
    for kind in {resource["Type"] for resource in (dev.storage["Resources"] | dev.scheduler["Resources"]).values()}:
        assert (former.of_type(kind) == dev.of_type(kind)) is (kind not in changed), kind


@pytest.mark.parametrize("word", [OWN_KEY, "", "alias/tickwheel", GIVEN[:-1]])
def test_what_is_no_former_key_is_refused(word: str) -> None:
    with pytest.raises(InvalidStage, match=r"former_keys has .*use the whole ARN of a key"):
        dataclasses.replace(DEV, former_keys=(word,))


@pytest.mark.parametrize(("present", "former"), [(GIVEN, (GIVEN,)), (None, (GIVEN, GIVEN))])
def test_a_key_is_present_or_former_and_once(present: str | None, former: tuple[str, ...]) -> None:
    with pytest.raises(InvalidStage, match="former_keys has the customer_key, or one key twice"):
        dataclasses.replace(DEV, customer_key=present, former_keys=former)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_policies_of_a_role_stay_within_iams_limit(
    function: str, templates_of: Callable[[Stage], Templates]
) -> None:
    changed = templates_of(dataclasses.replace(DEV, customer_key=OWN_KEY, former_keys=(GIVEN,)))
    document = {"Version": "2012-10-17", "Statement": [resolved(each) for each in changed.statements(function)]}
    assert len(json.dumps(document, separators=(",", ":"))) < ROLE_LIMIT


def test_alarms_come_when_a_customers_key_is_gone(own: Templates, given: Templates) -> None:
    for templates in (own, given):
        ((name, key),) = (each for each in templates.of_type("AWS::KMS::Key").items() if each[0].startswith("Topics"))
        topics = templates.of_type("AWS::SNS::Topic").values()
        assert [topic["Properties"]["KmsMasterKeyId"] for topic in topics] == [{"Fn::GetAtt": [name, "Arn"]}] * 2
        _, allowed = key["Properties"]["KeyPolicy"]["Statement"]
        assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        assert allowed["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
        assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_services_use_the_key_for_logs_of_the_stage_and_for_nothing_else(own: Templates) -> None:
    _, key = key_of_data(own)
    account, logs = key["Properties"]["KeyPolicy"]["Statement"]
    assert account["Principal"]["AWS"]["Fn::Join"][1][-1] == ":root"
    assert ":log-group:*Tickwheel-dev-*" in str(logs["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"])
    assert str(logs["Principal"]["Service"]).startswith("{'Fn::Join': ['', ['logs.'")


def test_the_page_shows_the_policy_that_a_given_key_needs(own: Templates) -> None:
    _, key = key_of_data(own)
    _, logs = key["Properties"]["KeyPolicy"]["Statement"]
    (shown,) = [block for block in _json_blocks(PAGE) if isinstance(block, list)]
    assert [as_written(logs)] == shown


def test_the_page_says_what_a_key_costs(own: Templates) -> None:
    prices = read_prices()
    for environments in (8, 100):
        requests = sum(
            requests_a_month(own.storage["Resources"] | own.scheduler["Resources"], environments=environments).values()
        )
        usd = (requests * prices["kms_request"] + prices["kms_key"]) / 1e6
        assert re.search(rf"{requests:,.0f} requests(,| and) {usd:.2f} USD", PAGE.read_text())


def as_written(value: Any) -> Any:
    """A statement of the template with the placeholders of the page."""
    known = {"AWS::Region": "REGION", "AWS::AccountId": "ACCOUNT", "AWS::Partition": "aws"}
    if isinstance(value, dict):
        if "Ref" in value:
            return known[value["Ref"]]
        if "Fn::Join" in value:
            return "".join(map(str, as_written(value["Fn::Join"][1]))).replace("Tickwheel-dev-", "Tickwheel-STAGE-")
        return {name: as_written(each) for name, each in value.items()}
    return [as_written(each) for each in value] if isinstance(value, list) else value


def _json_blocks(page: Path) -> list[Any]:
    return [json.loads(part.partition("```")[0]) for part in page.read_text().split("```json\n")[1:]]
