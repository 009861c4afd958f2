"""`python -m bench [units] [runs] [lookups] [schedules] [nasty] [calls] [promotion] [logs] [emitted] [requests] [cost] [cold_start] [files] [file_rate] [schedule_puts] [schedule_rate] [lag] [recovery]`: measure, print, hold to the budgets; without a name, all.

Exits with 1 when a figure breaks its budget, and names it. The figures are in .build/bench; with --keep also in bench/results,
which the pages quote. `units --only order` measures what has that in its name.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from bench import (
    calls,
    cold_start,
    cost_goals,
    emitted,
    files,
    lag,
    logs,
    lookups,
    nasty,
    promotion,
    recovery,
    request_time,
    results,
    runs,
    schedule_puts,
    schedules,
    units,
)

PARTS: Mapping[str, Callable[[Console], list[str]]] = {
    "units": units.run,
    "runs": runs.run,
    "lookups": lookups.run,
    "schedules": schedules.run,
    "nasty": nasty.run,
    "calls": calls.run,
    "promotion": promotion.run,
    "logs": logs.run,
    "emitted": emitted.run,
    "requests": request_time.run,
    "cost": cost_goals.run,
    "cold_start": cold_start.run,
    "files": files.run,
    "file_rate": files.run_local,
    "schedule_puts": schedule_puts.run,
    "schedule_rate": schedule_puts.run_local,
    "lag": lag.run,
    "recovery": recovery.run,
}


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Tickwheel.")
    parser.add_argument("part", nargs="*", help=f"{', '.join(PARTS)}; all when none is named")
    parser.add_argument("--keep", action="store_true", help="write the figures to bench/results, which the pages quote")
    parser.add_argument("--only", default="", help="of units: those with this in their names; nothing is written")
    asked = parser.parse_args(arguments)
    parts: Sequence[str] = asked.part or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    if asked.only and parts != ["units"]:
        parser.error("--only is for units alone")
    console = Console()
    broken: list[str] = []
    results.forget()
    for part in parts:
        console.rule(part)
        broken += units.run_only(console, asked.only) if asked.only else PARTS[part](console)
    if asked.keep:
        console.print(f"kept in bench/results: {', '.join(results.keep())}", highlight=False, soft_wrap=True)
    for sentence in broken:
        console.print(f"[bold red]budget broken:[/bold red] {sentence}", highlight=False, soft_wrap=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
