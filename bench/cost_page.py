"""Write the figures of `tickwheel cost` into docs/cost.md and docs/comparison.md, and draw its picture: `python -m bench.cost_page`.

A test compares them.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.cost import Model
from bench.cost_inputs import model_of
from bench.cost_others import others
from bench.cost_report import draw
from bench.cost_terms import Assumed, Bill, Workload
from infra.stage import Stage

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cost.md"
COMPARISON = PAGE.with_name("comparison.md")
PICTURE = PAGE.parent / "pictures" / "cost.png"
SIZES = (
    ("dev", Workload(jobs_a_day=10_000, schedules=100)),
    ("prod", Workload(jobs_a_day=1_000_000, schedules=10_000)),
    ("prod", Workload(jobs_a_day=30_000_000, schedules=100_000)),
)
_TABLE = r"(\| {name} \|[^\n]*\n\|[-|]*\n)(?:\|[^\n]*\n)+"


def rows_of(bills: Sequence[Bill]) -> str:
    """A row for each service, the total, and what a million executions cost."""
    services: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(bills))
    for column, bill in enumerate(bills):
        for line in bill.lines:
            services[line.service][column] += line.usd
    rows = {
        **services,
        "total": [bill.usd for bill in bills],
        "a million executions": [bill.usd_a_million or 0.0 for bill in bills],
    }
    return "".join(f"| {name} | {' | '.join(f'{usd:,.2f}' for usd in row)} |\n" for name, row in rows.items())


def compared(models: Sequence[Model], works: Sequence[Workload]) -> str:
    """A row for each system: a month, and a million executions of it."""
    sizes = [
        {"Tickwheel": model.bill(work), "EventBridge Scheduler": model.eventbridge(work), **others(model, work)}
        for model, work in zip(models, works, strict=True)
    ]
    return "".join(
        f"| {name} | {' | '.join(f'{size[name].usd:,.2f} ({size[name].usd_a_million:,.2f} a million)' for size in sizes)} |\n"
        for name in sizes[0]
    )


def main() -> None:
    """Replace what the tables and the sentence about the crossing say, and the picture."""
    models: list[Model] = [model_of(Stage.named(stage), Assumed()) for stage, _ in SIZES]
    works = [work for _, work in SIZES]
    page = PAGE.read_text()
    bills = {
        "Tickwheel": [model.bill(work) for model, work in zip(models, works, strict=True)],
        "EventBridge Scheduler": [model.eventbridge(work) for model, work in zip(models, works, strict=True)],
    }
    for name, found in bills.items():
        rows = rows_of(found)
        page, count = re.subn(_TABLE.format(name=name), lambda table, rows=rows: table[1] + rows, page)
        assert count == 1, f"docs/cost.md has {count} tables of {name}"
    comparison, count = re.subn(
        r"(\| USD a month \|[^\n]*\n\|[-|]*\n)(?:\|[^\n]*\n)*",
        lambda table: table[1] + compared(models, works),
        COMPARISON.read_text(),
    )
    assert count == 1, f"docs/comparison.md has {count} tables of months"
    COMPARISON.write_text(comparison)
    crossing = models[1].crossover(works[1])
    assert crossing is not None
    PAGE.write_text(re.sub(r"at [0-9,]+ jobs a day on `prod`", f"at {crossing:,.0f} jobs a day on `prod`", page))
    draw(models[:2], works[1], PICTURE)


if __name__ == "__main__":
    main()
