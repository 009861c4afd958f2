"""Write the figures of `tickwheel cost` into docs/cost.md, docs/comparison.md and README.md, and draw its picture: `python -m bench.cost_page`.

A test compares them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from bench import cost_goals, first_page
from bench.cost import Model
from bench.cost_eventbridge import crossover, eventbridge, fill_of
from bench.cost_inputs import model_of
from bench.cost_others import others
from bench.cost_report import by_service, draw
from bench.cost_terms import Assumed, Bill, Workload
from bench.prices import read_free_tiers
from infra.stage import Stage

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cost.md"
COMPARISON = PAGE.with_name("comparison.md")
KEYS = PAGE.with_name("command-line.md")
PICTURE = PAGE.parent / "pictures" / "cost.png"
SMALLEST = cost_goals.SMALLEST
SIZES = (
    (SMALLEST, Workload(jobs_a_day=10_000, schedules=100)),
    ("prod", Workload(jobs_a_day=1_000_000, schedules=10_000)),
    ("prod", Workload(jobs_a_day=30_000_000, schedules=100_000)),
)
MONTHS = (
    ("nothing at all", 0, 0),
    ("1,000 jobs a day, 10 schedules", 1_000, 10),
    ("10,000 jobs a day, 100 schedules", 10_000, 100),
    ("100,000 jobs a day, 1,000 schedules", 100_000, 1_000),
    ("a million jobs a day, 10,000 schedules", 1_000_000, 10_000),
    ("30 million jobs a day, 100,000 schedules", 30_000_000, 100_000),
)
EXAMPLE = ("prod", Workload(jobs_a_day=100_000, schedules=1_000))
LARGEST = 8
"""Lines of the example."""

_LARGE = 1_000_000
"""Jobs a day from which on a stage of few shards is not asked for."""

Row = tuple[str, ...]
_model = cache(lambda stage: model_of(Stage.named(stage), Assumed()))


def tables() -> Mapping[str, Iterable[Row]]:
    """The rows of each table of the page by the first cell of its heading."""
    models = [_model(stage) for stage, _ in SIZES]
    works = [work for _, work in SIZES]
    ours = [model.bill(work) for model, work in zip(models, works, strict=True)]
    theirs = [eventbridge(model, work) for model, work in zip(models, works, strict=True)]
    return {
        "your month": _months(),
        "the largest lines": _example(),
        "Tickwheel": _rows_of(ours),
        "EventBridge Scheduler": _rows_of(theirs),
        "figure": [(figure.name, cost_goals.shown(figure)) for figure in cost_goals.figures()],
        "free each month": [
            (
                f"{tier.a_month:,.0f}",
                ", ".join(f"`{unit}`" for unit in tier.of),
                f"[{tier.name.replace('_', ' ')}]({tier.page})",
            )
            for tier in read_free_tiers()
        ],
    }


def written(page: str) -> str:
    """The page as it should be."""
    for heading, rows in tables().items():
        page = _with_rows(page, heading, rows)
    model, work = _model(SIZES[1][0]), SIZES[1][1]
    sentences = {
        r"at [0-9,]+ jobs a day on `prod`": f"at {_jobs(crossover(model, work))} jobs a day on `prod`",
        r"batches hold [0-9.]+ messages here and [0-9.]+ there": (
            f"batches hold {model.fill(work):.1f} messages here and {fill_of(model, work):.1f} there"
        ),
        r"An idle `dev` is\n  [0-9.]+ USD a month": f"An idle `dev` is\n  {_model('dev').bill(Workload(jobs_a_day=0)).usd:.2f} USD a month",
        r"day and night: [0-9.]+ USD a month": f"day and night: {_usd('dev', 'receives of nothing'):.2f} USD a month",
        r"for [0-9,]+ USD a month": f"for {_usd('scale', 'provisioned pollers, hours'):,.0f} USD a month",
    }
    for pattern, sentence in sentences.items():
        page, count = re.subn(pattern, sentence, page)
        assert count == 1, f"docs/cost.md says {count} times: {pattern}"
    return page


def written_comparison(page: str) -> str:
    """The page of others as it should be."""
    sizes = [
        {"Tickwheel": model.bill(work), "EventBridge Scheduler": eventbridge(model, work), **others(model, work)}
        for model, work in ((_model(stage), work) for stage, work in SIZES)
    ]
    rows = [
        (name, *(f"{size[name].usd:,.2f} ({size[name].usd_a_million:,.2f} a million)" for size in sizes))
        for name in sizes[0]
    ]
    return _with_rows(page, "USD a month", rows)


def written_keys(page: str) -> str:
    """The page of the command line as it should be: what keys cost that are not needed."""
    keyed, plain = (_model("prod").bill(Workload(jobs_a_day=1_000_000, keyed_share=share)).usd for share in (1, 0))
    sentence = f"{plain:.2f} USD a month instead of {keyed:.2f}"
    page, count = re.subn(r"[0-9.]+ USD a month instead of [0-9.]+", sentence, page)
    assert count == 1, f"docs/command-line.md says {count} times what keys cost"
    return page


def _months() -> Iterable[Row]:
    for name, jobs, schedules in MONTHS:
        work = Workload(jobs_a_day=jobs, schedules=schedules)
        stages = ("prod",) if jobs >= _LARGE else (SMALLEST, "dev", "prod")
        for stage in stages:
            bills = (_model(stage).bill(work), eventbridge(_model(stage), work))
            sums = (usd for bill in bills for usd in (bill.usd, bill.usd_after_free))
            yield (name, f"`{stage}`", *(f"{usd:,.2f}" for usd in sums))


def _example() -> Iterable[Row]:
    """The largest lines of the example, each as a product, and the rest."""
    stage, work = EXAMPLE
    model = _model(stage)
    bill = model.bill(work)
    largest = sorted(bill.lines, key=lambda line: line.usd, reverse=True)[:LARGEST]
    for line in largest:
        price = model.prices[line.unit]
        each = f"{price * 1e6:,.4g} a million" if price < 0.001 else f"{price:,.4g} each"
        mark = " *" if line.is_assumed else ""
        yield (f"{line.service}, {line.what}{mark}", f"{_rounded(line.quantity)} at {each}", f"{line.usd:,.2f}")
    rest = [line for line in bill.lines if line not in largest]
    yield (f"{len(rest)} more lines", "", f"{sum(line.usd for line in rest):,.2f}")
    yield ("total", "", f"{bill.usd:,.2f}")
    yield ("after free tiers", "", f"{bill.usd_after_free:,.2f}")


def _rows_of(bills: Sequence[Bill]) -> Iterable[Row]:
    """A row for each service, the sums, and what a million executions cost."""
    rows = {
        **by_service(bills),
        "total": [bill.usd for bill in bills],
        "after free tiers": [bill.usd_after_free for bill in bills],
        "a million executions": [bill.usd_a_million or 0.0 for bill in bills],
    }
    return [(name, *(f"{usd:,.2f}" for usd in row)) for name, row in rows.items()]


def _with_rows(page: str, heading: str, rows: Iterable[Row]) -> str:
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    pattern = rf"(?m)^(\| {heading} \|[^\n]*\n\|[-|]*\n)(?:\|[^\n]*\n)*"
    page, count = re.subn(pattern, lambda found: found[1] + text, page)
    assert count == 1, f"there are {count} tables of {heading}"
    return page


def _usd(stage: str, what: str) -> float:
    """Of a line of an idle stage."""
    return sum(line.usd for line in _model(stage).bill(Workload(jobs_a_day=1)).lines if line.what == what)


def _jobs(crossing: float | None) -> str:
    return "no" if crossing is None else f"{crossing:,.0f}"


def _rounded(quantity: float) -> str:
    return f"{quantity:,.0f}" if quantity >= 100 or quantity == int(quantity) else f"{quantity:,.3g}"


def main() -> None:
    """Replace what the pages say, and the picture."""
    PAGE.write_text(written(PAGE.read_text()))
    COMPARISON.write_text(written_comparison(COMPARISON.read_text()))
    KEYS.write_text(written_keys(KEYS.read_text()))
    first_page.PAGE.write_text(first_page.written(first_page.PAGE.read_text()))
    models: list[Model] = [_model("dev"), _model("prod")]
    draw(models, SIZES[1][1], PICTURE)


if __name__ == "__main__":
    main()
