"""Many jobs at once, each judged by itself: those of a batch, of the messages of a queue, or of the lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from functions.api.admission.admission import Admission
from functions.api.http.requests import Rules
from functions.api.jobs.bodies import JobBody
from functions.api.jobs.intake import Intake
from functions.api.jobs.submit import Accepted
from functions.domain.errors import Forbidden, TickwheelError
from functions.domain.jobs.job import check_new_tenant
from functions.domain.jobs.submission import Submission, as_of
from functions.domain.trace import Trace
from functions.ports.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJob:
    """A job as it came: JSON that nobody has looked at. key: where the body names none.

    tenant: whose the way is on which it came, so that the job is its, too; empty for a way that has no owner.
    sent_at: of one that waited on its way, for hours perhaps: its delay counts from then. None for one that is asked for now.
    """

    body: Any
    key: str | None = None
    tenant: str = ""
    trace: Trace | None = None
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIntake:
    """Takes jobs in, whatever way they came: reads each, and leaves what can be read to the intake."""

    admission: Admission
    intake: Intake
    clock: Clock

    def take(self, asked: Sequence[AskedJob], rules: Rules) -> list[Accepted | Exception]:
        """An answer each, in order: accepted, or the ValidationError or TickwheelError that refuses it."""
        answers: list[Accepted | Exception | None] = [None] * len(asked)
        submissions: dict[int, Submission] = {}
        for index, job in enumerate(asked):
            try:
                submissions[index] = self.read(job, rules)
            except (ValidationError, TickwheelError) as error:
                answers[index] = error
        for index, answer in zip(submissions, self.intake.submit(list(submissions.values())), strict=True):
            answers[index] = answer
        return [answer for answer in answers if answer is not None]

    def read(self, asked: AskedJob, rules: Rules) -> Submission:
        """A job as its tenant asks for it, of a class that comes in now.

        Raises ValidationError, InvalidJob, Forbidden, TenantClosed, PriorityNotAllowed, Shed.
        """
        if asked.sent_at is not None:
            # Whether its time has passed is judged below, by when it was sent.
            rules = rules.model_copy(update={"now": asked.sent_at, "has_key": True})
        elif asked.key is not None:
            rules = rules.model_copy(update={"has_key": True})
        body = JobBody.model_validate(_of_its_tenant(asked), context=rules)
        if asked.tenant and body.tenant != asked.tenant:
            raise Forbidden(f"who submits for {asked.tenant}", tenant=body.tenant, remedy=_ELSEWHERE)
        check_new_tenant(body.tenant)
        submission = body.submission(now=rules.now, idempotency_key=asked.key, trace=asked.trace)
        if asked.sent_at is not None:
            submission = as_of(submission, sent_at=asked.sent_at, now=self.clock.now())
        self.admission.check(submission.tenant, submission.priority)
        self.admission.check_shed(submission.priority)
        self.admission.check_flows(submission.tenant, submission.flows)
        return submission


_ELSEWHERE = "submit it where that tenant does, or leave `tenant` out"


def _of_its_tenant(asked: AskedJob) -> Any:
    is_open = bool(asked.tenant) and isinstance(asked.body, dict) and "tenant" not in asked.body
    return {**asked.body, "tenant": asked.tenant} if is_open else asked.body
