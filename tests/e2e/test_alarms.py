"""Alarms go off by what the other tests did to the stack: they are evaluated on what its functions wrote to their logs.

The local cloud makes no metrics of the embedded format, and keeps no alarms on expressions: both are done here, as
CloudWatch documents it. It counts the errors of functions that are invoked directly; those are taken from it.
"""

from __future__ import annotations

import dataclasses
import math
import time
from datetime import UTC, datetime, timedelta

import pytest

from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.metrics import DIMENSIONS
from infra.metrics import EMITTED
from infra.stage import Stage
from scripts.synthesis import synthesise
from testkit.builders import a_timer
from testkit.cloudwatch.alarms import Alarms, short_name
from testkit.cloudwatch.datapoints import Datapoints, metric
from testkit.deployment import FUNCTIONS, Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink
from tests.e2e.waiting import reaches, send
from tests.integration.stage import NAMESPACE
from tickwheel.client import Client
from tickwheel.client.jobs import RetryPolicy
from tickwheel.local.checkout import find_checkout

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

LONG = ("BurnFastLong", "JobsAreLate")
"""Alarms that need a window of an hour, and one of five minutes that ends with it."""

HOUR, FIVE_MINUTES = 3600, 300

LATE_OF_AN_HOUR = 0.02
"""More than `BurnFastLong` bears, which is 14.4 times the thousandth that the stage promises."""


@pytest.fixture(scope="module")
def alarms() -> Alarms:
    """Of the stage that is deployed, with those that the local cloud cannot keep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", find_checkout().search_path)  # the CDK runs in Node
        return Alarms(synthesise(dataclasses.replace(Stage.named("local"), emulated=False)).scheduler["Resources"])


@pytest.fixture(scope="module", autouse=True)
def faults(deployment: Deployment, client: Client, sink: Sink) -> None:
    """Also when this module runs alone."""
    failing = sink.target(fails=math.inf)
    sent = send(client, failing, seconds=0, retry=RetryPolicy(strategy="fixed", attempts=1))
    reaches(client, sent.job.id, "failed")
    deployment.client("sqs").send_message(
        QueueUrl=deployment.queue("NormalDead"), MessageBody="another foreign message"
    )
    # Late by more than is promised: messages that their queue gives out that long after their time. However many began in time before,
    # they are enough for an alarm on an hour.
    due_at = datetime.now(UTC) - timedelta(seconds=45)
    for _ in range(12 + math.ceil(LATE_OF_AN_HOUR * _begun(deployment))):
        waited = a_timer(due_at=due_at, target=sink.target().url)
        deployment.client("sqs").send_message(
            QueueUrl=deployment.queue("Normal"), MessageBody=encode_envelope([waited]), MessageGroupId=waited.job.tenant
        )
    for _ in range(2):
        deployment.client("lambda").invoke(FunctionName=deployment.function("Scanner"), Payload=b"{}")
        time.sleep(60 - time.time() % 60)  # what is counted is counted by the minute


def _counted(deployment: Deployment) -> Datapoints:
    """What functions emitted so far."""
    data = Datapoints()
    for function in FUNCTIONS:
        data.read(deployment.metrics(function))
    return data


def _begun(deployment: Deployment) -> int:
    """Attempts of which is known whether they began late."""
    return len(_late(_counted(deployment)))


def _late(data: Datapoints) -> list[tuple[float, float]]:
    (late,) = (values for of, values in data.values.items() if (of.namespace, of.name) == (NAMESPACE, "late"))
    return late


@pytest.fixture
def data(deployment: Deployment) -> Datapoints:
    """What was counted so far."""
    data = _counted(deployment)
    now = datetime.now(UTC)
    counted = deployment.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="Errors",
        Dimensions=[{"Name": "FunctionName", "Value": deployment.function("Scanner")}],
        StartTime=now - timedelta(hours=2),
        EndTime=now,
        Period=60,
        Statistics=["Sum"],
    )
    for point in counted["Datapoints"]:
        errors = metric("AWS/Lambda", "Errors", FunctionName="ScannerFunction")
        data.put(errors, point["Sum"], at=point["Timestamp"].timestamp())
    return data


def went_off(alarms: Alarms, data: Datapoints) -> set[str]:
    """The names of all that were off at the end of some minute, or of the hour."""
    times = [at for values in data.values.values() for at, _ in values]
    first, last = min(times), max(times)
    # Until the minute of the last one is over, wherever in a minute the first one lies.
    minutes = [first + 60 * number for number in range(int((last - first) / 60) + 3)]
    found = {name for at in minutes for name in alarms.in_alarm(data, at=at)}
    hour, ends_at = _by_the_end_of_an_hour(data)
    return found | (alarms.in_alarm(hour, at=ends_at) & set(LONG))


def _by_the_end_of_an_hour(data: Datapoints) -> tuple[Datapoints, float]:
    """As if the five minutes in which the last late job began were the last of an hour, and when that is over."""
    ended_at = (max(at for at, is_late in _late(data) if is_late) // FIVE_MINUTES + 1) * FIVE_MINUTES
    ends_at = math.ceil(ended_at / HOUR) * HOUR
    moved = Datapoints()
    for of, values in data.values.items():
        for at, value in values:
            moved.put(of, value, at=at + ends_at - ended_at)
    return moved, ends_at


def test_faults_on_the_local_cloud_set_their_alarms_off(
    alarms: Alarms, deployment: Deployment, data: Datapoints
) -> None:
    found = went_off(alarms, data)
    assert {"DeadLetteredByWorker", "DeadLetteredByDeadLetters", "JobsFail"} <= found
    assert "ErrorsScanner" in found
    assert {"BurnFastShort", *LONG} <= found
    assert data.undeclared(NAMESPACE, emitted=EMITTED, dimensions=DIMENSIONS) == set()
    # What did not happen is not reported.
    assert not found & {"Early", "ClockSkewed", "ChainsBroken", "PromiseBroken", "Shedding", "DeadLetteredByScanner"}


def test_messages_that_nobody_takes_from_a_dead_letter_queue_set_their_alarm_off(
    alarms: Alarms, deployment: Deployment
) -> None:
    functions, sqs = deployment.client("lambda"), deployment.client("sqs")
    url = deployment.queue("NormalDead")
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    (consumer,) = functions.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    functions.update_event_source_mapping(UUID=consumer["UUID"], Enabled=False)
    try:
        sqs.send_message(QueueUrl=url, MessageBody="nobody takes it")
        name = "ApproximateNumberOfMessages"
        read = eventually(
            lambda: int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]),
            bool,
            what="the message waits",
        )
    finally:
        functions.update_event_source_mapping(UUID=consumer["UUID"], Enabled=True)
    data = Datapoints()
    data.put(metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", QueueName="ReadyNormalDead"), read, at=60)
    assert {"DeadLetters", "JobsFail"} <= alarms.in_alarm(data, at=120)


def test_every_name_is_that_of_an_alarm(alarms: Alarms) -> None:
    assert {*LONG} <= {short_name(each) for each in {**alarms.single, **alarms.composites}}
