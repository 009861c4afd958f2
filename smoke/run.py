"""All checks that were chosen, phase by phase, side by side within one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from infra.stage import Stage
from smoke.check import Check, Outcome, Phase, Result
from smoke.faults import NotPossible, Wrong
from smoke.ground import Ground

CLEAN_UP = "clean up"

_CHECKS_LOCALLY = 3
"""Side by side: a local cloud has the cores of one machine."""

_GRACE = 30.0
"""Seconds for a check to notice by itself that its time is over."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run has found."""

    stage: str
    began_at: datetime
    ended_at: datetime
    results: Sequence[Result]

    @property
    def is_passed(self) -> bool:
        """Whether nothing that could be looked at was wrong."""
        return all(result.outcome is not Outcome.FAILED for result in self.results)

    def as_json(self) -> dict[str, Any]:
        """The report."""
        return {
            "stage": self.stage,
            "began_at": self.began_at.isoformat(timespec="seconds"),
            "seconds": round((self.ended_at - self.began_at).total_seconds(), 1),
            "passed": self.is_passed,
            "checks": [result.as_json() for result in self.results],
        }


def longest(checks: Iterable[Check], stage: Stage) -> float:
    """How many seconds they take at most, one phase after the other; long ones one by one."""
    chosen = [check for check in checks if check.is_possible(stage)]
    phases = {phase: [check for check in chosen if check.phase is phase] for phase in Phase}
    long = sum(_longest_of([check], stage) for check in phases.pop(Phase.LONG))
    return long + sum(_longest_of(group, stage) for group in phases.values() if group)


def run_all(ground: Ground, checks: Iterable[Check], tell: Callable[[Result], None]) -> Run:
    """Run them, and remove what they made. tell: is called with each result as it comes."""
    chosen, results = list(checks), list[Result]()

    def add(result: Result) -> None:
        results.append(result)
        tell(result)

    began_at = datetime.now(UTC)
    try:
        for phase in Phase:
            ours = [check for check in chosen if check.phase is phase]
            for group in [[check] for check in ours] if phase is Phase.LONG else [ours]:
                for result in _side_by_side(ground, group, add):
                    add(result)
    except KeyboardInterrupt:
        add(Result(of="interrupted", outcome=Outcome.FAILED, seen="Ctrl-C", expected="an end of all checks"))
    finally:
        add(_judged(Check(Ground.clean_up, name=CLEAN_UP, phase=Phase.SETTLED), ground))
    return Run(ground.stage.name, began_at, datetime.now(UTC), results)


def _side_by_side(ground: Ground, checks: Sequence[Check], tell: Callable[[Result], None]) -> list[Result]:
    """Those that did not end in time: a thread cannot be stopped, and must not keep the others."""
    lock, few = threading.Lock(), threading.Semaphore(_CHECKS_LOCALLY if ground.stage.emulated else len(checks))
    ended: set[str] = set()

    def work(check: Check) -> None:
        with few:
            result = _judged(check, ground)
        with lock:
            ended.add(check.name)
            tell(result)

    threads = [threading.Thread(target=work, args=(check,), name=check.name, daemon=True) for check in checks]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _longest_of(checks, ground.stage)
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    with lock:
        return [
            Result(
                of=check.name,
                outcome=Outcome.FAILED,
                seen="no end",
                expected=f"within {check.longest(ground.stage):g} s",
            )
            for check in checks
            if check.name not in ended
        ]


def _longest_of(checks: Sequence[Check], stage: Stage) -> float:
    """Of some that run side by side."""
    seconds = [check.longest(stage) for check in checks]
    queue = sum(seconds) / _CHECKS_LOCALLY if stage.emulated else 0
    return queue + max(seconds, default=0) + _GRACE


def _judged(check: Check, ground: Ground) -> Result:
    began = time.monotonic()

    def result(outcome: Outcome, seen: str, expected: str = "") -> Result:
        seconds = round(time.monotonic() - began, 1)
        return Result(of=check.name, outcome=outcome, seen=seen, expected=expected, seconds=seconds)

    if not check.is_possible(ground.stage):
        return result(Outcome.NOT_POSSIBLE, check.needs_aws)
    try:
        return result(Outcome.PASSED, check.run(ground))
    except NotPossible as reason:
        return result(Outcome.NOT_POSSIBLE, str(reason))
    except Wrong as wrong:
        return result(Outcome.FAILED, wrong.seen, wrong.expected)
    except Exception as error:  # noqa: BLE001  whatever stopped a check, the stage has not passed it
        return result(Outcome.FAILED, f"{type(error).__name__}: {error}", check.proves)
