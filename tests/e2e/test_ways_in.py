"""Jobs that come by a queue, as an event of a bus, and as lines of a file, on the deployed stage: the whole chain, by AWS's own hands."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.domain.jobs.submission_queues import queue_name, refused_name
from testkit.deployment import Deployment
from testkit.polling import PATIENCE, eventually
from tests.e2e.sink import Sink

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

TENANT = "acme"


class Queue:
    """A queue by its name."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self._sqs = deployment.client("sqs")
        self.url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]

    def send(self, body: str, **attributes: str) -> str:
        """The id of the message."""
        told = {name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()}
        return self._sqs.send_message(QueueUrl=self.url, MessageBody=body, MessageAttributes=told)["MessageId"]

    def receive(self) -> list[dict[str, Any]]:
        """What is there, which is taken out."""
        answer = self._sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        messages = answer.get("Messages", [])
        for message in messages:
            self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return messages

    def counts(self) -> int:
        """Messages that are visible, with somebody or on their way."""
        kinds = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        found = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=kinds)["Attributes"]
        return sum(int(found[kind]) for kind in kinds)


@pytest.fixture
def queue(deployment: Deployment) -> Queue:
    return Queue(deployment, queue_name("local", TENANT))


@pytest.fixture
def refused(deployment: Deployment) -> Queue:
    return Queue(deployment, refused_name("local", TENANT))


def test_a_message_becomes_a_job_once_however_often_it_is_sent(queue: Queue, sink: Sink) -> None:
    target = sink.target()
    job = json.dumps({"target": target.url, "payload": {"invoice": 7}})

    for _ in range(2):
        queue.send(job, idempotency_key=f"invoice-{target.url}")

    target.wait()
    eventually(queue.counts, lambda count: count == 0, what="its messages are deleted")
    (arrival,) = target.arrivals
    assert arrival.json == {"invoice": 7}
    assert arrival.headers["tickwheel-tenant"] == TENANT


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("nonsense", "invalid_input"),
        (json.dumps({"target": "nowhere"}), "invalid_job"),
        (json.dumps({"target": "handler:echo", "tenant": "globex"}), "forbidden"),
    ],
)
def test_a_bad_message_is_in_the_queue_of_the_refused_with_its_problem(
    queue: Queue, refused: Queue, body: str, code: str
) -> None:
    queue.send(body)

    (message,) = eventually(refused.receive, bool, what="the message is refused")
    assert message["Body"] == body
    assert message["MessageAttributes"]["code"]["StringValue"] == code
    (problem,) = json.loads(message["MessageAttributes"]["problems"]["StringValue"])
    assert problem["problem"]["code"] == code
    eventually(queue.counts, lambda count: count == 0, what="the message is deleted")


def test_an_event_of_the_bus_becomes_a_job_of_its_rule(deployment: Deployment, sink: Sink, refused: Queue) -> None:
    target, other = sink.target(), sink.target()

    publish(deployment, "OrderShipped", order=8, hook=other.url)
    publish(deployment, "OrderPlaced", order={"id": 9, "note": "ü"}, hook=target.url)

    target.wait()
    (arrival,) = target.arrivals
    assert arrival.json == {"order": {"id": 9, "note": "ü"}}
    assert arrival.headers["tickwheel-tenant"] == TENANT
    assert arrival.headers["idempotency-key"]
    assert not other.arrivals, "the pattern of the rule names another detail type"

    publish(deployment, "OrderPlaced", order=10, hook="nowhere")
    (message,) = eventually(refused.receive, bool, what="an event that makes no job is refused")
    assert json.loads(message["Body"])["payload"] == {"order": 10}


def test_lines_of_a_file_become_jobs_and_what_became_of_it_is_beside_it(deployment: Deployment, sink: Sink) -> None:
    targets = [sink.target(), sink.target()]
    jobs = [json.dumps({"target": target.url, "payload": number}) for number, target in enumerate(targets)]

    put(deployment, "orders/few.jsonl", jobs[0], "nonsense", json.dumps({"target": "nowhere"}), jobs[1])

    progress = ends(deployment, "orders/few.jsonl")
    assert {name: progress[name] for name in ("state", "lines", "accepted", "refused")} == {
        "state": "done",
        "lines": 4,
        "accepted": 2,
        "refused": 2,
    }
    lines = read(deployment, "orders/few.jsonl.refused/000000000001.jsonl")
    assert lines is not None
    found = [json.loads(line) for line in lines.splitlines()]
    assert [(each["line"], each["problem"]["code"]) for each in found] == [(2, "invalid_input"), (3, "invalid_job")]
    for number, target in enumerate(targets):
        target.wait()
        assert [arrival.json for arrival in target.arrivals] == [number]


def test_a_file_that_is_put_again_unchanged_makes_no_job_twice(deployment: Deployment, sink: Sink) -> None:
    target = sink.target()
    line = json.dumps({"target": target.url})
    put(deployment, "orders/again.jsonl", line)
    first = ends(deployment, "orders/again.jsonl")

    put(deployment, "orders/again.jsonl", line)

    eventually(
        lambda: progress_of(deployment, "orders/again.jsonl"),
        lambda progress: progress is not None and progress != first and progress["state"] == "done",
        what="the file is read again",
    )
    target.wait()
    assert len(target.arrivals) == 1


def publish(deployment: Deployment, kind: str, **detail: Any) -> None:
    entry = {"Source": "shop", "DetailType": kind, "Detail": json.dumps(detail)}
    answer = deployment.client("events").put_events(Entries=[entry])
    assert not answer["FailedEntryCount"], answer


def put(deployment: Deployment, name: str, *lines: str, tenant: str = TENANT) -> None:
    body = "\n".join(lines).encode()
    deployment.client("s3").put_object(Bucket=deployment.files, Key=f"submissions/{tenant}/{name}", Body=body)


def ends(deployment: Deployment, name: str, *, within: float = PATIENCE, tenant: str = TENANT) -> dict[str, Any]:
    """The progress of a file when it is over."""
    progress = eventually(
        lambda: progress_of(deployment, name, tenant=tenant),
        lambda progress: progress is not None and progress["state"] != "running",
        within=within,
        what=f"{name} is read",
    )
    assert progress is not None
    return progress


def progress_of(deployment: Deployment, name: str, *, tenant: str = TENANT) -> dict[str, Any] | None:
    found = read(deployment, f"{name}.progress.json", tenant=tenant)
    return None if found is None else json.loads(found)


def read(deployment: Deployment, name: str, *, tenant: str = TENANT) -> str | None:
    """What is beside a file; None while it is not there."""
    try:
        found = deployment.client("s3").get_object(Bucket=deployment.files, Key=f"results/{tenant}/{name}")
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchKey":
            return None
        raise
    return found["Body"].read().decode()
