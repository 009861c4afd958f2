"""Chains of more invocations than Lambda lets pass as no loop. See long_chains.py."""

from datetime import UTC, datetime, timedelta

import pytest

from testkit.deployment import Deployment
from testkit.long_chains import ATTEMPTS, CROWD, END_TO_START, FIRES
from tests.e2e.long_chains import TENANT, LongChains
from tests.e2e.waiting import reaches
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_a_job_of_twenty_attempts_seconds_apart_ends(client: Client, long_chains: LongChains) -> None:
    job = reaches(client, long_chains.retried.job.id, "succeeded", within=400)

    assert job.attempt == ATTEMPTS


def test_a_schedule_fires_twenty_five_times_from_end_to_start(client: Client, long_chains: LongChains) -> None:
    fires = long_chains.fires.wait(FIRES, within=240)
    reaches(client, long_chains.retried.job.id, "succeeded", within=400)  # to which the fires keep the breaker closed
    client.schedules.delete(END_TO_START, tenant=TENANT)

    # Each fire is an invocation by the one before; none is a fire that was tried again.
    assert {arrival.attempt for arrival in fires} == {1}


def test_a_crowd_of_jobs_with_one_permit_ends(client: Client, long_chains: LongChains) -> None:
    assert len(long_chains.crowd) == CROWD
    for job in long_chains.crowd:
        reaches(client, job.id, "succeeded", within=600)


def test_no_invocation_was_dropped_as_a_recursive_loop(deployment: Deployment, long_chains: LongChains) -> None:
    now = datetime.now(UTC)
    dropped = deployment.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="RecursiveInvocationsDropped",
        Dimensions=[{"Name": "FunctionName", "Value": deployment.function("Worker")}],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        Period=60,
        Statistics=["Sum"],
    )

    assert dropped["Datapoints"] == []
