"""How many messages a worker's batch holds, likely: arithmetic alone.

An event source without a batching window gives its function what a poller receives, at once. So a batch has more than one
message only where messages come faster than the free pollers take them one by one. Lambda starts with five, and brings more
only while messages are left over (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html): so the batches of a
queue are as small as five pollers bear, up to ten messages, and more come only beyond that. Each class has a queue. That
messages come evenly is assumed: those of a herd fill their batches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FULL_BATCH = 10
"""Messages."""

FIRST_POLLERS = 5
"""That an event source has, and invocations at a time, before it needs more."""

POLLS_A_SECOND = 10
INVOCATIONS_OF_A_POLLER = 10
"""Of a provisioned poller, at most: the same page."""

_CLOSE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Source:
    """An event source: so many invocations at a time, and receives a second, before it needs more pollers. None: no bound."""

    invocations: float
    receives_a_second: float | None = None

    @staticmethod
    def of(provisioned: int) -> "Source":
        """With so many provisioned pollers; with none, one that Lambda scales."""
        if not provisioned:
            return Source(invocations=FIRST_POLLERS)
        return Source(invocations=provisioned * INVOCATIONS_OF_A_POLLER, receives_a_second=provisioned * POLLS_A_SECOND)


def likely_fill(a_second: float, *, source: Source, seconds_of: Callable[[float], float]) -> float:
    """Messages of a batch of one queue, one to ten. seconds_of: how long a batch of so many keeps its poller."""

    def are_taken(fill: float) -> bool:
        at_a_time = a_second / fill * seconds_of(fill)
        return at_a_time <= source.invocations and a_second / fill <= (source.receives_a_second or a_second)

    low, high = 1.0, float(FULL_BATCH)
    if are_taken(low):
        return low
    if not are_taken(high):
        return high
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if are_taken(middle) else (middle, high)
    return high


def likely_batches(
    a_second: float, *, shares: Sequence[float], sources: Sequence[Source], seconds_of: Callable[[float], float]
) -> float:
    """Batches a second of all classes, each with its share and its source."""
    rates = [(a_second * share, source) for share, source in zip(shares, sources, strict=True) if share]
    return sum(rate / likely_fill(rate, source=source, seconds_of=seconds_of) for rate, source in rates)
