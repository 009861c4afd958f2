"""Time zones: which instants a local time is, on the days of a clock change too.

The rules of the zones are those of the package tzdata, so that they do not depend on the machine. "Local" means a naive
datetime: what a clock on the wall shows. A local time can be no instant at all (the clock jumped over it: a gap) or
two (the clock went back: a fold).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import DAY, HOUR, LATEST, MICROSECOND, SECOND
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.schedule import Shifter
from functions.domain.schedules.step_budget import STEPS_OF_A_WALK, Budget

_SAMPLE = timedelta(hours=6)
"""No zone of today changes its clock twice in so short a time."""

STEPS_OF_NO_INSTANT = 2
"""What a local time costs that no fire comes of: it is in a gap, or its instant is before those that are asked for."""

_RARE_SAMPLE = timedelta(days=7)
"""No zone changes its clock forth and back in so short a time, from 2000 on."""

_OFFSET_LIKE = re.compile(r"(?:Etc/)?GMT[+-][1-9]\d?|(?:UTC?|GMT)?[+-]\d.*", re.ASCII | re.IGNORECASE)


class Nominal(NamedTuple):
    """A time that a rule names.

    at: the instant, for a local time in a gap the end of the gap. local: what the rule says, None where it speaks of
    instants. shifter: GAP or FOLD where a clock change had a say.
    """

    at: datetime
    local: datetime | None = None
    shifter: Shifter | None = None


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of the zones that there are, without those of a fixed offset."""
    names = (resources.files("tzdata") / "zones").read_text(encoding="ascii").split()
    return frozenset(name for name in names if name != "Factory" and not _OFFSET_LIKE.fullmatch(name))


_LONGEST_MISSPELT = 40
"""Characters; the longest name of a zone has 32. To compare takes time, and grows with what is compared."""


@lru_cache(maxsize=1_000)
def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises InvalidSchedule for any other text, with the names that are like it."""
    if _OFFSET_LIKE.fullmatch(name):
        raise InvalidSchedule(
            f"{name[:100]!r} is an offset, which says nothing of clock changes: name a place such as Europe/Berlin, or UTC",
            field="timezone",
            value=name,
        )
    if name not in zone_names():
        near = _near(name) if len(name) <= _LONGEST_MISSPELT else []
        hint = f": did you mean {' or '.join(dict.fromkeys(near[:3]))}?" if near else ": use one such as Europe/Berlin"
        raise InvalidSchedule(f"{name[:100]!r} is not an IANA time zone{hint}", field="timezone", value=name)
    path = resources.files("tzdata") / "zoneinfo"
    for part in name.split("/"):
        path /= part
    with path.open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


def _near(name: str) -> list[str]:
    """Names that are like this one."""
    known = {known.lower(): known for known in zone_names()}
    places = {known.rsplit("/", 1)[-1].lower(): known for known in sorted(zone_names(), reverse=True)}
    near = [known[match] for match in get_close_matches(name.lower(), known, n=3, cutoff=0.75)]
    return near + [places[match] for match in get_close_matches(name.rsplit("/", 1)[-1].lower(), places, n=3)]


def local_of(instant: datetime, zone: ZoneInfo) -> datetime:
    """What the clock on the wall shows, without a zone."""
    # Without its fold: both passes of a time are the same local time.
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def first_local(since: datetime, zone: ZoneInfo) -> datetime:
    """A local time before which nothing falls on or after the instant, in whatever pass.

    It is what the wall shows at the smallest offset around: just before the instant, for a gap that ends with it, and
    after as much time as a fold that begins soon repeats.
    """
    shown = _offset(since.astimezone(zone))
    # A time that comes twice may be behind this instant in its second pass only.
    repeated = max(timedelta(0), shown - _offset((since + DAY).astimezone(zone)))
    around = (since - MICROSECOND, since + repeated)
    return since.replace(tzinfo=None) + min(shown, *(_offset(moment.astimezone(zone)) for moment in around))


def instants_of(local: datetime, zone: ZoneInfo, *, gap: Gap, fold: Fold) -> tuple[Nominal, ...]:
    """The instants of a local time, in order: one, or what the policies for clock changes make of none and two."""
    aware = local.replace(tzinfo=zone, fold=0)
    before = _offset(aware)
    after = _offset(aware.replace(fold=1))
    if before == after:
        return (Nominal((local - before).replace(tzinfo=UTC), local),)
    if before < after:
        return () if gap is Gap.SKIP else (Nominal(_change(aware, before=before, after=after), local, Shifter.GAP),)
    first = Nominal((local - before).replace(tzinfo=UTC), local, Shifter.FOLD)
    second = Nominal((local - after).replace(tzinfo=UTC), local, Shifter.FOLD)
    return {Fold.FIRST: (first,), Fold.SECOND: (second,), Fold.BOTH: (first, second)}[fold]


def in_time(
    locals_: Iterable[datetime], zone: ZoneInfo, *, since: datetime, gap: Gap, fold: Fold, budget: Budget | None = None
) -> Iterator[Nominal]:
    """The instants of increasing local times from `since` (inclusive) on, in order.

    Local times of one gap share an instant; they come one after the other, before the one that names it. budget: pays for
    those of which there is no instant from `since` on. Raises TooCostly where it is spent.
    """
    budget = Budget(STEPS_OF_A_WALK) if budget is None else budget
    second_passes: list[Nominal] = []
    for local in locals_:
        first, *second = instants_of(local, zone, gap=gap, fold=fold) or (None,)
        if first is None or first.at < since:
            budget.spend(STEPS_OF_NO_INSTANT)
        if first is None:
            continue
        while second_passes and second_passes[0].at < first.at:
            yield second_passes.pop(0)
        second_passes += [nominal for nominal in second if nominal.at >= since]
        if first.at >= since:
            yield first
    yield from second_passes


def steady_spans(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """The parts of [start, end) in which the clock does not change, each with its offset from UTC."""
    since = start
    for change, offset in _changes(zone, start, end, sample=_SAMPLE):
        yield since, change, offset
        since = change
    if since < end:
        yield since, end, _offset(since.astimezone(zone))


def next_change(zone: ZoneInfo, after: datetime) -> datetime | None:
    """The next instant after this one at which the clock changes; None when it does not before LATEST."""
    for year in range(after.year, LATEST.year + 1):
        for change in _changes_of(zone.key, year):
            if change > after:
                return change
    return None


@lru_cache(maxsize=5_000)
def _changes_of(name: str, year: int) -> tuple[datetime, ...]:
    zone = zone_of(name)
    start, end = (datetime(number, 1, 1, tzinfo=UTC) for number in (year, year + 1))
    return tuple(change for change, _ in _changes(zone, start, end, sample=_RARE_SAMPLE))


def _changes(
    zone: ZoneInfo, start: datetime, end: datetime, *, sample: timedelta
) -> Iterator[tuple[datetime, timedelta]]:
    """When the clock changes in (start, end], each with the offset before it. sample: no two changes are nearer."""
    offset = _offset(start.astimezone(zone))
    while start < end:
        following = min(start + sample, end)
        found = _offset(following.astimezone(zone))
        if found != offset:
            yield _bisect(zone, start, following, offset), offset
        start, offset = following, found


def _offset(aware: datetime) -> timedelta:
    offset = aware.utcoffset()
    assert offset is not None
    return offset


def _change(aware: datetime, *, before: timedelta, after: timedelta) -> datetime:
    # Read with the offset of after the change a time in its gap lies before it, and the other way round.
    assert isinstance(aware.tzinfo, ZoneInfo)
    hour = aware.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    return _change_around(aware.tzinfo, hour, before, after)


@lru_cache(maxsize=1_000)
def _change_around(zone: ZoneInfo, hour: datetime, before: timedelta, after: timedelta) -> datetime:
    """The end of the gap that holds a time of this hour: a rule may name thousands of them."""
    return _bisect(zone, hour - after, hour + HOUR - before, before)


def _bisect(zone: ZoneInfo, low: datetime, high: datetime, offset: timedelta) -> datetime:
    """The first whole second in (low, high] at which the offset is another than at `low`."""
    low = low.replace(microsecond=0)
    while high - low > SECOND:
        middle = low + (high - low) // 2 // SECOND * SECOND
        if _offset(middle.astimezone(zone)) == offset:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
