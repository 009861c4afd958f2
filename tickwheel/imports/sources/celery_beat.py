"""The beat_schedule of a Celery app, from the source of its module, which is parsed and not executed."""

import ast
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from tickwheel.imports.cron import parse_fields
from tickwheel.imports.dialects import CELERY
from tickwheel.imports.documents import plain, text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInterval, Place, Rule
from tickwheel.imports.python_source import Call, assigned_names, parse_source, value_of

_SCHEDULES = {"beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE"}
_ZONES = {"timezone", "CELERY_TIMEZONE"}
_PARTS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
_BEGINS = "when beat was started, or its last run"

_Names = Mapping[str, ast.expr]


def read_celery(file: str, data: bytes) -> Iterator[Found]:
    """The entries of each beat_schedule that the module assigns, or passes by its name."""
    tree = parse_source(text_of(data))
    names = assigned_names(tree)
    zone = _zone(tree, names)
    for node in _given(tree, _SCHEDULES):
        target = names.get(node.id) if isinstance(node, ast.Name) else node
        if not isinstance(target, ast.Dict):
            place = Place(file, node.lineno)
            yield LeftOut(
                place=place, name="", written=ast.unparse(node)[:200], reason="is no dict that is written out"
            )
            continue
        for key, value in zip(target.keys, target.values, strict=True):
            yield _found(Place(file, (key or value).lineno), key, value, names, zone)


def _given(tree: ast.Module, wanted: set[str]) -> Iterator[ast.expr]:
    """What is assigned to these names, to attributes or items of these names, or passed by them."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.keyword) and node.arg in wanted:
            yield node.value
        if value is not None and any(_last_name(target) in wanted for target in targets):
            yield value


def _last_name(target: ast.expr) -> str:
    match target:
        case ast.Name():
            return target.id
        case ast.Attribute():
            return target.attr
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return ""


def _zone(tree: ast.Module, names: _Names) -> str | None:
    for node in _given(tree, _ZONES):
        try:
            zone = value_of(node, names)
        except Unreadable:
            continue
        if isinstance(zone, str):
            return zone
    return None


def _found(place: Place, key: ast.expr | None, value: ast.expr, names: _Names, zone: str | None) -> Found:
    name, written = "", ast.unparse(value)[:200]
    try:
        if key is None:
            return LeftOut(
                place=place, name="", written=written, reason="is unpacked from what is known only when it runs"
            )
        name = str(value_of(key, names))
        entry = value_of(value, names)
        if not isinstance(entry, dict) or "schedule" not in entry or not isinstance(entry.get("task"), str):
            return LeftOut(
                place=place, name=name, written=written, reason="has no task and schedule that are written out"
            )
        written = _schedule_text(value) or written
        rule, remarks = rule_of(entry["schedule"], zone)
        payload = {"task": entry["task"], "args": entry.get("args", []), "kwargs": entry.get("kwargs", {})}
        options = entry.get("options") or {}
        job, lost = _options(options if isinstance(options, dict) else {})
        return Entry(
            place=place,
            name=name,
            written=written,
            rule=rule,
            payload=plain(payload),
            job=job,
            remarks=(*remarks, *lost),
        )
    except Unreadable as problem:
        return LeftOut(place=place, name=name, written=written, reason=str(problem))


def _schedule_text(value: ast.expr) -> str | None:
    pairs = zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ()
    texts = [ast.unparse(each) for key, each in pairs if isinstance(key, ast.Constant) and key.value == "schedule"]
    return texts[0] if texts else None


def rule_of(schedule: Any, zone: str | None) -> tuple[Rule, tuple[str, ...]]:
    """A number of seconds, a timedelta, crontab(…) or schedule(…). Raises Unreadable."""
    if isinstance(schedule, timedelta):
        return OfInterval(interval=schedule, begins=_BEGINS), ()
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        if not 0 < schedule < 10**9:
            raise Unreadable(f"{schedule} is no number of seconds")
        return OfInterval(interval=timedelta(seconds=schedule), begins=_BEGINS), ()
    if isinstance(schedule, Call) and schedule.name == "crontab":
        given = {**dict(zip(_PARTS, schedule.arguments, strict=False)), **schedule.named}
        return crontab_rule(given, zone), ()
    if isinstance(schedule, Call) and schedule.name == "schedule":
        every = schedule.named.get("run_every", next(iter(schedule.arguments), None))
        if every is not None and not isinstance(every, Call):
            return rule_of(every, zone)
    if isinstance(schedule, Call) and schedule.name == "solar":
        raise Unreadable("fires at sunrise or sunset, which no rule of Tickwheel names")
    raise Unreadable("has a schedule that is none of crontab(…), timedelta(…) and a number of seconds")


def crontab_rule(given: Mapping[str, Any], zone: str | None) -> OfClock:
    """The rule of the parts of a crontab(…); a part that is not given is each. Raises Unreadable."""
    parts = {name: _part(given.get(name, "*")) for name in _PARTS}
    order = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    return OfClock(expression=parse_fields([parts[name] for name in order], CELERY), timezone=zone)


def _part(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    text = "".join(str(value).split())
    if not text or not isinstance(value, str | int) or isinstance(value, bool):
        raise Unreadable(f"{str(value)[:60]!r} is no part of a crontab")
    return text


def _options(options: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    expires = options.get("expires")
    job: dict[str, Any] = {}
    if isinstance(expires, timedelta):
        job["expires_after"] = expires.total_seconds()
    elif isinstance(expires, int | float) and not isinstance(expires, bool):
        job["expires_after"] = expires
    lost = [name for name in options if name != "expires" or "expires_after" not in job]
    return job, (f"its options {', '.join(lost)} are not carried over",) if lost else ()
