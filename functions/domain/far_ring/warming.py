"""How many messages without a job go before a herd: they keep workers busy, so that event sources and workers are there."""

from __future__ import annotations

from collections.abc import Sequence

BODY = '{"v":2}'
"""Of such a message. A worker that knows nothing of them takes it for one of a newer Tickwheel, and gives it back."""

GROUP = "~warm"
"""No tenant: where a queue is fair, everybody else comes first."""

HOLD_SECONDS = 5
"""How long a worker keeps one. Acknowledged at once, a few workers take them all, and nobody starts another."""

HERD = 1_000
"""Jobs of a class that a shard has for one second. With fewer nobody needs to be warmed."""

JOBS_OF_A_MESSAGE = 8
MOST = 2_000
"""Messages for one second, class and shard."""


def warm_delays(before: int, after: int, *, left: int) -> Sequence[int]:
    """Delays of the messages (s) for jobs that are due in `left` seconds, of which there were so many before and are now.

    They are spread evenly over the time until then, and end with it.
    """
    last = left - HOLD_SECONDS
    return [number % last for number in range(_messages(before), _messages(after))] if last > 0 else ()


def _messages(jobs: int) -> int:
    return min(MOST, max(0, jobs - HERD) // JOBS_OF_A_MESSAGE)
