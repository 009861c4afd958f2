"""Jobs for what AWS runs, by a worker that may call exactly what the stage allows."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.adapters.targets.aws import digest_of
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.trace import attempt_trace
from testkit.deployment import Deployment
from testkit.lambda_target import make_function, make_role
from testkit.polling import eventually
from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.client.jobs import Submitted
from tickwheel.errors import ApiProblem
from tickwheel.local.settings import LOCAL_ACCOUNT, LOCAL_REGION

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

FUNCTION = "def handler(event, context):\n    return {'seen': event}\n"
MACHINE = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}


@dataclass(frozen=True)
class Resources:
    """What an account has beside Tickwheel, made by its root."""

    deployment: Deployment
    stack: ExitStack

    def queue(self, name: str, **attributes: str) -> tuple[str, str]:
        """Its ARN and its URL."""
        sqs = self.deployment.client("sqs")
        url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.stack.callback(sqs.delete_queue, QueueUrl=url)
        return f"arn:aws:sqs:{LOCAL_REGION}:{LOCAL_ACCOUNT}:{name}", url

    def topic(self, name: str) -> tuple[str, str]:
        """Its ARN, and the URL of a queue that gets what it gets."""
        queue, url = self._fed_queue(f"{name}-subscriber", by="sns.amazonaws.com")
        sns = self.deployment.client("sns")
        arn = sns.create_topic(Name=name)["TopicArn"]
        self.stack.callback(sns.delete_topic, TopicArn=arn)
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes={"RawMessageDelivery": "true"})
        return arn, url

    def bus(self, name: str) -> tuple[str, str]:
        """Its ARN, and the URL of a queue that a rule sends its events of Tickwheel to."""
        queue, url = self._fed_queue(f"{name}-rule", by="events.amazonaws.com")
        events = self.deployment.client("events")
        arn = events.create_event_bus(Name=name)["EventBusArn"]
        events.put_rule(Name=name, EventBusName=name, EventPattern=json.dumps({"source": ["tickwheel"]}))
        events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "queue", "Arn": queue}])
        return arn, url

    def _fed_queue(self, name: str, *, by: str) -> tuple[str, str]:
        """A queue whose own policy lets a service send to it."""
        allowed = {"Effect": "Allow", "Principal": {"Service": by}, "Action": "sqs:SendMessage", "Resource": "*"}
        return self.queue(name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}))

    def role(self, name: str, service: str) -> str:
        """Its ARN."""
        return make_role(self.deployment.client("iam"), name, service=service)

    def machine(self, name: str) -> str:
        """Its ARN."""
        states = self.deployment.client("stepfunctions")
        role = self.role(name, "states.amazonaws.com")
        return states.create_state_machine(name=name, definition=json.dumps(MACHINE), roleArn=role)["stateMachineArn"]

    def function(self, name: str) -> str:
        """Its ARN."""
        client = self.deployment.client("lambda")
        arn = make_function(client, name, source=FUNCTION, role=self.role(name, "lambda.amazonaws.com"))
        self.stack.callback(client.delete_function, FunctionName=name)
        return arn

    def messages(self, url: str) -> list[dict[str, Any]]:
        """What is on a queue, and stays there hidden."""
        answer = self.deployment.client("sqs").receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"]
        )
        return answer.get("Messages", [])


@pytest.fixture(scope="module")
def resources(deployment: Deployment) -> Iterator[Resources]:
    with ExitStack() as stack:
        yield Resources(deployment, stack)


def test_a_job_for_a_queue_arrives_there_once(client: Client, resources: Resources) -> None:
    arn, url = resources.queue("orders")

    job = run(client, arn)

    [message] = resources.messages(url)
    assert json.loads(message["Body"]) == {"n": 1}
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert attributes == {
        "tickwheel-job-id": job.id,
        "tickwheel-tenant": "acme",
        "tickwheel-idempotency-key": parse_job_id(job.id).key,
        "tickwheel-attempt": "1",
        "tickwheel-fence": "1",
        "tickwheel-scheduled-at": attributes["tickwheel-scheduled-at"],
        "traceparent": str(attempt_trace(None, key=parse_job_id(job.id).key, attempt=1, fence=1)),
    }
    assert datetime.fromisoformat(attributes["tickwheel-scheduled-at"]) == job.due_at
    assert resources.messages(url) == []


def test_a_job_for_a_fifo_queue_arrives_there_once_in_the_group_of_its_tenant(
    client: Client, resources: Resources
) -> None:
    arn, url = resources.queue("orders.fifo", FifoQueue="true")

    job = run(client, arn)

    [message] = resources.messages(url)
    assert message["Attributes"]["MessageGroupId"] == "acme"
    assert message["Attributes"]["MessageDeduplicationId"] == digest_of(parse_job_id(job.id).key)


def test_a_job_for_a_topic_arrives_at_its_subscriber_once(client: Client, resources: Resources) -> None:
    arn, url = resources.topic("news")

    job = run(client, arn)

    [message] = eventually(lambda: resources.messages(url), bool, what="the topic's message")
    assert json.loads(message["Body"]) == {"n": 1}
    assert message["MessageAttributes"]["tickwheel-job-id"]["StringValue"] == job.id
    assert resources.messages(url) == []


def test_a_job_for_a_bus_arrives_at_its_rule_once(client: Client, resources: Resources) -> None:
    arn, url = resources.bus("deals")

    job = run(client, arn)

    [message] = eventually(lambda: resources.messages(url), bool, what="the rule's message")
    event = json.loads(message["Body"])
    assert (event["source"], event["detail-type"]) == ("tickwheel", "Tickwheel Job")
    assert (event["detail"]["job_id"], event["detail"]["payload"]) == (job.id, {"n": 1})
    assert resources.messages(url) == []


def test_a_job_for_a_state_machine_starts_one_execution(client: Client, resources: Resources) -> None:
    arn = resources.machine("month-end")

    job = run(client, arn)

    states = resources.deployment.client("stepfunctions")
    [execution] = states.list_executions(stateMachineArn=arn)["executions"]
    assert execution["name"] == digest_of(parse_job_id(job.id).key)
    assert json.loads(states.describe_execution(executionArn=execution["executionArn"])["input"]) == {"n": 1}


def test_a_job_for_a_function_learns_what_it_said(client: Client, resources: Resources) -> None:
    arn = resources.function("billing")

    job = run(client, arn)

    assert client.get(job.id).result == {"status": 200, "body": {"seen": {"n": 1}}}


def test_a_target_outside_the_list_is_refused_with_the_list(client: Client) -> None:
    with pytest.raises(ApiProblem) as refused:
        client.submit("arn:aws:sqs:us-east-1:111122223333:orders", tenant="acme")

    (error,) = refused.value.errors
    assert error.field == "target"
    assert "this stage allows, which are https://*, handler:*, http://*, arn:aws:lambda:" in error.message


def test_a_ready_queue_of_the_stage_is_no_target(client: Client, deployment: Deployment) -> None:
    name = deployment.queue("Normal").rpartition("/")[2]

    with pytest.raises(ApiProblem, match="names a resource of Tickwheel itself"):
        client.submit(f"arn:aws:sqs:{LOCAL_REGION}:{LOCAL_ACCOUNT}:{name}", tenant="acme")


def run(client: Client, target: str) -> Submitted:
    """A job that has succeeded."""
    run_at = datetime.now(UTC) + timedelta(seconds=1)
    job = client.submit(target, tenant="acme", payload={"n": 1}, run_at=run_at)
    reaches(client, job.id, "succeeded")
    return job
