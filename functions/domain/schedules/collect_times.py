"""When the window of a collection closes, by its terms."""

from __future__ import annotations

from datetime import datetime

from functions.domain.errors import InvalidJob, InvalidSchedule
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.collect import MAX_WINDOW, Collect
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.zones import first_local, in_time, zone_of


def closes_at(collect: Collect, first_due_at: datetime) -> datetime:
    """When those are released at the latest of whom the first was due then."""
    latest = first_due_at + (collect.window or MAX_WINDOW)
    return min(latest, _next_time(collect, first_due_at, latest=latest)) if collect.at else latest


def check_times(collect: Collect) -> Collect:
    """The terms themselves. Raises InvalidJob where the cron or its time zone is none."""
    if not collect.at:
        return collect
    for field, rule, value in (("at", parse_cron, collect.at), ("timezone", zone_of, collect.timezone)):
        try:
            rule(value)
        except InvalidSchedule as error:
            raise InvalidJob(str(error), field=field, value=value[:80]) from None
    return collect


def _next_time(collect: Collect, after: datetime, *, latest: datetime) -> datetime:
    cron, zone = parse_cron(collect.at), zone_of(collect.timezone)
    # As a schedule has it by default: see `clock_policy`.
    gap, fold = (Gap.SKIP, Fold.BOTH) if cron.follows_elapsed_time else (Gap.NEXT_VALID, Fold.FIRST)
    since = after + MILLISECOND
    found = in_time(cron.matches(since=first_local(since, zone)), zone, since=since, gap=gap, fold=fold)
    return next((nominal.at for nominal in found), latest)
