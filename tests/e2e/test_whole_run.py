"""What holds over everything that the other tests made the stack do."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from testkit.deployment import FUNCTIONS, Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink
from tests.e2e.waiting import Sent, Ticking, Update, send
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

FAULTS = (
    "AccessDenied",
    "not authorized to perform",
    "Traceback",
    "Task timed out",
    "errorType",
    '"level":"ERROR"',
    '"level":"CRITICAL"',
    '"level":"WARNING"',
)
"""What no log line may hold: the failures that tests provoke are results, logged as events of level INFO."""

UNEXPECTED_EVENTS = (
    "job_returned",
    "settle_refused",
    "not_released",
    "straggler",
    "came_early",
    "rescued",
    "requeued",
    "submission_failed",
    "schedule_healed",
    "schedule_undecodable",
    "chain_broken",
    "run_not_given_up",
    "fire_refused",
    "waking_failed",
    "operation_failed",
)


@pytest.fixture(scope="module", autouse=True)
def all_functions_ran(deployment: Deployment, client: Client, sink: Sink) -> None:
    """Also when this module runs alone."""
    deployment.client("sqs").send_message(QueueUrl=deployment.queue("NormalDead"), MessageBody="a foreign message")
    send(client, sink.target(), seconds=0).target.wait()
    for name in FUNCTIONS:
        eventually(partial(deployment.log, name), bool, what=f"{name} writes to its log")


@pytest.fixture
def disturbed(update: Update, killed: Sent) -> list[Sent]:
    """Jobs whose worker was killed, or may have been: see test_update."""
    return [*update.near, killed]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_allowed_all_that_it_does_and_fails_in_nothing(deployment: Deployment, name: str) -> None:
    faults = [line for line in deployment.log(name) if any(fault in line for fault in FAULTS)]

    assert faults == []


def test_a_function_is_allowed_no_more_than_its_role_says(deployment: Deployment) -> None:
    credentials = deployment.client("sts").assume_role(
        RoleArn=f"arn:aws:iam::000000000000:role/{deployment.role('Worker')}", RoleSessionName="end-to-end"
    )["Credentials"]
    worker = deployment.as_session(credentials, "dynamodb")

    with pytest.raises(worker.exceptions.ClientError, match="not authorized to perform: dynamodb:Scan"):
        worker.scan(TableName=deployment.table("Ledger"))
    worker.close()


@pytest.mark.parametrize("event", UNEXPECTED_EVENTS)
def test_no_function_found_what_only_a_fault_brings_about(
    deployment: Deployment, disturbed: list[Sent], ticking: Ticking, event: str
) -> None:
    found = [found for name in FUNCTIONS for found in deployment.events(name, event) if not ticking.concerns(found)]

    assert [each for each in found if each.get("job_id") not in {sent.job.id for sent in disturbed}] == []


def test_no_job_was_early_by_the_count_of_the_workers(deployment: Deployment) -> None:
    emitted: list[dict[str, Any]] = list(deployment.metrics("Worker"))

    assert sum(sum(metrics.get("attempts", [])) for metrics in emitted) > 0
    assert [metrics for metrics in emitted if "early" in metrics] == []


def test_no_job_was_early_or_done_twice_by_the_count_of_the_targets(
    sink: Sink, disturbed: list[Sent], ticking: Ticking
) -> None:
    may_be_rescued = [ticking.target, *(sent.target for sent in disturbed)]
    for target in sink.targets.values():
        # A schedule's target is called for each of its fires, and each of them has a key of its own.
        done = Counter(each.headers["idempotency-key"] for each in target.arrivals if each.status == 200)
        assert target in may_be_rescued or max(done.values(), default=0) <= 1, target.url
        was_early = any(arrival.at < arrival.scheduled_at for arrival in target.arrivals)
        assert target.is_hastened or not was_early, target.url


def test_no_queue_keeps_a_job_that_is_due(deployment: Deployment) -> None:
    eventually(
        lambda: deployment.messages(delayed=False), lambda found: not any(found.values()), what="the queues are empty"
    )
