"""Schedules as tables for people."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.markup import escape
from rich.table import Table

from tickwheel.client.fires import Difference, Fire, Run
from tickwheel.client.instants import format_instant
from tickwheel.client.schedules import RULES, Schedule
from tickwheel.screens.status import duration
from tickwheel.screens.tables import fields_table, folded, plain_table, right, shortened

_SECONDS = "%Y-%m-%d %H:%M:%S"
_STATUS_STYLES = {"active": "green", "paused": "yellow"}
_PAYLOAD, _HEADERS = "job.payload", "job.http.headers."


def schedules_table(schedules: Iterable[Schedule]) -> Table:
    """A row a schedule."""
    headings = ("id", "rule", "status", "next fire", "last fire")
    table = plain_table(*folded(*headings), *right("fires"), *folded("note"))
    for schedule in schedules:
        table.add_row(
            schedule.id,
            escape(rule_text(schedule.definition)),
            _status(schedule.status),
            _instant(schedule.next_fire),
            _instant(schedule.last_fire),
            str(schedule.fires),
            escape(schedule.note),
        )
    return table


def standing_table(schedule: Schedule) -> Table:
    """All that is known of a schedule, but for its runs."""
    rule = {"rule": rule_text(schedule.definition)}
    rest = {name: value for name, value in schedule.definition.items() if name not in (*RULES, "timezone")}
    rest |= {"job": _without_secrets(rest["job"])} if "job" in rest else {}
    taken = schedule.default_spread
    rows = {
        "id": schedule.id,
        "tenant": schedule.tenant,
        "status": schedule.status,
        "note": schedule.note or None,
        "version": schedule.version,
        **rule,
        **rest,
        "default spread": taken and f"{duration(taken.spread)}, from its {taken.source}",
        "changed at": format_instant(schedule.changed_at),
        "next fire": schedule.next_fire and format_instant(schedule.next_fire),
        "last fire": schedule.last_fire and format_instant(schedule.last_fire),
        "last outcome": schedule.last_outcome,
        "fires": schedule.fires,
        "misfires": schedule.misfires or None,
        "skips": ", ".join(f"{count} {reason}" for reason, count in schedule.skips.items()) or None,
        "last skip": schedule.last_skip and f"{schedule.last_skip[0]} at {format_instant(schedule.last_skip[1])}",
        "failures in a row": schedule.failures_in_a_row or None,
    }
    return fields_table(rows)


def runs_table(runs: Iterable[Run]) -> Table:
    """A row a run, newest first."""
    table = plain_table(*folded("fire", "origin", "state", "attempt", "settled", "job", "error"))
    for run in runs:
        settled = _instant(run.settled_at)
        texts = (run.origin, run.state, str(run.attempt), settled, run.job_id, run.error or "")
        table.add_row(_instant(run.fire_at), *map(escape, texts))
    return table


def fires_table(fires: Sequence[Fire]) -> Table:
    """A row a fire, on both clocks."""
    table = plain_table(*folded("local", "UTC", "marks"))
    for fire in fires:
        table.add_row(_local(fire), _instant(fire.at), escape(_marks(fire)))
    return table


def difference_table(difference: Difference) -> Table:
    """The fires before and after a change beside each other; those of one side only are marked."""
    before = {fire.at: fire for fire in difference.before}
    after = {fire.at: fire for fire in difference.after}
    table = plain_table(*folded("", "before", "after", "marks"))
    for at in sorted(before | after):
        old, new = before.get(at), after.get(at)
        sign, style = ("", "") if old and new else ("-", "red") if old else ("+", "green")
        fire = new or old
        assert fire is not None
        table.add_row(sign, _local(old) if old else "", _local(new) if new else "", escape(_marks(fire)), style=style)
    return table


def changes_table(before: Mapping[str, Any], after: Mapping[str, Any]) -> Table:
    """The fields of a definition that would change, with what they say and would say; a default where they say nothing."""
    table = plain_table(*folded("field", "is", "becomes"))
    old, new = dict(_leaves(before)), dict(_leaves(after))
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            table.add_row(escape(path), _said(path, old.get(path)), _said(path, new.get(path)))
    return table


def rule_text(definition: Mapping[str, Any]) -> str:
    """The rule of a definition in a few words, with its zone where it has one."""
    name = next((name for name in RULES if name in definition), "?")
    zone = definition.get("timezone")
    return f"{name} {_words(definition.get(name))}" + (f" {zone}" if zone else "")


def _without_secrets(job: Mapping[str, Any]) -> dict[str, Any]:
    """A job with the names of its headers, without their values: a terminal is looked at over a shoulder, and kept."""
    http = dict(job.get("http", {}))
    if "headers" in http:
        http["headers"] = list(http["headers"])
    return {**job, **({"http": http} if http else {})}


def _leaves(definition: Mapping[str, Any], *parents: str) -> Iterator[tuple[str, Any]]:
    """The fields by their paths, such as `job.http.method`; a payload is one."""
    for name, value in definition.items():
        path = ".".join((*parents, name))
        if isinstance(value, Mapping) and path != _PAYLOAD:
            yield from _leaves(value, *parents, name)
        else:
            yield path, value


def _said(path: str, value: Any) -> str:
    if value is None:
        return "[dim]default[/dim]"
    if path.startswith(_HEADERS):
        return "a value"  # as in `_without_secrets`
    value = shortened(value)
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _words(rule: Any) -> str:
    if not isinstance(rule, dict):
        return str(rule)
    if "per_day" in rule:
        return f"{rule['per_day']} a day"
    if "rule" in rule:
        return f"{rule['rule']} from {rule.get('starts_at')}"
    anchor = " from end to start" if rule.get("from") == "end" else ""
    phase = f" + {rule['phase']}" if "phase" in rule else ""
    return f"{rule.get('interval')}{phase}{anchor}"


def _marks(fire: Fire) -> str:
    return "; ".join(f"{mark.by}: {mark.reason}" for mark in fire.marks)


def _local(fire: Fire) -> str:
    return f"{fire.local:%a} {fire.local:{_SECONDS}} {fire.local.isoformat()[-len('+00:00') :]}"


def _instant(instant: datetime | None) -> str:
    return f"{instant:{_SECONDS}}" if instant else ""


def _status(status: str) -> str:
    style = _STATUS_STYLES.get(status)
    return f"[{style}]{status}[/{style}]" if style else escape(status)
