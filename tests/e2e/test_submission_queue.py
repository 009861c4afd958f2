"""Jobs that are sent to the queue of their tenant, on the deployed stack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.domain.jobs.submission_queues import queue_name, refused_name
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_a_message_becomes_a_job_that_runs_and_a_bad_one_is_where_its_tenant_finds_it(
    deployment: Deployment, sink: Sink, client: Client
) -> None:
    sqs, target = deployment.client("sqs"), sink.target()
    url = sqs.get_queue_url(QueueName=queue_name("local", "acme"))["QueueUrl"]
    refused_url = sqs.get_queue_url(QueueName=refused_name("local", "acme"))["QueueUrl"]

    jobs = [{"target": target.url, "payload": {"order": 7}}, {"target": target.url, "tenant": "globex"}]
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"jobs": jobs}))

    (arrival,) = target.wait()
    assert arrival.json == {"order": 7}

    def refused() -> list[Any]:
        found = sqs.receive_message(QueueUrl=refused_url, MessageAttributeNames=["All"], WaitTimeSeconds=1)
        return found.get("Messages", [])

    (message,) = eventually(refused, len, what="the refused job is in its queue")
    sqs.delete_message(QueueUrl=refused_url, ReceiptHandle=message["ReceiptHandle"])
    assert message["MessageAttributes"]["code"]["StringValue"] == "forbidden"
    assert [job["tenant"] for job in json.loads(message["Body"])["jobs"]] == ["globex"]
