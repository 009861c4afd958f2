"""How many messages without a job go before a herd: they keep workers busy, so that event sources and workers are there."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

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
"""Messages of a shard and class that are on their way, however many workers there are: a tick has other things to do."""

MESSAGES_OF_A_WORKER = 60
"""On their way from all shards together, for each worker that a class may have at once. In the end they come twice as densely as
on average: if they have 100 seconds, a worker has six at a time, of the ten that it takes. The others are for jobs."""

_GOLDEN = (sqrt(5) - 1) / 2


def most_messages(workers: int, *, shards: int) -> int:
    """How many a shard may have on their way to a class that so many workers serve at once."""
    return min(MOST, workers * MESSAGES_OF_A_WORKER // shards)


def warm_delays(before: int, after: int, *, left: int, room: int) -> Sequence[int]:
    """Delays of the messages (s) for jobs that are due in `left` seconds, of which there were so many before and are now.

    room: for so many messages. Those beyond are left out for good.
    More and more of them come until then, and the last end with it: a function starts its environments one after the other,
    and jobs beside them must not wait for those. By the golden ratio any number of them is spread alike.
    """
    last = left - HOLD_SECONDS
    numbers = range(_messages(before), _messages(after)) if last > 0 else ()
    return [int(last * sqrt(number * _GOLDEN % 1)) for number in numbers[: max(0, room)]]


def _messages(jobs: int) -> int:
    return max(0, jobs - HERD) // JOBS_OF_A_MESSAGE
