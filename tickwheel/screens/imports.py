"""The plan of an import as a table for people."""

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.markup import escape
from rich.table import Table

from tickwheel.client.schedules import NewSchedule
from tickwheel.imports.found import LeftOut
from tickwheel.imports.plan import Planned
from tickwheel.screens.schedules import rule_text
from tickwheel.screens.tables import folded, plain_table

_MOST_DAYS = 3


def plan_table(planned: Iterable[Planned]) -> Table:
    """A row a schedule: where it stands, what it becomes, its next fires on both sides, and what is different."""
    table = plain_table(*folded("at", "there", "here", "id", "next there", "next here", "differs"))
    for each in planned:
        zone = ZoneInfo(each.timezone)
        table.add_row(
            escape(str(each.entry.place)),
            escape(each.entry.written),
            escape(_rule(each.schedule)),
            each.schedule.id,
            _fires(each.there, zone) or "not known here",
            "the same" if each.there and each.there == each.here else _fires(each.here, zone),
            escape("\n".join(_differences(each, zone))),
        )
    return table


def left_out_table(left_out: Iterable[LeftOut]) -> Table:
    """A row for each that is not carried over, with the reason."""
    table = plain_table(*folded("at", "there", "not carried over, because it"))
    for each in left_out:
        table.add_row(escape(str(each.place)), escape(each.written or each.name), escape(each.reason))
    return table


def _rule(schedule: NewSchedule) -> str:
    definition = schedule.as_json()
    clock = [f"{name} {definition[name]}" for name in ("gap", "fold") if name in definition]
    return ", ".join([rule_text(definition), *clock])


def _differences(planned: Planned, zone: ZoneInfo) -> list[str]:
    days = [
        f"there {_fires(each.there[:4], zone) or 'none'}, here {_fires(each.here[:4], zone) or 'none'}"
        for each in planned.differing[:_MOST_DAYS]
    ]
    more = len(planned.differing) - _MOST_DAYS
    return [*planned.remarks, *days, *([f"and {more} more days"] if more > 0 else [])]


def _fires(instants: Iterable[datetime], zone: ZoneInfo) -> str:
    return ", ".join(f"{each.astimezone(zone):%a %Y-%m-%d %H:%M%z}" for each in instants)
