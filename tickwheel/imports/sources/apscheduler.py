"""Jobs of APScheduler 3: a job store in SQLite, the JSON of `scheduler.export_jobs`, and that of Flask-APScheduler's API.

What is pickled is read without importing or calling anything that it names.
"""

import sqlite3
from base64 import b64decode
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tickwheel.imports.cron import parse_fields
from tickwheel.imports.dialects import APSCHEDULER
from tickwheel.imports.documents import line_of, plain, read_json, text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInstant, OfInterval, Place, Rule
from tickwheel.imports.inert_pickle import Inert, read_pickle, zone_named
from tickwheel.imports.years import bounds_of

_MAGIC = b"SQLite format 3\x00"
_FIELDS = ("year", "month", "week", "day", "day_of_week", "hour", "minute", "second")
"""From the largest to the smallest; smaller ones than the smallest that is given are at their least."""
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ORDINALS = {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")


def read_apscheduler(file: str, data: bytes) -> Iterator[Found]:
    """The jobs of a file."""
    if data.startswith(_MAGIC):
        yield from _store(file)
        return
    body = read_json(text_of(data))
    jobs = body.get("jobs") if isinstance(body, dict) else body
    for job in jobs if isinstance(jobs, list) else [body]:
        if isinstance(job, dict):
            yield _found(Place(file, line_of(job)), job)


def _store(file: str) -> Iterator[Found]:
    try:
        database = sqlite3.connect(f"{Path(file).resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise Unreadable(f"cannot be opened: {error}") from None
    try:
        tables = [
            name
            for (name,) in database.execute("select name from sqlite_master where type = 'table'")
            if {"id", "next_run_time", "job_state"}
            <= {row[1] for row in database.execute(f"pragma table_info({_quoted(name)})")}
        ]
        if not tables:
            raise Unreadable("has no table of a job store: one with id, next_run_time and job_state")
        for table in tables:
            for job_id, state in database.execute(f"select id, job_state from {_quoted(table)} order by id"):  # noqa: S608
                yield _pickled(Place(file), str(job_id), state)
    except sqlite3.Error as error:
        raise Unreadable(f"is no database that can be read: {error}") from None
    finally:
        database.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _pickled(place: Place, job_id: str, state: Any) -> Found:
    try:
        job = read_pickle(state) if isinstance(state, bytes) else None
    except Unreadable as problem:
        return LeftOut(place=place, name=job_id, written="", reason=str(problem))
    if not isinstance(job, dict):
        return LeftOut(place=place, name=job_id, written="", reason="has a state that is no job")
    return _found(place, {**job, "id": job_id})


def _found(place: Place, job: Mapping[str, Any]) -> Found:
    name, written = str(job.get("id") or job.get("name") or ""), ""
    try:
        job = {key: _opened(value) for key, value in job.items()}
        kind, trigger = _trigger(job)
        written = _text(kind, trigger)
        rule, fields = _rule(kind, trigger)
        return Entry(
            place=place,
            name=name,
            written=written,
            rule=rule,
            payload={"func": str(job.get("func")), **_arguments(job)},
            fields={**fields, **_misfire(job)},
            remarks=_remarks(trigger, job),
            is_suspended="next_run_time" in job and job["next_run_time"] is None,
        )
    except Unreadable as problem:
        return LeftOut(place=place, name=name, written=written, reason=str(problem))


def _opened(value: Any) -> Any:
    """What export_jobs wraps: states of classes, and pickles."""
    if isinstance(value, dict) and "__apscheduler_pickle__" in value:
        try:
            data = b64decode(str(value["__apscheduler_pickle__"]), validate=True)
        except ValueError as error:
            raise Unreadable(f"has a pickle that is not base64: {error}") from None
        return read_pickle(data)
    if isinstance(value, dict) and "__apscheduler_class__" in value:
        state = value.get("__apscheduler_state__")
        inner = {key: _opened(each) for key, each in state.items()} if isinstance(state, dict) else state
        return Inert(str(value["__apscheduler_class__"]).replace(":", "."), state=inner)
    if isinstance(value, list):
        return [_opened(each) for each in value]
    return value


def _trigger(job: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    trigger = job.get("trigger")
    if isinstance(trigger, str):
        return trigger.lower(), job
    if isinstance(trigger, Inert) and isinstance(trigger.state, dict):
        kind = trigger.name.rpartition(".")[2].removesuffix("Trigger").lower()
        return kind, {**trigger.state, **_fields_of(trigger.state.get("fields"))}
    raise Unreadable("has a trigger that is none of cron, interval and date")


def _fields_of(fields: Any) -> dict[str, str]:
    """The fields of a pickled CronTrigger that are not left at their default, as they are written."""
    found: dict[str, str] = {}
    for field in fields if isinstance(fields, list) else ():
        state = _attributes(field)
        if state.get("name") in _FIELDS and not state.get("is_default"):
            expressions = state.get("expressions") or []
            found[str(state["name"])] = ",".join(_expression(each) for each in expressions)
    return found


def _attributes(value: Any) -> dict[str, Any]:
    state = value.state if isinstance(value, Inert) else None
    parts = state if isinstance(state, tuple) else (state,)
    return {str(key): each for part in parts if isinstance(part, dict) for key, each in part.items()}


def _expression(value: Any) -> str:
    state = _attributes(value)
    name = value.name.rpartition(".")[2] if isinstance(value, Inert) else ""
    step = f"/{state['step']}" if state.get("step") else ""
    match name:
        case "AllExpression":
            return f"*{step}"
        case "RangeExpression" | "MonthRangeExpression":
            first, last = state.get("first"), state.get("last")
            return f"{first}{step}" if last is None or last == first else f"{first}-{last}{step}"
        case "WeekdayRangeExpression":
            ends = [
                _DAYS[each]
                for each in (state.get("first"), state.get("last"))
                if isinstance(each, int) and 0 <= each < len(_DAYS)
            ]
            return "-".join(dict.fromkeys(ends)) + step
        case "WeekdayPositionExpression":
            ordinals, number, weekday = (*_ORDINALS, "last"), state.get("option_num"), state.get("weekday")
            if isinstance(number, int) and isinstance(weekday, int) and number < len(ordinals) and weekday < len(_DAYS):
                return f"{ordinals[number]} {_DAYS[weekday]}"
            raise Unreadable("has a day of a month that cannot be read")
        case "LastDayOfMonthExpression":
            return "last"
        case _:
            raise Unreadable(f"has a part of a cron that is not carried over: {name or value}")


def _text(kind: str, trigger: Mapping[str, Any]) -> str:
    names = (*_FIELDS, *_UNITS, "interval", "run_date", "start_date", "end_date", "timezone")
    parts = {name: trigger[name] for name in names if trigger.get(name) not in (None, 0)}
    if isinstance(parts.get("timezone"), Inert):
        parts["timezone"] = zone_named(parts["timezone"]).key
    return f"{kind} " + ", ".join(f"{name}={value}" for name, value in parts.items())[:200]


def _rule(kind: str, trigger: Mapping[str, Any]) -> tuple[Rule, dict[str, Any]]:
    if kind == "date":
        return OfInstant(at=_time(trigger.get("run_date")), timezone=_zone(trigger)), {}
    bounds = {
        ours: _instant(trigger[theirs])
        for theirs, ours in (("start_date", "start"), ("end_date", "end"))
        if trigger.get(theirs)
    }
    if kind == "interval":
        given = trigger.get("interval")
        total = given if isinstance(given, timedelta) else _interval(trigger)
        return OfInterval(interval=total, begins="its start_date"), bounds
    if kind != "cron":
        raise Unreadable(f"has the trigger {kind!r}, which is none of cron, interval and date")
    return _cron(trigger, bounds)


def _interval(trigger: Mapping[str, Any]) -> timedelta:
    given = {unit: trigger[unit] for unit in _UNITS if isinstance(trigger.get(unit), int | float)}
    if not given and isinstance(trigger.get("interval"), int | float):
        given = {"seconds": trigger["interval"]}
    try:
        return timedelta(**given)
    except OverflowError:
        raise Unreadable(f"has an interval that is no time: {given}") from None


def _cron(trigger: Mapping[str, Any], bounds: dict[str, Any]) -> tuple[Rule, dict[str, Any]]:
    given = {name: "".join(str(trigger[name]).lower().split(" ")) if name != "day" else str(trigger[name]).lower() for name in _FIELDS if trigger.get(name) is not None}  # fmt: skip
    if not given:
        raise Unreadable("has a cron without a field")
    smallest = max(_FIELDS.index(name) for name in given)
    least = {"month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}
    parts = {
        name: given.get(name, "*" if number < smallest else least.get(name, "*")) for number, name in enumerate(_FIELDS)
    }
    if parts["week"] != "*":
        raise Unreadable("names weeks of the year: use an rrule with BYWEEKNO")
    if parts["second"] not in {"0", "00"}:
        raise Unreadable("names seconds, but a cron here fires on the minute")
    zone = _zone(trigger)
    day, weekday = _days(parts["day"], parts["day_of_week"])
    expression = parse_fields([parts["minute"], parts["hour"], day, parts["month"], weekday], APSCHEDULER)
    rule = OfClock(expression=expression, timezone=zone, gap=APSCHEDULER.gap, fold=APSCHEDULER.fold)
    years = {} if parts["year"] == "*" else bounds_of(parts["year"], zone or "UTC")
    return rule, {**years, **bounds}


def _days(day: str, weekday: str) -> tuple[str, str]:
    """The days of a month, and the weekday where they name one: `last fri`, `2nd mon`."""
    words = day.split()
    if day == "last":
        return "l", weekday
    if len(words) == 2 and words[1] in _DAYS and weekday == "*":  # noqa: PLR2004
        if words[0] == "last":
            return "*", f"{words[1]}l"
        if words[0] in _ORDINALS:
            return "*", f"{words[1]}#{_ORDINALS[words[0]]}"
    if len(words) > 1:
        raise Unreadable(f"{day!r} is no day that is carried over")
    return day, weekday


def _zone(trigger: Mapping[str, Any]) -> str | None:
    zone = trigger.get("timezone")
    if isinstance(zone, Inert):
        return zone_named(zone).key
    return zone if isinstance(zone, str) else None


def _time(value: Any) -> datetime:
    try:
        return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise Unreadable(f"{str(value)[:60]!r} is no time") from None


def _instant(value: Any) -> str:
    time = _time(value)
    if time.tzinfo is None:
        raise Unreadable(f"has a start or an end without an offset: {time}")
    return time.isoformat()


def _arguments(job: Mapping[str, Any]) -> dict[str, Any]:
    return {"args": plain(list(job.get("args") or [])), "kwargs": plain(dict(job.get("kwargs") or {}))}


def _misfire(job: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"misfire": "coalesce"} if job.get("coalesce") is True else {}
    grace = job.get("misfire_grace_time")
    if isinstance(grace, int) and not isinstance(grace, bool) and grace >= 60:  # noqa: PLR2004
        fields["max_lateness"] = grace
    if job.get("max_instances") == 1:
        fields["overlap"] = "forbid"
    return fields


def _remarks(trigger: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[str, ...]:
    remarks: list[str] = []
    if trigger.get("jitter"):
        remarks.append(
            f"its jitter of {trigger['jitter']} s is not carried over: `jitter` delays, and does not bring forward"
        )
    grace = job.get("misfire_grace_time")
    if isinstance(grace, int) and grace < 60:  # noqa: PLR2004
        remarks.append(f"there a run that is {grace} s late is dropped; here one that is late runs: see `max_lateness`")
    if isinstance(job.get("max_instances"), int) and job["max_instances"] > 1:
        remarks.append(f"at most {job['max_instances']} runs at once there; here as many as come: see `job.flow`")
    return tuple(remarks)
