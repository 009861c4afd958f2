"""A worker died in the middle of an attempt."""

import pytest

from tests.e2e.waiting import Sent, reaches
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_a_job_whose_worker_was_killed_is_rescued_with_a_larger_fence(client: Client, killed: Sent) -> None:
    # Its message comes back after the visibility timeout of 95 s, when the lease of the dead worker is over.
    job = reaches(client, killed.job.id, "succeeded", within=240)

    first, second = killed.target.arrivals
    assert first.fence < second.fence == job.fence
    assert (first.attempt, second.attempt, job.rescues) == (1, 1, 1)
