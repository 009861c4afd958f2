"""What a clock change does to a cron expression, in every zone that has one.

Two oracles. cronsim is an implementation of Debian's rules by others. For expressions that follow elapsed time there is
a plainer one too: walk over every minute, and ask whether the wall shows a time that matches.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from functions.domain.instants import MINUTE
from functions.domain.schedules.firing import fires
from functions.domain.schedules.zones import zone_names, zone_of
from tests.wall_clock import a_cron

CHUNKS = 8
AROUND = timedelta(hours=36)
YEARS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))

ELAPSED = (
    "* * * * *",
    "*/5 * * * *",
    "*/7 * * * *",
    "30 * * * *",
    "0 * * * *",
    "59 * * * *",
    "*/15 1 * * *",
    "*/20 1-3 * * *",
    "*/30 0 * * *",
    "*/10 2 * * 0",
    "*/30 0-23/2 * * 5",
    "0 */2 * * *",
    "15 */3 * * *",
    "0 */12 * * 5",
    "*/7 */5 * * *",
    "*/30 */2 * * 0",
    "5,35 * * * 1-5",
)
TIMES_OF_DAY = (
    "0 0 * * *",
    "1 0 1 * *",
    "30 0 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "45 2 * * *",
    "0 3 * * *",
    "45 3 * apr,sep *",
    "30 22 * * *",
    "0 23 * * *",
    "45 23 * * *",
    "59 23 * * *",
    "0 12 * * *",
    "15,45 2 * * *",
    "0,30 1-3 * * *",
    "15 1,2,3 * * *",
    "59 1-2 * * *",
    "5/10 2 * * *",
    "10-50/20 0-4 * * *",
    "0 0-23/6 * * *",
    "20 4 * 4-10 *",
    "30 2 * * 0",
    "30 2 * * sun",
    "0 0 * * fri",
    "0 2 29 3 *",
    "30 2 28 * *",
    "30 2 L * *",
    "30 2 L 3,10 *",
    "30 2 LW * *",
    "30 2 28,LW 3,10 *",
    "30 2 * * sunL",
    "30 2 * * 0#1,friL",
    "30 2 * * 0#1",
    "30 2 * * 7#5",
    "0 0 * * 5#5",
    "30 2 1-7 * 0",
    "30 2 */2 * 0",
    "0 3 15-31 3,10 sun",
    "0 2 1 11 0",
    "0 0 31 * *",
    "0 5 25-31 * *",
)
# Left out: `15W`, `L-3` and ranges that run backwards, which cronsim refuses.


def as_cronsim_writes(expression: str) -> str:
    """It has numbers before an `L`, which we refuse for the different ways to count weekdays."""
    return expression.replace("sunL", "0L").replace("friL", "5L")


class Change(NamedTuple):
    """at: the first instant of the new offset."""

    zone: ZoneInfo
    at: datetime
    before: timedelta
    after: timedelta

    @property
    def is_beyond_cronsim(self) -> bool:
        """Whether cronsim 2.8 loses its way in elapsed time.

        It walks in whole hours and looks for the minute only then: where the clock does not change from one full hour to
        another it loses fires. And it begins a date at midnight, also where there is no midnight.
        """
        until, since = (self.at + self.before).replace(tzinfo=None), (self.at + self.after).replace(tzinfo=None)
        midnight = since.replace(hour=0, minute=0)
        return bool(until.minute or since.minute) or until <= midnight < since


@lru_cache(maxsize=1)
def changes() -> list[Change]:
    """Those of all zones; zones that change their clocks at the same instants, by the same, are looked at once."""
    found: dict[tuple[tuple[datetime, timedelta, timedelta], ...], list[Change]] = {}
    for name in sorted(zone_names()):
        of_zone = list(_changes_of(zone_of(name)))
        found.setdefault(tuple((change.at, change.before, change.after) for change in of_zone), of_zone)
    return [change for of_zone in found.values() for change in of_zone]


def _changes_of(zone: ZoneInfo):
    days = [YEARS[0] + timedelta(days=day) for day in range((YEARS[1] - YEARS[0]).days + 1)]
    for low, high in pairwise(days):
        before, after = _offset(low, zone), _offset(high, zone)
        if before != after:
            minutes = [low + count * MINUTE for count in range(1, 24 * 60 + 1)]
            yield Change(zone, next(minute for minute in minutes if _offset(minute, zone) != before), before, after)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def ours(expression: str, change: Change) -> list[datetime]:
    found = fires(a_cron(expression, timezone=change.zone.key), after=change.at - AROUND)
    return [fire.at for fire in takewhile(lambda fire: fire.at <= change.at + AROUND, found)]


def as_cronsim_says(expression: str, change: Change) -> list[datetime]:
    found = (
        match.astimezone(UTC)
        for match in CronSim(as_cronsim_writes(expression), (change.at - AROUND).astimezone(change.zone))
    )
    # It names the time that it began at once more when the clock has gone back.
    return [at for at in takewhile(lambda at: at <= change.at + AROUND, found) if at > change.at - AROUND]


def chunk_of(number: int) -> list[Change]:
    return changes()[number::CHUNKS]


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_by_default_a_cron_does_around_every_clock_change_what_cronsim_says(chunk: int):
    differences = [
        (expression, change.zone.key, change.at)
        for change in chunk_of(chunk)
        for expression in (*TIMES_OF_DAY, *(() if change.is_beyond_cronsim else ELAPSED))
        if ours(expression, change) != as_cronsim_says(expression, change)
    ]

    assert not differences


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_follows_elapsed_time_fires_in_each_minute_in_which_the_wall_shows_a_time_that_matches(chunk: int):
    differences = []
    for change in chunk_of(chunk):
        minutes = [change.at - AROUND + count * MINUTE for count in range(1, 2 * AROUND // MINUTE + 1)]
        wall = [minute.astimezone(change.zone) for minute in minutes]
        for expression in ELAPSED:
            fields = CronSim(expression, YEARS[0])
            expected = [
                minute
                for minute, shown in zip(minutes, wall, strict=True)
                if shown.minute in fields.minutes and shown.hour in fields.hours and fields.match_day(shown.date())
            ]
            if ours(expression, change) != expected:
                differences.append((expression, change.zone.key, change.at))

    assert not differences


def test_the_oracles_are_asked_about_every_kind_of_clock_change_there_is():
    kinds = {(change.after - change.before, str((change.at + change.before).time())) for change in changes()}
    hour = timedelta(hours=1)

    assert len(changes()) >= 150
    assert len(ELAPSED + TIMES_OF_DAY) >= 40
    assert {
        (hour, "02:00:00"),  # Berlin, New York
        (-hour, "03:00:00"),
        (hour, "00:00:00"),  # Cairo, Beirut, Havana: no midnight
        (-hour, "00:00:00"),  # Cairo: 23:00 to midnight twice
        (hour, "23:00:00"),  # Nuuk: the gap ends on the next date
        (hour / 2, "02:00:00"),  # Lord Howe
        (-hour / 2, "02:00:00"),
        (-hour, "03:45:00"),  # Chatham
        (2 * hour, "01:00:00"),  # Troll
    } <= kinds


@pytest.mark.long
def test_cronsim_still_loses_fires_where_the_second_oracle_is_needed():
    lost = [
        change.zone.key
        for change in changes()
        if change.is_beyond_cronsim
        and any(ours(expression, change) != as_cronsim_says(expression, change) for expression in ELAPSED)
    ]

    assert {"Australia/LHI", "NZ-CHAT"} <= set(lost)
