"""What a simulation has found, for people on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulation.measure import Lag
from simulation.outcome import Result, Verdict

FACTS = (
    ("timers_write_peak", "write units/s, fullest partition of the timers", 0),
    ("timers_read_peak", "read units/s, fullest partition of the timers", 0),
    ("timers_throttled", "calls of the sample that it throttled", 0),
    ("failed_ticks", "ticks of the sample that ended with an error", 0),
    ("ledger_write_peak", "write units/s, fullest partition of the ledger", 0),
    ("ledger_table_write_peak", "write units/s of the ledger", 0),
    ("over_quota", "calls of the sample that the quota of a table refused", 0),
    ("queue_depth_peak", "messages in the ready queues, delayed ones included", 0),
    ("visible_peak", "messages that waited for a worker", 0),
    ("in_flight_peak", "messages in flight", 0),
    ("concurrency_peak", "concurrent invocations of the worker", 0),
    ("oldest_bucket_age_peak_s", "s, age of the oldest bucket", 0),
    ("dead_letters", "dead letters, of the sample", 0),
)
"""Facts that every report shows: name, words, digits after the point. Peaks of queues are those of full minutes."""


def lag_rows(result: Result) -> Iterator[tuple[str, Lag, float | None, str]]:
    """A row for each class, for all of them, and for each baseline: words, lag, fairness, note."""
    for name, lag in result.by_class.items():
        yield name, lag, None, ""
    yield "all classes", result.lag, result.fairness, ""
    for baseline in result.baselines:
        done = "" if baseline.finished > _ALL else f"{baseline.finished:.0%} done; "
        yield baseline.words, baseline.lag, baseline.fairness, done + baseline.note


_ALL = 0.9995


def table_of(result: Result) -> RenderableType:
    """One scenario."""
    lags = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    lags.add_column("lag, s", no_wrap=True)
    for heading in ("jobs", "p50", "p95", "p99", "p99.9", "longest", "Jain"):
        lags.add_column(heading, justify="right", no_wrap=True)
    lags.add_column("", overflow="fold")
    for number, (words, lag, even, note) in enumerate(lag_rows(result)):
        is_ours = number <= len(result.by_class)
        figures = (f"{value:,.2f}" for value in (lag.p50, lag.p95, lag.p99, lag.p999, lag.longest))
        shown = [f"{lag.count:,}", *figures] if lag.count else ["0", *["-"] * 5]
        lags.add_row(words, *shown, "" if even is None else f"{even:.3f}", note, style="" if is_ours else "dim")
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    facts.add_column(justify="right")
    facts.add_column()
    for name, words, digits in FACTS:
        facts.add_row(f"{result.facts[name]:,.{digits}f}", words)
    for words, value in shares_by_weight(result):
        facts.add_row(f"{value:.2f}", words)
    facts.add_row(f"{sum(result.cost.values()):.2f}", "USD a million jobs")
    heading = Text(f"{result.title}\n", style="bold")
    heading.append(
        f"{result.name}, seed {result.seed}: {result.jobs:,} jobs and {result.calls:,} calls simulated, {sampled(result)}",
        style="default",
    )
    heading.append("".join(f"\n{line}" for line in result.stage), style="dim")
    return Group(heading, lags, facts, *(verdict_text(verdict) for verdict in result.verdicts), Text(""))


def sampled(result: Result) -> str:
    """What was sampled, in words."""
    if result.share == 1:
        return f"{result.sample}; nothing is sampled"
    return (
        f"sampled: {result.sample} with as much of the load, the workers and the queues; "
        f"rates, depths and units are those of the whole, {1 / result.share:,.0f} times the sample's"
    )


def shares_by_weight(result: Result) -> Iterator[tuple[str, float]]:
    """How much a tenant of each weight has been let out, of what it was entitled to."""
    if len({share.weight for share in result.shares}) <= 1:
        return
    for weight in sorted({share.weight for share in result.shares}):
        of_weight = [share for share in result.shares if share.weight == weight]
        served, entitled = (sum(share.served for share in of_weight), sum(share.entitled for share in of_weight))
        yield f"of its share was let out to tenants of weight {weight:g}", served / entitled if entitled else 1.0


def verdict_text(verdict: Verdict) -> Text:
    """A sentence with a mark."""
    mark, style = ("✔", "green") if verdict.holds else ("✘", "bold red")
    return Text(f"{mark} {verdict.goal.words}: {verdict.value:,.6g}, target {verdict.goal.bound}", style=style)


def summary_of(results: Sequence[Result]) -> Table:
    """A line for each scenario."""
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), title="All scenarios")
    table.add_column("scenario", no_wrap=True)
    for heading in ("jobs", "lag p50", "p99", "p99.9", "partition", "USD/M", "CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for result in results:
        missed = [verdict.goal.words for verdict in result.verdicts if not verdict.holds]
        table.add_row(
            result.name,
            f"{result.jobs:,}",
            *(f"{value:,.2f}" for value in (result.lag.p50, result.lag.p99, result.lag.p999)),
            f"{result.facts['timers_write_peak']:,.0f}",
            f"{sum(result.cost.values()):.2f}",
            f"{result.seconds:.0f} s",
            Text(f"✘ {'; '.join(missed)}", style="bold red") if missed else Text("✔ held", style="green"),
        )
    return table
