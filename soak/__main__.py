"""`python -m soak`: a local cloud under load and faults for half an hour; exit code 1 when a promise or a curve breaks."""

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from soak.outcome import JobEnd
from soak.picture import draw
from soak.report import figures_of, write_json
from soak.run import Workload, soak
from tickwheel.local import local_stack

FOLDER = Path(".build") / "soak"


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m soak",
        description="Run the local stack under load, schedules and faults, and judge what it does.",
    )
    parser.add_argument("--minutes", type=float, default=30, help="of load (30); less than 10 say little of curves")
    parser.add_argument("--rate", type=float, default=2, help="jobs a second (2), beside bursts and schedules")
    parser.add_argument("--seed", type=int, default=None, help="the same seed is the same load; else a fresh one")
    asked = parser.parse_args(arguments)
    if asked.minutes <= 0 or asked.rate <= 0:
        parser.error("--minutes and --rate are more than 0")
    plan = Workload(
        minutes=asked.minutes, rate=asked.rate, seed=secrets.randbelow(2**32) if asked.seed is None else asked.seed
    )
    _tell(f"{plan.minutes:g} minutes of load at {plan.rate:g} jobs a second, seed {plan.seed}; deploying")
    with local_stack() as stack:
        outcome = soak(stack, plan, _tell)
    _report(outcome)
    return 1 if outcome.faults else 0


def _report(outcome: JobEnd) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_json(FOLDER / "report.json", outcome)
    draw(
        FOLDER / "soak.png",
        outcome.curves,
        rate=outcome.rate,
        seconds=outcome.seconds,
        judged_from=outcome.judged_from,
    )
    figures = "\n".join(figures_of(outcome))
    (FOLDER / "figures.md").write_text(figures + "\n", encoding="utf-8")
    _tell(f"\n{figures}\n")
    for fault in outcome.faults:
        _tell(f"✘ {fault}")
    if not outcome.faults:
        _tell(
            "✔ every promise was kept, and nothing grows"
            if outcome.is_whole
            else "✔ nothing is wrong as far as it went"
        )
    _tell(f"report, figures and picture: {FOLDER}/")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
