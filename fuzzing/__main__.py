"""`python -m fuzzing`: a million inputs for every parser together; exit code 1 on a crash or a hang."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from fuzzing.run import Finding, run


def main() -> int:
    """Run, and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="parsers with this in their name")
    asked = parser.parse_args()
    console = Console()
    report = run(asked.inputs, seed=asked.seed, only=asked.only, tell=console.print)
    console.print(report.told())
    for finding in report.findings:
        _show(console, finding)
    return 1 if report.findings else 0


def _show(console: Console, finding: Finding) -> None:
    console.print(f"[bold red]{finding.parser}[/]: {finding.what}", highlight=False)
    console.print(f"  input: {finding.given!r}"[:300], markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
