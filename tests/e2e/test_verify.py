"""The checker judges the deployed stacks, while their workers are killed and their scanner is stopped and doubled."""

import pytest

from testkit.deployment import Deployment
from verification.checker import Invariant
from verification.faults import FROM_OUTSIDE
from verification.local import verify

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

JOBS = 300
SCHEDULES = 2

NOT_FROM_OUTSIDE = {
    Invariant.FLOWS_KEPT,
    Invariant.ORDER_KEPT,
    Invariant.CALLBACKS_KEPT,
    Invariant.DEADLINES_KEPT,
    Invariant.COLLECTIONS_KEPT,
}
"""From outside no job names a flow, a callback, a deadline or a collection."""


@pytest.mark.timeout(600)
def test_the_deployed_stacks_keep_every_promise_under_faults_from_outside(deployment: Deployment) -> None:
    outcome = verify(deployment.stack, JOBS, 7, FROM_OUTSIDE)

    assert outcome.judgement.violations == []
    assert outcome.judgement.checks.keys() == set(Invariant) - NOT_FROM_OUTSIDE
    assert all(outcome.struck[fault] for fault in FROM_OUTSIDE)
    assert outcome.jobs == JOBS
    assert outcome.fires > SCHEDULES
