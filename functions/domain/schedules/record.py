"""How a schedule is written down: the JSON that the API takes and gives has the form of the JSON that is stored.

What has its default is left out: the default of stored definitions in what is stored, that of requests in answers, so that
an answer may be sent back as a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.instants import format_duration, format_instant, parse_duration, parse_instant
from functions.domain.jobs.callbacks import CallbackName, Callbacks
from functions.domain.jobs.collect import DEFAULT_MEMBERS, Collect
from functions.domain.jobs.description import collect_body, flow_body, retry_body
from functions.domain.jobs.job import Delivery, Payload, Precision
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import Jitter, RetryPolicy, Strategy
from functions.domain.jobs.stored_codes import PRIORITY_WORDS, Codes
from functions.domain.schedules.defaults import STORED, Defaults
from functions.domain.schedules.rrules import last_of
from functions.domain.schedules.rules import At, CronRule, Every, Fold, Gap, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import (
    Calendar,
    JobTemplate,
    Misfire,
    Roll,
    Schedule,
    Weekday,
    Window,
    WindowMode,
)
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.targets.flows import FlowLimits, FlowScope, NamedFlow, parse_rate
from functions.domain.targets.options import Method, TargetOptions

WEEKDAY_WORDS = Codes(
    {
        Weekday.MON: "mon",
        Weekday.TUE: "tue",
        Weekday.WED: "wed",
        Weekday.THU: "thu",
        Weekday.FRI: "fri",
        Weekday.SAT: "sat",
        Weekday.SUN: "sun",
    }
)

POINTER = "payload_pointer"
"""In place of a payload that is in the payload store."""

_TIME = "%H:%M"


def encode_schedule(schedule: Schedule, defaults: Defaults = STORED) -> dict[str, Any]:
    """The definition as JSON values, without what has its default; the tenant and the schedule's id are not part of it."""
    usual = {
        "timezone": (schedule.timezone, defaults.timezone),
        "gap": (schedule.gap, None),
        "fold": (schedule.fold, None),
        "windows": ([_write_window(window) for window in schedule.windows], []),
        "window_mode": (schedule.window_mode, None),
        "calendar": (_write_calendar(schedule.calendar, defaults), None),
        "spread": (format_duration(schedule.spread) if schedule.says_spread else None, None),
        "jitter": (format_duration(schedule.jitter), "PT0S"),
        "start": (_optional(format_instant, schedule.start), None),
        "end": (_optional(format_instant, schedule.end), None),
        "max_runs": (schedule.max_runs, None),
        "misfire": (schedule.misfire.value, defaults.misfire.value),
        "max_lateness": (_optional(format_duration, schedule.max_lateness), None),
        "overlap": (schedule.overlap.value, defaults.overlap.value),
        "pause_after_failures": (schedule.pause_after_failures, None),
        "history": (schedule.history, defaults.history),
        "success_history": (schedule.success_history, None),
        "failure_history": (schedule.failure_history, None),
    }
    rule = {schedule.rule.name: _write_rule(schedule.rule)}
    return {**rule, **_unusual(usual), "job": encode_template(schedule.job, defaults)}


def encode_stored(schedule: Schedule) -> dict[str, Any]:
    """The definition as it is stored: with the end of a COUNT too, so that it is counted once and not by each reader.

    And with a spread that it has taken, where earlier releases read the spread that a schedule says.
    """
    written, rule = encode_schedule(schedule), schedule.rule
    if schedule.spread_from is not None and not schedule.says_spread:
        written |= {"spread": format_duration(schedule.spread), "spread_from": schedule.spread_from.value}
    last = (rule.last or last_of(rule)) if isinstance(rule, RecurrenceRule) else None
    if last is not None:
        written["rrule"]["last"] = last.isoformat(timespec="seconds")
    return written


@lru_cache(maxsize=5_000)
def decode_schedule(definition: str, *, tenant: str, schedule_id: str) -> Schedule:
    """The schedule that `encode_schedule` wrote, as JSON text. Raises Undecodable for anything else."""
    try:
        written = json.loads(definition)
        return Schedule(
            tenant=tenant,
            schedule_id=schedule_id,
            rule=_read_rule(written),
            job=_read_job(written["job"]),
            timezone=written.get("timezone", STORED.timezone),
            gap=_optional(Gap, written.get("gap")),
            fold=_optional(Fold, written.get("fold")),
            windows=tuple(_read_window(window) for window in written.get("windows", [])),
            window_mode=_optional(WindowMode, written.get("window_mode")),
            calendar=_optional(_read_calendar, written.get("calendar")),
            spread=_duration(written, "spread"),
            spread_from=_read_spread_from(written),
            jitter=_duration(written, "jitter"),
            start=_optional(parse_instant, written.get("start")),
            end=_optional(parse_instant, written.get("end")),
            max_runs=written.get("max_runs"),
            misfire=Misfire(written.get("misfire", STORED.misfire)),
            max_lateness=_optional(parse_duration, written.get("max_lateness")),
            overlap=Overlap(written.get("overlap", STORED.overlap)),
            pause_after_failures=written.get("pause_after_failures"),
            history=written.get("history", STORED.history),
            success_history=written.get("success_history"),
            failure_history=written.get("failure_history"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not a schedule: {error!r}") from error


def _read_spread_from(written: dict[str, Any]) -> SpreadFrom | None:
    if "spread_from" in written:
        return SpreadFrom(written["spread_from"])
    # None at all is written only where it is said.
    is_said = "spread" in written and not _duration(written, "spread")
    return SpreadFrom.SCHEDULE if is_said else None


def _write_rule(rule: Rule) -> Any:
    match rule:
        case At(at):
            return format_instant(at)
        case CronRule(expression):
            return expression
        case Every(interval=interval, phase=phase, from_end=from_end):
            parts = {"phase": (format_duration(phase), "PT0S"), "from": ("end" if from_end else "start", "start")}
            return {"interval": format_duration(interval), **_unusual(parts)}
        case RecurrenceRule(rule=text, starts_at=starts_at):
            return {"rule": text, "starts_at": starts_at.isoformat(timespec="seconds")}
        case Poisson(per_day):
            return {"per_day": per_day}


def _read_rule(written: dict[str, Any]) -> Rule:
    if "at" in written:
        return At(parse_instant(written["at"]))
    if "cron" in written:
        return CronRule(written["cron"])
    if "every" in written:
        every = written["every"]
        return Every(
            interval=parse_duration(every["interval"]),
            phase=_duration(every, "phase"),
            from_end=every.get("from") == "end",
        )
    if "rrule" in written:
        rrule = written["rrule"]
        last = _optional(datetime.fromisoformat, rrule.get("last"))
        return RecurrenceRule(rrule["rule"], datetime.fromisoformat(rrule["starts_at"]), last)
    return Poisson(written["poisson"]["per_day"])


def _write_window(window: Window) -> dict[str, Any]:
    days = [WEEKDAY_WORDS.code_of(day) for day in sorted(window.days)]
    parts = {"days": (days, [WEEKDAY_WORDS.code_of(day) for day in Weekday])}
    return {**_unusual(parts), "start": window.start.strftime(_TIME), "end": window.end.strftime(_TIME)}


def _read_window(written: dict[str, Any]) -> Window:
    days = written.get("days")
    return Window(
        start=time.fromisoformat(written["start"]),
        end=time.fromisoformat(written["end"]),
        days=frozenset(Weekday) if days is None else frozenset(WEEKDAY_WORDS.member_of(day) for day in days),
    )


def _write_calendar(calendar: Calendar | None, defaults: Defaults) -> dict[str, Any] | None:
    if calendar is None:
        return None
    return _unusual(
        {
            "exclude": ([day.isoformat() for day in sorted(calendar.excluded)], []),
            "holidays": (list(calendar.holidays), []),
            "weekends": (calendar.weekends, False),
            "roll": (calendar.roll.value, defaults.roll.value),
        }
    )


def _read_calendar(written: dict[str, Any]) -> Calendar:
    return Calendar(
        excluded=frozenset(date.fromisoformat(day) for day in written.get("exclude", [])),
        holidays=tuple(written.get("holidays", [])),
        weekends=written.get("weekends", False),
        roll=Roll(written.get("roll", STORED.roll)),
    )


def encode_template(job: JobTemplate, defaults: Defaults = STORED) -> dict[str, Any]:
    """The job of a schedule as JSON values, without what has its default."""
    usual = retry_body(defaults.retry)
    if job.retry.intervals:
        usual["attempts"] = len(job.retry.intervals) + 1
    retry = _unusual({name: (value, usual.get(name)) for name, value in retry_body(job.retry).items()})
    http = _unusual(
        {
            "method": (job.options.method.value, defaults.method.value),
            "headers": (dict(job.options.headers), {}),
            "success": (list(job.options.success_codes), []),
            "retry_on": (list(job.options.retry_codes), []),
        }
    )
    parts = {
        POINTER: (job.payload.pointer, None),
        "priority": (PRIORITY_WORDS.code_of(job.priority), PRIORITY_WORDS.code_of(defaults.priority)),
        "delivery": (job.delivery.value, defaults.delivery.value),
        "precision": (job.precision.value, defaults.precision.value),
        "retry": (retry, {}),
        "timeout": (format_duration(job.timeout), format_duration(defaults.timeout)),
        "expires_after": (_optional(format_duration, job.expires_after), None),
        "run_deadline": (_optional(format_duration, job.run_deadline), None),
        "http": (http, {}),
        "asynchronous": (job.options.is_async, False),
        "tags": (list(job.tags), []),
        "flow": ([flow_body(flow) for flow in job.flows], []),
        "collect": (_optional(collect_body, job.collect), None),
        **{name: (target, None) for name, target in job.callbacks.body().items()},
    }
    payload = {} if job.payload.text is None else {"payload": json.loads(job.payload.text)}
    return {"target": job.target, **payload, **_unusual(parts)}


def _read_job(written: dict[str, Any]) -> JobTemplate:
    payload = written.get("payload")
    text = None if payload is None else json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return JobTemplate(
        target=written["target"],
        payload=Payload(text=text, pointer=written.get(POINTER)),
        priority=PRIORITY_WORDS.member_of(written["priority"]) if "priority" in written else STORED.priority,
        delivery=Delivery(written.get("delivery", STORED.delivery)),
        precision=Precision(written.get("precision", STORED.precision)),
        retry=_read_retry(written.get("retry", {})),
        timeout=_duration(written, "timeout", STORED.timeout),
        expires_after=_optional(parse_duration, written.get("expires_after")),
        run_deadline=_optional(parse_duration, written.get("run_deadline")),
        options=_read_options(written),
        tags=tuple(written.get("tags", [])),
        flows=tuple(_read_flow(flow) for flow in written.get("flow", [])),
        collect=_optional(_read_collect, written.get("collect")),
        callbacks=Callbacks(**{name.value: written[name.value] for name in CallbackName if name.value in written}),
    )


def _read_collect(written: dict[str, Any]) -> Collect:
    return Collect(
        key=written["key"],
        window=_optional(parse_duration, written.get("for")),
        most=written.get("max", DEFAULT_MEMBERS),
        at=written.get("at", ""),
        timezone=written.get("timezone", "UTC"),
    )


def _read_flow(written: dict[str, Any]) -> NamedFlow:
    limits = FlowLimits(
        rate=_optional(parse_rate, written.get("rate")),
        burst=written.get("burst", 0),
        concurrency=written.get("concurrency"),
        is_ordered=written.get("ordered", False),
    )
    return NamedFlow(
        key=written["key"],
        scope=FlowScope(written.get("scope", FlowScope.TENANT)),
        limits=None if limits == FlowLimits() else limits,
    )


def _read_retry(written: dict[str, Any]) -> RetryPolicy:
    usual = STORED.retry
    max_age = _optional(parse_duration, written.get("max_age"))
    jitter = _optional(Jitter, written.get("jitter", usual.jitter))
    if "intervals" in written:
        intervals = [parse_duration(interval) for interval in written["intervals"]]
        return RetryPolicy.of_intervals(intervals, attempts=written.get("attempts"), max_age=max_age, jitter=jitter)
    return RetryPolicy(
        strategy=Strategy(written.get("strategy", usual.strategy)),
        attempts=written.get("attempts", usual.attempts),
        base=_duration(written, "base", usual.base),
        cap=_duration(written, "cap", usual.cap),
        max_age=max_age,
        jitter=jitter,
    )


def _read_options(written: dict[str, Any]) -> TargetOptions:
    http = written.get("http", {})
    return TargetOptions(
        method=Method(http.get("method", STORED.method)),
        headers=tuple(http.get("headers", {}).items()),
        success_codes=tuple(http.get("success", [])),
        retry_codes=tuple(http.get("retry_on", [])),
        is_async=written.get("asynchronous", False),
    )


def _unusual(parts: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    return {name: value for name, (value, usual) in parts.items() if value != usual}


def _optional(read: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else read(value)


def _duration(written: dict[str, Any], name: str, usual: timedelta = timedelta(0)) -> timedelta:
    return parse_duration(written[name]) if name in written else usual
