"""What became of the jobs and the schedule that waited while there was no scheduler. It comes after minutes of other tests."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from functions.domain.instants import MINUTE
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import Deployment
from tests.e2e.returning import Return, Rollback
from tests.e2e.schedules import fires_of
from tests.e2e.waiting import Ticking, reaches, runs_to_its_end
from tickwheel.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(600)]

A_MOMENT = timedelta(seconds=10)


@pytest.fixture
def new_client(deployment: Deployment, returned: Return) -> Iterator[Client]:
    """The API of the new scheduler has an address of its own."""
    with Client(deployment.stack.api_endpoint) as client:
        yield client


def test_no_far_job_is_lost_and_none_that_had_ended_runs_again(
    new_client: Client, rollback: Rollback, returned: Return
) -> None:
    for sent in rollback.far:
        runs_to_its_end(new_client, sent)

    ended_before = rollback.promoted_after[0].target.arrivals
    assert [arrival.at < returned.destroyed_at for arrival in ended_before] == [True]


def test_a_near_job_that_went_with_its_queue_runs_when_its_client_asks_again(
    new_client: Client, returned: Return
) -> None:
    lost = returned.near
    assert lost.target.arrivals == []

    run_at = datetime.now(UTC)
    again = new_client.submit(lost.target.url, tenant="acme", run_at=run_at, idempotency_key="near and keyed")
    assert again.id == lost.job.id
    reaches(new_client, lost.job.id, "succeeded")

    assert len(lost.target.arrivals) == 1


def test_a_schedule_misses_only_the_fires_that_were_messages_and_backfill_runs_them(
    new_client: Client, ticking: Ticking, returned: Return
) -> None:
    until = datetime.now(UTC) - MINUTE
    gone_from, gone_until = returned.destroyed_at - A_MOMENT, returned.destroyed_at + LOCAL_WHEEL.guard + A_MOMENT
    gone = set(fires_of(MINUTE, timedelta(0), after=gone_from, until=gone_until))
    ticking.wait_for_fires(until=until, but=gone)

    missing = sorted(gone - {arrival.scheduled_at for arrival in ticking.target.arrivals})
    assert missing
    seen = len(ticking.target.arrivals)
    end = missing[-1] + timedelta(seconds=1)
    backfill = new_client.schedules.backfill(ticking.name, tenant=ticking.name, start=missing[0], end=end)
    assert backfill.count == len(missing)
    ticking.target.wait(seen + len(missing))
