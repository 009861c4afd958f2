"""What becomes of each schedule that was found: its definition here, and where it fires at other times than there."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from tickwheel.client.durations import seconds
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import InvalidSchedule
from tickwheel.imports.clock import Clock, clock_changes, fires, zone_of
from tickwheel.imports.cron import as_tickwheel
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInstant, OfInterval

SHOWN = 3
_COMPARED_DAYS = 366
_MOST_COMPARED = 500
_MOST_ID = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an import is told. target: of jobs that have none; `{name}` in it is the name there. timezone: where a file has none.

    with_environment: the environment of a command becomes a part of the payload, with whatever is secret in it.
    """

    tenant: str
    now: datetime
    target: str | None = None
    timezone: str = "UTC"
    prefix: str = ""
    with_suspended: bool = False
    with_environment: bool = False


@dataclass(frozen=True, kw_only=True)
class Differing:
    """Fires of one day that are not the same there and here."""

    there: tuple[datetime, ...]
    here: tuple[datetime, ...]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A schedule that is carried over. there, here: the next fires of each side; none where they depend on when it was begun.

    differing: days of the next year on which they are not the same. remarks: what becomes different, in words.
    """

    entry: Entry
    schedule: NewSchedule
    timezone: str
    there: tuple[datetime, ...] = ()
    here: tuple[datetime, ...] = ()
    differing: tuple[Differing, ...] = ()
    remarks: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A line of a file that `tickwheel import` takes."""
        return {"tenant": self.schedule.tenant, "id": self.schedule.id, **self.schedule.as_json()}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that was found."""

    planned: tuple[Planned, ...]
    left_out: tuple[LeftOut, ...]


def plan_of(found: Iterable[Found], wanted: Wanted) -> Plan:
    """The plan of an import: each that was found is planned, or left out with its reason."""
    planned: list[Planned] = []
    left_out: list[LeftOut] = []
    places: dict[str, Entry] = {}
    for each in found:
        result = each if isinstance(each, LeftOut) else _planned(each, wanted, places)
        (left_out if isinstance(result, LeftOut) else planned).append(result)  # type: ignore[arg-type]
    return Plan(planned=tuple(planned), left_out=tuple(left_out))


def _planned(entry: Entry, wanted: Wanted, places: dict[str, Entry]) -> Planned | LeftOut:
    def left_out(reason: str, *, is_expected: bool = False) -> LeftOut:
        return LeftOut(
            place=entry.place, name=entry.name, written=entry.written, reason=reason, is_expected=is_expected
        )

    if entry.is_suspended and not wanted.with_suspended:
        return left_out("is switched off there; --suspended takes it, as one that fires", is_expected=True)
    schedule_id = id_of(wanted.prefix + entry.name)
    first = places.setdefault(schedule_id, entry)
    if first is not entry:
        return left_out(
            f"would have the id {schedule_id}, which that of {first.place} has: rename one, or use --prefix"
        )
    if entry.environment:
        entry = _with_environment(entry, wanted)
    try:
        planned = _ruled(entry, wanted, schedule_id)
    except Unreadable as problem:
        result = left_out(str(problem))
    except InvalidSchedule as invalid:
        result = left_out("; ".join(str(problem) for problem in invalid.problems))
    else:
        return planned
    del places[schedule_id]
    return result


def _with_environment(entry: Entry, wanted: Wanted) -> Entry:
    """Names are told, values are not: that the payload has them is to be decided by whoever knows what they are."""
    names = ", ".join(sorted(entry.environment))
    if not wanted.with_environment:
        remark = f"its environment there sets {names}: the values may be secret and are left out; --with-environment puts them into the payload"
        return replace(entry, remarks=(*entry.remarks, remark))
    remark = f"the payload has the values of {names}, which may be secret: whoever may read the schedule sees them"
    payload = {**entry.payload, "environment": dict(entry.environment)}
    return replace(entry, payload=payload, remarks=(*entry.remarks, remark))


def id_of(name: str) -> str:
    """An id that is always the same for a name: the name itself where it may be one."""
    plain = _NO_NAME.sub("-", name).strip("-.")
    if plain == name and len(name) <= _MOST_ID:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: _MOST_ID - len(digest) - 1].rstrip('-.') or 'schedule'}-{digest}"


def _ruled(entry: Entry, wanted: Wanted, schedule_id: str) -> Planned:
    match entry.rule:
        case OfClock():
            return _of_clock(entry, entry.rule, wanted, schedule_id)
        case OfInterval():
            interval = entry.rule.interval
            if not timedelta(seconds=1) <= interval <= timedelta(days=3650):
                raise Unreadable("an interval must be from 1 second to ten years")
            remark = f"counted from {entry.rule.begins} there; here from `start`, or else from multiples of the interval since 1970"
            schedule = _schedule(entry, wanted, schedule_id, {"every": seconds(interval)})
            if schedule.end is not None and schedule.end <= wanted.now:
                raise Unreadable(f"does not fire any more: it ended at {schedule.end.isoformat()}")
            here = _multiples(interval, entry.fields, wanted.now)
            return Planned(entry=entry, schedule=schedule, timezone="UTC", here=here, remarks=(remark, *entry.remarks))
        case OfInstant():
            zone = zone_of(entry.rule.timezone or wanted.timezone)
            at = entry.rule.at
            if at.tzinfo is None:
                instants = Clock(zone=zone, gap="skip", fold="both").instants_of(at)
                if len(instants) != 1:
                    raise Unreadable(f"the clock of {zone.key} shows its time {'twice' if instants else 'never'}")
                at = instants[0]
            if at <= wanted.now:
                raise Unreadable(f"is past: {at.isoformat()}")
            schedule = _schedule(entry, wanted, schedule_id, {"at": at.astimezone(zone).isoformat()})
            return Planned(
                entry=entry, schedule=schedule, timezone=zone.key, there=(at,), here=(at,), remarks=entry.remarks
            )


def _of_clock(entry: Entry, rule: OfClock, wanted: Wanted, schedule_id: str) -> Planned:
    name = rule.timezone or wanted.timezone
    zone = zone_of(name)
    there, here = rule.expression, as_tickwheel(rule.expression)
    gap, fold = ("skip", "both") if here.follows_elapsed_time else ("next_valid", "first")
    definition: dict[str, Any] = {"cron": here.cron}
    changes = clock_changes(zone, after=wanted.now, days=_COMPARED_DAYS)
    if name != "UTC":
        definition["timezone"] = name
        if rule.gap is not None and rule.gap != gap:
            definition["gap"] = gap = rule.gap
        if rule.fold is not None and rule.fold != fold:
            definition["fold"] = fold = rule.fold
    ours = Clock(zone=zone, gap=gap, fold=fold)
    is_known = there.dialect.follows_tickwheel or (rule.gap is not None and rule.fold is not None)
    theirs = replace(ours, gap=rule.gap or gap, fold=rule.fold or fold)
    schedule = _schedule(entry, wanted, schedule_id, definition)
    bounds = {"after": max(wanted.now, schedule.start or wanted.now), "end": schedule.end}
    sides = tuple(tuple(islice(fires(each, clock, **bounds), SHOWN)) for each, clock in ((there, theirs), (here, ours)))
    if not sides[1] and schedule.end is None:
        raise Unreadable("never fires: there is no such day")
    if not sides[1]:
        raise Unreadable("does not fire any more: its end is past, or no fire is left before it")
    remarks = list(entry.remarks)
    if there.numbers_weekdays and there.dialect.sunday:
        remarks.append(
            f"{there.dialect.name} has {there.dialect.sunday} for Sunday, and cron 0: its weekdays are named here"
        )
    if not is_known:
        remarks += _undocumented(there.dialect.name, here, ours, changes, wanted.now)
    return Planned(
        entry=entry,
        schedule=schedule,
        timezone=name,
        there=sides[0],
        here=sides[1],
        differing=_differing((there, theirs), (here, ours), bounds),
        remarks=tuple(remarks),
    )


def _schedule(entry: Entry, wanted: Wanted, schedule_id: str, definition: Mapping[str, Any]) -> NewSchedule:
    target = entry.target or (wanted.target and wanted.target.replace("{name}", entry.name))
    if target is None:
        raise Unreadable(
            "has nothing that Tickwheel calls: say with --target what runs it, such as handler:NAME or https://…"
        )
    job = {"target": target, **entry.job}
    if entry.payload is not None:
        job["payload"] = entry.payload
    body = {**definition, **entry.fields, "job": job, "tenant": wanted.tenant, "id": schedule_id}
    return NewSchedule.from_json(body)


def _multiples(interval: timedelta, fields: Mapping[str, Any], now: datetime) -> tuple[datetime, ...]:
    start = datetime.fromisoformat(fields["start"]) if "start" in fields else datetime.fromtimestamp(0, UTC)
    passed = max(0, -((start - now) // interval))
    first = start + passed * interval
    return tuple(first + number * interval for number in range(SHOWN))


def _undocumented(name: str, here: Any, clock: Clock, changes: list[Any], now: datetime) -> Iterator[str]:
    """A remark where fires stand in an hour that a clock change skips or repeats: the other program's documentation does not say what happens."""
    for day in changes:
        start = datetime(day.year, day.month, day.day, tzinfo=clock.zone).astimezone(UTC) - timedelta(hours=1)
        end = start + timedelta(hours=27)
        readings = {
            tuple(fires(here, replace(clock, gap=gap, fold=fold), after=start, end=end))
            for gap, fold in (("skip", "first"), ("next_valid", "both"), ("skip", "second"))
        }
        if len(readings) > 1 and end > now:
            ours = fires(here, clock, after=start, end=end)
            around = [each.astimezone(clock.zone).isoformat(timespec="minutes") for each in islice(ours, 4)]
            yield (
                f"the clock changes on {day}, and {name} does not document what it then does; here it fires at "
                f"{', '.join(around) or 'no time'}{' …' if len(around) == 4 else ''}"  # noqa: PLR2004
            )


def _differing(there: tuple[Any, Clock], here: tuple[Any, Clock], bounds: Mapping[str, Any]) -> tuple[Differing, ...]:
    """The days of the next year, of the first fires and of those around clock changes, that differ."""
    after, end = bounds["after"], bounds["end"]
    zone = here[1].zone
    stretches = [(after, after + timedelta(days=40))]
    for day in clock_changes(zone, after=after, days=_COMPARED_DAYS):
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=zone).astimezone(UTC)
        stretches.append((noon - timedelta(days=1), noon + timedelta(days=1)))
    days: dict[Any, Differing] = {}
    for low, high in stretches:
        until = high if end is None else min(high, end)
        sides = [list(islice(fires(*side, after=max(low, after), end=until), _MOST_COMPARED)) for side in (there, here)]
        last = min((side[-1] for side in sides if len(side) == _MOST_COMPARED), default=until)
        odd = {each for each in set(sides[0]) ^ set(sides[1]) if each <= last}
        for day in sorted({each.astimezone(zone).date() for each in odd}):
            of_day = [tuple(each for each in side if each.astimezone(zone).date() == day) for side in sides]
            days[day] = Differing(there=of_day[0], here=of_day[1])
    return tuple(days[day] for day in sorted(days))
