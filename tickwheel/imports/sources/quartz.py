"""Expressions of Quartz and Spring: one a line, with or without a name, or JSON Lines."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from tickwheel.imports.cron import MACROS, parse, parse_fields
from tickwheel.imports.dialects import SPRING, Dialect
from tickwheel.imports.documents import text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInterval, Place
from tickwheel.imports.sources.aws_expressions import Read
from tickwheel.imports.years import bounds_of

_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)\s*[=:]\s*(.+)")
_SECONDS = re.compile(r"(?:\*|0)(?:/([0-9]{1,2}))?", re.ASCII)
_MOST_LINE = 1_000


def read_quartz(file: str, data: bytes, *, dialect: Dialect) -> Iterator[Found]:
    """The expressions of a file: `name = 0 0 7 ? * SUN`, the expression alone, or {"name": …, "cron": …} a line."""
    for number, line in enumerate(text_of(data).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith(("#", "!", "//")):
            continue
        place = Place(file, number)
        name, zone, written = f"line-{number}", None, text
        try:
            name, zone, written = _cut(text, name)
            read, remarks = _read(written, zone, dialect)
            payload = {"name": name}
            yield Entry(
                place=place,
                name=name,
                written=written,
                rule=read.rule,
                payload=payload,
                fields=read.fields,
                remarks=remarks,
            )
        except Unreadable as problem:
            yield LeftOut(place=place, name=name, written=written[:200], reason=str(problem))


def _cut(text: str, name: str) -> tuple[str, str | None, str]:
    if len(text) > _MOST_LINE:
        raise Unreadable(f"is a line of more than {_MOST_LINE} characters")
    if text.startswith("{"):
        try:
            body: Any = json.loads(text)
        except (ValueError, RecursionError):
            raise Unreadable("is not JSON") from None
        if not isinstance(body.get("cron"), str):
            raise Unreadable('has no "cron"')
        return str(body.get("name") or name), body.get("timezone"), body["cron"]
    match = _NAMED.fullmatch(text)
    if match is not None and not text[0].isdigit():
        return match[1], None, match[2].strip().strip("\"'")
    return name, None, text.strip("\"'")


def _read(text: str, zone: str | None, dialect: Dialect) -> tuple[Read, tuple[str, ...]]:
    if dialect is SPRING and text.lower() in MACROS:
        return Read(OfClock(expression=parse(text, dialect), timezone=zone)), ()
    fields = text.split()
    if len(fields) not in ({6} if dialect is SPRING else {6, 7}):
        raise Unreadable(f"has {len(fields)} fields, but one of {dialect.name} has 6, the first of them seconds" + ("" if dialect is SPRING else ", and 7 with years"))  # fmt: skip
    seconds, five, years = fields[0], fields[1:6], fields[6] if len(fields) > 6 else "*"  # noqa: PLR2004
    if dialect is not SPRING and "?" not in (five[2], five[4]):
        remark: tuple[str, ...] = ("has no ? in a day field, which Quartz refuses: read as both must match",)
    else:
        remark = ()
    if not re.fullmatch("0{1,2}", seconds):
        return _each_second(seconds, five, years), remark
    expression = parse_fields(five, dialect)
    return Read(OfClock(expression=expression, timezone=zone), bounds_of(years, zone or "UTC")), remark


def _each_second(seconds: str, five: list[str], years: str) -> Read:
    match = _SECONDS.fullmatch(seconds)
    step = int(match[1] or 1) if match and (match[1] or seconds == "*") else 0
    if not step or 60 % step or any(each not in {"*", "?"} for each in (*five, years)):
        raise Unreadable(
            "names seconds, but a cron here fires on the minute; only each n-th second of all can be said, as `every`"
        )
    return Read(OfInterval(interval=timedelta(seconds=step), begins="each full minute"))


def reader(dialect: Dialect) -> Callable[[str, bytes], Iterator[Found]]:
    """Reads expressions of one of them."""
    return partial(read_quartz, dialect=dialect)
