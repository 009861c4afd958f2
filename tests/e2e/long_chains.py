"""Work whose next step is sent, again and again, by the invocation that made the one before.

Lambda stops such a chain after about 16 invocations if the messages say so (tickwheel/local/recursion.py), so each of these
is longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.e2e.sink import Sink, Target
from tests.e2e.waiting import Sent, send
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule

ATTEMPTS = 20
FIRES = 25
CROWD = 30

FAILING = "failing-often"
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
    retry = RetryPolicy(strategy="fixed", attempts=ATTEMPTS, base=_SECOND, cap=_SECOND)
    retried = send(client, sink.target(fails=ATTEMPTS - 1), seconds=0, tenant=FAILING, retry=retry)
    _keep_breaker_closed(client, sink)
    fires = sink.target()
    every = Every(interval=2 * _SECOND, from_end=True)
    client.schedules.put(NewSchedule(END_TO_START, tenant=END_TO_START, every=every, target=fires.url))
    capped = client.tenants.patch(CAPPED, limits={"max_concurrency": 1})
    slow = sink.target(takes=2.0)
    crowd = client.submit_many([NewJob(slow.url, tenant=CAPPED, run_at=capped.in_effect_by)] * CROWD)
    return LongChains(retried, fires, [job for job in crowd if isinstance(job, Submitted)])


def _keep_breaker_closed(client: Client, sink: Sink) -> None:
    """Most of the tenant's calls of that destination succeed, for a minute and a half."""
    target, now = sink.target(), datetime.now(UTC)
    for first in range(0, 180, 30):  # a busy machine takes its time for each
        run_at = [now + each * _SECOND / 2 for each in range(first, first + 30)]
        client.submit_many([NewJob(target.url, tenant=FAILING, run_at=each) for each in run_at])
