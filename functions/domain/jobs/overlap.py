"""What a fire does while the run before it has not come to its end."""

from __future__ import annotations

from enum import StrEnum


class Overlap(StrEnum):
    """What a fire does while the previous run has not ended.

    allow: run in parallel. forbid: skip the fire. buffer_one: wait for the run to end, unless another fire waits already.
    replace: replace the run.
    """

    # The decisions: `functions/domain/schedules/slots.py`.

    ALLOW = "allow"
    FORBID = "forbid"
    BUFFER_ONE = "buffer_one"
    REPLACE = "replace"

    @property
    def waits(self) -> bool:
        """Whether a fire may wait for the slot of its schedule: without a ledger row, and longer than any other job."""
        return self is Overlap.BUFFER_ONE


CODES = {Overlap.ALLOW: 0, Overlap.FORBID: 1, Overlap.BUFFER_ONE: 2, Overlap.REPLACE: 3}
"""The codes of `functions/domain/jobs/stored_codes.py`: for ever, and no code of another again."""
