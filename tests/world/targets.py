"""What the jobs of one worker call: fine, flaky, broken, or the death of whoever calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.job import Timer
from functions.domain.job_id import job_id_of
from functions.domain.target_options import TargetOptions
from functions.ports import Failed, Invocation, Outcome, Succeeded
from tests.world.process import Process
from tests.world.promises import Promises


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
        answer = self.process.through("target.end", lambda: _answer(target, invocation), Failed("no answer"), [timer])
        run.has_ended, run.is_success = True, isinstance(answer, Succeeded)
        return answer

    def _timer(self, invocation: Invocation) -> Timer:
        """The earliest one that this worker was given for this attempt, of the version of its schedule that counts."""
        mine = [
            timer
            for timer in self.timers
            if str(job_id_of(timer.job)) == invocation.job_id and timer.attempt == invocation.attempt
        ]
        return min(mine, key=lambda timer: (not self.promises.schedules.counts(timer), timer.due_at))


def _answer(target: str, invocation: Invocation) -> Succeeded | Failed:
    if "broken" in target or ("flaky" in target and invocation.attempt == 1):
        return Failed("the target said no")
    return Succeeded("{}")
