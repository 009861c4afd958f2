"""Expressions of six and seven fields: with seconds, with years, or both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from functions.domain.instants import format_duration
from functions.domain.schedules.dialects.dialect import Dialect, is_read, on_the_clock
from functions.domain.schedules.dialects.eventbridge import from_eventbridge
from functions.domain.schedules.dialects.fields import CRON_FIELD, bounds_of, translated, with_star

_SECONDS = re.compile(r"(\*|[0-9]{1,2})(?:/([0-9]{1,2}))?", re.ASCII)


def read_more_fields(text: str, timezone: str) -> Dialect | None:
    """Reads six fields or seven; None for another number."""
    fields = text.lower().split()
    if not all(CRON_FIELD.fullmatch(field) for field in fields):
        return None
    if len(fields) == 6 and "?" in (fields[2], fields[4]):  # noqa: PLR2004
        return from_eventbridge(fields, timezone)
    if len(fields) not in {6, 7}:
        return None
    seconds, *rest = fields
    is_quartz = len(fields) == 7  # noqa: PLR2004
    name = (
        "an expression with seconds and years, as Quartz has it"
        if is_quartz
        else ("an expression with seconds, as Quartz, Spring and robfig/cron have it")
    )
    years = rest.pop() if is_quartz else "*"
    if not is_quartz and not is_read(" ".join(with_star(field) for field in rest)) and is_read(" ".join(fields[:5])):
        return _one_more(fields, timezone)
    if not re.fullmatch("0{1,2}", seconds):
        every = _every_second(seconds) if all(field in {"*", "?"} for field in (*rest, years)) else None
        if every is None:
            return Dialect(name, {}, "only second 0 can be expressed as a cron: it fires on the minute")
        return Dialect(name, {"": {"every": every}})
    as_quartz = translated(name, rest, years, timezone, sunday=1)
    as_spring = translated(name, rest, years, timezone, sunday=0)
    if is_quartz or dict(as_quartz.meanings) == dict(as_spring.meanings):
        return as_quartz
    readings = (("where Sunday is 1, as in Quartz", as_quartz), ("where Sunday is 0, as in Spring", as_spring))
    meanings = {meaning: read.meanings[""] for meaning, read in readings if read.meanings}
    return Dialect(name, meanings)


def _one_more(fields: Sequence[str], timezone: str) -> Dialect:
    """A cron with a sixth field after it: croniter's seconds, or the years of an EventBridge that forgot its `?`."""
    cron, last = " ".join(fields[:5]), fields[5]
    definition = on_the_clock(cron, timezone, gap=None, fold=None)
    name = "a cron with a sixth field after it"
    if re.fullmatch("0{1,2}", last):
        return Dialect(name, {"where that is seconds, as in croniter": definition})
    bounds = bounds_of(last, timezone)
    if bounds is None:
        return Dialect(name, {}, "only second 0 can be expressed as a cron: it fires on the minute")
    return Dialect(name, {"where that is the year": {**definition, **bounds}})


def _every_second(field: str) -> Any:
    """The interval of a field of seconds, all others being stars; None where it is not even."""
    match = _SECONDS.fullmatch(field)
    if match is None:
        return None
    first = 0 if match[1] == "*" else int(match[1])
    step = int(match[2]) if match[2] else 1 if match[1] == "*" else 60
    if not step or 60 % step or first >= step:
        return None
    interval = format_duration(timedelta(seconds=step))
    return {"interval": interval, "phase": format_duration(timedelta(seconds=first))} if first else interval
