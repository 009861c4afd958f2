"""What Firehose is asked, and what is made of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from functions.adapters.firehose import ATTEMPTS, MOST_BYTES, MOST_RECORDS, FirehoseAuditStream
from functions.domain.audit import Record
from functions.ports.recorder import Untaken
from testkit.fakes import FakeClock

Answer = Callable[[list[dict[str, Any]]], dict[str, Any]]


def takes_all(records: list[dict[str, Any]]) -> dict[str, Any]:
    return {"FailedPutCount": 0, "RequestResponses": [{"RecordId": "r"} for _ in records]}


def refuses(*positions: int) -> Answer:
    def answer(records: list[dict[str, Any]]) -> dict[str, Any]:
        throttled = {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}
        outcomes = [throttled if number in positions else {"RecordId": "r"} for number in range(len(records))]
        return {"FailedPutCount": len(positions), "RequestResponses": outcomes}

    return answer


def raises(error: Exception) -> Answer:
    def answer(_: list[dict[str, Any]]) -> dict[str, Any]:
        raise error

    return answer


def client_error(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "says Firehose"},
            "ResponseMetadata": cast("Any", {"HTTPStatusCode": status}),
        },
        "PutRecordBatch",
    )


@dataclass
class ScriptedFirehose:
    """Remembers what it is asked, and answers as the script says; at its end it takes everything."""

    script: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def put_record_batch(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        answer = self.script.pop(0) if self.script else takes_all
        return answer(request["Records"])

    def data(self) -> list[list[bytes]]:
        return [[record["Data"] for record in request["Records"]] for request in self.requests]


@pytest.fixture
def firehose() -> ScriptedFirehose:
    return ScriptedFirehose()


@pytest.fixture
def stream(firehose: ScriptedFirehose) -> FirehoseAuditStream:
    return FirehoseAuditStream(cast("Any", firehose), "the-stream", clock=FakeClock())


A: Record = ("a1", "a2")
B: Record = ("b1",)
C: Record = ("c1",)


def test_each_line_of_a_record_is_ended_by_a_line_feed(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    assert stream.put([A, B]) == Untaken([], "")

    assert firehose.requests == [
        {"DeliveryStreamName": "the-stream", "Records": [{"Data": b"a1\na2\n"}, {"Data": b"b1\n"}]}
    ]


def test_only_what_was_refused_is_sent_again(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    firehose.script = [refuses(1)]

    assert not stream.put([A, B, C]).records

    assert firehose.data() == [[b"a1\na2\n", b"b1\n", b"c1\n"], [b"b1\n"]]


def test_what_is_refused_again_is_given_back_with_the_reason(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    firehose.script = [refuses(0, 2), refuses(1)]

    untaken = stream.put([A, B, C])

    assert untaken == Untaken([C], "ServiceUnavailableException")
    assert len(firehose.requests) == ATTEMPTS


@pytest.mark.parametrize(("code", "status"), [("ServiceUnavailableException", 503), ("ThrottlingException", 400)])
def test_a_throttled_batch_is_sent_once_more(
    stream: FirehoseAuditStream, firehose: ScriptedFirehose, code: str, status: int
):
    firehose.script = [raises(client_error(code, status))]

    assert not stream.put([A]).records
    assert len(firehose.requests) == 2


CLOSED = ConnectionClosedError(endpoint_url="https://firehose")


def test_a_batch_whose_idle_connection_was_closed_is_sent_once_more(
    stream: FirehoseAuditStream, firehose: ScriptedFirehose
):
    firehose.script = [raises(CLOSED)]

    assert not stream.put([A]).records
    assert firehose.data() == [[b"a1\na2\n"]] * 2


def test_behind_connections_that_are_closed_each_time_nothing_more_is_tried(
    stream: FirehoseAuditStream, firehose: ScriptedFirehose
):
    firehose.script = [raises(CLOSED)] * ATTEMPTS
    batches = [("a" * (MOST_BYTES - 10),), B]

    untaken = stream.put(batches)

    assert (list(untaken.records), "ConnectionClosedError" in untaken.reason) == (batches, True)
    assert len(firehose.requests) == ATTEMPTS


def test_what_no_repeat_can_help_is_not_repeated(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    firehose.script = [raises(client_error("ResourceNotFoundException"))]

    untaken = stream.put([A])

    assert untaken.records == [A]
    assert "ResourceNotFoundException" in untaken.reason
    assert len(firehose.requests) == 1


@pytest.mark.parametrize(
    "error", [ReadTimeoutError(endpoint_url="https://f"), EndpointConnectionError(endpoint_url="https://f")]
)
def test_a_service_that_does_not_answer_is_asked_once_however_many_batches_there_are(
    stream: FirehoseAuditStream, firehose: ScriptedFirehose, error: Exception
):
    firehose.script = [takes_all, raises(error)]
    records: list[Record] = [(f"{number}",) for number in range(3 * MOST_RECORDS)]

    untaken = stream.put(records)

    assert untaken.records == records[MOST_RECORDS:]
    assert len(firehose.requests) == 2


def test_a_batch_has_at_most_500_records(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    stream.put([(f"{number}",) for number in range(MOST_RECORDS + 1)])

    assert [len(request["Records"]) for request in firehose.requests] == [500, 1]


def test_a_batch_has_less_than_four_mebibytes(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    stream.put([("x" * 999_999,)] * 9)

    sizes = [sum(map(len, batch)) for batch in firehose.data()]
    assert sizes == [4_000_000, 4_000_000, 1_000_000]
    assert MOST_BYTES < 4 * 2**20


def test_a_batch_that_failed_keeps_no_other_back(stream: FirehoseAuditStream, firehose: ScriptedFirehose):
    firehose.script = [raises(client_error("InternalFailure", 500))] * ATTEMPTS
    records: list[Record] = [(f"{number}",) for number in range(MOST_RECORDS + 1)]

    untaken = stream.put(records)

    assert untaken.records == records[:MOST_RECORDS]
    assert len(firehose.requests) == ATTEMPTS + 1
