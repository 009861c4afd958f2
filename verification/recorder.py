"""What clients of a stage on the fakes received, and what its target saw: a model of a good target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.api.jobs.submit import Accepted
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.instants import from_ms, to_ms
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission, job_of, keyed_identity
from functions.domain.lifecycle import State
from functions.ports.targets import Failed, Invocation, Pending
from functions.ports.tenants import EVERYBODY
from testkit.builders import ID_SECRET
from testkit.world.accepted import Expected
from testkit.world.collected import Given, fails, given_in
from testkit.world.fires import Run
from testkit.world.process import Process
from testkit.world.promises import Promises, Stores
from testkit.world.targets import answer_of
from verification.drawing import TOLD
from verification.faults import Chaos, Fault
from verification.history import Answer, Call, Cancel, Job, Member, Release, Replay, Telling
from verification.tellings import tellings_of


@dataclass(frozen=True, slots=True)
class _Seen:
    """One call; run: None where the target did not take it."""

    invocation: Invocation
    payload: str | None
    answer: Answer
    at: datetime
    ahead: timedelta
    run: Run | None
    target: str

    def with_reports(self, said: Mapping[int, Answer]) -> Call:
        """said: what targets that answered 202 reported later, by their runs."""
        return Call(
            key=self.invocation.idempotency_key,
            tenant=self.invocation.tenant,
            attempt=self.invocation.attempt,
            fence=self.invocation.fence,
            scheduled_at=self.invocation.scheduled_at,
            called_at=self.at,
            until=_until(self.at, self.ahead, self.run),
            payload=self.payload,
            answer=said.get(id(self.run), self.answer),
            ahead=self.ahead,
            is_held=self.answer is Answer.PENDING,
        )


@dataclass(frozen=True, slots=True)
class _Handed:
    """One call that gave jobs together; run: None where the target did not take it."""

    invocation: Invocation
    members: Sequence[Member]
    at: datetime
    ahead: timedelta
    run: Run | None
    target: str

    def release(self) -> Release:
        return Release(
            key=self.invocation.idempotency_key,
            tenant=self.invocation.tenant,
            target=self.target,
            fence=self.invocation.fence,
            called_at=self.at,
            until=_until(self.at, self.ahead, self.run),
            members=self.members,
            ahead=self.ahead,
            is_taken=self.run is not None,
        )


@dataclass(frozen=True, slots=True)
class _Moved:
    """As what a job goes on. submission: with its new time and content. before: its key until then. at: when it was moved."""

    submission: Submission
    due_at: datetime
    before: str
    at: datetime


class Recorder(Promises):
    """Records beside what the world itself looks at.

    The target refuses a smaller fence than it has seen, and looks an idempotency key up before it acts. Whoever has hung
    up, because the lease is over, is not received.
    """

    def __init__(self, stores: Stores, chaos: Chaos) -> None:
        super().__init__(stores)
        self._clock = stores.clock
        self._chaos = chaos
        self._names: dict[int, str] = {}
        self._asked: dict[str, Submission] = {}
        self._registered: dict[str, Submission] = {}
        self._ids: dict[str, str] = {}
        self._known_at: dict[str, datetime] = {}
        self._fences: dict[str, int] = {}
        self._done: set[str] = set()
        self._seen: list[_Seen] = []
        self._handed: list[_Handed] = []
        self._cancels: list[Cancel] = []
        self.settled: dict[str, datetime] = {}
        self.over: dict[str, list[tuple[datetime, datetime]]] = {}
        self.replays: list[Replay] = []
        self.unsure: set[str] = set()
        self.goes_on: Callable[[Run], None] = lambda _: None
        self._said: dict[int, Answer] = {}
        self._heard: set[int] = set()
        self._submitting: dict[str, Submission] = {}
        self._moving: dict[str, tuple[Submission, bool]] = {}
        self._moved_as: dict[str, _Moved] = {}
        self._hastened: dict[str, datetime] = {}
        self._all_hastened: list[tuple[str, str, datetime]] = []
        self._in_doubt: dict[DeadLetterId, None] = {}
        self._pauses: dict[str, int] = {}

    def name_of(self, submission: Submission) -> str:
        """The identity of a job that is submitted without a key of its own, but for its check."""
        return self._names[id(submission)]

    def loses_an_answer(self) -> bool:
        """Whether the answer to a client does not arrive."""
        return self._chaos.strikes(Fault.LOST_ANSWERS, 0.1)

    def was_answered(self, submission: Submission) -> bool:
        """Whether its client knows that it will run."""
        return self._key_of(submission) in self._ids

    def id_of(self, submission: Submission) -> str | None:
        """The id of a job, as its client received it."""
        return self._ids.get(self._key_of(submission)) if id(submission) in self._names else None

    def submitted(self, submission: Submission) -> None:
        super().submitted(submission)
        if id(submission) not in self._names:
            self._names[id(submission)] = f"job-{len(self._names) + 1:05}"
        self._asked.setdefault(self._key_of(submission), submission)

    def submits(self, process: str, submission: Submission) -> None:
        """A request is about to take a job in."""
        self._submitting[process] = submission

    def moves(self, process: str, submission: Submission, *, keeps_payload: bool) -> None:
        """A request is about to give a job another time or content."""
        self._moving[process] = submission, keeps_payload

    def hastens(self, job_id: str, *, asked_at: datetime) -> None:
        """An owner lets a job run at once, under whatever id it goes on."""
        key = parse_job_id(job_id).key
        while key:
            self._hastened.setdefault(key, asked_at)
            key = next((later for later, moved in self._moved_as.items() if moved.before == key), "")

    def hastens_all(self, tenant: str, tag: str, *, asked_at: datetime) -> None:
        """An owner lets all jobs of a tenant run at once, or those with a tag."""
        self._all_hastened.append((tenant, tag, asked_at))

    def replays_letter(self, letter_id: DeadLetterId) -> None:
        """An operator asks for a replay."""
        self.replays.append(Replay(f"{letter_id.tenant}#{letter_id.identity}", self._clock.instant))

    def replay_was(self, letter_id: DeadLetterId, *, is_answered: bool) -> None:
        """Whether the operator knows what has come of it."""
        self._in_doubt.pop(letter_id, None)
        if not is_answered:
            self._in_doubt[letter_id] = None

    def replays_in_doubt(self) -> list[DeadLetterId]:
        """Of those that an operator does not know about."""
        return list(self._in_doubt)

    def has_done(self, run: Run) -> None:
        """A target that answered 202 has done its work, whether anybody learns of it or not."""
        key = parse_job_id(run.job_id).key
        if self._said.get(id(run)) is None:
            self._said[id(run)] = Answer.KNOWN if key in self._done else Answer.EFFECT
            self._done.add(key)

    def has_not_done(self, run: Run) -> None:
        """It has failed."""
        self._said.setdefault(id(run), Answer.FAILED)

    def unheard(self, run: Run) -> None:
        """The report of its success did not arrive at once: another attempt may do it again."""
        self.unsure.add(parse_job_id(run.job_id).key)

    def heard(self, run: Run) -> None:
        """A target got an answer when it reported its end, or learned that its attempt is not its own any more."""
        self._heard.add(id(run))

    def was_heard(self, run: Run) -> bool:
        """Whether it need not report again."""
        return id(run) in self._heard

    def paused(self, tenant: str) -> None:
        """From now on no process that begins may call a target for it."""
        self._pauses[tenant] = self._stores.history.moment

    def resumed(self, tenant: str) -> None:
        """It is served again."""
        self._pauses.pop(tenant, None)

    def accepted(self, submission: Submission, answer: Accepted) -> None:
        if not self.loses_an_answer():
            super().accepted(submission, answer)
            key = self._key_of(submission)
            self._ids[key] = answer.job_id
            self._known_at.setdefault(key, self._clock.instant)

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
            old = before.get(key)
            if row is old:
                continue
            if old is None and process.name in self._submitting and key in self._asked:
                # A key belongs to whoever wrote its row first: one that was sent before may not have come so far.
                self._registered.setdefault(key, self._submitting[process.name])
            if row.state is State.MOVED and (old is None or old.state is not State.MOVED):
                self._has_moved(key, row, process)
            if row.is_settled:
                self.settled.setdefault(key, self._clock.instant)
            elif key in self.settled and process.name.startswith("replay"):
                self.over.setdefault(key, []).append((self.settled.pop(key), self._clock.instant))

    def begin(
        self, timer: Timer, invocation: Invocation, payload: str | None, process: Process, called_at: datetime
    ) -> Run | None:
        key, seen = invocation.idempotency_key, self._fences.get(invocation.idempotency_key, 0)
        run = super().begin(timer, invocation, payload, process, called_at)
        run = None if invocation.fence < seen else run
        is_paused = any(
            process.began > self._pauses[tenant] for tenant in (timer.job.tenant, EVERYBODY) if tenant in self._pauses
        )
        self.expect(not is_paused, f"called although its tenant is paused: {key}")
        self._fences[key] = max(invocation.fence, seen)
        given = given_in(timer, payload)
        if given is not None:
            handed = self._hand(timer.job.target, given, is_taken=run is not None)
            self._handed.append(
                _Handed(invocation, handed, self._clock.instant, process.clock.ahead, run, timer.job.target)
            )
            return run
        answer = Answer.STALE if run is None else self._answer(timer, invocation)
        self._seen.append(
            _Seen(invocation, payload, answer, self._clock.instant, process.clock.ahead, run, timer.job.target)
        )
        if answer is Answer.PENDING and run is not None:
            self.goes_on(run)
        return run

    def asked_for(self) -> list[Job]:
        """What was submitted, and as what it goes on. A key belongs to its first submission."""
        asked = {key: self._registered.get(key, submission) for key, submission in self._asked.items()}
        jobs = {
            key: self._job(key, submission, from_ms(to_ms(submission.due_at)), is_accepted=key in self._ids)
            for key, submission in asked.items()
        }
        for key, moved in self._moved_as.items():
            is_accepted = moved.before in jobs and jobs[moved.before].is_accepted
            jobs[key] = self._job(key, moved.submission, moved.due_at, is_accepted=is_accepted)
        return list(jobs.values())

    def all_cancels(self) -> list[Cancel]:
        """Those that were answered, and those that removed a row without a word."""
        silent = [Cancel(each.job_id.key, None, is_final=True) for each in self.jobs.values() if each.removed_by]
        return [*self._cancels, *silent]

    @property
    def moved(self) -> int:
        """How many of those go on from others."""
        return len(self._moved_as)

    def calls(self) -> list[Call]:
        """What the target saw, in order."""
        return [seen.with_reports(self._said) for seen in self._seen if seen.target != TOLD]

    def releases(self) -> list[Release]:
        """Calls that gave jobs together, in order."""
        return [handed.release() for handed in self._handed]

    def tellings(self) -> list[Telling]:
        """What callbacks were told."""
        return tellings_of(seen.with_reports(self._said) for seen in self._seen if seen.target == TOLD and seen.run)

    def _job(self, key: str, submission: Submission, due_at: datetime, *, is_accepted: bool) -> Job:
        hastened = [
            at
            for tenant, tag, at in self._all_hastened
            if tenant == submission.tenant and tag in ("", *submission.tags)
        ]
        hastened += [self._hastened[key]] if key in self._hastened else []
        return Job(
            key=key,
            tenant=submission.tenant,
            delivery=submission.delivery,
            due_at=due_at,
            payload=submission.payload,
            expires_at=due_at + submission.expires_after if submission.expires_after else None,
            is_accepted=is_accepted,
            hastened_at=min(hastened, default=None),
            flow=next(iter(submission.flows), None),
            known_at=self._moved_as[key].at if key in self._moved_as else self._known_at.get(key),
            callbacks=frozenset(name.value for name, _ in submission.callbacks.named()),
            ends_by=due_at + submission.run_deadline if submission.run_deadline is not None else None,
            collect=submission.collect,
            target=submission.target if submission.collect is not None else "",
            is_prompt=submission.collect is not None and "fine" in submission.target,
        )

    def _has_moved(self, key: str, row: LedgerRow, process: Process) -> None:
        to = parse_job_id(row.moved_to)
        before = self._moved_as[key].submission if key in self._moved_as else self._registered.get(key)
        before = before or self._asked[key]
        submission, keeps_payload = self._moving.get(process.name, (before, True))
        if keeps_payload:
            submission = replace(submission, payload=before.payload)
        # An operation shifts each job by as much, which the world sees to.
        due_at = from_ms(to_ms(submission.due_at)) if process.name in self._moving else to.due_at
        self._moved_as[to.key] = _Moved(submission, due_at, key, self._clock.instant)
        if str(to) in self.jobs:
            self.jobs[str(to)] = Expected(to, submission)

    def _answer(self, timer: Timer, invocation: Invocation) -> Answer:
        target = timer.job.target
        if "poison" in target:
            return Answer.NONE
        answer = answer_of(target, invocation)
        if isinstance(answer, Failed):
            return Answer.FAILED
        if isinstance(answer, Pending) and timer.job.delivery is Delivery.EXACTLY_ONCE:
            return Answer.PENDING
        if invocation.idempotency_key in self._done:
            return Answer.KNOWN
        self._done.add(invocation.idempotency_key)
        return Answer.EFFECT

    def _hand(self, target: str, given: Sequence[Given], *, is_taken: bool) -> list[Member]:
        """What the target makes of each of the jobs."""

        def answer_of_one(each: Given) -> Answer:
            if not is_taken:
                return Answer.STALE
            if "poison" in target:
                return Answer.NONE
            if fails(target, each.attempt):
                return Answer.FAILED
            if each.key in self._done:
                return Answer.KNOWN
            self._done.add(each.key)
            return Answer.EFFECT

        return [Member(each.key, each.attempt, each.scheduled_at, each.payload, answer_of_one(each)) for each in given]

    def _key_of(self, submission: Submission) -> str:
        if submission.idempotency_key is not None:
            return f"{submission.tenant}#{keyed_identity(submission.tenant, submission.idempotency_key)}"
        name = self._names[id(submission)]
        return job_of(submission, identity=name, wheel=self._stores.wheel, id_secret=ID_SECRET).key


def _until(at: datetime, ahead: timedelta, run: Run | None) -> datetime:
    """Until when a caller may have been at it: its end, or that of its lease."""
    if run is None:
        return at
    lease_until = run.lease_until - ahead
    return min(run.ended_at or lease_until, lease_until)
