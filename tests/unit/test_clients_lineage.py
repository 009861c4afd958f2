"""What clients send of a trace, on the wire. Lambda counts the invocations of a chain of requests in its header."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.adapters import clients
from functions.adapters.system_clock import SystemClock
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

TRACE = "Root=1-6740f0a1-0123456789abcdef01234567;Parent=0123456789abcdef;Sampled=1"

CALLS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "dynamodb": (
        lambda: clients.dynamodb(SystemClock(), attempts=1),
        lambda client: client.get_item(TableName="t", Key={"k": {"S": "x"}}),
    ),
    "another call of dynamodb": (
        lambda: clients.dynamodb(SystemClock(), attempts=1),
        lambda client: client.list_tables(),
    ),
    "firehose": (
        clients.firehose,
        lambda client: client.put_record_batch(DeliveryStreamName="s", Records=[{"Data": b"x"}]),
    ),
    "lambda": (clients.functions, lambda client: client.invoke(FunctionName="f")),
    "s3": (clients.s3, lambda client: client.list_buckets()),
    "secretsmanager": (clients.secrets_manager, lambda client: client.list_secrets()),
    "sqs": (
        lambda: clients.sqs(attempts=1),
        lambda client: client.send_message(QueueUrl="https://x/1/q", MessageBody="x"),
    ),
    "another call of sqs": (lambda: clients.sqs(attempts=1), lambda client: client.list_queues()),
    "a target": (
        lambda: clients.target("sqs", "eu-west-1", seconds=2),
        lambda client: client.send_message(QueueUrl="https://x/1/q", MessageBody="x"),
    ),
}


class Aws(LoopbackServer):
    """Refuses everything, and keeps the headers of what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        asked = self.asked

        class Request(KeptAliveRequest):
            def do_GET(self) -> None:
                self.read_body()
                asked.append({name.lower(): value for name, value in self.headers.items()})
                self.answer(400)

            def do_POST(self) -> None:
                self.do_GET()

        super().__init__(Request, poll_seconds=0.05)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "worker")
    with Aws() as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        yield aws


def sent_by(which: str, aws: Aws) -> str | None:
    """The trace header of one call."""
    make, call = CALLS[which]
    with suppress(ClientError):
        call(make())
    [headers] = aws.asked
    return headers.get("x-amzn-trace-id")


@pytest.mark.parametrize("which", CALLS)
def test_no_client_says_how_often_lambda_was_invoked_in_this_chain(
    which: str, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"{TRACE};Lineage=1:43e12f0f:15")

    assert sent_by(which, aws) == TRACE


def test_a_lineage_in_the_middle_is_left_out_and_the_rest_kept(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-a-b;Lineage=1:43e12f0f:15;Sampled=1")

    assert sent_by("sqs", aws) == "Root=1-a-b;Sampled=1"


def test_without_a_trace_no_header_is_sent(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)

    assert sent_by("sqs", aws) is None


def test_nothing_else_in_lambda_makes_clients_of_its_own() -> None:
    """They would send the lineage."""
    ours = Path(clients.__file__)
    others = [path for path in ours.parents[1].rglob("*.py") if path != ours]

    assert [
        path for path in others if re.search(r"^\s*(import boto3$|from boto3\b)", path.read_text(), re.MULTILINE)
    ] == []
