"""Which due timers of a page go out now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Due = TypeVar("Due")


def choose(page: Sequence[Due]) -> Sequence[Due]:
    """The timers of one class that a tick sends, in the order in which they are sent.

    Everything that is due: the ready queues' own fairness between tenants (SQS fair queues) is all there is until a
    shard has a budget to divide.
    """
    return page
