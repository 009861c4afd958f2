"""Set the cursors of a stage back: what has been promoted since an instant is promoted again.

For messages that are gone: a ready queue was purged or deleted, or the tables were restored to an earlier instant. The
rows of the far ring are still there, because promotion writes nothing to them; the ledger drops what has had its effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from functions.domain.errors import InvalidInput
from functions.domain.far_ring.cursor import set_back
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.scanner.leases import Leases


@dataclass(slots=True)
class RewindReport:
    """The shards whose cursors were set back, and those that a scanner had: ask again for them."""

    rewound: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewinder:
    """Rewinds the shards of a stage."""

    wheel: Wheel
    clock: Clock
    leases: Leases
    journal: Journal

    def rewind(self, to: datetime) -> RewindReport:
        """Let every shard continue from the bucket of an instant; a cursor that is older stays where it is.

        Repeating it is safe. Raises InvalidInput for an instant that has not come, or whose rows may have expired.
        """
        now = self.clock.now()
        if not now - TIMER_LIFE <= to <= now:
            raise InvalidInput(
                f"rewind_to is {format_instant(to)}: use an instant from {format_instant(now - TIMER_LIFE)}, "
                "before which rows have expired, up to now"
            )
        report = RewindReport()
        for shard in range(self.wheel.scan_shards):
            (report.rewound if self._rewind(shard, to) else report.left).append(shard)
        self.journal.event("rewound", to=format_instant(to), rewound=report.rewound, left=report.left)
        return report

    def _rewind(self, shard: int, to: datetime) -> bool:
        now = self.clock.now()
        lease = self.leases.acquire(shard, now=now)
        if lease is None:
            return False
        rewound = set_back(self.leases.cursors_of(lease, now=now), self.wheel.bucket_of(to))
        return self.leases.checkpoint(lease, rewound, is_last=True)
