"""The audit trail as it is deployed: who may write it, how it lies in its bucket, and what reads it."""

from __future__ import annotations

from typing import Any

from functions.domain.audit import COLUMNS
from infra.audit_queries import TABLE, queries
from infra.audit_trail import FAILURES, LINES, MOST_SCANNED_BYTES, RESULTS
from infra.metrics import AUDITED
from infra.stage import Stage
from scripts.synthesis import Templates
from tests.infra.test_grants import listed
from tests.infra.test_storage import bucket_of


def only(kind: str, templates: Templates) -> dict[str, Any]:
    (resource,) = templates.of_type(kind).values()
    return resource["Properties"]


def test_lines_lie_by_the_day_on_which_they_came_without_a_price_for_it(templates: Templates) -> None:
    destination = only("AWS::KinesisFirehose::DeliveryStream", templates)["ExtendedS3DestinationConfiguration"]

    assert destination["Prefix"] == "lines/day=!{timestamp:yyyy-MM-dd}/"
    assert destination["ErrorOutputPrefix"] == "failed/!{firehose:error-output-type}/day=!{timestamp:yyyy-MM-dd}/"
    assert destination["CompressionFormat"] == "GZIP"
    assert not {"DynamicPartitioningConfiguration", "DataFormatConversionConfiguration"} & set(destination)


def test_what_waits_in_the_stream_is_encrypted_and_its_failures_are_logged(templates: Templates) -> None:
    stream = only("AWS::KinesisFirehose::DeliveryStream", templates)

    assert stream["DeliveryStreamEncryptionConfigurationInput"] == {"KeyType": "AWS_OWNED_CMK"}
    assert stream["ExtendedS3DestinationConfiguration"]["CloudWatchLoggingOptions"]["Enabled"] is True


def test_the_stream_may_write_its_bucket_and_its_log_and_no_more(templates: Templates) -> None:
    role = next(name for name in templates.of_type("AWS::IAM::Role") if name.startswith("AuditStreamRole"))
    (policy,) = (
        policy["Properties"]["PolicyDocument"]["Statement"]
        for policy in templates.of_type("AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Properties"]["Roles"]
    )
    bucket = next(name for name in templates.of_type("AWS::S3::Bucket") if name.startswith("AuditBucket"))
    arn = {"Fn::GetAtt": [bucket, "Arn"]}
    asked, written, logged = ((sorted(listed(each["Action"])), listed(each["Resource"])) for each in policy)

    assert asked == (["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"], [arn])
    assert written == (
        ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
        [{"Fn::Join": ["", [arn, f"/{folder}*"]]} for folder in (FAILURES, LINES)],
    )
    assert logged[0] == ["logs:PutLogEvents"]
    assert "AuditDeliveries" in str(logged[1])


def test_where_the_stream_may_write_is_where_it_writes(templates: Templates) -> None:
    destination = only("AWS::KinesisFirehose::DeliveryStream", templates)["ExtendedS3DestinationConfiguration"]

    assert destination["Prefix"].startswith(LINES)
    assert destination["ErrorOutputPrefix"].startswith(FAILURES)
    assert not RESULTS.startswith((LINES, FAILURES))


def test_the_stream_outlives_whoever_sends_to_it(templates: Templates) -> None:
    kinds = {resource["Type"] for resource in templates.storage["Resources"].values()}

    assert {"AWS::KinesisFirehose::DeliveryStream", "AWS::Glue::Table", "AWS::Athena::WorkGroup"} <= kinds


def test_athena_finds_the_days_by_itself_where_the_stream_puts_them(dev: Templates) -> None:
    table = only("AWS::Glue::Table", dev)["TableInput"]
    parameters = table["Parameters"]

    assert table["PartitionKeys"] == [{"Name": "day", "Type": "string"}]
    assert {name: value for name, value in parameters.items() if name.startswith("projection")} == {
        "projection.enabled": "true",
        "projection.day.type": "date",
        "projection.day.format": "yyyy-MM-dd",
        "projection.day.range": "2026-01-01,NOW",
        "projection.day.interval": "1",
        "projection.day.interval.unit": "DAYS",
    }
    assert str(parameters["storage.location.template"]).endswith(f"'/{LINES}day=${{day}}/']]}}")


def test_the_table_has_a_column_for_each_field_of_a_line(dev: Templates) -> None:
    columns = only("AWS::Glue::Table", dev)["TableInput"]["StorageDescriptor"]["Columns"]

    assert {column["Name"]: column["Type"] for column in columns} == COLUMNS


def test_a_query_scans_so_much_and_leaves_its_results_encrypted_for_a_month(dev: Templates) -> None:
    workgroup = only("AWS::Athena::WorkGroup", dev)["WorkGroupConfiguration"]
    rules = {
        rule.get("Prefix"): rule.get("ExpirationInDays")
        for rule in bucket_of("AuditBucket", dev)["Properties"]["LifecycleConfiguration"]["Rules"]
    }

    assert workgroup["EnforceWorkGroupConfiguration"] is True
    assert workgroup["BytesScannedCutoffPerQuery"] == MOST_SCANNED_BYTES
    assert workgroup["ResultConfiguration"]["EncryptionConfiguration"] == {"EncryptionOption": "SSE_S3"}
    assert str(workgroup["ResultConfiguration"]["OutputLocation"]).endswith(f"'/{RESULTS}']]}}")
    assert rules == {None: None, LINES: 400, "failed/": 400, RESULTS: 30}


def test_the_queries_are_saved_where_the_table_is(dev: Templates) -> None:
    saved = {each["Properties"]["Name"]: each["Properties"] for each in dev.of_type("AWS::Athena::NamedQuery").values()}
    expected = queries(Stage.named("dev").objective.lag)

    assert {name: each["QueryString"] for name, each in saved.items()} == {query.title: query.sql for query in expected}
    assert {(each["Database"], each["WorkGroup"]) for each in saved.values()} == {("tickwheel_dev", "tickwheel-dev")}
    assert only("AWS::Glue::Table", dev)["DatabaseName"] == "tickwheel_dev"
    assert only("AWS::Glue::Table", dev)["TableInput"]["Name"] == TABLE


def test_whoever_settles_says_when_a_line_is_lost(fully_watched: Templates) -> None:
    alarms = [alarm["Properties"] for alarm in fully_watched.of_type("AWS::CloudWatch::Alarm").values()]
    lost = [alarm for alarm in alarms if alarm.get("MetricName") == "audit_lines_lost"]

    assert sorted(alarm["Dimensions"][0]["Value"] for alarm in lost) == sorted(AUDITED)
    assert {alarm["Threshold"] for alarm in lost} == {0}
    for service in AUDITED:
        assert "AUDIT_STREAM" in fully_watched.environment(service)


def test_a_stream_that_does_not_deliver_is_noticed_before_it_drops_anything(full: Templates) -> None:
    alarms = [alarm["Properties"] for alarm in full.of_type("AWS::CloudWatch::Alarm").values()]
    (late,) = [alarm for alarm in alarms if alarm.get("MetricName") == "DeliveryToS3.DataFreshness"]

    assert (late["Namespace"], late["Statistic"], late["Threshold"]) == ("AWS/Firehose", "Maximum", 900)
