"""The next fires of a schedule, with the reasons for which each is not where its rule says, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from functions.domain.errors import TooCostly
from functions.domain.instants import MICROSECOND, MILLISECOND, format_instant
from functions.domain.schedules.calendars import why_excluded
from functions.domain.schedules.firing import MOST_GATHERED, Gathered, gather
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.schedule import Fire, Schedule, Shifter
from functions.domain.schedules.shifts import Shift, course_of, jitter_of, spread_of
from functions.domain.schedules.step_budget import Budget
from functions.domain.schedules.zones import Nominal, instants_of, local_of, zone_of

Mark = tuple[Shifter, str]

_GATHERED_FROM = {
    Shifter.WINDOW: "the closed hours",
    Shifter.CALENDAR: "excluded dates",
    Shifter.GAP: "the hours that the clock skips",
}


@dataclass(frozen=True, slots=True)
class Preview:
    """A fire as people read it.

    local: the same instant in the schedule's zone. offset: that of the zone from UTC then. marks: what makes the fire
    differ from what its rule says, and the reason.
    """

    fire: Fire
    local: datetime
    offset: timedelta
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class PreviewPosition:
    """An instant behind which a preview continues. fired: how many fires there are up to it, of a schedule that has a last run."""

    after: datetime
    fired: int | None = None

    def __str__(self) -> str:
        return format_instant(self.after) + ("" if self.fired is None else f"~{self.fired}")


class Page(NamedTuple):
    """Some of the next fires. goes_on: where there may be more; None where there are none."""

    previews: list[Preview]
    goes_on: PreviewPosition | None


def preview(schedule: Schedule, *, after: datetime, count: int, index: int = 0, budget: Budget | None = None) -> Page:
    """The next fires after `after` of a schedule that has fired `index` times, at most `count`.

    budget: see `fires`; where it is spent, those that were found. Raises TooCostly when none was.
    """
    left = None if schedule.max_runs is None else max(0, schedule.max_runs - index)
    most = count if left is None else min(count, left)
    found: list[Preview] = []
    is_cut = False
    try:
        for gathered in islice(gather(schedule, after=after, budget=budget), max(most, 0)):
            found.append(_previewed(schedule, gathered))  # noqa: PERF401  what was found before an error counts
    except TooCostly:
        if not found:
            raise
        is_cut = True
    goes_on = bool(found) and (is_cut or len(found) == count) and len(found) != left
    fired = None if left is None else index + len(found)
    return Page(found, PreviewPosition(found[-1].fire.at, fired) if goes_on else None)


def explain(schedule: Schedule, fire: Fire) -> list[str]:
    """Why a fire of this schedule is not where its rule says, one sentence a reason; empty when it is."""
    if schedule.is_end_to_start:
        # When its last run ended is not known here, and not needed: its nominal time says all.
        shift = course_of(schedule).shift(Nominal(fire.nominal_at))
        shifts = (shift,) if shift is not None else ()
    else:
        found = next(gather(schedule, after=fire.at - MICROSECOND), None)
        shifts = found.shifts if found is not None and found.fire.at == fire.at else ()
    return [text for _, text in _marks(schedule, shifts)]


def _previewed(schedule: Schedule, gathered: Gathered) -> Preview:
    local = gathered.fire.at.astimezone(zone_of(schedule.timezone))
    return Preview(
        fire=gathered.fire,
        local=local,
        offset=local.utcoffset() or timedelta(0),
        marks=_marks(schedule, gathered.shifts),
    )


def _marks(schedule: Schedule, shifts: Sequence[Shift]) -> tuple[Mark, ...]:
    """One for each thing that shifted the fire, or brought others to it."""
    reasons = {shifter: [_reason(schedule, shifts[0], shifter)] for shifter in (shifts[0].shifted_by if shifts else ())}
    if len(shifts) > 1:
        gatherers = [next((each for each in _GATHERED_FROM if each in shift.shifted_by), None) for shift in shifts]
        for shifter, origin in _GATHERED_FROM.items():
            number = sum(shifter is gatherer for gatherer in gatherers)
            if number:
                fires = f"{number} fires" if number > 1 else "1 fire"
                fires = f"at least {MOST_GATHERED} fires" if number >= MOST_GATHERED else fires
                reasons.setdefault(shifter, []).append(f"{fires} of {origin} became this one")
    return tuple((shifter, "; ".join(texts)) for shifter, texts in reasons.items())


def _reason(schedule: Schedule, shift: Shift, shifter: Shifter) -> str:
    zone = zone_of(schedule.timezone)
    landed = local_of(shift.landed.at, zone)
    match shifter:
        case Shifter.GAP:
            local = shift.landed.local or landed
            return f"{_clock(local)} does not exist on {local.date()} in {zone.key}: the first valid time after it"
        case Shifter.FOLD:
            first = instants_of(landed, zone, gap=Gap.NEXT_VALID, fold=Fold.FIRST)[0].at
            which = "first" if shift.landed.at == first else "second"
            return f"{_clock(landed)} comes twice on {landed.date()} in {zone.key}: the {which} time"
        case Shifter.CALENDAR:
            day = (shift.nominal.local or local_of(shift.nominal.at, zone)).date()
            reason = why_excluded(schedule.calendar, day) if schedule.calendar is not None else None
            return f"moved from {day}, {reason}" if reason else f"moved from {day}"
        case Shifter.WINDOW:
            return f"moved from {landed.date()} {_clock(landed)}, outside its windows, into the next opening"
        case Shifter.SPREAD:
            taken = "" if schedule.says_spread else f", from the default of its {schedule.spread_from}"
            delay = f"+{_words(spread_of(schedule))} by its spread of {_words(schedule.spread)}"
            return delay + taken + _turned(schedule, shift)
        case Shifter.JITTER:
            jitter = jitter_of(schedule, shift.nominal.at)
            return f"+{_words(jitter)} by its jitter of {_words(schedule.jitter)}" + _turned(schedule, shift)


def _turned(schedule: Schedule, shift: Shift) -> str:
    """For a delay that would have led out of the opening."""
    delay = shift.at - shift.landed.at
    asked = spread_of(schedule) + (jitter_of(schedule, shift.nominal.at) if schedule.jitter else timedelta(0))
    return "" if delay == asked else f"; {_words(delay)} in all, so that it stays inside its opening"


def _clock(local: datetime) -> str:
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


def _words(duration: timedelta) -> str:
    """Such as `7 min 12 s`."""
    seconds, milliseconds = divmod(duration // MILLISECOND, 1_000)
    hours, minutes = divmod(seconds // 60, 60)
    second = f"{seconds % 60}.{milliseconds:03d}".rstrip("0") if milliseconds else str(seconds % 60)
    parts = [(str(hours), "h"), (str(minutes), "min"), (second, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number != "0") or "0 s"
