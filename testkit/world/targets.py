"""What the jobs of one worker call: fine, flaky, stubborn, broken, fatal for its caller, or answering 202 and completing later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.jobs.collection import release_in
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.targets.options import TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.world.process import Process
from testkit.world.promises import Promises


@dataclass
class Targets:
    """What the jobs of one worker call. A call begins and ends, so that others may come between."""

    promises: Promises
    process: Process
    timers: Sequence[Timer]

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        called_at = self.process.clock.now()
        timer = self._timer(invocation)
        run = self.process.through(
            "target.begin",
            lambda: self.promises.begin(timer, invocation, payload, self.process, called_at),
            about=[timer],
        )
        if run is None:
            return Failed("the target has seen a larger fence")
        if "poison" in target:
            self.process.die()
        is_release = release_in(timer.job) is not None
        answer = self.process.through(
            "target.end",
            lambda: answer_to_release(target, payload) if is_release else answer_of(target, invocation),
            Failed("no answer"),
            [timer],
        )
        self.promises.collections.answered(run, answer)
        if isinstance(answer, Pending) and timer.job.delivery is Delivery.EXACTLY_ONCE and not is_release:
            self.promises.held(run)
            return answer
        run.ended_at, run.is_success = self.process.surroundings.clock.instant, isinstance(answer, Succeeded | Pending)
        return answer

    def _timer(self, invocation: Invocation) -> Timer:
        """The earliest one that this worker was given for this attempt, of the version of its schedule that counts."""
        mine = [
            timer
            for timer in self.timers
            if str(job_id_of(timer.job)) == invocation.job_id and timer.attempt == invocation.attempt
        ]
        return min(mine, key=lambda timer: (not self.promises.schedules.counts(timer), timer.due_at))


_FAILS = {"flaky": 1, "stubborn": 2}
"""How many first attempts fail."""


def _kind_of(target: str) -> str:
    return next((kind for kind in _FAILS if kind in target), "")


def answer_of(target: str, invocation: Invocation) -> Outcome:
    """What a target answers, whether its caller lives to receive it or not."""
    if "broken" in target or invocation.attempt <= _FAILS.get(_kind_of(target), 0):
        return Failed("the target said no")
    return Pending() if "lasting" in target else Succeeded("{}")


def answer_to_release(target: str, payload: str | None) -> Outcome:
    """What a target answers that was given jobs together: it names those that it has not taken."""
    if "broken" in target:
        return Failed("the target said no")
    if "lasting" in target:
        return Pending()
    fails = _FAILS.get(_kind_of(target), 0)
    failed = [{"id": each["id"], "error": "no"} for each in json.loads(payload or "[]") if each["attempt"] <= fails]
    text = json.dumps({"failed": failed})
    return Succeeded(text, text)
