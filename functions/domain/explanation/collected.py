"""Why a job that is collected has not run yet."""

from __future__ import annotations

from functions.domain.explanation.facts import Explanation, Reason
from functions.domain.instants import format_instant
from functions.domain.jobs.collection import CollectionState


def explain_collected(collection: CollectionState) -> Explanation:
    """It waits to be given to its target with others."""
    opens_at = collection.opens_at
    when = f"is due at {format_instant(opens_at)}" if opens_at is not None else "is placed within minutes"
    return Explanation(
        reason=Reason.COLLECTED,
        at=opens_at,
        detail=f"It waits in its collection to be given to its target together with others: release {collection.number} {when}.",
        remedy="Nothing but the time of the release, or as many jobs of its key as one takes; it can still be cancelled.",
    )
