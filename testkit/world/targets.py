"""What the jobs of one worker call: fine, flaky, stubborn, broken, fatal for its caller, or answering 202 and completing later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.targets.options import TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.world.collected import answer_to, fails, given_in
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
        given = given_in(timer, payload)
        answer = self.process.through(
            "target.end",
            lambda: answer_of(target, invocation) if given is None else answer_to(target, given),
            Failed("no answer"),
            [timer],
        )
        self.promises.collections.answered(run, answer)
        if isinstance(answer, Pending) and timer.job.delivery is Delivery.EXACTLY_ONCE and given is None:
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


def answer_of(target: str, invocation: Invocation) -> Outcome:
    """What a target answers, whether its caller lives to receive it or not."""
    if fails(target, invocation.attempt):
        return Failed("the target said no")
    return Pending() if "lasting" in target else Succeeded("{}")
