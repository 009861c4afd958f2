"""Queues, topics, buses and state machines on moto: what arrives at them, and what becomes of refusals."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.targets.aws import AwsCaller, digest_of
from functions.domain.instants import SECOND
from functions.domain.targets.kinds import SERVICES
from functions.domain.targets.options import USUAL
from functions.ports.targets import Failed, Outcome, Succeeded
from tests.unit.calling import INVOCATION, TOLD

REGION = "eu-west-1"
ACCOUNT = "123456789012"
PAYLOAD = '{"n":"é","big":12345678901234567890}'
IN_ATTRIBUTES = {
    name if name == "traceparent" else f"tickwheel-{name.replace('_', '-')}": str(value) for name, value in TOLD.items()
}
_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}

_client: Callable[..., Any] = boto3.client


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        yield


@pytest.fixture
def caller() -> AwsCaller:
    return AwsCaller()


class TestQueues:
    def test_a_message_is_the_payload_with_all_that_it_takes_to_deduplicate(self, caller: AwsCaller):
        outcome, message = arrived_whole(caller, *a_queue("orders"))

        assert outcome == Succeeded(json.dumps({"message_id": message["MessageId"]}))

    def test_a_job_without_a_payload_sends_null(self, caller: AwsCaller):
        arn, url = a_queue("orders")

        call(caller, arn, payload=None)

        assert received(url)[0]["Body"] == "null"

    def test_a_fifo_queue_keeps_the_order_of_a_tenant_and_drops_what_it_has_had(self, caller: AwsCaller):
        arn, url = a_queue("orders.fifo", FifoQueue="true")

        assert isinstance(call(caller, arn), Succeeded)
        assert isinstance(call(caller, arn), Succeeded)

        (message,) = received(url)
        assert message["Attributes"]["MessageGroupId"] == "acme"
        assert message["Attributes"]["MessageDeduplicationId"] == digest_of("acme#x")

    def test_a_queue_is_looked_up_once(self, caller: AwsCaller):
        arn, _ = a_queue("orders")
        asked: list[str] = []
        client = caller._client_of("sqs", REGION, seconds=16)
        client.meta.events.register("before-call.sqs", lambda model, **_: asked.append(model.name))

        for _ in range(2):
            call(caller, arn)

        assert asked == ["GetQueueUrl", "SendMessage", "SendMessage"]

    def test_a_queue_is_found_in_the_region_of_its_arn(self, caller: AwsCaller):
        arn, url = a_queue("orders", region="ap-southeast-2")

        call(caller, arn)

        assert len(received(url, region="ap-southeast-2")) == 1

    def test_a_queue_that_is_not_there_is_a_failure_that_no_attempt_can_help(self, caller: AwsCaller):
        outcome = call(caller, f"arn:aws:sqs:{REGION}:{ACCOUNT}:nowhere")

        assert_failed(outcome, "not_found", is_permanent=True)
        assert error_of(outcome).startswith("AWS.SimpleQueueService.NonExistentQueue: there is no arn:aws:sqs:")

    def test_a_message_that_is_too_large_is_refused_for_its_job_alone_and_not_repeated(self, caller: AwsCaller):
        arn, url = a_queue("orders", MaximumMessageSize="1024")
        payload = json.dumps("secret" * 200)

        outcome = call(caller, arn, payload=payload)

        assert_failed(outcome, "invalid", is_permanent=True, is_its_own=True)
        assert "it was sent 1202 bytes" in error_of(outcome)
        assert "secret" not in error_of(outcome)
        assert received(url) == []


class TestTopics:
    def test_subscribers_get_the_payload_with_all_that_it_takes_to_deduplicate(self, caller: AwsCaller):
        outcome, _ = arrived_whole(caller, *a_topic("news"))

        assert isinstance(outcome, Succeeded)
        assert set(json.loads(outcome.result)) == {"message_id"}

    def test_a_fifo_topic_keeps_the_order_of_a_tenant_and_drops_what_it_has_had(self, caller: AwsCaller):
        arn, url = a_topic("news.fifo", FifoTopic="true")
        asked: list[dict[str, Any]] = []
        client = caller._client_of("sns", REGION, seconds=16)
        client.meta.events.register("provide-client-params.sns.Publish", lambda params, **_: asked.append(params))

        assert isinstance(call(caller, arn), Succeeded)

        # moto's topic hands both on to a queue with the message; what it does with a repeat is not AWS's way.
        assert (asked[0]["MessageGroupId"], asked[0]["MessageDeduplicationId"]) == ("acme", digest_of("acme#x"))
        assert len(received(url)) == 1

    def test_a_topic_that_is_not_there_is_a_failure_that_no_attempt_can_help(self, caller: AwsCaller):
        assert_failed(call(caller, f"arn:aws:sns:{REGION}:{ACCOUNT}:nowhere"), "not_found", is_permanent=True)

    def test_a_message_that_is_too_large_is_refused_for_its_job_alone(self, caller: AwsCaller):
        arn, _ = a_topic("news")

        outcome = call(caller, arn, payload=json.dumps("x" * 262_143))

        assert_failed(outcome, "invalid", is_permanent=True, is_its_own=True)
        assert "it was sent 262145 bytes" in error_of(outcome)


class TestBuses:
    def test_rules_see_the_payload_and_all_that_it_takes_to_deduplicate_as_the_detail(self, caller: AwsCaller):
        arn, url = a_bus("deals")

        outcome = call(caller, arn)

        event = json.loads(received(url)[0]["Body"])
        assert (event["source"], event["detail-type"]) == ("tickwheel", "Tickwheel Job")
        assert event["detail"] == {**TOLD, "payload": json.loads(PAYLOAD)}
        assert outcome == Succeeded(json.dumps({"event_id": event["id"]}))

    def test_the_payload_of_an_event_is_its_own_text(self, caller: AwsCaller):
        arn, _ = a_bus("deals")
        details: list[str] = []
        client = caller._client_of("events", REGION, seconds=16)
        client.meta.events.register(
            "provide-client-params.events.PutEvents", lambda params, **_: details.append(params["Entries"][0]["Detail"])
        )

        call(caller, arn, payload="1.000000000000000000001")

        assert details[0].endswith(', "payload": 1.000000000000000000001}')

    @pytest.mark.parametrize(
        ("code", "error_class", "is_permanent", "is_its_own"),
        [
            ("ThrottlingException", "throttled", False, False),
            ("InternalFailure", "service_error", False, False),
            ("AccessDeniedException", "access_denied", True, False),
            ("NotAuthorizedForSourceException", "access_denied", True, False),
            ("MalformedDetail", "invalid", True, True),
            ("InvalidArgument", "invalid", True, True),
        ],
    )
    def test_a_refused_entry_is_a_failure(
        self, caller: AwsCaller, code: str, error_class: str, is_permanent: bool, is_its_own: bool
    ):
        arn, _ = a_bus("deals")
        refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": PAYLOAD}]}
        client = caller._client_of("events", REGION, seconds=16)
        client.meta.events.register("after-call.events.PutEvents", lambda parsed, **_: parsed.update(refused))

        outcome = call(caller, arn)

        assert_failed(outcome, error_class, is_permanent=is_permanent, is_its_own=is_its_own)
        assert error_of(outcome).startswith(f"{code}: ")
        assert PAYLOAD not in error_of(outcome)

    def test_a_bus_that_is_not_there_is_a_failure_that_no_attempt_can_help(self, caller: AwsCaller):
        arn = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/nowhere"

        assert_failed(call(caller, arn), "not_found", is_permanent=True)


class TestStateMachines:
    def test_an_execution_has_the_payload_for_its_input_and_a_name_of_its_key(self, caller: AwsCaller):
        arn = a_state_machine("month-end")

        outcome = call(caller, arn)

        ((name, text),) = executions_of(arn)
        assert (name, text) == (digest_of("acme#x"), PAYLOAD)
        assert outcome == Succeeded(json.dumps({"execution": name}))

    def test_a_repeat_starts_nothing_and_has_succeeded_even_with_another_input(self, caller: AwsCaller):
        arn = a_state_machine("month-end")
        first = call(caller, arn)

        assert call(caller, arn) == first
        assert call(caller, arn, payload='{"n":2}') == first
        assert len(executions_of(arn)) == 1

    def test_a_machine_that_is_not_there_is_a_failure_that_no_attempt_can_help(self, caller: AwsCaller):
        arn = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:nowhere"

        outcome = call(caller, arn)

        assert_failed(outcome, "not_found", is_permanent=True)
        assert error_of(outcome).startswith("StateMachineDoesNotExist: there is no arn:aws:states:")


def test_the_name_of_an_execution_is_as_long_as_step_functions_takes():
    assert len(digest_of("t" * 64 + "#" + "i" * 200)) <= 80


def test_a_client_lives_on_for_calls_of_about_the_same_length(caller: AwsCaller):
    arn, _ = a_queue("orders")

    for seconds in (0.2, 1, 9, 16, 11):
        call(caller, arn, timeout=timedelta(seconds=seconds))

    assert caller._client_of.cache_info().currsize == 2


def test_every_service_that_is_declared_can_be_called(caller: AwsCaller):
    assert caller._senders.keys() == SERVICES.keys()


def call(caller: AwsCaller, target: str, *, payload: str | None = PAYLOAD, timeout: timedelta = 10 * SECOND) -> Outcome:
    return caller.call(target, payload, INVOCATION, options=USUAL, timeout=timeout)


def error_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.error


def assert_failed(outcome: Outcome, error_class: str, *, is_permanent: bool, is_its_own: bool = False) -> None:
    assert isinstance(outcome, Failed), outcome
    assert (outcome.error_class, outcome.is_permanent, outcome.is_its_own) == (error_class, is_permanent, is_its_own)


def a_queue(name: str, *, region: str = REGION, **attributes: str) -> tuple[str, str]:
    """Its ARN and its URL."""
    url = _client("sqs", region_name=region).create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return f"arn:aws:sqs:{region}:{ACCOUNT}:{name}", url


def a_topic(name: str, **attributes: str) -> tuple[str, str]:
    """Its ARN, and the URL of a queue that gets what it gets."""
    suffix = ".fifo" if name.endswith(".fifo") else ""
    queue, url = a_queue(f"subscriber{suffix}", **({"FifoQueue": "true"} if suffix else {}))
    sns = _client("sns", region_name=REGION)
    arn = sns.create_topic(Name=name, Attributes=attributes)["TopicArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes={"RawMessageDelivery": "true"})
    return arn, url


def a_bus(name: str) -> tuple[str, str]:
    """Its ARN, and the URL of a queue that a rule sends its events of Tickwheel to."""
    queue, url = a_queue("rule")
    events = _client("events", region_name=REGION)
    arn = events.create_event_bus(Name=name)["EventBusArn"]
    events.put_rule(Name="all", EventBusName=name, EventPattern=json.dumps({"source": ["tickwheel"]}))
    events.put_targets(Rule="all", EventBusName=name, Targets=[{"Id": "queue", "Arn": queue}])
    return arn, url


def a_state_machine(name: str) -> str:
    definition = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
    return _client("stepfunctions", region_name=REGION).create_state_machine(
        name=name, definition=json.dumps(definition), roleArn=f"arn:aws:iam::{ACCOUNT}:role/states"
    )["stateMachineArn"]


def executions_of(arn: str) -> list[tuple[str, str]]:
    """The names and inputs."""
    states = _client("stepfunctions", region_name=REGION)
    listed = states.list_executions(stateMachineArn=arn)["executions"]
    return [(found["name"], states.describe_execution(executionArn=found["executionArn"])["input"]) for found in listed]


def received(url: str, *, region: str = REGION) -> list[dict[str, Any]]:
    answer = _client("sqs", region_name=region).receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return answer.get("Messages", [])


def attributes_of(message: dict[str, Any]) -> dict[str, str]:
    return {name: value["StringValue"] for name, value in message.get("MessageAttributes", {}).items()}


def arrived_whole(caller: AwsCaller, arn: str, url: str) -> tuple[Outcome, Any]:
    """What comes of a call, and the message that it has sent: the payload with all that it takes to deduplicate."""
    outcome = call(caller, arn)

    (message,) = received(url)
    assert (message["Body"], attributes_of(message)) == (PAYLOAD, IN_ATTRIBUTES)
    return outcome, message
