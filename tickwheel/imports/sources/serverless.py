"""The schedules of functions in a serverless.yml, or in its JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from tickwheel.imports.cron import parse
from tickwheel.imports.dialects import CRONTAB
from tickwheel.imports.documents import line_of, plain, text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, Place
from tickwheel.imports.sources.aws_expressions import Read, read_expression
from tickwheel.imports.yaml_documents import read_any

_FIELDS = 5


def read_serverless(file: str, data: bytes) -> Iterator[Found]:
    """The schedule events of all functions."""
    for document in read_any(text_of(data)):
        functions = document.get("functions") if isinstance(document, dict) else None
        if not isinstance(functions, dict):
            continue
        for name, function in functions.items():
            events = function.get("events") if isinstance(function, dict) else None
            schedules = [each for each in events or () if isinstance(each, dict) and "schedule" in each]
            for number, event in enumerate(schedules):
                place = Place(file, line_of(event, line_of(function)))
                own = name if number == 0 else f"{name}-{number + 1}"
                yield from _event(place, own, event["schedule"])


def _event(place: Place, name: str, schedule: Any) -> Iterator[Found]:
    values: Mapping[str, Any] = schedule if isinstance(schedule, dict) else {"rate": schedule}
    rates = values.get("rate")
    several = rates if isinstance(rates, list) else [rates]
    for number, rate in enumerate(several):
        given = values.get("name")
        own = given if isinstance(given, str) and "${" not in given else name
        own = own if number == 0 else f"{own}-{number + 1}"
        try:
            yield _entry(place, own, rate, values)
        except Unreadable as problem:
            yield LeftOut(place=place, name=own, written=str(rate)[:200], reason=str(problem))


def _entry(place: Place, name: str, rate: Any, values: Mapping[str, Any]) -> Entry:
    zone = values.get("timezone") or "UTC"
    if not isinstance(rate, str) or "${" in rate or "${" in str(zone):
        raise Unreadable("has an expression or a zone that a deployment makes: put the text in its place")
    read, remarks = _read(rate, str(zone))
    lost = [each for each in ("inputPath", "inputTransformer") if each in values]
    enabled = values.get("enabled", True)
    if not isinstance(enabled, bool):
        remarks += ("its `enabled` is made by a deployment: taken as true",)
    return Entry(
        place=place,
        name=name,
        written=rate if zone == "UTC" else f"{rate} {zone}",
        rule=read.rule,
        payload=plain(values["input"]) if "input" in values else None,
        fields=read.fields,
        remarks=(*remarks, *([f"{', '.join(lost)} is not carried over: give the payload itself"] if lost else [])),
        is_suspended=enabled is False,
    )


def _read(rate: str, zone: str) -> tuple[Read, tuple[str, ...]]:
    inner = rate.strip().removeprefix("cron(").removesuffix(")") if rate.startswith("cron(") else rate
    if len(inner.split()) == _FIELDS:
        # Of kubeless, OpenWhisk and others than AWS.
        rule = OfClock(expression=parse(inner, CRONTAB), timezone=zone)
        return Read(rule), (
            "has five fields, which AWS refuses: read as a crontab's, as other providers of Serverless do",
        )
    return read_expression(rate, zone, "when it was deployed"), ()
