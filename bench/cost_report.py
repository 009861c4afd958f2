"""A bill for people and for scripts, beside that of EventBridge Scheduler; and the picture of both."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.cost import Model
from bench.cost_others import others
from bench.cost_terms import Bill, Workload

EXCLUDED = (
    "30 days in us-east-1, on demand. Free tiers are left out: EventBridge Scheduler's first 14 million invocations a month "
    "among them, which are 14 USD."
)
GUARANTEES = (
    "EventBridge Scheduler is priced with what gives it the same guarantees: a queue with a dead-letter queue, a worker, an "
    "idempotency table. It fires to the minute, and has no tenants, priorities, rates, cancel after promotion, or replay."
)


def shown(model: Model, work: Workload) -> Group:
    """Both bills, what a million costs, and where they cross."""
    ours, theirs = model.bill(work), model.eventbridge(work)
    return Group(
        _table(f"Tickwheel {model.deployed.name}", ours),
        _table("EventBridge Scheduler, with the same guarantees", theirs),
        *(Text(line) for line in _summary(model, work, ours, theirs)),
    )


def as_json(model: Model, work: Workload) -> dict[str, Any]:
    """All of it."""
    ours, theirs = model.bill(work), model.eventbridge(work)
    return {
        "stage": model.deployed.name,
        "workload": asdict(work),
        "assumed": asdict(model.assumed),
        "tickwheel": _bill_json(ours),
        "eventbridge_scheduler": _bill_json(theirs),
        "others": {name: _bill_json(bill) for name, bill in others(model, work).items()},
        "cheaper_from_jobs_a_day": model.crossover(work),
        "notes": [EXCLUDED, GUARANTEES],
    }


def draw(models: Sequence[Model], work: Workload, path: Path) -> None:
    """A month's cost against jobs a day, both axes logarithmic: each stage, and EventBridge Scheduler.

    The file says where they cross, as a text that a reader of PNG finds, `Description`.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    days = [10 ** (2 + step / 10) for step in range(61)]
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for model, style, colour in zip(models, ("-", "-."), ("#0072b2", "#009e73"), strict=True):
        costs = [model.bill(replace(work, jobs_a_day=jobs)).usd for jobs in days]
        axes.plot(
            days, costs, style, color=colour, label=f"Tickwheel, {model.deployed.name}: {model.deployed.shards} shards"
        )
    theirs = [models[-1].eventbridge(replace(work, jobs_a_day=jobs)).usd for jobs in days]
    axes.plot(days, theirs, "--", color="#d55e00", label="EventBridge Scheduler, same guarantees")
    crossing, marked = models[-1].crossover(work), "no crossing"
    if crossing is not None:
        marked = f"{crossing:,.0f} jobs a day"
        usd = models[-1].bill(replace(work, jobs_a_day=crossing)).usd
        axes.plot([crossing], [usd], "o", color="black")
        axes.annotate(marked, (crossing, usd), xytext=(8, -16), textcoords="offset points", fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="jobs a day", ylabel="USD a month")
    axes.set_title(f"What a month costs with {work.schedules:,.0f} schedules, without free tiers")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None, "Description": marked})
    plt.close(figure)


def _table(title: str, bill: Bill) -> Table:
    table = Table(title=title, box=SIMPLE, title_justify="left")
    table.add_column("service")
    table.add_column("what")
    table.add_column("quantity", justify="right")
    table.add_column("USD", justify="right")
    service = ""
    for line in bill.lines:
        name = line.service if line.service != service else ""
        service = line.service
        table.add_row(
            name, f"{line.what}{' *' if line.is_assumed else ''}", _quantity(line.quantity), f"{line.usd:,.2f}"
        )
    table.add_section()
    table.add_row("total", "", "", f"{bill.usd:,.2f}", style="bold")
    return table


def _summary(model: Model, work: Workload, ours: Bill, theirs: Bill) -> list[str]:
    lines: list[str] = []
    if ours.usd_a_million is not None and theirs.usd_a_million is not None:
        lines.append(
            f"A million executions: {ours.usd_a_million:,.2f} USD here, {theirs.usd_a_million:,.2f} USD by EventBridge Scheduler."
        )
        compared = ", ".join(f"{bill.usd_a_million:,.2f} by {name}" for name, bill in others(model, work).items())
        lines.append(f"The same as executions of workflows (docs/comparison.md): {compared}.")
    crossing = model.crossover(work)
    lines.append(
        f"Cheaper than EventBridge Scheduler from {crossing:,.0f} jobs a day on, all else being the same."
        if crossing is not None
        else "At no number of jobs cheaper than EventBridge Scheduler, all else being the same."
    )
    return [*lines, "* rests on assumptions: --json tells them, and each is an option.", EXCLUDED, GUARANTEES]


def _quantity(quantity: float) -> str:
    return f"{quantity:,.0f}" if quantity >= 100 or quantity == int(quantity) else f"{quantity:,.3g}"


def _bill_json(bill: Bill) -> dict[str, Any]:
    return {
        "usd": round(bill.usd, 2),
        "usd_a_million": None if bill.usd_a_million is None else round(bill.usd_a_million, 2),
        "lines": [{**asdict(line), "usd": round(line.usd, 6)} for line in bill.lines],
    }
