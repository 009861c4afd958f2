"""Flows on the deployed stacks: several workers, and nobody goes before its turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from functions.domain.instants import SECOND
from testkit.polling import PATIENCE, eventually
from tests.e2e.sink import ALWAYS, Sink
from tests.e2e.waiting import reaches, send
from tickwheel.client import Client
from tickwheel.client.flows import Flow
from tickwheel.client.jobs import RetryPolicy

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

JOBS = 12
STUMBLES, FAILS = 4, 7
ATTEMPTS = 3
APART = timedelta(milliseconds=100)
"""Between the due times of two jobs: less than each of them takes."""

BEGINS_IN = timedelta(seconds=30)
"""For the requests, of which the first may start a function."""

ONCE_A_SECOND = RetryPolicy(strategy="fixed", attempts=ATTEMPTS, base=timedelta(seconds=1), cap=timedelta(seconds=1))


def test_a_dozen_jobs_of_an_ordered_flow_have_their_effects_in_order_though_one_fails_twice_and_one_for_good(
    client: Client, sink: Sink
) -> None:
    flow = [Flow("bookings", ordered=True)]
    failures = {STUMBLES: ATTEMPTS - 1, FAILS: ALWAYS}
    targets = [sink.target(fails=failures.get(number, 0), takes=0.2) for number in range(JOBS)]
    # The last comes first, and all of them before any is due.
    begins_at = datetime.now(UTC) + BEGINS_IN
    sent = {
        number: client.submit(
            targets[number].url, tenant="acme", run_at=begins_at + number * APART, flow=flow, retry=ONCE_A_SECOND
        )
        for number in reversed(range(JOBS))
    }
    assert datetime.now(UTC) < begins_at, "the machine was too slow for this test"

    for number, each in sent.items():
        reaches(client, each.id, "failed" if number == FAILS else "succeeded", within=4 * PATIENCE)

    calls = [[arrival.at for arrival in target.arrivals] for target in targets]
    assert [len(each) for each in calls] == [ATTEMPTS if number in failures else 1 for number in range(JOBS)]
    assert all(before[-1] < after[0] for before, after in pairwise(calls)), calls


def test_a_job_that_waits_for_the_rate_of_its_flow_says_so_and_comes_when_there_is_a_token(
    client: Client, sink: Sink
) -> None:
    flow, apart = [Flow("slow-api", rate="2/min", burst=1)], 30 * SECOND
    first, second = (send(client, sink.target(), seconds=seconds, flow=flow) for seconds in (2, 4))

    explanation = eventually(
        lambda: client.explain(second.job.id),
        lambda found: found.reason == "waiting_for_flow",
        what="the second job waits for its flow",
    )

    assert "slow-api" in explanation.detail
    assert not second.target.arrivals
    (later,), (earlier,) = second.target.wait(), first.target.arrivals
    # Each is noted when it arrives, shortly after its token was taken.
    assert later.at - earlier.at > apart - SECOND
