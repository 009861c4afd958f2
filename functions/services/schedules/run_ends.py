"""What the end of a run means for its schedule: its failures in a row, its skips, and the fire that waits for the end.

Nothing of this is lost for good when a process dies before it is done: the alarm of the chain asks again.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.jobs.occurrence import Occurrence, fire_of
from functions.domain.lifecycle import State
from functions.domain.schedules.state import SkipReason
from functions.ports.schedules import ScheduleStore
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Pauser


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

    def ended(self, timer: Timer, state: State) -> None:
        """It has come to its end, with this state."""
        occurrence = timer.job.occurrence
        if occurrence is None:
            return
        key = schedule_key(timer, occurrence)
        if state is State.SUCCEEDED and occurrence.pause_after:
            # A read is a fifth of the price of a write that is seldom needed.
            found = self.schedules.state(key)
            if found is not None and found.failures:
                self.schedules.forget_failures(key)
        if occurrence.is_end_to_start:
            self.materialiser.revive(key)

    def skipped(self, timer: Timer, reason: SkipReason) -> None:
        """It will not run, for this reason."""
        occurrence = timer.job.occurrence
        assert occurrence is not None  # only a fire is skipped
        self.schedules.note_skip(schedule_key(timer, occurrence), reason, fire_at=occurrence.fire_at)
        self.ended(timer, State.SKIPPED)

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
