"""What clients of a stage on the fakes were told, and what its target saw: a model of a good target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.api.submit import Accepted
from functions.domain.claims import LedgerRow
from functions.domain.instants import from_ms, to_ms
from functions.domain.job import Timer
from functions.domain.job_id import parse_job_id
from functions.domain.submission import Submission, keyed_identity
from functions.ports import Failed, Invocation
from tests.world.fires import Run
from tests.world.process import Process
from tests.world.promises import Promises, Stores
from tests.world.targets import answer_of
from verification.faults import Chaos, Fault
from verification.history import Answer, Call, Cancel, Job


@dataclass(frozen=True, slots=True)
class _Seen:
    """One call; run: None where the target did not take it."""

    invocation: Invocation
    payload: str | None
    answer: Answer
    at: datetime
    ahead: timedelta
    run: Run | None

    def told(self) -> Call:
        until = self.at
        if self.run is not None:
            lease_until = self.run.lease_until - self.ahead
            until = min(self.run.ended_at or lease_until, lease_until)
        return Call(
            key=self.invocation.idempotency_key,
            tenant=self.invocation.tenant,
            attempt=self.invocation.attempt,
            fence=self.invocation.fence,
            scheduled_at=self.invocation.scheduled_at,
            called_at=self.at,
            until=until,
            payload=self.payload,
            answer=self.answer,
            ahead=self.ahead,
        )


class Recorder(Promises):
    """Records beside what the world itself looks at.

    The target refuses a smaller fence than it has seen, and looks an idempotency key up before it acts. Whoever has hung
    up, because the lease is over, is not heard.
    """

    def __init__(self, stores: Stores, chaos: Chaos) -> None:
        super().__init__(stores)
        self._clock = stores.clock
        self._chaos = chaos
        self._names: dict[int, str] = {}
        self._asked: dict[str, Submission] = {}
        self._ids: dict[str, str] = {}
        self._fences: dict[str, int] = {}
        self._done: set[str] = set()
        self._seen: list[_Seen] = []
        self._cancels: list[Cancel] = []
        self.settled: dict[str, datetime] = {}

    def name_of(self, submission: Submission) -> str:
        """The identity of a job that is submitted without a key of its own."""
        return self._names[id(submission)]

    def loses_an_answer(self) -> bool:
        """Whether what a client is told does not arrive."""
        return self._chaos.strikes(Fault.LOST_ANSWERS, 0.1)

    def was_told(self, submission: Submission) -> bool:
        """Whether its client knows that it will run."""
        return self._key_of(submission) in self._ids

    def id_of(self, submission: Submission) -> str | None:
        """The id of a job, as its client was told."""
        return self._ids.get(self._key_of(submission)) if id(submission) in self._names else None

    def submitted(self, submission: Submission) -> None:
        super().submitted(submission)
        if id(submission) not in self._names:
            self._names[id(submission)] = f"job-{len(self._names) + 1:05}"
        self._asked.setdefault(self._key_of(submission), submission)

    def accepted(self, submission: Submission, answer: Accepted) -> None:
        if not self.loses_an_answer():
            super().accepted(submission, answer)
            self._ids[self._key_of(submission)] = answer.job_id

    def cancelled(self, job_id: str) -> None:
        if not self.loses_an_answer():
            super().cancelled(job_id)
            self._cancels.append(Cancel(parse_job_id(job_id).key, self._clock.instant, is_final=True))

    def cancel_requested(self, job_id: str) -> None:
        if not self.loses_an_answer():
            super().cancel_requested(job_id)
            self._cancels.append(Cancel(parse_job_id(job_id).key, self._clock.instant, is_final=False))

    def ledger_changed(self, before: Mapping[str, LedgerRow], after: Mapping[str, LedgerRow], process: Process) -> None:
        super().ledger_changed(before, after, process)
        for key, row in after.items():
            if row.is_settled and row is not before.get(key):
                self.settled.setdefault(key, self._clock.instant)

    def begin(
        self, timer: Timer, invocation: Invocation, payload: str | None, process: Process, called_at: datetime
    ) -> Run | None:
        key, seen = invocation.idempotency_key, self._fences.get(invocation.idempotency_key, 0)
        run = super().begin(timer, invocation, payload, process, called_at)
        run = None if invocation.fence < seen else run
        self._fences[key] = max(invocation.fence, seen)
        answer = Answer.STALE if run is None else self._answer(timer.job.target, invocation)
        self._seen.append(_Seen(invocation, payload, answer, self._clock.instant, process.clock.ahead, run))
        return run

    def asked_for(self) -> list[Job]:
        """What was submitted. A key belongs to its first submission."""
        return [
            Job(
                key=key,
                tenant=submission.tenant,
                delivery=submission.delivery,
                due_at=(due_at := from_ms(to_ms(submission.due_at))),
                payload=submission.payload,
                expires_at=due_at + submission.expires_after if submission.expires_after else None,
                is_accepted=key in self._ids,
            )
            for key, submission in self._asked.items()
        ]

    def all_cancels(self) -> list[Cancel]:
        """Those that were answered, and those that removed a row without a word."""
        silent = [Cancel(each.job_id.key, None, is_final=True) for each in self.jobs.values() if each.removed_by]
        return [*self._cancels, *silent]

    def calls(self) -> list[Call]:
        """What the target saw, in order."""
        return [seen.told() for seen in self._seen]

    def _answer(self, target: str, invocation: Invocation) -> Answer:
        if "poison" in target:
            return Answer.NONE
        if isinstance(answer_of(target, invocation), Failed):
            return Answer.FAILED
        if invocation.idempotency_key in self._done:
            return Answer.KNOWN
        self._done.add(invocation.idempotency_key)
        return Answer.EFFECT

    def _key_of(self, submission: Submission) -> str:
        if submission.idempotency_key is not None:
            return f"{submission.tenant}#{keyed_identity(submission.tenant, submission.idempotency_key)}"
        return f"{submission.tenant}#{self._names[id(submission)]}"
