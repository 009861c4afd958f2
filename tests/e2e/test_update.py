"""The deployed stack got new code while jobs waited in it."""

from itertools import pairwise

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.waiting import FarJobs, Update, reaches
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

MINUTES = 240
"""A message that was in a killed function comes back after 95 s."""


def test_an_update_loses_none_of_the_near_jobs_that_wait_or_come_due_meanwhile(client: Client, update: Update) -> None:
    for sent in update.near:
        reaches(client, sent.job.id, "succeeded", within=MINUTES)
        arrivals = sent.target.arrivals
        assert arrivals[0].at >= sent.job.due_at
        # The local cloud kills functions that run while they are updated, which AWS lets finish. Then the attempt is
        # rescued, and its target can tell that by the fence.
        assert all(earlier.fence < later.fence for earlier, later in pairwise(arrivals))


def test_an_update_begins_while_the_far_ring_holds_its_jobs(update: Update, far_jobs: FarJobs) -> None:
    assert update.began_at < far_jobs.opens_at


def test_after_an_update_the_new_code_runs_behind_the_old_address(
    deployment: Deployment, client: Client, update: Update
) -> None:
    job = client.submit("handler:new", tenant="acme", payload=1)

    assert reaches(client, job.id, "succeeded").result == {"said by": "the updated code", "payload": 1}
    assert update.code[0] != update.code[1]
    assert update.stack.api_endpoint == deployment.stack.api_endpoint
