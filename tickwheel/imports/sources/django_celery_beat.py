"""Fixtures of django-celery-beat: `manage.py dumpdata django_celery_beat`."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tickwheel.imports.documents import line_of, read_json, text_of
from tickwheel.imports.durations import interval
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfInstant, OfInterval, Place, Rule
from tickwheel.imports.sources.celery_beat import crontab_rule

_APP = "django_celery_beat."
_RULES = ("crontab", "interval", "clocked", "solar")
_LOST = ("queue", "exchange", "routing_key", "priority")

_Objects = Mapping[tuple[str, Any], Mapping[str, Any]]


def read_django(file: str, data: bytes) -> Iterator[Found]:
    """The periodic tasks of a fixture, with the schedules that they refer to; schedules that none refers to are left out."""
    body = read_json(text_of(data))
    if not isinstance(body, list):
        raise Unreadable("is no fixture: it is not a list")
    objects: dict[tuple[str, Any], Mapping[str, Any]] = {}
    models = [each for each in body if isinstance(each, dict) and isinstance(each.get("fields"), dict)]
    for each in models:
        model = str(each.get("model", ""))
        if model.startswith(_APP) and isinstance(each.get("pk"), int | str):
            objects[model.removeprefix(_APP), each["pk"]] = each["fields"]
    used: set[tuple[str, Any]] = set()
    for each in models:
        if each.get("model") == f"{_APP}periodictask":
            yield _task(Place(file, line_of(each)), each["fields"], objects, used)
    for each in models:
        model = str(each.get("model", "")).removeprefix(_APP)
        key = (model, each.get("pk"))
        if model in {f"{rule}schedule" for rule in _RULES} and key not in used:
            place = Place(file, line_of(each))
            reason = "is a schedule that no task of this file refers to"
            yield LeftOut(
                place=place, name=f"{model} {key[1]}", written=_text(each["fields"]), reason=reason, is_expected=True
            )


def _text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, default=str)[:200]


def _task(place: Place, task: Mapping[str, Any], objects: _Objects, used: set[tuple[str, Any]]) -> Found:
    name = str(task.get("name") or task.get("task"))
    given = [(rule, task[rule]) for rule in _RULES if task.get(rule) is not None]
    written = ", ".join(f"{rule} {key}" for rule, key in given)
    try:
        if len(given) != 1:
            return LeftOut(place=place, name=name, written=written, reason="refers to no schedule, or to several")
        kind, key = given[0]
        fields = objects.get((f"{kind}schedule", key)) if isinstance(key, int | str) else None
        if fields is None:
            return LeftOut(place=place, name=name, written=written, reason=f"refers to {written}, which this file does not have: dump the schedules with the tasks")  # fmt: skip
        used.add((f"{kind}schedule", key))
        written = _text(fields)
        payload = {"task": task.get("task"), "args": _json(task, "args", []), "kwargs": _json(task, "kwargs", {})}
        own, job, remarks = _options(task)
        return Entry(
            place=place,
            name=name,
            written=written,
            rule=_rule(kind, fields),
            payload=payload,
            fields=own,
            job=job,
            remarks=remarks,
            is_suspended=task.get("enabled") is False,
        )
    except Unreadable as problem:
        return LeftOut(place=place, name=name, written=written, reason=str(problem))


def _rule(kind: str, fields: Mapping[str, Any]) -> Rule:
    if kind == "crontab":
        zone = fields.get("timezone")
        return crontab_rule(fields, zone if isinstance(zone, str) else None)
    if kind == "interval":
        every, period = fields.get("every"), fields.get("period")
        if not isinstance(every, int) or period not in {"days", "hours", "minutes", "seconds", "microseconds"}:
            raise Unreadable(f"is no interval: {every} {period}")
        return OfInterval(interval=interval(every, str(period)), begins="when beat was started, or its last run")
    if kind == "clocked":
        return OfInstant(at=_instant(fields.get("clocked_time"), "clocked_time"))
    raise Unreadable("fires at sunrise or sunset, which no rule of Tickwheel names")


def _options(task: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    own: dict[str, Any] = {}
    job: dict[str, Any] = {}
    if task.get("one_off") is True:
        own["max_runs"] = 1
    if task.get("start_time"):
        own["start"] = _instant(task["start_time"], "start_time").isoformat()
    if task.get("expires"):
        own["end"] = _instant(task["expires"], "expires").isoformat()
    if isinstance(task.get("expire_seconds"), int):
        job["expires_after"] = task["expire_seconds"]
    lost = [name for name in _LOST if task.get(name) is not None]
    return own, job, (f"its {', '.join(lost)} are not carried over",) if lost else ()


def _instant(value: Any, what: str) -> datetime:
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        raise Unreadable(f"has the {what} {str(value)[:60]!r}, which is no time") from None
    if instant.tzinfo is None:
        raise Unreadable(f"has the {what} {value} without an offset")
    return instant


def _json(task: Mapping[str, Any], name: str, default: Any) -> Any:
    text = task.get(name)
    try:
        return json.loads(text) if isinstance(text, str) else default
    except (ValueError, RecursionError):
        raise Unreadable(f"has {name} that are not JSON") from None
