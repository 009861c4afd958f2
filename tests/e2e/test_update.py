"""The release before this one was deployed first, and this one over it while jobs waited in both rings."""

import pytest

from testkit.deployment import Deployment
from tests.e2e.releases import Releases
from tests.e2e.waiting import FarJobs, Sent, Ticking, Update, reaches, runs_to_its_end
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_what_is_updated_is_the_release_before_this_one(releases: Releases) -> None:
    if releases.why_not is not None:
        pytest.skip(releases.why_not)

    assert releases.previous != releases.this
    assert (releases.previous.root / "app.py").is_file()


def test_an_update_loses_none_of_the_near_jobs_that_wait_or_come_due_meanwhile(client: Client, update: Update) -> None:
    for sent in update.near:
        runs_to_its_end(client, sent)


def test_an_update_begins_while_the_far_ring_holds_its_jobs(update: Update, far_jobs: FarJobs) -> None:
    assert update.began_at < far_jobs.opens_at


def test_an_attempt_that_began_before_an_update_ends_after_it(client: Client, update: Update, killed: Sent) -> None:
    assert killed.target.arrivals[0].at < update.began_at

    runs_to_its_end(client, killed)
    assert killed.target.arrivals[-1].at > update.began_at


def test_a_schedule_fires_on_through_an_update(ticking: Ticking, update: Update) -> None:
    ticking.wait_for_fires(until=update.ended_at)


def test_after_an_update_the_new_code_runs_behind_the_old_address(
    client: Client, deployment: Deployment, update: Update
) -> None:
    job = client.submit("handler:new", tenant="acme", payload=1)

    assert reaches(client, job.id, "succeeded").result == {"said by": "the updated code", "payload": 1}
    assert update.after.code != update.before.code
    assert update.after.api_endpoint == update.before.api_endpoint == deployment.stack.api_endpoint
