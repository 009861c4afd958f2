"""A bill for people and for scripts, beside that of EventBridge Scheduler and of another stage; and the picture of both."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.cost import Model
from bench.cost_eventbridge import crossover, eventbridge, fill_of
from bench.cost_others import others
from bench.cost_terms import Bill, Workload

EXCLUDED = (
    "30 days in us-east-1, on demand. The second sum takes off what AWS gives an account each month (docs/cost.md), which "
    "whatever else runs in it shares."
)
GUARANTEES = (
    "EventBridge Scheduler is priced with what gives it the same guarantees: a queue with a dead-letter queue, a worker, an "
    "idempotency table. It fires to the minute, and has no tenants, priorities, rates, cancel after promotion, or replay."
)
FILL = (
    "How full batches are is assumed, and moves the crossing more than most: --fill says it, `tickwheel smoke --only bill` "
    "tells it of a stage that runs."
)

_THEIRS = "EventBridge Scheduler"
_FILLS = (1, 5, 10)
"""For which a crossing is told: batches are between the first and the last."""


def shown(model: Model, work: Workload) -> Group:
    """Both bills, what a million costs, and where they cross."""
    ours, theirs = model.bill(work), eventbridge(model, work)
    return Group(
        _table(f"Tickwheel {model.deployed.name}", ours),
        _table(f"{_THEIRS}, with the same guarantees", theirs),
        *(Text(line) for line in _summary(model, work, ours, theirs)),
    )


def shown_beside(models: Sequence[Model], work: Workload) -> Group:
    """Stages beside each other, a row for each service."""
    bills = {model.deployed.name: model.bill(work) for model in models}
    table = Table(title="USD a month", box=SIMPLE, title_justify="left")
    table.add_column("service")
    bills[_THEIRS] = eventbridge(models[0], work)
    for name in bills:
        table.add_column(name, justify="right")
    for service, sums in by_service(list(bills.values())).items():
        table.add_row(service, *(f"{usd:,.2f}" for usd in sums))
    table.add_section()
    for name, sums in _totals(list(bills.values())).items():
        table.add_row(name, *("-" if usd is None else f"{usd:,.2f}" for usd in sums), style="bold")
    lines = [f"{model.deployed.name}: {_crossing(model, work)}" for model in models]
    return Group(table, *(Text(line) for line in [*lines, FILL, EXCLUDED, GUARANTEES]))


def by_service(bills: Sequence[Bill]) -> Mapping[str, list[float]]:
    """USD of each service, a figure for each bill."""
    services: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(bills))
    for column, bill in enumerate(bills):
        for line in bill.lines:
            services[line.service][column] += line.usd
    return services


def as_json(model: Model, work: Workload, *, against: Model | None = None) -> dict[str, Any]:
    """All of it. against: another stage, whose figures are beside it."""
    ours, theirs = model.bill(work), eventbridge(model, work)
    beside = {"against": as_json(against, work)} if against else {}
    return {
        "stage": model.deployed.name,
        "workload": asdict(work),
        "assumed": asdict(model.assumed),
        "fill": {"tickwheel": round(model.fill(work), 2), "eventbridge_scheduler": round(fill_of(model, work), 2)},
        "tickwheel": _bill_json(ours),
        "eventbridge_scheduler": _bill_json(theirs),
        "others": {name: _bill_json(bill) for name, bill in others(model, work).items()},
        "cheaper_from_jobs_a_day": crossover(model, work),
        "cheaper_from_jobs_a_day_after_free": crossover(model, work, of=_after_free),
        "cheaper_from_jobs_a_day_by_fill": {
            str(fill): crossover(replace(model, assumed=replace(model.assumed, fill=fill)), work) for fill in _FILLS
        },
        "free_tiers": [asdict(tier) for tier in model.free],
        "notes": [FILL, EXCLUDED, GUARANTEES],
        **beside,
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
    theirs = [eventbridge(models[-1], replace(work, jobs_a_day=jobs)).usd for jobs in days]
    axes.plot(days, theirs, "--", color="#d55e00", label="EventBridge Scheduler, same guarantees")
    crossing, marked = crossover(models[-1], work), "no crossing"
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
    for name in ("quantity", "USD", "after free tiers"):
        table.add_column(name, justify="right")
    service = ""
    for line in bill.lines:
        name = line.service if line.service != service else ""
        service = line.service
        what = f"{line.what}{' *' if line.is_assumed else ''}"
        table.add_row(name, what, _quantity(line.quantity), f"{line.usd:,.2f}", f"{line.usd_after_free:,.2f}")
    table.add_section()
    table.add_row("total", "", "", f"{bill.usd:,.2f}", f"{bill.usd_after_free:,.2f}", style="bold")
    return table


def _totals(bills: Sequence[Bill]) -> Mapping[str, list[float | None]]:
    return {
        "total": [bill.usd for bill in bills],
        "after free tiers": [bill.usd_after_free for bill in bills],
        "a million executions": [bill.usd_a_million for bill in bills],
    }


def _summary(model: Model, work: Workload, ours: Bill, theirs: Bill) -> list[str]:
    lines: list[str] = []
    if ours.usd_a_million is not None and theirs.usd_a_million is not None:
        lines.append(
            f"A million executions: {ours.usd_a_million:,.2f} USD here, {theirs.usd_a_million:,.2f} USD by {_THEIRS}."
        )
        compared = ", ".join(f"{bill.usd_a_million:,.2f} by {name}" for name, bill in others(model, work).items())
        lines.append(f"The same as executions of workflows (docs/comparison.md): {compared}.")
        lines.append(
            f"Messages of a batch: {model.fill(work):.1f} here, {fill_of(model, work):.1f} by {_THEIRS}. {FILL}"
        )
    by_fill = "; ".join(
        f"at {fill} a batch {_from(crossover(replace(model, assumed=replace(model.assumed, fill=fill)), work))}"
        for fill in _FILLS
    )
    return [
        *lines,
        _crossing(model, work),
        f"The crossing by how full batches are: {by_fill}.",
        "* rests on assumptions: --json tells them, and each is an option.",
        EXCLUDED,
        GUARANTEES,
    ]


def _crossing(model: Model, work: Workload) -> str:
    crossing = crossover(model, work)
    after = _from(crossover(model, work, of=_after_free))
    if crossing is None:
        return f"At no number of jobs cheaper than {_THEIRS}, all else being the same; after free tiers {after}."
    return (
        f"Cheaper than {_THEIRS} from {crossing:,.0f} jobs a day on, all else being the same; after free tiers {after}."
    )


def _from(crossing: float | None) -> str:
    return "never" if crossing is None else f"from {crossing:,.0f} on"


def _after_free(bill: Bill) -> float:
    return bill.usd_after_free


def _quantity(quantity: float) -> str:
    return f"{quantity:,.0f}" if quantity >= 100 or quantity == int(quantity) else f"{quantity:,.3g}"


def _bill_json(bill: Bill) -> dict[str, Any]:
    return {
        "usd": round(bill.usd, 2),
        "usd_after_free": round(bill.usd_after_free, 2),
        "usd_a_million": None if bill.usd_a_million is None else round(bill.usd_a_million, 2),
        "lines": [
            {**asdict(line), "usd": round(line.usd, 6), "usd_after_free": round(line.usd_after_free, 6)}
            for line in bill.lines
        ],
    }
