"""Work whose next step is sent, again and again, by the invocation that made the one before.

Lambda stops such a chain after about 16 invocations if the messages say so (tickwheel/local/recursion.py), so each of these
is longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tests.e2e.sink import Sink, Target
from tests.e2e.waiting import Sent, send
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule

ATTEMPTS = 20
FIRES = 25
CROWD = 30

TENANT = "long-chains"
CAPPED = "capped"
END_TO_START = "end-to-start"

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class LongChains:
    """retried: a job whose last attempt succeeds. fires: where a schedule calls from end to start. crowd: jobs of a tenant with one permit."""

    retried: Sent
    fires: Target
    crowd: list[Submitted]


def begin_long_chains(client: Client, sink: Sink) -> LongChains:
    """Begins all three; they end while other tests run."""
    fires = sink.target()
    every = Every(interval=_SECOND, from_end=True)
    client.schedules.put(NewSchedule(END_TO_START, tenant=TENANT, every=every, target=fires.url))
    # Most calls of the tenant's one destination succeed, or its breaker would hold the retries up.
    retry = RetryPolicy(strategy="fixed", attempts=ATTEMPTS, base=3 * _SECOND, cap=3 * _SECOND)
    retried = send(client, sink.target(fails=ATTEMPTS - 1), seconds=0, tenant=TENANT, retry=retry)
    capped = client.tenants.patch(CAPPED, limits={"max_concurrency": 1})
    slow = sink.target(takes=2.0)
    crowd = client.submit_many([NewJob(slow.url, tenant=CAPPED, run_at=capped.in_effect_by)] * CROWD)
    return LongChains(retried, fires, [job for job in crowd if isinstance(job, Submitted)])
