"""What becomes of the fires of a schedule that are near or overdue, and where its chain continues.

Pure: the same schedule, link and time give the same due fires, so that a step that is repeated decides the same fires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, islice

from functions.domain.errors import TooCostly
from functions.domain.instants import MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.job import Job
from functions.domain.jobs.occurrence import Occurrence, identity_of
from functions.domain.schedules.fire_figures import NO_FIGURES, FireFigures, counted
from functions.domain.schedules.firing import fires, next_fire
from functions.domain.schedules.schedule import Fire, Misfire, Schedule
from functions.domain.schedules.shifts import waited_for_opening
from functions.domain.schedules.state import Link, SkipReason
from functions.domain.schedules.step_budget import STEPS_OF_A_TICK, Budget
from functions.domain.wheel import Wheel

MOST_MISSED = 120
"""How many missed fires of one schedule its alarm places; more of one that would else never catch up."""

MISSED_APART = SECOND
"""Missed fires are placed so far from each other: oldest first, and no herd."""

MOST_FIRES = 2_000
"""How many fires of one schedule its alarm looks at before it jumps over those that are dropped anyway."""

ALARM_MARGIN = timedelta(seconds=5)
"""How much farther than GUARD the alarm of a fire that is near already comes due: its write takes time."""

MISFIRE_GRACE = MINUTE
"""A fire that is later than this was missed."""


@dataclass(slots=True)
class DueFires:
    """What to place now, and the link that follows; None when the schedule has come to its end.

    kept: the links of the fires to place. due_at: of those that were missed, by their fire times. skips: how many were
    dropped, by reason, as far as they were looked at; last_skip: the latest of them. misfire_count: how many were missed.
    figures: of those that are kept, which whoever knows their version fills in.
    """

    kept: list[Link] = field(default_factory=list)
    due_at: dict[datetime, datetime] = field(default_factory=dict)
    link: Link | None = None
    skips: dict[SkipReason, int] = field(default_factory=dict)
    last_skip: tuple[SkipReason, datetime] | None = None
    misfire_count: int = 0
    figures: FireFigures = NO_FIGURES

    def extend(self, further: DueFires) -> None:
        """Go on with what was decided from this one's link."""
        self.kept += further.kept
        self.due_at |= further.due_at
        self.link = further.link
        for reason, count in further.skips.items():
            self.skips[reason] = self.skips.get(reason, 0) + count
        self.last_skip = further.last_skip or self.last_skip
        self.misfire_count += further.misfire_count
        self.figures += further.figures

    def skip(self, reason: SkipReason, fire_at: datetime, count: int = 1) -> None:
        """Note that fires do not run."""
        self.skips[reason] = self.skips.get(reason, 0) + count
        self.last_skip = (reason, fire_at)


def decide(schedule: Schedule, link: Link, *, now: datetime, guard: timedelta) -> DueFires:
    """Decide the fires before now + guard, oldest first, under the misfire policy.

    One budget pays for all of them: where it is spent, it ends behind what was decided, and the next alarm continues.
    Raises TooCostly where not even the next fire can be found, or where a limit of the processor's time has interrupted
    a decision, or what comes before the first: else a fire would be passed over.
    """
    walk = _Walk(schedule, link, now=now, guard=guard)
    if schedule.is_end_to_start:
        return walk.one_run()
    try:
        return _decided(walk, schedule, link)
    except TooCostly:
        if not walk.is_between_fires:
            raise
        return walk.end(next_fire(schedule, after=walk.reached, budget=Budget(STEPS_OF_A_TICK)))


def _decided(walk: _Walk, schedule: Schedule, link: Link) -> DueFires:
    budget = walk.budget
    first = Fire(link.at, link.nominal_at, merged_count=link.merged_count)
    upcoming = chain([first], fires(schedule, after=link.at, budget=budget))
    while True:
        for fire in islice(upcoming, MOST_FIRES):
            if walk.is_behind(fire):
                return walk.end(fire)
            walk.decide(fire)
        following = next(upcoming, None)
        if following is None:
            return walk.end(None)
        jump_to = walk.jump_over(following)
        upcoming = chain([following], upcoming) if jump_to is None else fires(schedule, after=jump_to, budget=budget)


def first_link(
    schedule: Schedule,
    *,
    after: datetime,
    index: int = 0,
    previous_at: datetime | None = None,
    budget: Budget | None = None,
) -> Link | None:
    """Where a chain begins; None when the schedule has no fire after that instant. budget: see `fires`."""
    fire = next_fire(schedule, after=after, index=index, budget=budget)
    return fire and _link(fire, index, previous_at)


def link_after_run(schedule: Schedule, link: Link, *, ended_at: datetime) -> Link | None:
    """From end to start: the link after the run that an awaited link waits for. ended_at: or when it was resumed."""
    budget = Budget(STEPS_OF_A_TICK)
    return first_link(schedule, after=ended_at, index=link.index + 1, previous_at=link.at, budget=budget)


def alarm_at(schedule: Schedule, link: Link, *, now: datetime, guard: timedelta) -> datetime:
    """When the alarm of a link comes due: with its fire, but never nearer than a far row may be."""
    due_at = link.at
    if link.is_awaited:
        # No sooner can its run's end and the interval be over.
        fire = next_fire(schedule, after=link.at, budget=Budget(STEPS_OF_A_TICK))
        due_at = fire.at if fire else link.at
    return due_at if due_at - now >= guard else now + guard + ALARM_MARGIN


def figures_of(schedule: Schedule, kept: Sequence[Link], *, since: datetime) -> FireFigures:
    """The figures of the fires of these links. since: when the version began that decided them."""
    waits = (waited_for_opening(schedule, nominal_at=link.nominal_at, at=link.at) for link in kept)
    return counted(((link.at, link.previous_at) for link in kept), waits, since=since)


def occurrence_job(
    schedule: Schedule,
    link: Link,
    *,
    version: int,
    wheel: Wheel,
    due_at: datetime | None = None,
    suffix: str = "",
    subshards: int = 1,
) -> Job:
    """The job of a fire. due_at: of a trigger or a backfill, which do not run at the time of their fire.

    subshards: over how many shards its tenant is spread.
    """
    template, scheduled_at = schedule.job, due_at or link.at
    limits = [
        limit for limit in (template.expires_after, None if suffix else schedule.max_lateness) if limit is not None
    ]
    return Job(
        tenant=schedule.tenant,
        identity=identity_of(schedule.schedule_id, link.at, suffix),
        bucket=wheel.bucket_of(scheduled_at),
        shard=shard_of(schedule, wheel, subshards=subshards),
        target=template.target,
        payload=template.payload,
        scheduled_at=scheduled_at,
        priority=template.priority,
        delivery=template.delivery,
        precision=template.precision,
        retry=template.retry,
        timeout=template.timeout,
        run_deadline=template.run_deadline,
        options=template.options,
        tags=template.tags,
        flows=template.flows,
        callbacks=template.callbacks,
        collect=template.collect,
        expires_at=scheduled_at + min(limits) if limits else None,
        occurrence=Occurrence(
            schedule_id=schedule.schedule_id,
            fire_at=link.at,
            nominal_at=link.nominal_at,
            version=version,
            index=link.index,
            previous_at=link.previous_at,
            overlap=schedule.overlap,
            pause_after=schedule.pause_after_failures or 0,
            is_end_to_start=schedule.is_end_to_start and not suffix,
            keeps=schedule.keeps,
        ),
    )


def shard_of(schedule: Schedule, wheel: Wheel, *, subshards: int = 1) -> int:
    """The shard of a schedule's alarm rows and of its runs."""
    return wheel.shard_of(schedule.tenant, schedule.schedule_id, subshards=subshards)


class _Walk:
    """Fires in their order, and what has been decided of them up to `reached`. candidate: a missed one, in case it is the last.

    is_between_fires: one has been decided, and no other is half decided.
    """

    def __init__(self, schedule: Schedule, link: Link, *, now: datetime, guard: timedelta) -> None:
        self._schedule = schedule
        self._now = now
        self._guard = guard
        self._link = link
        self._index = link.index
        self._previous_at = link.previous_at
        self._candidate: Fire | None = None
        self.budget = Budget(STEPS_OF_A_TICK)
        self.reached = link.at
        self.is_between_fires = False
        self._missed_count = 0
        self._decided = DueFires()

    def is_behind(self, fire: Fire) -> bool:
        """Whether a fire is left to a later alarm."""
        if fire.at - self._now >= self._guard or self._is_over:
            return True
        return self._missed_count >= MOST_MISSED and self._missed_count >= self._most_missed()

    def one_run(self) -> DueFires:
        """From end to start there is never more than one fire, however late; the next depends on the end of its run."""
        link = self._link
        self._decided.link = link
        if link.at - self._now < self._guard:
            self._decided.kept.append(link)
            self._decided.link = replace(link, is_awaited=True)
        return self._decided

    def decide(self, fire: Fire) -> None:
        """Keep a fire, drop it, or keep it in mind until the next has been seen."""
        self.is_between_fires = False
        self._decide(fire)
        self.reached = fire.at
        self.is_between_fires = True

    def _decide(self, fire: Fire) -> None:
        schedule, decided = self._schedule, self._decided
        if fire.merged_count:
            decided.skip(SkipReason.MERGED, fire.at, fire.merged_count)
        is_missed = self._is_missed(fire)
        decided.misfire_count += is_missed
        if schedule.max_lateness is not None and fire.at < self._now - schedule.max_lateness:
            decided.skip(SkipReason.TOO_LATE, fire.at)
        elif is_missed and schedule.misfire is Misfire.SKIP:
            decided.skip(SkipReason.MISSED, fire.at)
        elif is_missed and schedule.misfire is Misfire.COALESCE:
            if self._candidate is not None:
                decided.skip(SkipReason.COALESCED, self._candidate.at)
            self._candidate = fire
        else:
            self._keep_candidate()
            if not self._is_over:
                self._keep(fire)

    def jump_over(self, following: Fire) -> datetime | None:
        """Behind which instant to go on, after many fires that were dropped; None where nothing can be passed over."""
        schedule, recent = self._schedule, self._now - MISFIRE_GRACE
        wanted = [recent - schedule.max_lateness] if schedule.max_lateness is not None else []
        if schedule.misfire is Misfire.SKIP:
            wanted.append(recent)
        if schedule.misfire is Misfire.COALESCE and self._is_missed(following):
            wanted.append(_last_before(recent, schedule, since=following.at, budget=self.budget))
        instant = max(wanted, default=following.at)
        return instant - MILLISECOND if instant > following.at else None

    def end(self, following: Fire | None) -> DueFires:
        """The due fires, when this is the fire that has not been decided."""
        self.is_between_fires = False
        self._keep_candidate()
        if following is not None and not self._is_over:
            self._decided.link = _link(following, self._index, self._previous_at)
        # Until the next alarm, which brings newer ones.
        apart = min(MISSED_APART, self._guard / 2 / max(self._missed_count, 1))
        missed = [link.at for link in self._decided.kept if link.at < self._now - MISFIRE_GRACE]
        self._decided.due_at = {at: self._now + apart * number for number, at in enumerate(missed)}
        return self._decided

    @property
    def _is_over(self) -> bool:
        return self._schedule.max_runs is not None and self._index >= self._schedule.max_runs

    def _is_missed(self, fire: Fire) -> bool:
        return fire.at < self._now - MISFIRE_GRACE

    def _keep_candidate(self) -> None:
        if self._candidate is not None:
            self._keep(self._candidate)
            self._candidate = None

    def _most_missed(self) -> int:
        """Three times what comes due until the next alarm, so that a schedule of seconds catches up too."""
        kept = self._decided.kept
        apart = (kept[-1].at - kept[0].at) / (len(kept) - 1)
        return 3 * (self._guard // apart)

    def _keep(self, fire: Fire) -> None:
        self._decided.kept.append(_link(fire, self._index, self._previous_at))
        self._missed_count += self._is_missed(fire)
        self._index, self._previous_at = self._index + 1, fire.at


def _last_before(instant: datetime, schedule: Schedule, *, since: datetime, budget: Budget) -> datetime:
    """The last fire before an instant, by halving the time since one: they need not be evenly spread."""
    low, high = since, instant
    while low < high:
        middle = low + (high - low) // 2 // MILLISECOND * MILLISECOND
        fire = next_fire(schedule, after=middle, budget=budget)
        if fire is not None and fire.at < instant:
            low = fire.at
        else:
            high = middle
    return low


def _link(fire: Fire, index: int, previous_at: datetime | None) -> Link:
    return Link(
        at=fire.at, nominal_at=fire.nominal_at, index=index, previous_at=previous_at, merged_count=fire.merged_count
    )
