"""How jobs come in: past the rates of their tenants and past their quotas, and then into the wheel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from functions.api.admission.admission import TOO_MUCH, Admission
from functions.api.admission.quota import Quota
from functions.api.jobs.submit import Accepted, Submitter
from functions.domain.errors import TickwheelError
from functions.domain.jobs.submission import Submission
from functions.domain.stage.pulse import Figure
from functions.ports.recorder import PulseCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Takes jobs in, as many as may come in."""

    admission: Admission
    quota: Quota
    submitter: Submitter
    pulse: PulseCounter

    def submit(self, submissions: Sequence[Submission]) -> list[Accepted | TickwheelError]:
        """An answer each, in order: what lets a job in leaves it to what comes after."""
        answers: list[Accepted | TickwheelError | None] = [None] * len(submissions)
        for rule in (self.admission.take, self._over_quota, self.submitter.submit):
            still_asking = [index for index, answer in enumerate(answers) if answer is None]
            for index, answer in zip(still_asking, rule([submissions[index] for index in still_asking]), strict=True):
                answers[index] = answer
        new = [answer for answer in answers if isinstance(answer, Accepted) and not answer.is_replay]
        self.quota.note([(answer.tenant, answer.due_at) for answer in new])
        for submission, answer in zip(submissions, answers, strict=True):
            if isinstance(answer, Accepted) and not answer.is_replay:
                self.pulse.count(Figure.SUBMITTED, submission.tenant)
            elif isinstance(answer, TOO_MUCH):
                self.pulse.count(Figure.REFUSED, submission.tenant)
        return [answer for answer in answers if answer is not None]

    def _over_quota(self, submissions: Sequence[Submission]) -> Sequence[TickwheelError | None]:
        return self.quota.refusals([(submission.tenant, submission.due_at) for submission in submissions])
