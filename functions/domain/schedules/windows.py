"""When a schedule may fire: its windows, without the dates that its calendar excludes.

An instant is open when the clock on the wall shows a time inside a window on a date that is not excluded. So an opening
that a clock change shortens, repeats or cuts in two has the length that really passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple

from functions.domain.instants import DAY
from functions.domain.schedules.calendars import why_excluded
from functions.domain.schedules.rules import Poisson
from functions.domain.schedules.schedule import Calendar, Schedule, Weekday, Window, WindowMode
from functions.domain.schedules.week import TimesOfWeek
from functions.domain.schedules.zones import steady_spans, zone_of

REACH = timedelta(days=31)
"""How far away the next opening may be: what would wait longer is dropped."""

LONGEST = timedelta(days=7)
"""The part of an opening that takes what was deferred: its first week."""

_WEEK = timedelta(days=7)
_CACHED_DAYS = 400


class Opening(NamedTuple):
    """From start up to, and not including, end."""

    start: datetime
    end: datetime


class OpenHours:
    """The openings of some windows and a calendar in a time zone; no window at all means always."""

    def __init__(self, windows: tuple[Window, ...], calendar: Calendar | None, timezone: str) -> None:
        is_off = calendar is not None and calendar.weekends
        self._week = tuple(
            () if is_off and weekday >= Weekday.SAT else tuple(_of_weekday(windows, weekday)) for weekday in Weekday
        )
        self._calendar = calendar
        self._zone = zone_of(timezone)
        self._days: dict[date, tuple[Opening, ...]] = {}
        # What was closed when it was asked last, and the opening behind it: those who wait ask one after another.
        self._closed: tuple[datetime, Opening] | None = None

    @property
    def never_opens(self) -> bool:
        """Whether no day of the week has a window."""
        return not any(self._week)

    def of_weekday(self, weekday: Weekday) -> Sequence[tuple[timedelta, timedelta]]:
        """What is open on a weekday that nothing else excludes, as times since its midnight, in order and joined."""
        return self._week[weekday]

    def meets(self, times: TimesOfWeek) -> bool:
        """Whether any of these times falls into a window, on a date that nothing but its weekday excludes."""
        return any(times.meet(weekday, *span) for weekday, spans in enumerate(self._week) for span in spans)

    def end_of(self, instant: datetime, *, limit: datetime) -> datetime | None:
        """The end of the opening that holds the instant, or `limit` when it lasts that long; None when it is closed."""
        if self._known_after(instant) is not None:
            return None
        for opening in self._openings(instant, limit):
            return min(opening.end, limit) if opening.start <= instant else None
        return None

    def next_after(self, instant: datetime) -> Opening | None:
        """The first opening that begins after an instant that is closed; None when it is too far away."""
        known = self._known_after(instant)
        if known is not None:
            return known
        for opening in self._openings(instant, instant + REACH + LONGEST):
            if opening.start > instant + REACH:
                return None
            found = Opening(opening.start, min(opening.end, opening.start + LONGEST))
            self._closed = instant, found
            return found
        return None

    def _known_after(self, instant: datetime) -> Opening | None:
        """The opening that a closed instant waits for; None where it is not known from the last answer."""
        known = self._closed
        return known[1] if known is not None and known[0] <= instant < known[1].start else None

    def waits_until(self, instant: datetime) -> datetime:
        """Until when all that follows an instant that is closed waits for the same opening, or is dropped as it is."""
        for opening in self._openings(instant, instant + 2 * REACH):
            return opening.start if opening.start <= instant + REACH else opening.start - REACH
        return instant + REACH

    def closed_since(self, instant: datetime) -> tuple[datetime, Opening | None]:
        """When the closed time began that ended with the opening of this instant, and that opening.

        Without an opening when the instant is closed. The instant itself when there is nothing to look back at: it has
        been open for longer than `LONGEST`.
        """
        earliest = instant - REACH - LONGEST
        before = [opening for opening in self._openings(earliest, instant + LONGEST) if opening.start <= instant]
        current = before.pop() if before and before[-1].end > instant else None
        if current is not None and current.start + LONGEST <= instant:
            return instant, current
        since = before[-1].end if before else earliest
        return since, current and Opening(current.start, min(current.end, current.start + LONGEST))

    def _openings(self, start: datetime, end: datetime) -> Iterator[Opening]:
        """What is open in the days of [start, end) and ends after `start`, in order, what touches joined.

        The first may have begun on an earlier day than it says.
        """
        current: Opening | None = None
        day = start.date()
        while day <= end.date():
            for opening in self._of(day):
                if opening.end <= start:
                    continue
                if current is None:
                    current = opening
                elif current.end == opening.start:
                    current = Opening(current.start, opening.end)
                else:
                    yield current
                    current = opening
            if current is not None and current.end.date() == day:
                yield current  # it ends before midnight: nothing joins it
                current = None
            day += DAY
        if current is not None:
            yield current

    def _of(self, day: date) -> tuple[Opening, ...]:
        """What is open on a date in UTC."""
        found = self._days.get(day)
        if found is None:
            if len(self._days) >= _CACHED_DAYS:
                self._days.clear()
            found = self._days[day] = tuple(self._compute(day))
        return found

    def _compute(self, day: date) -> Iterator[Opening]:
        if not any(self._week[(day.weekday() + shift) % len(Weekday)] for shift in (-1, 0, 1)):
            return  # closed wherever on earth
        midnight = datetime.combine(day, time(), tzinfo=UTC)
        for start, end, offset in steady_spans(self._zone, midnight, midnight + DAY):
            first, last = (start + offset).replace(tzinfo=None), (end + offset).replace(tzinfo=None)
            shown = first.date()
            while datetime.combine(shown, time()) < last:
                if self._calendar is None or why_excluded(self._calendar, shown) is None:
                    for begin, finish in self._week[shown.weekday()]:
                        opens = max(datetime.combine(shown, time()) + begin, first)
                        closes = min(datetime.combine(shown, time()) + finish, last)
                        if opens < closes:
                            yield Opening((opens - offset).replace(tzinfo=UTC), (closes - offset).replace(tzinfo=UTC))
                shown += DAY


@lru_cache(maxsize=200)
def open_hours(windows: tuple[Window, ...], calendar: Calendar | None, timezone: str) -> OpenHours:
    """The same value for the same arguments, because it remembers the days that it has computed."""
    return OpenHours(windows, calendar, timezone)


def open_share(schedule: Schedule) -> float:
    """By how much the events of a schedule must be more frequent so that those of a day fall into its windows."""
    if not isinstance(schedule.rule, Poisson) or schedule.mode is not WindowMode.SCALE or not schedule.windows:
        return 1.0
    return _WEEK / open_time_of_a_week(schedule.windows)


@lru_cache(maxsize=1_000)
def open_time_of_a_week(windows: tuple[Window, ...]) -> timedelta:
    """How long windows are open in a week without clock changes."""
    spans = (finish - begin for weekday in Weekday for begin, finish in _of_weekday(windows, weekday))
    return sum(spans, timedelta(0))


def _of_weekday(windows: Iterable[Window], weekday: Weekday) -> Iterator[tuple[timedelta, timedelta]]:
    """What is open on a weekday, as times since its midnight, in order and joined."""
    if not windows:
        yield timedelta(0), DAY
        return
    day_before = Weekday((weekday - 1) % 7)
    spans: list[tuple[timedelta, timedelta]] = []
    for window in windows:
        start, end = _since_midnight(window.start), _since_midnight(window.end)
        if weekday in window.days:
            spans.append((start, end if start < end else DAY))
        if day_before in window.days and end <= start:
            spans.append((timedelta(0), end))
    joined: list[tuple[timedelta, timedelta]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        elif start < end:
            joined.append((start, end))
    yield from joined


def _since_midnight(moment: time) -> timedelta:
    return timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond)
