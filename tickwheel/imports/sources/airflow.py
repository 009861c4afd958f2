"""The schedules of Airflow's DAGs, from their source, which is parsed and not executed."""

import ast
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from tickwheel.imports.cron import MACROS, parse
from tickwheel.imports.dialects import AIRFLOW
from tickwheel.imports.documents import text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInterval, Place, Rule
from tickwheel.imports.python_source import assigned_names, parse_source, value_of

_SCHEDULES = ("schedule", "schedule_interval", "timetable")
_REMARK = "a run of Airflow 2 is named by the begin of the interval that ends when it fires: {{tickwheel.previous_time}} is that"

_Names = Mapping[str, ast.expr]


def read_airflow(file: str, data: bytes) -> Iterator[Found]:
    """The DAGs of a module: DAG(…), and functions with @dag(…)."""
    tree = parse_source(text_of(data))
    names = assigned_names(tree)
    decorated = {
        id(decorator): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node) in {"DAG", "dag"}:
            given = {each.arg: each.value for each in node.keywords if each.arg is not None}
            if node.args:
                given.setdefault("dag_id", node.args[0])
            yield _found(Place(file, node.lineno), given, names, decorated.get(id(node)))


def _name(node: ast.Call) -> str:
    return (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )


def _found(place: Place, given: _Names, names: _Names, function: str | None) -> Found:
    name, written = function or "", ""
    try:
        if "dag_id" in given:
            name = str(value_of(given["dag_id"], names))
        node = next((given[each] for each in _SCHEDULES if each in given), None)
        if node is None:
            reason = "names no schedule: its default depends on the version of Airflow"
            return LeftOut(place=place, name=name, written="", reason=reason)
        written = ast.unparse(node)[:200]
        schedule = value_of(node, names)
        if schedule is None:
            return LeftOut(place=place, name=name, written=written, reason="has no schedule", is_expected=True)
        rule = _rule(schedule, _zone(given.get("start_date"), names))
        fields, remarks = _catch_up(given, names)
        return Entry(
            place=place,
            name=name,
            written=written,
            rule=rule,
            payload={"dag_id": name, "logical_date": "{{tickwheel.nominal_time}}"},
            fields=fields,
            remarks=(_REMARK, *remarks),
        )
    except Unreadable as problem:
        return LeftOut(place=place, name=name, written=written, reason=str(problem))


def _rule(schedule: Any, zone: str | None) -> Rule:
    if isinstance(schedule, timedelta):
        return OfInterval(interval=schedule, begins="its start_date")
    if not isinstance(schedule, str):
        raise Unreadable("has a timetable or assets in place of a cron")
    text = schedule.strip()
    if text in {"@once", "@continuous"}:
        raise Unreadable(f"{text} names no times: trigger it, or submit a job")
    if text == "@quarterly":
        text = "0 0 1 */3 *"
    elif text.startswith("@") and text not in MACROS:
        raise Unreadable(f"{text[:40]!r} is no preset of Airflow")
    return OfClock(expression=parse(text, AIRFLOW), timezone=zone)


def _zone(node: ast.expr | None, names: _Names) -> str | None:
    """The zone of a start_date such as pendulum.datetime(2027, 1, 1, tz="Europe/Berlin"): it is the DAG's."""
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.keyword) and each.arg in {"tz", "tzinfo"}:
            found = [part.value for part in ast.walk(each.value) if isinstance(part, ast.Constant)]
            if len(found) == 1 and isinstance(found[0], str):
                return found[0]
        if isinstance(each, ast.Name) and each.id in names and names[each.id] is not node:
            return _zone(names[each.id], {name: value for name, value in names.items() if name != each.id})
    return None


def _catch_up(given: _Names, names: _Names) -> tuple[dict[str, Any], tuple[str, ...]]:
    catch_up = value_of(given["catchup"], names) if "catchup" in given else None
    fields: dict[str, Any] = {}
    if catch_up is False:
        fields["misfire"] = "coalesce"
    runs = value_of(given["max_active_runs"], names) if "max_active_runs" in given else None
    if runs == 1:
        fields["overlap"] = "buffer_one"
        return fields, ("of the runs that wait for one another, one waits here, and the others are skipped",)
    return fields, ()
