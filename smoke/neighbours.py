"""A tenant with thousands of jobs, and one with ten."""

from __future__ import annotations

import itertools
from functools import partial

from smoke.check import Check, Phase
from smoke.faults import Wrong
from smoke.ground import ECHO, Ground
from tickwheel.client.jobs import NewJob

NOISE = 2_000
QUIET = 10

_EACH = 10
"""Every tenth of the noise is looked at."""

_MOST_SECONDS = 400


@partial(Check, name="neighbours", phase=Phase.LOAD, seconds=2 * _MOST_SECONDS + 60, is_far=True, jobs=NOISE + QUIET)
def neighbours(ground: Ground) -> str:
    """Ten jobs do not wait for the thousands of another tenant, of the same class, shard and instant."""
    noisy = ground.tenant("a-noisy")
    shard = ground.stage.wheel.shard_of
    suffix = next(
        number for number in itertools.count() if shard(f"smoke-{ground.run}-quiet-{number}", "") == shard(noisy, "")
    )
    due_at = ground.next_far()
    noise = ground.submit(*[NewJob(ECHO, tenant=noisy, run_at=due_at, priority="low")] * NOISE)
    quiet = ground.submit(
        *[NewJob(ECHO, tenant=ground.tenant(f"quiet-{suffix}"), run_at=due_at, priority="low")] * QUIET
    )
    ground.await_ends(quiet, within=_MOST_SECONDS)
    looked_at = noise[::_EACH]
    ground.await_ends(looked_at, within=_MOST_SECONDS)
    last = max(
        found.updated_at
        for found in ground.side_by_side(lambda job: ground.client.get(job.id), quiet)
        if found.updated_at
    )
    ends = [found.updated_at for found in ground.side_by_side(lambda job: ground.client.get(job.id), looked_at)]
    behind = sum(end is not None and end > last for end in ends) / len(ends)
    seen = f"{QUIET} jobs ended before {behind:.0%} of {NOISE:,} of the same instant"
    if behind <= 0.5:  # noqa: PLR2004  in the order of their rows all of the noise would have come first
        raise Wrong(seen, expected="before half of them")
    return f"{seen}; {(last - due_at).total_seconds():.1f} s late at most"


CHECKS = (neighbours,)
