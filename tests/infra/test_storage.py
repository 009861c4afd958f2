import dataclasses
import json
from datetime import timedelta

import pytest

from functions.adapters.dynamodb.tables import ALL_TABLES, TableSchema
from functions.adapters.s3.exports import _key
from functions.adapters.s3.results import key_of
from functions.domain.jobs.claims import LEDGER_LIFE
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.results import LIFE
from functions.domain.targets.webhooks import WebhookKey, parse_master_keys
from infra.stage import Stage
from scripts.synthesis import Resource, Templates, synthesise
from testkit.builders import a_job


def table_of(schema: TableSchema, templates: Templates) -> Resource:
    name = schema.name.replace("_", "").lower()
    return next(
        table
        for logical_id, table in templates.of_type("AWS::DynamoDB::Table").items()
        if logical_id.lower()[:-8] == name
    )


def bucket_of(name: str, templates: Templates) -> Resource:
    """A bucket by the name of its construct."""
    return next(each for key, each in templates.of_type("AWS::S3::Bucket").items() if key[:-8] == name)


@pytest.mark.parametrize("schema", ALL_TABLES, ids=lambda schema: schema.name)
def test_a_table_has_the_keys_of_its_schema(schema: TableSchema, dev: Templates) -> None:
    properties = table_of(schema, dev)["Properties"]
    keys = {key["KeyType"]: key["AttributeName"] for key in properties["KeySchema"]}
    expected = {"HASH": schema.partition_key} | ({"RANGE": schema.sort_key} if schema.sort_key else {})
    assert keys == expected
    assert {attribute["AttributeType"] for attribute in properties["AttributeDefinitions"]} == {"S"}
    assert properties.get("TimeToLiveSpecification", {}).get("AttributeName") == schema.ttl_attribute


def test_every_table_is_on_demand_recoverable_and_without_indexes(templates: Templates) -> None:
    tables = templates.of_type("AWS::DynamoDB::Table").values()
    assert len(tables) == len(ALL_TABLES)
    for table in tables:
        properties = table["Properties"]
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert not {"GlobalSecondaryIndexes", "LocalSecondaryIndexes", "TableName"} & set(properties)


def test_a_table_is_as_warm_as_its_stage_says_and_else_as_aws_begins_with(
    any_stage: Stage, templates: Templates
) -> None:
    for schema in ALL_TABLES:
        warm = any_stage.warm_throughput.get(schema.name)
        assert table_of(schema, templates)["Properties"].get("WarmThroughput") == (
            {"ReadUnitsPerSecond": warm.reads, "WriteUnitsPerSecond": warm.writes} if warm else None
        )


def test_data_survives_its_stack_everywhere_but_locally(any_stage: Stage, templates: Templates) -> None:
    kept = any_stage.name != "local"
    policies = {"AWS::DynamoDB::Table": "Retain", "AWS::S3::Bucket": "RetainExceptOnCreate"}
    for kind, policy in policies.items():
        for resource in templates.of_type(kind).values():
            assert resource["DeletionPolicy"] == (policy if kept else "Delete")
            assert resource["UpdateReplacePolicy"] == ("Retain" if kept else "Delete")
    for table in templates.of_type("AWS::DynamoDB::Table").values():
        assert table["Properties"]["DeletionProtectionEnabled"] is (any_stage.name != "local")


def test_a_stage_that_gives_its_data_up_leaves_nothing_behind_when_it_is_destroyed() -> None:
    """The way of docs/upgrading.md to remove a stage with its data."""
    given_up = synthesise(dataclasses.replace(Stage.named("dev"), retained=False))

    policies = {resource.get("DeletionPolicy", "Delete") for resource in given_up.storage["Resources"].values()}
    assert policies == {"Delete"}
    tables = given_up.of_type("AWS::DynamoDB::Table").values()
    assert {table["Properties"]["DeletionProtectionEnabled"] for table in tables} == {False}


def test_the_keys_of_webhooks_are_generated_once_and_outlive_the_stack(any_stage: Stage, templates: Templates) -> None:
    if any_stage.secret_on_first_use:
        assert not templates.of_type("AWS::SecretsManager::Secret")
        return
    ((logical_id, secret),) = templates.of_type("AWS::SecretsManager::Secret").items()
    # A reference would be a name on the local cloud, and no grant on it would hold.
    assert {"Fn::GetAtt": [logical_id, "Id"]} in [output["Value"] for output in templates.storage["Outputs"].values()]
    generated = secret["Properties"]["GenerateSecretString"]
    assert secret["DeletionPolicy"] == ("Delete" if any_stage.name == "local" else "RetainExceptOnCreate")
    # Every word of it: another one would generate another key at the next deploy.
    assert generated == {
        "ExcludePunctuation": True,
        "GenerateStringKey": "current",
        "PasswordLength": 64,
        "SecretStringTemplate": '{"current_id": "k1"}',
    }
    text = json.dumps(json.loads(generated["SecretStringTemplate"]) | {generated["GenerateStringKey"]: "a" * 64})
    assert parse_master_keys(text) == (WebhookKey("k1", b"a" * 64),)


def test_every_bucket_is_private_encrypted_and_only_over_tls(templates: Templates) -> None:
    buckets = templates.of_type("AWS::S3::Bucket")
    policies = templates.of_type("AWS::S3::BucketPolicy").values()
    assert len(buckets) == 2
    assert sorted(policy["Properties"]["Bucket"]["Ref"] for policy in policies) == sorted(buckets)
    for bucket in buckets.values():
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        assert "BucketEncryption" in properties
        assert "VersioningConfiguration" not in properties
    for policy in policies:
        (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
        assert statement["Effect"] == "Deny"
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_uploads_that_were_given_up_are_removed(dev: Templates) -> None:
    bucket = bucket_of("Payloads", dev)
    abort, *_ = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert abort["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "ExpirationInDays" not in abort


def test_only_exports_and_results_go_by_themselves_because_a_payload_is_deleted_with_its_job(dev: Templates) -> None:
    bucket = bucket_of("Payloads", dev)
    expiring = [rule for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule]
    assert [(rule["Prefix"], rule["ExpirationInDays"], rule["Status"]) for rule in expiring] == [
        ("exports/", 7, "Enabled"),
        ("results/", LIFE.days, "Enabled"),
    ]
    assert _key("acme", "o1", 1).startswith("exports/")
    assert key_of(job_id_of(a_job()), "p").startswith("results/")


def test_a_result_outlives_the_row_of_a_job_that_ran_at_its_time() -> None:
    ttl_is_late = timedelta(days=2)
    assert LEDGER_LIFE + ttl_is_late < LIFE


def test_every_table_is_exported_so_that_its_users_may_change(dev: Templates) -> None:
    exported = [output["Value"] for output in dev.storage["Outputs"].values() if "Export" in output]
    for logical_id in dev.of_type("AWS::DynamoDB::Table"):
        assert {"Ref": logical_id} in exported
        assert {"Fn::GetAtt": [logical_id, "Arn"]} in exported
