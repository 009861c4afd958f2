"""What the end of a run means for its schedule: its failures in a row, its skips, and the fire that waits for the end.

Nothing of this is lost for good when a process dies before it is done: the alarm of the chain asks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.instants import to_the_millisecond
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.occurrence import UNBOUND, Keeps, Occurrence, fire_of
from functions.domain.lifecycle import State
from functions.domain.schedules.kept_runs import KEPT_OF, KeptRun, with_run
from functions.domain.schedules.state import SkipReason, Status
from functions.ports.schedules import ScheduleStore
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Pauser

_TRIES = 8
"""Of those that end at the same moment, each writes in its turn; one that has none so often is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnds:
    """Reports to schedules how their runs have ended. A job that no schedule fired is nobody's run: nothing happens."""

    schedules: ScheduleStore
    pauser: Pauser
    materialiser: Materialiser

    def failing(self, timer: Timer) -> None:
        """Its last attempt has failed. Noted before it is settled: whoever repeats this notes the same run."""
        occurrence = timer.job.occurrence
        if occurrence is None or not occurrence.pause_after:
            return
        key = schedule_key(timer, occurrence)
        count = self.schedules.note_failure(key, timer.job.identity)
        if count >= occurrence.pause_after:
            self.pauser.pause(key, f"paused after {count} failures in a row, the last of {timer.job.identity}")

    def ended(self, timer: Timer, state: State, *, ended_at: datetime | None = None, error_class: str = "") -> None:
        """It has come to its end, with this state. ended_at: when, where it has run; error_class: of what it failed."""
        occurrence = timer.job.occurrence
        if occurrence is None:
            return
        key = schedule_key(timer, occurrence)
        if state is State.SUCCEEDED and occurrence.pause_after:
            # A read is a fifth of the price of a write that is seldom needed.
            found = self.schedules.state(key)
            if found is not None and found.failures:
                self.schedules.forget_failures(key)
        if ended_at is not None and state in KEPT_OF and occurrence.keeps is not None:
            self._keep(key, timer, occurrence, occurrence.keeps, state, ended_at=ended_at, error_class=error_class)
        if occurrence.is_end_to_start:
            self.materialiser.revive(key)

    def skipped(self, timer: Timer, reason: SkipReason) -> None:
        """It will not run, for this reason."""
        occurrence = timer.job.occurrence
        assert occurrence is not None  # only a fire is skipped
        self.schedules.note_skip(schedule_key(timer, occurrence), reason, fire_at=occurrence.fire_at)
        self.ended(timer, State.SKIPPED)

    def _keep(
        self,
        key: str,
        timer: Timer,
        occurrence: Occurrence,
        keeps: Keeps,
        state: State,
        *,
        ended_at: datetime,
        error_class: str,
    ) -> None:
        has_succeeded = KEPT_OF[state] is State.SUCCEEDED
        run = KeptRun(
            job_id=job_id_of(timer.job),
            has_succeeded=has_succeeded,
            attempt=timer.attempt,
            ended_at=to_the_millisecond(ended_at),
            error=error_class or ("" if has_succeeded else state.value),
        )
        for _ in range(_TRIES):
            seen = self.schedules.state(key)
            is_older = occurrence.version != UNBOUND and seen is not None and abs(occurrence.version) < seen.born
            if seen is None or seen.status is Status.DELETED or is_older:
                return  # it is of a schedule that has been deleted
            kept = with_run(seen.kept_runs, run, keeps=keeps)
            if kept == seen.kept_runs or self.schedules.keep_runs(key, kept, seen=seen):
                return

    def cancelled(self, job_id: JobId) -> None:
        """It was stopped, by its id."""
        fire = fire_of(job_id.identity)
        if fire is None or fire[1] is None or fire[2]:
            return  # no fire that a version of its schedule has decided: none waits for its end
        key = f"{job_id.tenant}#{fire[0]}"
        state = self.schedules.state(key)
        if state is not None and state.link is not None and state.link.is_awaited and state.link.at == fire[1]:
            self.materialiser.revive(key)


def schedule_key(timer: Timer, occurrence: Occurrence) -> str:
    """The key of the state row of a run's schedule."""
    return f"{timer.job.tenant}#{occurrence.schedule_id}"
