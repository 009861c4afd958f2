"""What every store of exports keeps: files in parts, each replaced by its repetition, with addresses to get them from."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from moto import mock_aws

from functions.adapters import clients
from functions.adapters.s3.exports import S3ExportStore
from functions.ports.operations import ExportStore
from testkit.fakes import InMemoryExportStore

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LINES = ['{"id":"j1~a","tags":["é\U0001f600"]}', '{"id":"j1~b"}']

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}


@dataclass(frozen=True, slots=True)
class ExportSubject:
    """A store of exports, and the lines of a part that it keeps."""

    exports: ExportStore
    lines: Callable[[str, str, int], list[str]]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator["S3Client"]:
    """The client that is deployed, in a region that is not the first."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        client = clients.s3()
        client.create_bucket(Bucket="payloads", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        yield client


@pytest.fixture(params=["memory", "moto"])
def subject(request: pytest.FixtureRequest) -> ExportSubject:
    if request.param == "memory":
        fake = InMemoryExportStore()
        return ExportSubject(fake, lambda *part: fake.parts[part])
    client: S3Client = request.getfixturevalue("s3")

    def lines(tenant: str, operation_id: str, part: int) -> list[str]:
        key = f"exports/{tenant}/{operation_id}/{part:05d}.jsonl.gz"
        return gzip.decompress(client.get_object(Bucket="payloads", Key=key)["Body"].read()).decode().splitlines()

    return ExportSubject(S3ExportStore(client, "payloads"), lines)


def test_a_part_is_kept_line_by_line(subject: ExportSubject):
    subject.exports.put("acme", "o1", 1, LINES)

    assert subject.lines("acme", "o1", 1) == LINES


def test_a_part_put_again_replaces_it(subject: ExportSubject):
    subject.exports.put("acme", "o1", 1, LINES)
    subject.exports.put("acme", "o1", 1, LINES[1:])

    assert subject.lines("acme", "o1", 1) == LINES[1:]


def test_parts_operations_and_tenants_have_files_of_their_own(subject: ExportSubject):
    parts = [("acme", "o1", 1), ("acme", "o1", 2), ("acme", "o2", 1), ("globex", "o1", 1), ("acme", "o1", 123_456)]
    for part in parts:
        subject.exports.put(*part, [json.dumps(part)])

    assert [json.loads(subject.lines(*part)[0]) for part in parts] == [list(part) for part in parts]


def test_each_part_has_an_address_in_the_order_of_the_parts(subject: ExportSubject):
    urls = subject.exports.urls("acme", "o1", 3)

    assert len(set(urls)) == 3
    assert subject.exports.urls("acme", "o1", 0) == []


def test_the_same_lines_are_the_same_file(s3: "S3Client"):
    exports = S3ExportStore(s3, "payloads")
    tags: list[str] = []
    for _ in range(2):
        exports.put("acme", "o1", 1, LINES)
        tags.append(s3.head_object(Bucket="payloads", Key="exports/acme/o1/00001.jsonl.gz")["ETag"])

    assert tags[0] == tags[1]


def test_what_is_downloaded_is_the_file_and_not_its_text(s3: "S3Client"):
    S3ExportStore(s3, "payloads").put("acme", "o1", 1, LINES)

    stored = s3.head_object(Bucket="payloads", Key="exports/acme/o1/00001.jsonl.gz")

    assert stored["ContentType"] == "application/gzip"
    assert "ContentEncoding" not in stored


def test_an_address_is_signed_for_15_minutes_and_names_the_host_of_its_region(s3: "S3Client"):
    [url] = S3ExportStore(s3, "payloads").urls("acme", "o1", 1)

    parts, query = urlsplit(url), parse_qs(urlsplit(url).query)
    assert parts.scheme == "https"
    assert parts.hostname == "payloads.s3.eu-west-1.amazonaws.com"
    assert parts.path == "/exports/acme/o1/00001.jsonl.gz"
    assert (query["X-Amz-Algorithm"], query["X-Amz-Expires"]) == (["AWS4-HMAC-SHA256"], ["900"])
    assert "X-Amz-Signature" in query


def test_a_part_is_downloaded_from_its_address_without_any_other_right(s3: "S3Client"):
    exports = S3ExportStore(s3, "payloads")
    exports.put("acme", "o1", 1, LINES)

    # moto answers in the place of S3 to this client and to boto3.
    answer = requests.get(exports.urls("acme", "o1", 1)[0], timeout=5)

    assert gzip.decompress(answer.content).decode().splitlines() == LINES


def test_an_address_of_a_local_cloud_is_one_that_it_answers_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")

    [url] = S3ExportStore(clients.s3(), "payloads").urls("acme", "o1", 1)

    assert url.startswith("http://127.0.0.1:4566/payloads/exports/acme/o1/00001.jsonl.gz?")
