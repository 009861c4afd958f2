"""Jobs of a schedule that are asked for: the fires of a time range that has passed, or a run of now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile

from functions.domain.errors import InvalidInput, InvalidSchedule
from functions.domain.instants import format_instant, from_ms, to_ms
from functions.domain.jobs.job import Job
from functions.domain.jobs.occurrence import UNBOUND
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules.due_fires import occurrence_job
from functions.domain.schedules.firing import fires
from functions.domain.schedules.schedule import Fire, Schedule
from functions.domain.schedules.state import Link
from functions.domain.wheel import Wheel
from functions.ports.schedules import StoredSchedule

MOST_BACKFILLED = 1_000
"""Fires of one backfill: more would not be placed within one request."""

MOST_AHEAD = timedelta(days=366)
"""How far ahead its next run may be: a thousand fires at the lowest rate are spread over less."""

_BOOKMARK = re.compile(r"(\d{1,15})~(\d{1,15})~([0-9A-Za-z_-]{1,40})(?:~(\d{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """Where a backfill continues whose fires could not all come in at once.

    start: the first fire that is left. due_at: when its run is due, so that parts keep the pace. token: of the backfill.
    index: how many fires of the backfill came before it.
    """

    start: datetime
    due_at: datetime
    token: str
    index: int = 0

    def __str__(self) -> str:
        return f"{to_ms(self.start)}~{to_ms(self.due_at)}~{self.token}~{self.index}"

    def first_at(self, *, now: datetime) -> datetime:
        """When the first run of the next part is due: never in the past. Raises InvalidInput."""
        if self.due_at > now + MOST_AHEAD:
            raise InvalidInput(f"after is {str(self)!r}, which no backfill has answered: its next run is too far ahead")
        return max(now, self.due_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Jobs of a time range. count: how many; first, last: their fires. job_ids is empty for a dry run.

    goes_on: where the next request takes the fires up that could not come in with these; None where all did.
    """

    backfill_id: str
    count: int
    first: datetime | None
    last: datetime | None
    ends_at: datetime | None
    job_ids: Sequence[str] = ()
    goes_on: Bookmark | None = None


def range_of(schedule: Schedule, *, start: datetime, end: datetime, now: datetime) -> list[Fire]:
    """The fires of a time range that has passed. Raises InvalidSchedule for another range, or one with more than MOST_BACKFILLED."""
    if schedule.is_end_to_start:
        raise InvalidSchedule("cannot be backfilled: its fires depend on its runs", field="every.from", value="end")
    if not start < end <= now:
        raise InvalidSchedule(
            f"must be after start and not in the future: it is now {format_instant(now)}",
            field="end",
            value=format_instant(end),
        )
    before_start = from_ms(to_ms(start) - 1)
    found = list(
        islice(takewhile(lambda fire: fire.at < end, fires(schedule, after=before_start)), MOST_BACKFILLED + 1)
    )
    if len(found) > MOST_BACKFILLED:
        raise InvalidSchedule(
            f"leaves more than {MOST_BACKFILLED} fires: the first {MOST_BACKFILLED} end before "
            f"{format_instant(found[-1].at)}, so backfill up to there first",
            field="end",
            value=format_instant(end),
        )
    return found


def extra_job(
    stored: StoredSchedule,
    *,
    fire_at: datetime,
    due_at: datetime,
    index: int,
    suffix: str,
    overlap: Overlap | None,
    wheel: Wheel,
    nominal_at: datetime | None = None,
) -> Job:
    """A job that no version of the schedule decided. Raises InvalidSchedule for an overlap that it cannot keep to."""
    link = Link(at=fire_at, nominal_at=nominal_at or fire_at, index=index)
    schedule = replace(stored.schedule, overlap=overlap or stored.schedule.overlap)
    return occurrence_job(schedule, link, version=UNBOUND - stored.version, wheel=wheel, due_at=due_at, suffix=suffix)


def parse_bookmark(text: str) -> Bookmark:
    """What `str` wrote, or did before a bookmark had an index. Raises InvalidInput."""
    if found := _BOOKMARK.fullmatch(text):
        with suppress(ValueError, OverflowError):
            start, due_at = (from_ms(int(found[place])) for place in (1, 2))
            return Bookmark(start=start, due_at=due_at, token=found[3], index=int(found[4] or 0))
    raise InvalidInput(f"after is {text[:80]!r}, but must be what a backfill has answered as next")
