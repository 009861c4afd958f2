"""What is done to jobs and tenants beside submitting and cancelling: each episode draws some of it."""

from __future__ import annotations

from enum import StrEnum


class Act(StrEnum):
    """What clients, targets, owners and operators do."""

    RESUBMISSIONS = "resubmissions"
    """A client uses an idempotency key again, for the same job at another time."""
    LATER_ENDS = "later_ends"
    """A target answers 202: it sends heartbeats, completes or fails later, or falls silent."""
    MOVES = "moves"
    """An owner gives a job that waits another time, or another content."""
    HASTENINGS = "hastenings"
    """An owner lets a job run now."""
    OPERATIONS = "operations"
    """An owner cancels, reschedules, runs or exports all jobs that match."""
    REPLAYS = "replays"
    """An operator gives a dead letter another budget of attempts."""
    RATES = "rates"
    """The execution rate of a tenant is capped."""
    PERMITS = "permits"
    """The calls that a tenant may have at the same time are capped."""
    TENANT_PAUSES = "tenant_pauses"
    """A tenant is paused, and resumed."""
    STAGE_PAUSES = "stage_pauses"
    """Everybody is paused, and resumed."""
    FLOWS = "flows"
    """Jobs name a flow of their tenant, which bounds their rate or how many of them run at once."""
    ORDERS = "orders"
    """Jobs name a flow of their tenant, in which they run one after the other."""
    CALLBACKS = "callbacks"
    """Jobs name callbacks, which are told of their ends."""
    DEADLINES = "deadlines"
    """Jobs have a deadline of their runs."""
    COLLECTIONS = "collections"
    """Jobs are given to their target together with others."""


KEEPING_BACK = frozenset({Act.RATES, Act.PERMITS, Act.TENANT_PAUSES, Act.STAGE_PAUSES})
"""What keeps a release waiting, however long its window has been closed."""

HINDERING = frozenset({Act.FLOWS, Act.ORDERS, Act.RATES, Act.PERMITS, Act.TENANT_PAUSES, Act.STAGE_PAUSES})
"""What keeps fires waiting, however long they have been due."""
