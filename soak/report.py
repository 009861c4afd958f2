"""The report of a soak: lines for people, one JSON object for scripts, and the table of its figures in Markdown."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from soak.curves import Judged
from soak.outcome import JobEnd
from verification.checker import Invariant

_PACKAGES = ("boto3", "ministack", "aws-lambda-powertools")
_MIB = 2**20


def write_json(file: Path, outcome: JobEnd) -> None:
    """Everything, with each point of each curve."""
    file.write_text(json.dumps(_as_json(outcome), indent=1) + "\n", encoding="utf-8")


def figures_of(outcome: JobEnd) -> Iterator[str]:
    """The figures as Markdown."""
    judgement = outcome.judgement
    yield f"{_facts(outcome)}\n"
    yield "| invariant | looked at | broken |"
    yield "|---|---:|---:|"
    for invariant in Invariant:
        broken = sum(each.invariant is invariant for each in judgement.violations)
        yield f"| `{invariant}` | {judgement.checks[invariant]:,} | {broken} |"
    yield "\n| fault | struck |"
    yield "|---|---:|"
    for fault, count in sorted(outcome.struck.items()):
        yield f"| {fault} | {count:,} |"
    minutes = (outcome.seconds - outcome.judged_from) / 60
    yield f"\n| curve | level | rise in {minutes:.0f} min | may rise | points | |"
    yield "|---|---:|---:|---:|---:|---|"
    for each in outcome.judged:
        yield _row(each)
    yield f"\n{_emulator(outcome)}"


def _facts(outcome: JobEnd) -> str:
    lag = ", ".join(f"{name} {value:,.0f} ms" for name, value in outcome.lag.items())
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return (
        f"{outcome.seconds / 60:.0f} minutes of load at {outcome.rate:g} jobs a second, seed {outcome.seed}: "
        f"{outcome.jobs:,} jobs, {outcome.fires:,} fires of schedules, {outcome.calls:,} calls; "
        f"{outcome.refused:,} submissions were refused by a store that throttled, and repeated. "
        f"Lag of steady jobs, faults included: {lag}. "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}."
    )


def _row(each: Judged) -> str:
    gauge, verdict = each.gauge, each.verdict
    trend = verdict.trend
    if trend is None:
        return f"| {gauge.name} | | | | | too few points: {gauge.why} |"
    unit = f" {gauge.unit}" if gauge.unit else ""
    allowed = f"{verdict.allowed:,.{gauge.digits}f}{unit}" if gauge.budget else ""
    verdicts = {True: "flat", False: "**not flat**", None: ""}
    words = verdicts[verdict.is_flat] if gauge.budget else "not judged"
    return (
        f"| {gauge.name} | {trend.level:,.{gauge.digits}f}{unit} | {verdict.rise:+,.{gauge.digits}f}{unit} "
        f"| {allowed} | {trend.points} | {words}: {gauge.why} |"
    )


def _emulator(outcome: JobEnd) -> str:
    memory = outcome.curves["memory emulator"]
    (_, first), (_, last) = memory[0], memory[-1]
    rows = sum(outcome.curves[name][-1][1] for name in ("timers, all rows", "ledger, all rows"))
    return (
        f"The emulator itself grew from {first:,.0f} to {last:,.0f} MiB, {(last - first) * 1024 / outcome.jobs:,.1f} KiB a "
        f"job: it keeps {outcome.log_lines:,} log lines ({outcome.log_bytes / _MIB:,.1f} MiB of text, an object each), "
        f"{rows:,.0f} timers and ledger rows, and what else its services remember of requests."
    )


def _as_json(outcome: JobEnd) -> dict[str, Any]:
    def described(each: Judged) -> dict[str, Any]:
        trend = each.verdict.trend
        return {
            "unit": each.gauge.unit,
            "level": trend and trend.level,
            "rise": each.verdict.rise,
            "allowed": each.verdict.allowed if each.gauge.budget else None,
            "points": trend.points if trend else 0,
            "is_flat": each.verdict.is_flat if each.gauge.budget else None,
        }

    return {
        "seed": outcome.seed,
        "rate": outcome.rate,
        "seconds": round(outcome.seconds),
        "judged_from": round(outcome.judged_from),
        "is_whole": outcome.is_whole,
        "jobs": outcome.jobs,
        "fires": outcome.fires,
        "calls": outcome.calls,
        "refused": outcome.refused,
        "lag_ms": outcome.lag,
        "struck": outcome.struck,
        "checks": {str(invariant): outcome.judgement.checks[invariant] for invariant in Invariant},
        "faults": outcome.faults,
        "left": outcome.left,
        "curves": {each.gauge.name: described(each) for each in outcome.judged},
        "log": {"lines": outcome.log_lines, "bytes": outcome.log_bytes},
        "points": {name: [[round(at, 1), value] for at, value in curve] for name, curve in outcome.curves.items()},
    }
