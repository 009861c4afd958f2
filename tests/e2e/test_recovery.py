"""A worker of this release is killed in the middle of an attempt: its message comes back sooner than the queue would give it back."""

import os
import signal
import time
from datetime import timedelta

import pytest

from functions.domain.jobs.claims import LEASE_MARGIN
from functions.worker.keeper import FIRST_AFTER
from infra.stage import Stage
from testkit.deployment import Deployment
from tests.e2e.sink import Sink
from tests.e2e.waiting import LONGEST_ABSENCE, reaches, send
from tickwheel.client import Client
from verification.deployed import processes_of

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(600)]

STAGE = Stage.named("local")
TIMEOUT = timedelta(seconds=30)


def test_the_job_of_a_killed_worker_runs_again_when_nobody_hides_its_message_any_more(
    deployment: Deployment, sink: Sink
) -> None:
    target = sink.target(holds=True)
    with Client(deployment.stack.api_endpoint) as client:
        sent = send(client, target, seconds=0, timeout=TIMEOUT)
        target.wait()
        time.sleep(FIRST_AFTER.total_seconds() + 2)  # by then its worker has hidden the message itself
        for worker in processes_of(str(deployment.stack.folder), ("Worker",)):
            os.kill(worker.pid, signal.SIGKILL)
        target.released.set()
        job = reaches(client, sent.job.id, "succeeded", within=LONGEST_ABSENCE)

    first, second = target.arrivals
    assert first.fence < second.fence == job.fence
    assert (first.attempt, second.attempt, job.rescues) == (1, 1, 1)
    # Not before the lease of the dead is over. By the visibility of its queue alone it would come back later.
    assert TIMEOUT + LEASE_MARGIN < second.at - first.at < STAGE.visibility
