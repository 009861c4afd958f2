"""Chains of more invocations than Lambda lets pass as no loop: what calls the sink of these tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from testkit.long_chains import ATTEMPTS, Called, begin_crowd, begin_fires, failing_job
from tests.e2e.sink import Sink, Target
from tests.e2e.waiting import Sent
from tickwheel.client import Client
from tickwheel.client.jobs import Submitted

TENANT = "long-chains"
CAPPED = "capped"


@dataclass(frozen=True)
class LongChains:
    """retried: a job whose last attempt succeeds. fires: where a schedule calls from end to start. crowd: jobs of a tenant with one permit."""

    retried: Sent
    fires: Target
    crowd: list[Submitted]


def begin_long_chains(client: Client, sink: Sink) -> LongChains:
    """Begins all three; they end while other tests run."""
    fires, failing, slow = sink.target(), sink.target(fails=ATTEMPTS - 1), sink.target(takes=2.0)
    begin_fires(client, Called(fires.url), tenant=TENANT)
    # Most calls of the tenant's one destination succeed, or its breaker would hold the retries up.
    retried = client.submit_job(failing_job(Called(failing.url), tenant=TENANT, between=timedelta(seconds=3)))
    crowd = begin_crowd(client, Called(slow.url), tenant=CAPPED)
    return LongChains(Sent(retried, failing), fires, [job for job in crowd if isinstance(job, Submitted)])
