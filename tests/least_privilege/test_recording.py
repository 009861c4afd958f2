from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import botocore.handlers
import pytest
from botocore.session import Session

from scripts.least_privilege.calls import Call, complaints, heard, written
from scripts.least_privilege.recording import Recorder, UnknownOperation, named, needs

ENVIRONMENT = {
    "LEDGER_TABLE": "ledger-1",
    "TIMERS_TABLE": "timers-1",
    "PAYLOAD_BUCKET": "payloads-1",
    "READY_QUEUE_URLS": '["http://sqs/high", "http://sqs/low"]',
    "WEBHOOK_SECRET": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a/b",
    "ALLOWED_TARGETS": "[]",
    "STAGE": "somewhere",
}


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def test_a_transaction_needs_the_actions_of_its_parts() -> None:
    parts = ("Put", "Update", "Delete", "ConditionCheck")
    items = [{part: {"TableName": part}} for part in parts]
    assert needs("dynamodb.TransactWriteItems", {"TransactItems": items}) == [
        ("dynamodb:PutItem", "Put"),
        ("dynamodb:UpdateItem", "Update"),
        ("dynamodb:DeleteItem", "Delete"),
        ("dynamodb:ConditionCheckItem", "ConditionCheck"),
    ]


def test_an_index_is_a_resource_of_its_own() -> None:
    assert needs("dynamodb.Query", {"TableName": "t", "IndexName": "i"}) == [("dynamodb:Query", "t/index/i")]


@pytest.mark.parametrize(
    ("operation", "params", "expected"),
    [
        ("dynamodb.BatchWriteItem", {"RequestItems": {"a": [], "b": []}}, ["dynamodb:BatchWriteItem"] * 2),
        ("s3.HeadObject", {"Bucket": "b", "Key": "k"}, ["s3:GetObject"]),
        ("s3.ListObjectsV2", {"Bucket": "b"}, ["s3:ListBucket"]),
        ("s3.DeleteObjects", {"Bucket": "b", "Delete": {"Objects": [{"Key": "k"}]}}, ["s3:DeleteObject"]),
        ("sqs.SendMessageBatch", {"QueueUrl": "q"}, ["sqs:SendMessage"]),
        ("lambda.Invoke", {"FunctionName": "f"}, ["lambda:InvokeFunction"]),
        ("stepfunctions.StartExecution", {"stateMachineArn": "m"}, ["states:StartExecution"]),
    ],
)
def test_an_operation_needs_what_iam_calls_it(operation: str, params: dict[str, Any], expected: list[str]) -> None:
    assert [action for action, _ in needs(operation, params)] == expected


def test_an_operation_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(UnknownOperation, match=r"dynamodb\.DescribeTable"):
        needs("dynamodb.DescribeTable", {"TableName": "t"})


@pytest.mark.parametrize(
    ("resource", "action", "expected"),
    [
        ("ledger-1", "dynamodb:GetItem", "LEDGER_TABLE"),
        ("ledger-1/index/i", "dynamodb:Query", "LEDGER_TABLE/index/*"),
        ("payloads-1", "s3:ListBucket", "PAYLOAD_BUCKET"),
        ("payloads-1/jobs/acme/1", "s3:GetObject", "PAYLOAD_BUCKET/jobs/*"),
        ("payloads-1/jobs", "s3:GetObject", "PAYLOAD_BUCKET/jobs"),
        ("http://sqs/low", "sqs:SendMessage", "READY_QUEUE_URLS"),
        (ENVIRONMENT["WEBHOOK_SECRET"], "secretsmanager:GetSecretValue", "WEBHOOK_SECRET"),
        ("arn:aws:sns:eu-west-1:123456789012:news", "sns:Publish", "ALLOWED_TARGETS"),
        ("somewhere", "dynamodb:GetItem", "?somewhere"),
    ],
)
def test_a_resource_is_reported_by_the_variable_that_names_it(resource: str, action: str, expected: str) -> None:
    assert named(resource, action=action, environment=ENVIRONMENT) == expected


def test_only_a_function_that_calls_targets_may_call_what_no_variable_names() -> None:
    assert named("news", action="sns:Publish", environment={}) == "?news"


def test_the_calls_of_a_function_are_heard_once_each_and_nobody_elses(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(botocore.handlers, "BUILTIN_HANDLERS", [*botocore.handlers.BUILTIN_HANDLERS])
    recorder.install()
    monkeypatch.setenv("PAYLOAD_BUCKET", "payloads-1")
    s3 = boto3.Session(botocore_session=Session()).client("s3")

    def sign(method: str) -> None:
        s3.generate_presigned_url(method, Params={"Bucket": "payloads-1", "Key": "exports/acme/1"})

    sign("put_object")
    with recorder.acting("api"):
        sign("get_object")
        sign("get_object")
        sign("get_object_tagging")
    sign("delete_object")

    assert heard(tmp_path) == {
        Call("api", "s3:GetObject", "PAYLOAD_BUCKET/exports/*"),
        Call("api", "?s3.GetObjectTagging", "?"),
    }
    assert len(next(tmp_path.iterdir()).read_text().splitlines()) == 2


def test_what_a_test_asks_for_while_a_function_runs_is_not_the_functions(recorder: Recorder, tmp_path: Path) -> None:
    model = boto3.client("dynamodb", region_name="eu-west-1").meta.service_model.operation_model("GetItem")
    with recorder.acting("worker"):
        with recorder.passing_over():
            recorder.hear({"TableName": "a"}, model)
            other = Thread(target=recorder.hear, args=({"TableName": "b"}, model))
            other.start()
            other.join()
        recorder.hear({"TableName": "c"}, model)

    assert {call.resource for call in heard(tmp_path)} == {"?b", "?c"}


def test_two_functions_side_by_side_are_refused(recorder: Recorder) -> None:
    with (
        recorder.acting("api"),
        pytest.raises(AssertionError, match="worker begins while api runs"),
        recorder.acting("worker"),
    ):
        pass


def test_a_new_call_learns_of_any_run_and_one_no_more_made_of_a_whole_one() -> None:
    old, new = Call("api", "s3:GetObject", "A"), Call("api", "s3:PutObject", "A")
    found = {"kept": frozenset({old}), "heard": frozenset({new})}
    assert complaints(**found, is_whole=False) == [f"new: {new}"]
    assert complaints(**found, is_whole=True) == [f"new: {new}", f"made no more: {old}"]


def test_the_same_calls_are_the_same_file() -> None:
    calls = [Call("b", "x:Y", "2"), Call("b", "x:Y", "1"), Call("a", "x:Y", "1")]
    assert (
        written(calls)
        == written(reversed(calls))
        == '{\n "a": {\n  "x:Y": [\n   "1"\n  ]\n },\n "b": {\n  "x:Y": [\n   "1",\n   "2"\n  ]\n }\n}\n'
    )
