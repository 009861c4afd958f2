"""Where a time that a rule names goes: over the calendar, into a window, and on by its spread and jitter.

All choices are hashes of the schedule's name and an instant, so that they are the same whoever computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import xxhash

from functions.domain.instants import DAY, LATEST, MICROSECOND, MILLISECOND, SECOND, to_ms
from functions.domain.schedules.calendars import HOLIDAYS_END, MAX_ROLL_DAYS, rolled, why_excluded
from functions.domain.schedules.nominal_times import clock_policy
from functions.domain.schedules.rules import Every, Fold, Gap, Poisson
from functions.domain.schedules.schedule import Calendar, Roll, Schedule, Shifter, WindowMode
from functions.domain.schedules.week import times_of_week
from functions.domain.schedules.windows import REACH, OpenHours, Opening, open_hours
from functions.domain.schedules.zones import Nominal, instants_of, local_of, next_change, zone_of

_ZERO = timedelta(0)
_MOST_ROLLED = 3 * MAX_ROLL_DAYS
_HASHES = 1 << 64
_TRIES = 3
"""A gap at midnight can shift a fire onto an excluded date again."""


class Shift(NamedTuple):
    """A nominal time that becomes a fire at `at`, and what shifted it there.

    landed: the nominal time itself, or the one of another date in its place.
    """

    at: datetime
    nominal: Nominal
    landed: Nominal
    shifted_by: tuple[Shifter, ...]


def spread_of(schedule: Schedule) -> timedelta:
    """The delay that is the same for every fire of the schedule: whole seconds, below its spread."""
    seconds = schedule.spread // SECOND
    return xxhash.xxh32_intdigest(schedule.uid.encode()) % seconds * SECOND if seconds else timedelta(0)


def jitter_of(schedule: Schedule, nominal_at: datetime) -> timedelta:
    """The delay of this fire alone: whole milliseconds, below its jitter."""
    return _below(schedule.jitter, f"{schedule.uid}#jitter#{to_ms(nominal_at)}")


def _below(duration: timedelta, key: str) -> timedelta:
    """A uniform choice from 0 up to, and not including, a duration."""
    return xxhash.xxh3_64_intdigest(key.encode()) * (duration // MILLISECOND) // _HASHES * MILLISECOND


@dataclass(frozen=True, slots=True)
class Course:
    """What shifts the fires of one schedule.

    hours: None when neither windows nor a calendar say when it may fire. spread: the delay of every fire.
    """

    schedule: Schedule
    zone: ZoneInfo
    hours: OpenHours | None
    spread: timedelta

    def shift(self, nominal: Nominal) -> Shift | None:
        """Where a nominal time goes; None when it is dropped."""
        if self.hours is None:
            delay, delayed_by = self._delay(nominal.at)
            shifted_by = (nominal.shifter, *delayed_by) if nominal.shifter else delayed_by
            return Shift(nominal.at + delay, nominal, nominal, shifted_by)
        landed = self._landed(nominal)
        if landed is None:
            return None
        shifted_by = (landed.shifter,) if landed.shifter else ()
        if landed is not nominal:
            shifted_by = (*shifted_by, Shifter.CALENDAR)
        delay, delayed_by = self._delay(nominal.at)
        end = self.hours.end_of(landed.at, limit=landed.at + delay + MILLISECOND)
        if end is not None:
            # What would lead out of the opening begins again at the fire's own place in it.
            delay %= end - landed.at
            return Shift(landed.at + delay, nominal, landed, (*shifted_by, *delayed_by) if delay else shifted_by)
        opening = self.hours.next_after(landed.at) if self.schedule.mode is WindowMode.DEFER else None
        if opening is None:
            return None
        return Shift(self._place_in(opening, nominal.at), nominal, landed, (*shifted_by, Shifter.WINDOW))

    def looks_back_to(self, after: datetime) -> datetime:
        """No nominal time before it becomes a fire after `after`."""
        since = after + MICROSECOND - self.spread - self.schedule.jitter
        if self.hours is not None and self.schedule.mode is WindowMode.DEFER:
            closed_at, opening = self.hours.closed_since(after)
            waits = opening is None or self._is_poisson or self._place_in(opening, after) > after
            since = min(since, closed_at) if waits else since
        calendar = self._rolling_calendar
        if calendar is None or calendar.roll is not Roll.AFTER:
            return since
        shown = local_of(since, self.zone).date()
        if not any(why_excluded(calendar, shown - days * DAY) for days in (0, 1, 2)):
            return since
        first = shown
        # Two days at a time: a gap at midnight can make a fire roll twice.
        while (
            any(why_excluded(calendar, first - days * DAY) for days in (1, 2)) and (shown - first).days < _MOST_ROLLED
        ):
            first -= DAY
        return min(since, datetime.combine(first, time(), tzinfo=UTC) - DAY)

    def floor(self, nominal: Nominal) -> datetime:
        """An instant before which no nominal time behind this one goes."""
        if self.hours is None:
            # Only the local times of one gap share an instant: what comes behind any other is later.
            is_last = nominal.shifter is not Shifter.GAP and not self._is_poisson
            return nominal.at + self.spread + (MICROSECOND if is_last else timedelta(0))
        calendar = self._rolling_calendar
        if calendar is None or calendar.roll is not Roll.BEFORE:
            return nominal.at
        day = local_of(nominal.at, self.zone).date()
        if not any(why_excluded(calendar, shown) for shown in (day, day + DAY)):
            return nominal.at
        target = rolled(calendar, day) or day - MAX_ROLL_DAYS * DAY
        (midnight,) = instants_of(datetime.combine(target, time()), self.zone, gap=Gap.NEXT_VALID, fold=Fold.FIRST)
        return min(midnight.at, nominal.at)

    @property
    def ends_at(self) -> datetime:
        """No fire from then on: its end, the latest instant of all, or that up to which its holidays are known."""
        calendar = self.schedule.calendar
        known = HOLIDAYS_END if calendar is not None and calendar.holidays else LATEST
        return min(self.schedule.end or LATEST, known, LATEST)

    @property
    def never_opens(self) -> bool:
        """Whether its windows are closed on all days of the week that its calendar leaves."""
        return self.hours is not None and self.hours.never_opens

    def goes_on_at(self, nominal: Nominal) -> datetime | None:
        """After a nominal time that was dropped, or that waits for an opening: all before this instant do the same.

        None when that is unknown.
        """
        if self.hours is None:
            return None
        calendar = self._rolling_calendar
        may_wait = self.schedule.mode is WindowMode.DEFER
        rolls = calendar is not None and calendar.roll is not Roll.SKIP
        if not may_wait and not rolls and not self._is_poisson and not self._may_meet(nominal):
            return self._clock_change_after(nominal)
        local = local_of(nominal.at, self.zone) if nominal.local is None else nominal.local
        if calendar is not None and rolled(calendar, local.date()) is None:
            following = datetime.combine(local.date() + DAY, time())
            return instants_of(following, self.zone, gap=Gap.NEXT_VALID, fold=Fold.FIRST)[0].at
        if rolls:
            return None
        if not may_wait:
            opening = self.hours.next_after(nominal.at)
            return nominal.at + REACH if opening is None else opening.start
        # An independent event waits for a place of its own.
        return None if self._is_poisson else self.hours.waits_until(nominal.at)

    def _may_meet(self, nominal: Nominal) -> bool:
        """Whether the rule may name a time at which its week is open before the clock changes."""
        assert self.hours is not None
        times = times_of_week(self.schedule.rule, local_of(nominal.at, self.zone))
        return times is None or self.hours.meets(times)

    def _clock_change_after(self, nominal: Nominal) -> datetime:
        """The next clock change that can bring a nominal time to another time of day; LATEST for none."""
        names_instants = isinstance(self.schedule.rule, Every)
        if not names_instants and clock_policy(self.schedule)[0] is Gap.SKIP:
            return LATEST
        return next_change(self.zone, nominal.at) or LATEST

    @property
    def _is_poisson(self) -> bool:
        return isinstance(self.schedule.rule, Poisson)

    @property
    def _rolling_calendar(self) -> Calendar | None:
        # For events that belong to no date an excluded one is closed, like the time outside the windows.
        return None if self._is_poisson else self.schedule.calendar

    def _delay(self, nominal_at: datetime) -> tuple[timedelta, tuple[Shifter, ...]]:
        jitter = jitter_of(self.schedule, nominal_at) if self.schedule.jitter else _ZERO
        shifters = ((Shifter.SPREAD, self.spread), (Shifter.JITTER, jitter))
        return self.spread + jitter, tuple(shifter for shifter, delay in shifters if delay)

    def _landed(self, nominal: Nominal) -> Nominal | None:
        """On the date that the calendar shifts it to; None when there is none."""
        calendar = self._rolling_calendar
        if calendar is None:
            return nominal
        gap, fold = clock_policy(self.schedule)
        fold = Fold.FIRST if fold is Fold.BOTH else fold  # one fire stays one
        landed = nominal
        local = local_of(nominal.at, self.zone) if nominal.local is None else nominal.local
        for _ in range(_TRIES):
            day = rolled(calendar, local.date())
            if day is None:
                return None
            if day != local.date():
                landed = next(
                    iter(instants_of(datetime.combine(day, local.time()), self.zone, gap=gap, fold=fold)), None
                )
                if landed is None:
                    return None
            local = local_of(landed.at, self.zone)
            if why_excluded(calendar, local.date()) is None:
                return landed
        return None

    def _place_in(self, opening: Opening, nominal_at: datetime) -> datetime:
        """Where a fire goes that waited for an opening: all of a rule's to one place, an independent event to its own."""
        waits_for = nominal_at if self._is_poisson else opening.start
        length = opening.end - opening.start
        return opening.start + _below(length, f"{self.schedule.uid}#defer#{to_ms(waits_for)}")


def waited_for_opening(schedule: Schedule, *, nominal_at: datetime, at: datetime) -> timedelta:
    """How long a fire waits because its rule's time was outside the windows, or excluded; none when it was not."""
    if not schedule.windows and schedule.calendar is None:
        return _ZERO
    hours = course_of(schedule).hours
    if hours is None or hours.end_of(nominal_at, limit=nominal_at + MILLISECOND) is not None:
        return _ZERO
    return max(_ZERO, at - nominal_at)


def course_of(schedule: Schedule) -> Course:
    """What shifts the fires of this schedule."""
    hours = None
    if schedule.windows or schedule.calendar is not None:
        hours = open_hours(schedule.windows, schedule.calendar, schedule.timezone)
    return Course(schedule, zone_of(schedule.timezone), hours, spread_of(schedule))
