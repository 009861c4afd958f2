"""One fire of a schedule, as the job that it becomes carries it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from functions.domain.errors import InvalidInput, InvalidSchedule
from functions.domain.instants import format_instant, parse_instant
from functions.domain.jobs.overlap import Overlap

UNBOUND = 0
"""From here down: the version of an occurrence that no version of its schedule decided, because it was triggered or
backfilled; then it is the negative of the version that it was asked of."""

_IDENTITY = re.compile(r"([^:]+):(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?::|$))?(.*)", re.ASCII)

OPENING = "{{tickwheel."
CLOSING = "}}"


class Keeps(NamedTuple):
    """How many of its last successful and failed runs a schedule keeps."""

    successes: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Which fire of which schedule a job is.

    fire_at, nominal_at: when it fires, and when its rule says so. version: of the schedule that decided it; see UNBOUND.
    index: counts the fires of the schedule from 0. previous_at: the fire before it. pause_after: failures in a row, 0
    for any number. is_end_to_start: the next fire depends on when this one has come to its end. keeps: what its
    schedule keeps, None for nothing.
    """

    schedule_id: str
    fire_at: datetime
    nominal_at: datetime
    version: int = UNBOUND
    index: int = 0
    previous_at: datetime | None = None
    overlap: Overlap = Overlap.ALLOW
    pause_after: int = 0
    is_end_to_start: bool = False
    keeps: Keeps | None = None


def identity_of(schedule_id: str, fire_at: datetime, suffix: str = "") -> str:
    """The stable name of a fire: however often it is decided, it runs once. suffix: of a trigger or a backfill."""
    identity = f"{schedule_id}:{format_instant(fire_at)}"
    return f"{identity}:{suffix}" if suffix else identity


def fire_of(identity: str) -> tuple[str, datetime | None, str] | None:
    """Schedule id, fire time and suffix of the name of an occurrence; None for the name of any other job.

    One that was triggered has no time in its name; a suffix has only what no version of its schedule decided.
    """
    found = _IDENTITY.fullmatch(identity)
    if found is None:
        return None
    try:
        return found[1], parse_instant(found[2]) if found[2] else None, found[3]
    except InvalidInput:
        return None  # a thirteenth month: no fire was ever named so


_VALUES: dict[str, Callable[[Occurrence], Any]] = {
    "schedule_id": lambda fire: fire.schedule_id,
    "fire_time": lambda fire: format_instant(fire.fire_at),
    "nominal_time": lambda fire: format_instant(fire.nominal_at),
    "previous_time": lambda fire: format_instant(fire.previous_at) if fire.previous_at else None,
    "index": lambda fire: fire.index,
}


def check_references(payload: Any) -> None:
    """Raises InvalidSchedule when a payload refers to something of its fire that there is not."""
    _fill(payload, dict.fromkeys(_VALUES, ""))


def fill_references(text: str, occurrence: Occurrence) -> str:
    """The JSON text of a payload, with what it refers to: `{{tickwheel.index}}` and the like inside its strings.

    A string that is nothing but one reference becomes its value, a number or null; elsewhere it is put in as text.
    """
    if OPENING not in text:
        return text
    values = {name: value(occurrence) for name, value in _VALUES.items()}
    return json.dumps(_fill(json.loads(text), values), separators=(",", ":"), ensure_ascii=False)


def _fill(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(part, values) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, values) for part in value]
    if isinstance(value, str) and OPENING in value:
        return _fill_text(value, values)
    return value


def _fill_text(text: str, values: dict[str, Any]) -> Any:
    first, *parts = text.split(OPENING)
    filled = first
    for part in parts:
        name, closing, rest = part.partition(CLOSING)
        if not closing or name not in values:
            known = ", ".join(f"{OPENING}{known}{CLOSING}" for known in values)
            raise InvalidSchedule(
                f"refers to {OPENING}{name[:40]}…, which there is not: known are {known}",
                field="job.payload",
                value=text[:200],
            )
        if not first and not rest and len(parts) == 1:
            return values[name]
        value = values[name]
        filled += ("" if value is None else str(value)) + rest
    return filled
