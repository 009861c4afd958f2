"""What an expression of another program is, and the definitions that mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import SECOND, format_duration
from functions.domain.schedules.cron import as_json, parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.rules import MAX_INTERVAL, Fold, Gap


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an expression is.

    name: whose. meanings: equivalent definitions, by what distinguishes them where there are several. remark:
    what cannot be expressed, or has to be looked at.
    """

    name: str
    meanings: Mapping[str, Mapping[str, Any]]
    remark: str = ""

    def __str__(self) -> str:
        written = ", or ".join(
            f"{as_json(definition)}{meaning and f' {meaning}'}" for meaning, definition in self.meanings.items()
        )
        return "; ".join(part for part in (f"is {self.name}", self.remark, written and f"write {written}") if part)


def of_interval(name: str, interval: timedelta) -> Dialect:
    """An interval as a definition; a remark where none may be that long or short."""
    if not SECOND <= interval <= MAX_INTERVAL:
        return Dialect(name, {}, "an interval must be from 1 second to ten years")
    remark = "an interval is counted from `start`, or else from the epoch"
    return Dialect(name, {"": {"every": format_duration(interval)}}, remark)


def on_the_clock(cron: str, timezone: str, *, gap: Gap | None, fold: Fold | None) -> dict[str, Any]:
    """A cron in a zone, with what the other program does on a clock change where Tickwheel would do something else."""
    definition: dict[str, Any] = {"cron": cron}
    if timezone == "UTC":
        return definition
    definition["timezone"] = timezone
    follows = parse_cron(cron).follows_elapsed_time
    if gap is not None and gap is not (Gap.SKIP if follows else Gap.NEXT_VALID):
        definition["gap"] = gap.value
    if fold is not None and fold is not (Fold.BOTH if follows else Fold.FIRST):
        definition["fold"] = fold.value
    return definition


def is_read(cron: str) -> bool:
    """Whether it is a cron that a new schedule may have."""
    try:
        parse_cron(cron)
        check_new_cron(cron)
    except InvalidSchedule:
        return False
    return True
