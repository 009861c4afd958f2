"""What the clients of a world ask for: each request is a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from functions.api.jobs.intake import Intake
from functions.api.jobs.submit import Accepted, Submitter
from functions.api.schedules.batch import ScheduleBatch
from functions.api.schedules.extra_runs import ExtraRuns
from functions.api.schedules.manager import ScheduleManager
from functions.domain.errors import AlreadySettled, NotPlaced, TooLate
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.submission import Submission
from functions.domain.schedules.schedule import Schedule
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.moves import follow
from testkit.world.host import Host
from testkit.world.process import SMOOTHLY, Conditions, Process

REQUEST_LIMIT = timedelta(seconds=30)


class Clients(Host):
    """The requests to the API."""

    def submit(self, submission: Submission, conditions: Conditions = SMOOTHLY) -> Process:
        """A client submits one job."""
        process = self.process("submit", conditions, limit=REQUEST_LIMIT)
        intake = self.build(Intake, process, submitter=self.build(Submitter, process))
        self.promises.submitted(submission)

        def request() -> None:
            answer = intake.submit([submission])[0]
            if isinstance(answer, Accepted):
                self.promises.accepted(submission, answer)

        return self.begin(process, request, conditions)

    def cancel(self, job_id: str, conditions: Conditions = SMOOTHLY) -> Process:
        """A client cancels a job whose id it has."""
        process = self.process("cancel", conditions, limit=REQUEST_LIMIT)
        canceller = self.build(Canceller, process)
        removed_by = self.promises.jobs[job_id].removed_by

        def request() -> None:
            try:
                last, is_cancelled = follow(canceller.cancel, parse_job_id(job_id))
                if is_cancelled:
                    self.promises.cancelled(str(last))
                else:
                    self.promises.cancel_requested(str(last))
            except (AlreadySettled, TooLate):
                removed_by.discard(process.name)
                raise

        return self.begin(process, request, conditions)

    def put_schedule(self, schedule: Schedule, conditions: Conditions = SMOOTHLY) -> Process:
        """A client creates or replaces a schedule."""
        return self._manage("put", conditions, lambda manager: manager.put(schedule))

    def put_schedules(self, schedules: Sequence[Schedule], conditions: Conditions = SMOOTHLY) -> Process:
        """A client creates or replaces several schedules at once."""
        process = self.process("put", conditions, limit=REQUEST_LIMIT)
        batch = self.build(ScheduleBatch, process, manager=self.build(ScheduleManager, process))

        def request() -> None:
            refused = [answer for answer in batch.put_read(schedules) if isinstance(answer, Exception)]
            # What is stored and not placed is what its client has to know of.
            for refusal in sorted(refused, key=lambda each: not isinstance(each, NotPlaced)):
                raise refusal

        return self.begin(process, request, conditions)

    def patch(self, key: str, edit: Callable[[Schedule], Schedule], conditions: Conditions = SMOOTHLY) -> Process:
        """A client changes a part of a schedule."""
        return self._manage("patch", conditions, lambda manager: manager.patch(*_parts(key), edit))

    def pause(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        """A client pauses a schedule."""
        return self._manage("pause", conditions, lambda manager: manager.pause(*_parts(key), note=""))

    def resume(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        """A client resumes a schedule."""
        return self._manage("resume", conditions, lambda manager: manager.resume(*_parts(key), note=""))

    def delete(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        """A client deletes a schedule."""
        return self._manage("delete", conditions, lambda manager: manager.delete(*_parts(key)))

    def trigger(
        self, key: str, token: str, conditions: Conditions = SMOOTHLY, *, overlap: Overlap | None = None
    ) -> Process:
        """A client runs a schedule once, now."""

        process = self.process("trigger", conditions, limit=REQUEST_LIMIT)
        runs = self.build(ExtraRuns, process)

        def trigger() -> None:
            self.promises.schedules.triggered(key, runs.trigger(*_parts(key), token=token, overlap=overlap))

        return self.begin(process, trigger, conditions)

    def _manage(self, kind: str, conditions: Conditions, ask: Callable[[ScheduleManager], Any]) -> Process:
        process = self.process(kind, conditions, limit=REQUEST_LIMIT)
        manager = self.build(ScheduleManager, process)
        return self.begin(process, lambda: ask(manager), conditions)


def _parts(key: str) -> tuple[str, str]:
    tenant, _, schedule_id = key.partition("#")
    return tenant, schedule_id
