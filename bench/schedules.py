"""How many next fires one core works out in a second, for each kind of schedule, with what is parsed in the cache."""

import itertools
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.budgets import NEXT_FIRES_A_SECOND, SPARSE_CRONS
from bench.results import write_result
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.rules import CronRule, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Calendar, Roll, Schedule
from testkit.builders import OFFICE, a_schedule, every

MEASURED_SECONDS = 1.0
_BATCH = 50
_FROM = datetime(2027, 3, 1, tzinfo=UTC)


def _schedule(rule: Rule, **fields: object) -> Schedule:
    return a_schedule(rule=rule, **{"timezone": "Europe/Berlin", **fields})


SCHEDULES: Mapping[str, Schedule] = {
    "cron": _schedule(CronRule("*/5 3-23/4 * * mon-fri")),
    **{f"cron {expression}": _schedule(CronRule(expression)) for expression in SPARSE_CRONS},
    "cron, spread and jitter": _schedule(
        CronRule("0 * * * *"), spread=timedelta(minutes=15), jitter=timedelta(minutes=5)
    ),
    "cron, windows": _schedule(CronRule("*/10 * * * *"), windows=(OFFICE,)),
    "cron, calendar": _schedule(
        CronRule("0 9 * * *"),
        calendar=Calendar(excluded=frozenset({date(2027, 5, 7)}), holidays=("DE-BY",), weekends=True, roll=Roll.AFTER),
    ),
    "every": _schedule(every(minutes=6)),
    "rrule": _schedule(RecurrenceRule("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17", datetime(2026, 1, 30, 17))),  # noqa: DTZ001
    "poisson": _schedule(Poisson(per_day=48)),
    "poisson, scaled into windows": _schedule(Poisson(per_day=48), windows=(OFFICE,)),
}


def run(console: Console) -> list[str]:
    """Measure, print, write schedules.json; a sentence for each figure below its budget."""
    progress = track(SCHEDULES.items(), description="next fires", console=console, transient=True)
    measured = {name: measure(schedule) for name, schedule in progress}
    table = Table(title="Next fires a CPU second, one core", box=SIMPLE)
    table.add_column("kind")
    table.add_column("next fires", justify="right")
    table.add_column("budget", justify="right")
    for name, rate in measured.items():
        budget = NEXT_FIRES_A_SECOND.get(name)
        table.add_row(name, f"{rate:,.0f}", f"{budget:,}" if budget else "")
    console.print(table)
    write_result("schedules.json", {"next_fires_a_cpu_second": {name: round(rate) for name, rate in measured.items()}})
    return [
        f"{name}: {measured[name]:,.0f} next fires a CPU second, below the budget of {budget:,}"
        for name, budget in NEXT_FIRES_A_SECOND.items()
        if measured[name] < budget
    ]


def measure(schedule: Schedule) -> float:
    """Next fires a CPU second, each of them found anew from the one before it."""
    chain = _chain(schedule)
    list(itertools.islice(chain, _BATCH))  # what is parsed once is in the cache
    count, began = 0, time.process_time()
    while (used := time.process_time() - began) < MEASURED_SECONDS:
        count += len(list(itertools.islice(chain, _BATCH)))
    return count / used


def _chain(schedule: Schedule) -> Iterator[datetime]:
    after = _FROM
    while True:
        fire = next_fire(schedule, after=after)
        # Some twenty years on it begins anew, so that no rule runs out of calendar.
        after = fire.at if fire is not None and fire.at.year < 2045 else _FROM
        yield after
