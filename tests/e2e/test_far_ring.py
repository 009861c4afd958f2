"""What became of the jobs that were submitted first, for minutes later."""

import pytest

from testkit.deployment import Deployment
from tests.e2e.waiting import CancelledFar, FarJobs, Sent, Update, reaches
from tickwheel.client import Client

# The first of them waits for all.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(420)]

MINUTES = 300


def arrives_once_and_not_early(sent: Sent) -> None:
    [arrival] = sent.target.wait(within=MINUTES)
    assert arrival.at >= sent.job.due_at
    assert arrival.scheduled_at == sent.job.due_at


def test_a_far_job_waits_in_the_table_of_timers_and_in_no_queue(deployment: Deployment, far_jobs: FarJobs) -> None:
    assert far_jobs.default.job.ring == "far"
    assert set(far_jobs.queued.values()) == {0}
    # Promotion writes nothing to a row: it stays until its time to live.
    assert deployment.timer_row(far_jobs.default.job.id) is not None


def test_a_far_job_is_promoted_by_the_ticks_and_arrives_once_and_not_early(
    deployment: Deployment, client: Client, far_jobs: FarJobs
) -> None:
    arrives_once_and_not_early(far_jobs.default)

    assert far_jobs.default.target.arrivals[0].json == {"far": True}
    assert sum(tick["sent"] for tick in deployment.events("Scanner", "shard_scanned")) >= 1
    reaches(client, far_jobs.default.job.id, "succeeded")


def test_an_exact_far_job_is_held_until_its_instant(far_jobs: FarJobs) -> None:
    arrives_once_and_not_early(far_jobs.exact)


def test_an_at_least_once_far_job_arrives_and_keeps_no_state(client: Client, far_jobs: FarJobs) -> None:
    arrives_once_and_not_early(far_jobs.at_least_once)

    job = client.get(far_jobs.at_least_once.job.id)
    assert (job.attempt, job.result) == (None, None)


def test_a_far_job_whose_target_fails_is_tried_again(client: Client, far_jobs: FarJobs) -> None:
    first, second = far_jobs.retried.target.wait(2, within=MINUTES)

    assert (first.attempt, second.attempt) == (1, 2)
    assert first.fence < second.fence
    assert first.at >= far_jobs.retried.job.due_at


def test_a_far_job_that_waited_through_an_update_runs_on_the_new_code(
    client: Client, far_jobs: FarJobs, update: Update
) -> None:
    job = reaches(client, far_jobs.for_new_handler.id, "succeeded", within=MINUTES)

    assert job.attempt == 1
    assert job.result == {"said by": "the updated code", "payload": "far"}


def test_a_cancelled_far_job_never_runs(client: Client, far_jobs: FarJobs, cancelled_far: CancelledFar) -> None:
    assert cancelled_far.state == "cancelled"
    # Later jobs of the same bucket have come and gone.
    far_jobs.retried.target.wait(2, within=MINUTES)

    assert far_jobs.cancelled.target.arrivals == []
    assert client.get(far_jobs.cancelled.job.id).state == "cancelled"
