"""The cron(…), rate(…) and at(…) of EventBridge, wherever they stand."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tickwheel.imports.cron import parse_fields
from tickwheel.imports.dialects import EVENTBRIDGE
from tickwheel.imports.durations import rate_interval
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import OfClock, OfInstant, OfInterval, Rule
from tickwheel.imports.years import bounds_of

_CALL = re.compile(r"(cron|rate|at)\((.*)\)", re.ASCII | re.DOTALL)
_FIELDS = 6


@dataclass(frozen=True)
class Read:
    """A rule, and the fields that bound it."""

    rule: Rule
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


def read_expression(text: Any, timezone: str, begins: str = "when the schedule was made") -> Read:
    """Reads an expression. Raises Unreadable."""
    if not isinstance(text, str):
        raise Unreadable("has an expression that a deployment makes: put the text in its place")
    match = _CALL.fullmatch(text.strip())
    if match is None:
        raise Unreadable(f"{text[:100]!r} is no cron(…), rate(…) or at(…)")
    if match[1] == "rate":
        return Read(OfInterval(interval=rate_interval(match[2]), begins=begins))
    if match[1] == "at":
        try:
            at = datetime.strptime(match[2].strip(), "%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007  local to the zone
        except ValueError:
            raise Unreadable(f"{text[:100]!r} holds no local time such as 2027-01-31T09:00:00") from None
        return Read(OfInstant(at=at, timezone=timezone))
    fields = match[2].split()
    if len(fields) != _FIELDS:
        raise Unreadable(f"cron(…) has {len(fields)} fields, but EventBridge's has 6, the last of them the year")
    if any(each.endswith(",") for each in fields):
        raise Unreadable("has commas between its fields, which EventBridge refuses")
    if "?" not in (fields[2], fields[4]):
        raise Unreadable("has no ? in a day field, which EventBridge refuses")
    expression = parse_fields(fields[:5], EVENTBRIDGE)
    rule = OfClock(expression=expression, timezone=timezone, gap=EVENTBRIDGE.gap, fold=EVENTBRIDGE.fold)
    return Read(rule, bounds_of(fields[5], timezone))
