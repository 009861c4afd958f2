"""What owners, operators and targets that answered 202 ask a stage for, and what is kept of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from functions.api.dead_letters.replay import Replayer
from functions.api.jobs.report_outcome import OutcomeReports
from functions.api.operations.manager import Asked
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.errors import AlreadySettled, JobNotFound, StaleFence
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from functions.domain.operations.operation import OperationKind
from functions.domain.tenants.plan import TenantStatus
from functions.ports.tenants import EVERYBODY
from functions.services.jobs.rescheduler import Rescheduler
from testkit.world.clients import REQUEST_LIMIT
from testkit.world.fires import Run
from testkit.world.process import SMOOTHLY, Conditions, Process
from testkit.world.world import World
from verification.acts import Act
from verification.recorder import Recorder
from verification.struck import Struck


class Owning(World):
    """The requests about jobs that exist, and the plans of tenants. acts: how often each was done."""

    record: Recorder
    acts: Counter[Act]

    def move(
        self, job_id: str, submission: Submission, *, keeps_payload: bool, conditions: Conditions = SMOOTHLY
    ) -> Process:
        """An owner gives a job another time, or another content as well."""
        self.acts[Act.MOVES] += 1
        process = self.process("move", conditions, limit=REQUEST_LIMIT)
        rescheduler = self.build(Rescheduler, process)
        self.record.moves(process.name, submission, keeps_payload=keeps_payload)

        def edit(_: Job, text: str | None) -> Submission:
            payload = text if keeps_payload else submission.payload
            return replace(submission, idempotency_key=None, payload=payload)

        return self.begin(process, lambda: rescheduler.change(parse_job_id(job_id), edit), conditions)

    def run_now(self, job_id: str, conditions: Conditions = SMOOTHLY) -> Process:
        self.acts[Act.HASTENINGS] += 1
        asked_at = self.clock.instant
        self.record.hastens(job_id, asked_at=asked_at)
        process = super().run_now(job_id, conditions)
        # Meanwhile it may have been moved.
        self.record.hastens(job_id, asked_at=asked_at)
        return process

    def ask_for(self, asked: Asked, conditions: Conditions = SMOOTHLY) -> Process:
        self.acts[Act.OPERATIONS] += 1
        if asked.action is OperationKind.RUN_NOW and not asked.dry_run:
            self.record.hastens_all(asked.tenant, asked.tag, asked_at=self.clock.instant)
        return super().ask_for(asked, conditions)

    def replay(self, letter_id: DeadLetterId, conditions: Conditions = SMOOTHLY) -> Process:
        self.acts[Act.REPLAYS] += 1
        self.record.replays_letter(letter_id)
        process = self.process("replay", conditions, limit=REQUEST_LIMIT)
        replayer = self.build(Replayer, process)
        self.promises.replayed(letter_id)
        answers: list[object] = []
        self.begin(process, lambda: answers.append(replayer.replay(letter_id, caller="operator")), conditions)
        has_suffered = isinstance(process, Struck) and process.has_suffered
        is_answered = bool(answers) and not has_suffered and not self.record.loses_an_answer()
        self.record.replay_was(letter_id, is_answered=is_answered)
        return process

    def ask_again_for_replays(self) -> bool:
        """Whoever asked for one and got no clear answer asks again: what has gone on is forgotten then. Whether there were any.

        Not for what waits to continue: it must end without help.
        """
        left = [letter_id for letter_id in self.record.replays_in_doubt() if self._is_over(letter_id)]
        for letter_id in left:
            self.replay(letter_id)
        return bool(left)

    def _is_over(self, letter_id: DeadLetterId) -> bool:
        """Whether a letter is there whose job does not wait."""
        row = self.ledger.rows.get(f"{letter_id.tenant}#{letter_id.identity}")
        is_waiting = row is not None and not row.is_settled
        return self.dead_letters.get(letter_id) is not None and not is_waiting

    def complete(self, run: Run, conditions: Conditions = SMOOTHLY) -> Process:
        self.acts[Act.LATER_ENDS] += 1
        self.record.has_done(run)
        run.ended_at = run.ended_at or self.clock.instant
        process = super().complete(run, conditions)
        if not run.is_success:
            # Another attempt may do it again: no answer said that it was done.
            self.record.unheard(run)
        return process

    def fail(self, run: Run, conditions: Conditions = SMOOTHLY, *, is_permanent: bool = False) -> Process:
        self.acts[Act.LATER_ENDS] += 1
        self.record.has_not_done(run)
        run.ended_at = run.ended_at or self.clock.instant
        return super().fail(run, conditions, is_permanent=is_permanent)

    def heartbeat(self, run: Run, lease: timedelta, conditions: Conditions = SMOOTHLY) -> Process:
        self.acts[Act.LATER_ENDS] += 1
        return super().heartbeat(run, lease, conditions)

    def _finish(
        self, kind: str, run: Run, ask: Callable[[OutcomeReports, Process], Any], conditions: Conditions
    ) -> Process:
        def is_answered(outcome_reports: OutcomeReports, process: Process) -> None:
            try:
                ask(outcome_reports, process)
            except (StaleFence, AlreadySettled, JobNotFound):
                self.record.heard(run)
                raise
            if kind != "heartbeat":
                self.record.heard(run)

        return super()._finish(kind, run, is_answered, conditions)

    def cap_rate(self, tenant: str, rate: float) -> None:
        """An operator says how many jobs of a tenant may run in a second."""
        self.acts[Act.RATES] += 1
        self._plan(tenant, execution_rate=rate)

    def cap_calls(self, tenant: str, limit: float) -> None:
        """An operator says how many calls a tenant may have at the same time."""
        self.acts[Act.PERMITS] += 1
        self._plan(tenant, max_concurrency=limit)
        self.promises.at_once.capped(tenant, limit, moment=self.history.moment)

    def pause_tenant(self, tenant: str) -> None:
        """An operator pauses a tenant."""
        self.acts[Act.TENANT_PAUSES] += 1
        self._plan(tenant, status=TenantStatus.PAUSED)
        self.record.paused(tenant)

    def resume_tenant(self, tenant: str) -> None:
        """An operator resumes a tenant."""
        self.record.resumed(tenant)
        self._plan(tenant, status=TenantStatus.ACTIVE)

    def pause_stage(self) -> None:
        """An operator pauses everybody."""
        self.acts[Act.STAGE_PAUSES] += 1
        self._plan(EVERYBODY, status=TenantStatus.PAUSED)
        self.record.paused(EVERYBODY)

    def resume_stage(self) -> None:
        """An operator resumes everybody."""
        self.record.resumed(EVERYBODY)
        self._plan(EVERYBODY, status=TenantStatus.ACTIVE)

    def lift_everything(self) -> None:
        """No tenant is paused or capped any more."""
        if self.plans.everybody.is_paused:
            self.resume_stage()
        for tenant, plan in list(self.plans.given.items()):
            if plan.is_paused:
                self.resume_tenant(tenant)
        self.promises.at_once.lifted()
        self.plans.lift(now=self.clock.instant)

    def _plan(self, tenant: str, **said: Any) -> None:
        plan = replace(self.plans.of(tenant), **said)
        self.plans.put(tenant, plan, now=self.clock.instant)
        self.history.note_turn(self.clock.instant, "plans", f"{tenant}: {plan}")
        self.history.disturb()
