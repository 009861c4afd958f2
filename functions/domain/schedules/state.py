"""Where a schedule stands: the truth about its next fire, what it has done, and who of its runs has the slot."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from functions.domain.instants import to_seconds
from functions.domain.jobs.occurrence import UNBOUND, Occurrence
from functions.domain.schedules.asked_runs import AskedRun
from functions.domain.schedules.fire_figures import FireFigures
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.load import COUNTED_BY, Share


class Status(StrEnum):
    """deleted: kept for a while, so that what is left of the schedule stays without effect."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class SkipReason(StrEnum):
    """Why a fire did not become a run."""

    MISSED = "missed"
    """It was missed, and the misfire policy is skip."""
    COALESCED = "coalesced"
    """It was missed, and a later missed fire stands for it."""
    TOO_LATE = "too_late"
    """It was missed by more than max_lateness."""
    MERGED = "merged"
    """It fell on the same instant as another: a clock change, a calendar or a window shifted it there."""
    PAUSED = "paused"
    """The schedule was paused when it came due."""
    OVERLAP = "overlap"
    """The run before it had not come to its end, and the overlap policy is forbid."""
    BUFFER_FULL = "buffer_full"
    """Another fire waits for the end of the run before it already."""
    REPLACED = "replaced"
    """A later fire took its place."""
    REFUSED = "refused"
    """The ready queue does not take it, in any way."""
    DRAINING = "draining"
    """Its tenant was closed before it came due."""


ASIDES_COUNT_FOR = timedelta(days=7)
"""How long after it was set aside a chain is not taken for sound again. The sweep tries it every few minutes."""

MOST_CUTS = 20
"""How many changes of a schedule are remembered: a message of an older version than these is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a chain of fires continues: at this fire; or, from end to start, after the run of this fire.

    index: of the fire, counted from 0. previous_at: the fire before it. merged_count: see Fire.
    """

    at: datetime
    nominal_at: datetime
    index: int = 0
    previous_at: datetime | None = None
    is_awaited: bool = False
    merged_count: int = 0

    @property
    def position(self) -> tuple[datetime, bool]:
        """Grows along the chain."""
        return self.at, self.is_awaited


@dataclass(frozen=True, slots=True)
class Cut:
    """A version decides the fires after this instant; what came due up to it is its predecessor's."""

    version: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """The state row of a schedule.

    born: the version that it was created with. link: None when nothing follows. alarm_at: when the alarm row of the
    link comes due. fire_count: of those placed; recent: the last of them, one at least. holder: id of the run that has the
    slot, since holder_since; waiting: of the fire that is buffered. failures: identities of the runs that failed since the last success. skips: how many fires did not run, by reason.
    asides: how often its chain was set aside lately, because its next fire takes too much to find; last at aside_at.
    share: what of it stands in the sum of its tenant's schedules; None where nothing does.
    kept_runs: the last that succeeded and failed, of a schedule that keeps them, the oldest first.
    asked_runs: the last that were triggered or backfilled, as they began.
    figures: of the fires that this version has placed, None while there are none.
    """

    version: int
    status: Status
    changed_at: datetime
    born: int = 0
    note: str = ""
    cuts: tuple[Cut, ...] = ()
    link: Link | None = None
    alarm_at: datetime | None = None
    fire_count: int = 0
    recent: tuple[datetime, ...] = ()
    holder: str = ""
    holder_since: datetime | None = None
    waiting: str = ""
    waiting_since: datetime | None = None
    failures: frozenset[str] = frozenset()
    misfire_count: int = 0
    skips: dict[SkipReason, int] = field(default_factory=dict)
    last_skip: tuple[SkipReason, datetime] | None = None
    asides: int = 0
    aside_at: datetime | None = None
    share: Share | None = None
    kept_runs: tuple[KeptRun, ...] = ()
    asked_runs: tuple[AskedRun, ...] = ()
    figures: FireFigures | None = None

    @property
    def goes_on(self) -> bool:
        """Whether another fire follows."""
        return self.status is Status.ACTIVE and self.link is not None

    @property
    def is_counted_right(self) -> bool:
        """Whether its share is that of the version that counts, as far as is known without its definition."""
        if self.status is Status.DELETED or self.share is None:
            return self.status is Status.DELETED and self.share is None
        found_for = (self.share.version, self.share.counted_by)
        return found_for == (self.version, COUNTED_BY) if self.goes_on else not self.share.fires

    def is_costly(self, now: datetime) -> bool:
        """Whether its chain was set aside not long ago."""
        return self.aside_at is not None and now < self.aside_at + ASIDES_COUNT_FOR

    def may_run(self, occurrence: Occurrence) -> bool:
        """Whether the version that decided an occurrence was the one to decide it."""
        if occurrence.version <= UNBOUND:
            return occurrence.version == UNBOUND or -occurrence.version >= self.born
        if occurrence.version == self.version:
            return True
        later = [cut for cut in self.cuts if cut.version > occurrence.version]
        # Without the very next version nobody knows when that one took over.
        if not later or later[0].version != occurrence.version + 1:
            return False
        return occurrence.fire_at <= later[0].since


def changed(
    state: ScheduleState | None, *, status: Status, now: datetime, note: str = "", dropped_count: int = 0
) -> ScheduleState:
    """The state after a change of the schedule: a new version, which decides every fire after `changed_at`.

    dropped_count: fires that the version before has placed for later: they are dropped, and do not count. The link is
    the caller's to set.
    """
    if state is None:
        # Not 1: what is left of a schedule of that name, long deleted, must be older.
        first = to_seconds(now)
        return ScheduleState(
            version=first, born=first, status=status, changed_at=now, note=note, cuts=(Cut(first, now),)
        )
    # Clocks differ: a version never begins before the one it follows.
    since = max(now, state.changed_at)
    version = state.version + 1
    return replace(
        state,
        version=version,
        status=status,
        changed_at=since,
        note=note,
        cuts=(*state.cuts, Cut(version, since))[-MOST_CUTS:],
        link=None,
        alarm_at=None,
        fire_count=max(0, state.fire_count - dropped_count),
        recent=tuple(fire_at for fire_at in state.recent if fire_at <= since),
        failures=frozenset(),
        asides=0,
        aside_at=None,
        figures=None,
    )
