"""An acknowledged cancel never runs, and one that cannot be promised is refused."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from testkit.deployment import Deployment
from tests.e2e.sink import Sink
from tests.e2e.waiting import CancelledFar, FarJobs, reaches, send
from tickwheel.client import Client
from tickwheel.client.jobs import RetryPolicy
from tickwheel.errors import ApiProblem

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_a_cancelled_near_job_never_runs(deployment: Deployment, client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=20)

    assert client.cancel(sent.job.id).state == "cancelled"

    assert client.get(sent.job.id).state == "cancelled"
    # Its message still comes, when it is due, and meets the tombstone.
    assert deployment.wait_until_dropped(sent.job.id)["reason"] == "settled as cancelled"
    assert datetime.now(UTC) >= sent.job.due_at
    assert sent.target.arrivals == []


def test_a_cancel_of_a_far_job_also_deletes_its_row(
    client: Client, far_jobs: FarJobs, cancelled_far: CancelledFar
) -> None:
    assert cancelled_far == CancelledFar("cancelled", had_row=True, has_row=False)
    assert client.get(far_jobs.cancelled.job.id).state == "cancelled"


def test_cancelling_twice_is_answered_alike_because_an_answer_may_be_lost(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=30)

    assert client.cancel(sent.job.id) == client.cancel(sent.job.id)


def test_a_far_at_least_once_job_is_cancelled_by_deleting_its_row(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    sent = send(client, sink.target(), seconds=600, delivery="at_least_once")
    assert sent.job.ring == "far"
    assert deployment.timer_row(sent.job.id) is not None

    # Its submission may still be under way, as far as the scheduler knows, for 30 s and SKEW.
    with pytest.raises(ApiProblem, match="may be on its way"):
        client.cancel(sent.job.id)
    time.sleep(36)
    assert client.cancel(sent.job.id).state == "cancelled"

    assert deployment.timer_row(sent.job.id) is None
    assert client.cancel(sent.job.id).state == "cancelled"


def test_a_keyed_at_least_once_job_is_too_fresh_to_be_cancelled_in_its_first_seconds(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    # A submission of the same key that is still under way would place it again behind the delete.
    sent = send(client, sink.target(), seconds=600, delivery="at_least_once", idempotency_key="subscription-7")

    with pytest.raises(ApiProblem) as problem:
        client.cancel(sent.job.id)

    assert (problem.value.status, problem.value.code) == (409, "too_late")
    assert deployment.timer_row(sent.job.id) is not None


def test_a_near_at_least_once_job_cannot_be_cancelled_and_runs(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=3, delivery="at_least_once")

    with pytest.raises(ApiProblem) as problem:
        client.cancel(sent.job.id)

    assert (problem.value.status, problem.value.code) == (409, "too_late")
    [arrival] = sent.target.wait()
    assert arrival.at >= sent.job.due_at
    assert arrival.fence == 0


def test_a_job_that_has_succeeded_cannot_be_cancelled(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=0)
    reaches(client, sent.job.id, "succeeded")

    with pytest.raises(ApiProblem) as problem:
        client.cancel(sent.job.id)

    assert (problem.value.status, problem.value.code) == (409, "already_settled")


def test_a_job_that_is_cancelled_between_two_attempts_is_not_tried_again(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    gap = timedelta(seconds=20)
    sent = send(client, sink.target(fails=1), seconds=0, retry=RetryPolicy(strategy="fixed", base=gap, cap=gap))
    reaches(client, sent.job.id, "retrying")

    assert client.cancel(sent.job.id).state == "cancelled"

    assert deployment.wait_until_dropped(sent.job.id)["attempt"] == 2
    assert client.get(sent.job.id).state == "cancelled"
    assert len(sent.target.arrivals) == 1
