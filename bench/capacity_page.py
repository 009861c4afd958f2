"""Write the figures of docs/capacity.md: `python -m bench.capacity_page`.

Quotas are those of `infra/capacity.py`, costs those of `tickwheel cost`. A test compares them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from bench.cost import GB, HOURS, STORED_OVERHEAD, Model
from bench.cost_fill import FULL_BATCH
from bench.cost_inputs import model_of
from bench.cost_terms import Assumed, Bill, Workload
from infra.capacity import JOBS_A_REQUEST, LEDGER_WRITES, PARTITION_WRITES, QUOTAS, Quota, needed_quotas
from infra.stage import Stage
from infra.throughput import FOR_A_HERD

PAGE = Path(__file__).resolve().parent.parent / "docs" / "capacity.md"

REGION = "us-east-1"
"""Whose prices and defaults they are."""

RATES = (10_000, 50_000, 100_000)
WAITING = 500_000_000
SCHEDULES = 5_000_000
TENANTS = 1_000_000

HERD_MINUTES = 4
"""In which the fires of one instant run: docs/simulation.md."""

PARTITION_GB = 10
"""After which DynamoDB splits it.
https://aws.amazon.com/blogs/database/part-3-scaling-dynamodb-how-partitions-hot-keys-and-split-for-heat-impact-performance/"""

_DAY = 86_400
_IDLE = Workload(jobs_a_day=0, tenants=0)
_STEADY = Workload(jobs_a_day=RATES[0] * _DAY, tenants=10_000)
_SERVICES = ("DynamoDB", "SQS", "Lambda", "API Gateway", "CloudWatch")

Row = tuple[str, ...]


def tables() -> Mapping[str, Iterable[Row]]:
    """The rows of each table of the page by the first cell of its heading."""
    scale = Stage.named("scale")
    model = model_of(scale, Assumed())
    return {
        "quota": _quotas(scale),
        "table": _partitions(scale, model),
        "for a herd": _for_a_herd(scale),
        "an hour": _hours(model),
    }


def written(page: str) -> str:
    """The page with the rows that it should have."""
    for heading, rows in tables().items():
        text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        pattern = rf"(\| {heading} \|[^\n]*\n\|[-|]*\n)(?:\|[^\n]*\n)*"
        page, count = re.subn(pattern, lambda found, text=text: found[1] + text, page)
        assert count == 1, f"docs/capacity.md has {count} tables of {heading}"
    return page


def _quotas(scale: Stage) -> Iterator[Row]:
    # A stage of a few shards: what is left is what the rate needs.
    small = Stage.named("dev")
    at = [{need.quota: need.least for need in needed_quotas(small, executions=rate)} for rate in RATES]
    own = {need.quota: need.least for need in needed_quotas(scale)}
    for quota in QUOTAS:
        needs = [each.get(quota) for each in at] + [own.get(quota)]
        default = quota.default_in(REGION)
        cells = ("" if need is None else _bold(need, over=default) for need in needs)
        yield (f"[{quota.name}]({quota.page})", _code(quota), f"{default:,g}", *cells)


def _code(quota: Quota) -> str:
    if quota.code is None:
        return "none: a form, or a support case"
    return f"`{quota.code}`" if quota.is_adjustable else f"`{quota.code}`, AWS sets it"


def _bold(value: float, *, over: float) -> str:
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    return f"**{text}**" if value > over else text


def _partitions(scale: Stage, model: Model) -> Iterator[Row]:
    row_bytes = model.far_row(_STEADY) + STORED_OVERHEAD
    loads = (
        ("timers", f"{RATES[1]:,} submissions a second into one bucket", RATES[1]),
        ("timers", f"{WAITING / 1e6:,.0f} million rows of {row_bytes:,.0f} bytes", None),
        ("ledger", f"{RATES[2]:,} executions a second, `exactly_once`", RATES[2] * LEDGER_WRITES),
        (
            "schedule_state",
            f"{SCHEDULES / 1e6:g} million fires in {HERD_MINUTES} minutes, each minute's alarms in half of it",
            2 * SCHEDULES / HERD_MINUTES / 60,
        ),
        ("tenants", f"usage of a million tenants at {RATES[0]:,} a second, two writes a job", 2 * RATES[0]),
    )
    for table, load, writes in loads:
        least = WAITING * row_bytes / GB / PARTITION_GB if writes is None else writes / PARTITION_WRITES
        warm = scale.warm_throughput[table].writes
        yield (
            f"`{table}`",
            load,
            "" if writes is None else f"{writes:,.0f}",
            f"{math.ceil(least):,}",
            f"{warm:,}",
            f"{warm // PARTITION_WRITES:,}",
        )


def _for_a_herd(scale: Stage) -> Iterator[Row]:
    for table, warm in FOR_A_HERD.items():
        own = scale.warm_throughput.get(table)
        of_scale = (f"{own.writes:,}", f"{own.reads:,}") if own else ("", "")
        yield (f"`{table}`", *of_scale, f"{warm.writes:,}", f"{warm.reads:,}")


def _hours(model: Model) -> Iterator[Row]:
    idle, steady = model.bill(_IDLE), model.bill(_STEADY)
    yield _hour("`scale`, idle", idle)
    for rate in RATES:
        yield _hour(f"{rate:,} submissions and executions a second", model.bill(_at(rate)))
    # A job a day that waits for so long that so many wait, and what it leaves behind is next to nothing.
    waiting = model.bill(replace(_IDLE, jobs_a_day=1, far_share=1, wait_days=WAITING))
    yield _hour(f"and {WAITING / 1e6:,.0f} million jobs that wait", waiting, beside=idle)
    # Fires of one instant are a herd, whose batches are full.
    herd = replace(model, assumed=replace(model.assumed, fill=FULL_BATCH))
    schedules = herd.bill(replace(_IDLE, schedules=SCHEDULES, fires_a_schedule_day=24))
    yield _hour(f"and {SCHEDULES / 1e6:g} million schedules that fire each hour", schedules, beside=idle)
    tenants = model.bill(replace(_STEADY, tenants=TENANTS))
    yield _hour(
        f"and a million tenants instead of {_STEADY.tenants:,} at {RATES[0]:,} a second", tenants, beside=steady
    )


def _at(rate: float) -> Workload:
    return replace(_STEADY, jobs_a_day=rate * _DAY, batch=JOBS_A_REQUEST)


def _hour(load: str, bill: Bill, *, beside: Bill | None = None) -> Row:
    """beside: what is paid anyway."""
    sums = dict.fromkeys((*_SERVICES, "other"), 0.0)
    for each, sign in ((bill, 1), (beside, -1)):
        for line in each.lines if each else ():
            sums[line.service if line.service in _SERVICES else "other"] += sign * line.usd / HOURS
    return (load, *(f"{round(usd, 2) + 0:,.2f}" for usd in (*sums.values(), sum(sums.values()))))


def main() -> None:
    """Replace the rows of the tables."""
    PAGE.write_text(written(PAGE.read_text()))


if __name__ == "__main__":
    main()
