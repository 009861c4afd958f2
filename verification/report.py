"""What a verification has found: a table of faults and invariants for people, one JSON object for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from verification.acts import Act
from verification.checker import Invariant, Violation
from verification.faults import Fault
from verification.run import Total, UsageTally

_THOUSAND = 1_000
_EXACT_BELOW = 10 * _THOUSAND


_WIDEST = 8
"""Invariants that stand beside each other: with more of them a terminal breaks their names."""


def table_of(total: Total) -> Group:
    """How often each fault struck, and how often each invariant was looked at in the episodes in which it did."""
    title = f"{total.jobs:,} jobs, {total.fires:,} fires and {total.calls:,} calls in {len(total.outcomes):,} episodes"
    title += f", {total.long_ones:,} of them of months" if total.long_ones else ""
    acts = total.acts
    done = ", ".join(f"{acts[act]:,} {act.replace('_', ' ')}" for act in Act if acts[act])
    invariants = list(Invariant)
    parts = [invariants[first : first + _WIDEST] for first in range(0, len(invariants), _WIDEST)]
    tables = [_part_of(total, part, has_doubts=part is parts[-1] and bool(total.doubts)) for part in parts]
    tables[0].title, tables[-1].caption = title, done
    return Group(*tables)


def _part_of(total: Total, invariants: Sequence[Invariant], *, has_doubts: bool) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("fault", no_wrap=True)
    table.add_column("struck", justify="right", no_wrap=True)
    for invariant in invariants:
        table.add_column(invariant.replace("_", " "), justify="right", overflow="fold")
    if has_doubts:
        table.add_column("doubts", justify="right", no_wrap=True)
    for name, tally in _rows(total):
        counts = (_cell(tally, invariant) for invariant in invariants)
        doubts = [f"[bold red]✘{tally.doubts}[/bold red]" if tally.doubts else ""] if has_doubts else []
        table.add_row(name, _count(tally.struck) if tally.struck else "", *counts, *doubts)
    return table


def lines_of(total: Total, *, command: str) -> Iterator[str]:
    """A sentence for each violation and each doubt, with the command that repeats its episode."""
    found = [(seed, f"{violation.invariant}: {violation.key} {violation.text}") for seed, violation in total.violations]
    found += [(seed, f"doubt: {doubt}") for seed, doubt in total.doubts]
    for seed, text in found:
        yield f"✘ {text}"
        yield f"  repeat it with: {command_for(command, seed)}"


def as_json(total: Total, *, command: str, **more: Any) -> dict[str, Any]:
    """The same for a script."""

    def described(tally: UsageTally) -> dict[str, Any]:
        counts = {"checks": tally.checks, "violations": tally.violations}
        return {
            "struck": tally.struck,
            "episodes": tally.episodes,
            "doubts": tally.doubts,
            **{
                name: {str(invariant): counted[invariant] for invariant in Invariant}
                for name, counted in counts.items()
            },
        }

    def described_violation(seed: int, violation: Violation) -> dict[str, Any]:
        return {
            "invariant": str(violation.invariant),
            "key": violation.key,
            "text": violation.text,
            "seed": seed,
            "command": command_for(command, seed),
        }

    return {
        **more,
        "jobs": total.jobs,
        "fires": total.fires,
        "calls": total.calls,
        "episodes": len(total.outcomes),
        "episodes_of_months": total.long_ones,
        "all": described(total.everything),
        "acts": {str(act): total.acts[act] for act in Act},
        "faults": {name: described(tally) for name, tally in _rows(total)},
        "violations": [described_violation(seed, violation) for seed, violation in total.violations],
        "doubts": [
            {"text": doubt, "seed": seed, "command": command_for(command, seed)} for seed, doubt in total.doubts
        ],
    }


def command_for(command: str, seed: int) -> str:
    """The command that repeats one episode."""
    return f"{command} --episode {seed}"


def _rows(total: Total) -> Iterator[tuple[str, UsageTally]]:
    for fault in (*Fault, None):
        if fault in total.by_fault:
            yield str(fault or "none"), total.by_fault[fault]
    yield "all", total.everything


def _cell(tally: UsageTally, invariant: Invariant) -> str:
    checks, violations = _count(tally.checks[invariant]), tally.violations[invariant]
    return f"[bold red]{checks} ✘{violations}[/bold red]" if violations else escape(checks)


def _count(number: int) -> str:
    return f"{number:,}" if number < _EXACT_BELOW else f"{number / _THOUSAND:,.0f}k"
