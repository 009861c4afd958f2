"""What targets that answered 202 report later, and what the owners of jobs change: each request is a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from functions.api.dead_letters.replay import Replayer
from functions.api.jobs.report_outcome import TARGET_FAILED, OutcomeReports
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.errors import AlreadySettled, JobNotFound, StaleFence
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from functions.ports.targets import Failed
from functions.services.jobs.rescheduler import Rescheduler
from testkit.world.clients import REQUEST_LIMIT
from testkit.world.fires import Run
from testkit.world.host import Host
from testkit.world.process import SMOOTHLY, Conditions, Process

_IT_IS_OVER = (StaleFence, AlreadySettled, JobNotFound)
"""The answers by which a target learns that its attempt is not its own any more."""


class Controls(Host):
    """The requests about jobs that exist."""

    def heartbeat(self, run: Run, lease: timedelta, conditions: Conditions = SMOOTHLY) -> Process:
        """A target says that it is at it."""

        def ask(outcome_reports: OutcomeReports, process: Process) -> None:
            row = outcome_reports.heartbeat(parse_job_id(run.job_id), fence=run.fence, lease=lease)
            assert row.lease_until is not None
            self.promises.expect(row.fence == run.fence, f"a stale fence was heard: {run.job_id} with {run.fence}")
            run.lease_until = max(run.lease_until, row.lease_until)

        return self._finish("heartbeat", run, ask, conditions)

    def complete(self, run: Run, conditions: Conditions = SMOOTHLY) -> Process:
        """A target says that it is done."""

        def ask(outcome_reports: OutcomeReports, process: Process) -> None:
            outcome_reports.complete(parse_job_id(run.job_id), fence=run.fence, result="1")
            run.ended_at, run.is_success = self.clock.instant, True
            self.promises.completed(run)

        return self._finish("complete", run, ask, conditions)

    def fail(self, run: Run, conditions: Conditions = SMOOTHLY, *, is_permanent: bool = False) -> Process:
        """A target says that it has failed."""

        def ask(outcome_reports: OutcomeReports, process: Process) -> None:
            self.promises.has_failed(run)
            failure = Failed("it said so", TARGET_FAILED, is_permanent=is_permanent)
            outcome_reports.fail(parse_job_id(run.job_id), fence=run.fence, failure=failure)
            run.ended_at = self.clock.instant

        return self._finish("fail", run, ask, conditions)

    def run_now(self, job_id: str, conditions: Conditions = SMOOTHLY) -> Process:
        """A client lets a job run now."""
        return self._change("run now", lambda rescheduler: rescheduler.run_now(parse_job_id(job_id)), conditions)

    def reschedule(self, job_id: str, submission: Submission, conditions: Conditions = SMOOTHLY) -> Process:
        """A client gives a job another time."""

        def edit(_: Job, text: str | None) -> Submission:
            return replace(submission, idempotency_key=None, payload=text)

        return self._change("move", lambda rescheduler: rescheduler.change(parse_job_id(job_id), edit), conditions)

    def replay(self, letter_id: DeadLetterId, conditions: Conditions = SMOOTHLY) -> Process:
        """An operator gives a job that has failed for good another budget."""
        process = self.process("replay", conditions, limit=REQUEST_LIMIT)
        replayer = self.build(Replayer, process)
        self.promises.replayed(letter_id)
        return self.begin(process, lambda: replayer.replay(letter_id, caller="operator"), conditions)

    def _finish(
        self, kind: str, run: Run, ask: Callable[[OutcomeReports, Process], Any], conditions: Conditions
    ) -> Process:
        process = self.process(kind, conditions, limit=REQUEST_LIMIT)
        outcome_reports = self.build(OutcomeReports, process)

        def request() -> None:
            try:
                ask(outcome_reports, process)
            except _IT_IS_OVER:
                run.ended_at = run.ended_at or self.clock.instant
                raise

        return self.begin(process, request, conditions)

    def _change(self, kind: str, ask: Callable[[Rescheduler], Any], conditions: Conditions) -> Process:
        process = self.process(kind, conditions, limit=REQUEST_LIMIT)
        rescheduler = self.build(Rescheduler, process)
        return self.begin(process, lambda: ask(rescheduler), conditions)
