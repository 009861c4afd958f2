"""The release before was deployed over this one, while jobs of this one waited in both rings and one ran."""

import pytest

from testkit.deployment import Deployment
from tests.e2e.returning import Rollback
from tests.e2e.waiting import Ticking, Update, reaches, runs_to_its_end
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(600)]

MINUTES = 300


def test_what_runs_after_a_rollback_is_the_release_before_behind_the_same_address(
    rollback: Rollback, update: Update, deployment: Deployment
) -> None:
    assert (rollback.before, rollback.after) == (update.after, update.before)


def test_a_rollback_loses_none_of_the_near_jobs_nor_the_one_that_runs(client: Client, rollback: Rollback) -> None:
    for sent in (*rollback.near, rollback.running):
        runs_to_its_end(client, sent)


def test_the_release_before_promotes_what_this_one_wrote_to_the_far_ring(client: Client, rollback: Rollback) -> None:
    first = rollback.promoted_after[0]

    [arrival] = first.target.wait(within=MINUTES)
    assert arrival.at >= first.job.due_at
    assert reaches(client, first.job.id, "succeeded").attempt == 1


def test_a_schedule_fires_on_through_a_rollback(ticking: Ticking, rollback: Rollback) -> None:
    ticking.wait_for_fires(until=rollback.ended_at)
