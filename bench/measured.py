"""What was measured of units: its values, the table of them, and the file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from bench import budgets
from bench.budgets import ROUNDING, Path, Units
from bench.prices import price_of_a_million
from functions.domain.jobs.overlap import Overlap

JOBS = 1_000
PAYLOAD_BYTES = 512
REQUEST = 500
"""Jobs in one call of the API: its limit."""
TOGETHER = 25
"""Jobs in one call of who has few of them at once."""
TOGETHER_NAME = f"far, exactly_once, short JSON, {TOGETHER} a request"


@dataclass(frozen=True, slots=True)
class Measured:
    """Units of one job on every path, of one fire of a schedule, of one job that names a flow, or is given with others, or comes in a request of TOGETHER.

    Of one tick that promotes nothing, and of one mark.
    And of what a process reads once in half a minute.
    """

    paths: Mapping[Path, Units]
    occurrences: Mapping[Overlap, Units]
    flows: Mapping[str, Units]
    collected: Mapping[str, Units]
    together: Units
    tick: Units
    mark: Units
    knowledge: Units


def show(console: Console, measured: Measured, prices: Mapping[str, float]) -> None:
    """As a table."""
    table = Table(title=f"Units of a job (payload of {PAYLOAD_BYTES} bytes, {JOBS:,} jobs a path)", box=SIMPLE)
    table.add_column("used / budget", no_wrap=True)
    for heading in ("write units", "read units", "SQS requests", "USD/M"):
        table.add_column(heading, justify="right")
    beside = apart(measured)
    for name, (used, budget) in {**of_jobs(measured), **beside}.items():
        cells = [_beside(getattr(used, field.name), getattr(budget, field.name)) for field in fields(Units)]
        style = "dim" if name in beside else ""
        table.add_row(name, *cells, f"{price_of_a_million(used, prices):.2f}", style=style)
    console.print(table)
    ingress = prices["http_api_request"] + prices["lambda_request"]
    notes = [*_NOTES, f"Ingress on top: {ingress:.2f} USD a million HTTP requests, of one to {REQUEST} jobs each."]
    for note in notes:
        console.print(Padding(f"- {note}", (0, 0, 0, 2)), highlight=False)
    console.print()


_NOTES = (
    "USD/M: a million of them, of DynamoDB's and SQS's requests alone; Lambda, storage, logs and ingress come on top.",
    f"Submitted {REQUEST} jobs a request, so that every batch is full; a job submitted alone is 1.2 SQS requests.",
    "SQS: sends are counted; a receive and a delete are 0.1 each, made by the event source mapping in batches of ten.",
    "DynamoDB Local reports nothing for a lost condition, a query without rows, a missing key of a batch: counted as billed.",
    "A tick's lease and checkpoint are its own, however many jobs it promotes: a shard ticks 43,200 times in 30 days.",
    "A mark is paid by a tenant's first far job of a day, class and shard, for all that follow.",
)


def of_jobs(measured: Measured) -> Mapping[str, tuple[Units, Units]]:
    """What a job, or a fire, pays for: used, and its budget."""
    return {
        **{path.name: (used, budgets.UNITS[path]) for path, used in measured.paths.items()},
        **{f"an occurrence, {each}": (used, budgets.OCCURRENCES[each]) for each, used in measured.occurrences.items()},
        **{name: (used, budgets.FLOWS[name][1]) for name, used in measured.flows.items()},
        **{name: (used, budgets.COLLECTED[name][1]) for name, used in measured.collected.items()},
        TOGETHER_NAME: (measured.together, budgets.TOGETHER),
    }


def apart(measured: Measured) -> Mapping[str, tuple[Units, Units]]:
    """What no single job pays for: used, and its budget."""
    return {
        "an idle tick of a shard": (measured.tick, budgets.TICK),
        "the mark of a tenant's day": (measured.mark, budgets.MARK),
        "half a minute of a process": (measured.knowledge, budgets.KNOWLEDGE),
    }


def _beside(used: float, budget: float) -> str:
    text = f"{used:.3f}".rstrip("0").rstrip(".")
    shown = f"{text} / {budget:g}"
    return f"[red]{shown}[/red]" if used > budget + ROUNDING else shown


def as_json(measured: Measured, prices: Mapping[str, float]) -> dict[str, Any]:
    """As units.json has it."""

    def described(used: Units, budget: Units) -> dict[str, Any]:
        return {
            **{figure: round(value, 4) for figure, value in asdict(used).items()},
            "budget": asdict(budget),
            "usd_a_million": round(price_of_a_million(used, prices), 3),
        }

    return {
        "jobs_a_path": JOBS,
        "payload_bytes": PAYLOAD_BYTES,
        "jobs_a_request": REQUEST,
        "notes": _NOTES,
        "paths": {path.name: described(used, budgets.UNITS[path]) for path, used in measured.paths.items()},
        "occurrences": {
            overlap.value: described(used, budgets.OCCURRENCES[overlap])
            for overlap, used in measured.occurrences.items()
        },
        "flows": {name: described(used, budgets.FLOWS[name][1]) for name, used in measured.flows.items()},
        "collected": {name: described(used, budgets.COLLECTED[name][1]) for name, used in measured.collected.items()},
        "together": described(measured.together, budgets.TOGETHER),
        "idle_tick_of_a_shard": described(measured.tick, budgets.TICK),
        "mark": described(measured.mark, budgets.MARK),
        "half_a_minute_of_a_process": described(measured.knowledge, budgets.KNOWLEDGE),
        "usd_a_million_http_requests": prices["http_api_request"] + prices["lambda_request"],
    }
