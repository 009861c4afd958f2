"""A release: the jobs that wait in a collection are given to their target in one call, and each ends by its own row.

    claim the release          as any job: whoever dies after it is rescued, by its fence and its lease
    choose its rows            once: who comes to it again finds the same
    read the rows of the ledger  who has ended, or was cancelled, is not given
    call
    end each job               by a write that only the first wins; a retry is placed before it
    take the rows out, let the next release come, settle this one

A death anywhere leaves the message of the release, and whoever gets it goes on with those that have not ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.far_ring.asked_record import room_for_attempts
from functions.domain.far_ring.timer_record import unpack
from functions.domain.faults import fault_of
from functions.domain.jobs.claims import LedgerRow, may_claim
from functions.domain.jobs.collect import DEFAULT_MEMBERS
from functions.domain.jobs.collection import CollectedRow, CollectionId, OpenRelease, count_of, release_in, upto
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import fill_references
from functions.domain.jobs.past_attempts import PastAttempt, with_attempt
from functions.domain.jobs.results import KeptResult
from functions.domain.lifecycle import Event, State
from functions.domain.targets.error_classes import WORKER_DIED
from functions.domain.tenants.usage import Usage
from functions.ports.clock import Clock
from functions.ports.collections import CollectionStore
from functions.ports.ledger import Ledger, Refused
from functions.ports.recorder import Journal, UsageCounter
from functions.ports.targets import Failed, Outcome, Succeeded
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.placer import Placer
from functions.services.jobs.release import RELEASE_BYTES, entry_of, failures_in, text_of
from functions.services.jobs.settler import Claim, Settler
from functions.worker.claimer import Claimer
from functions.worker.invocation import Invoker
from functions.worker.message import Message, Returned
from functions.worker.preconditions import Permission

SETTLING = timedelta(seconds=60)
"""How long the ends of all jobs of a release may take to be written: so long its lease goes on after its call."""

_UNREADABLE = Failed("its payload cannot be read", "payload_unreadable", is_permanent=True)
_UNITS = 3
"""Of a job: its row, its end, and its row again when it is taken out."""

_FORGET_PAGES = 20


@dataclass(frozen=True, slots=True)
class _Member:
    """A job of a release, and its row of the ledger. entry: as it is sent; None where its payload cannot be read."""

    timer: Timer
    row: LedgerRow | None
    entry: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Gives collections to their targets. end_side_by_side: maps a function over items at the same time, answers in order."""

    clock: Clock
    collections: CollectionStore
    ledger: Ledger
    placer: Placer
    settler: Settler
    claimer: Claimer
    invoker: Invoker
    plans: TenantPlans
    journal: Journal
    usage: UsageCounter
    jitter: Callable[[], float]
    end_side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def give(self, timer: Timer, claim: Claim, permission: Permission, message: Message) -> Outcome | Returned | None:
        """Give what is chosen to the target; what that answered, None when it was not called."""
        collection, number = _found(timer.job)
        try:
            chosen = self._choose(collection, number)
            members = self._members(chosen)
            given = [member for member in members if member.entry is not None]
            outcome: Outcome | Returned | None = None
            if given:
                outcome = permission.refusal
                if outcome is None:
                    text = text_of([member.entry for member in given if member.entry is not None])
                    outcome, claim = self.invoker.invoke(timer, text, claim, permission, ring=message.ring)
                if isinstance(outcome, Returned):
                    return outcome
        except Exception:
            self.claimer.release(timer, message, claim)
            raise
        # An error from here on releases nothing: the effect has happened, and its message comes back.
        if outcome is not None:
            self._prolong(timer, claim)
            self.usage.add(timer.job.tenant, Usage(executed=len(given) - 1, units=_UNITS * len(given)))
        failures = self._failures(outcome, given)
        unread = {member.timer.job.identity: _UNREADABLE for member in members if member.entry is None}
        self._end(members, failures | unread, timer, claim)
        self._finish(collection, number, chosen)
        self._settle(timer, claim, count=len(members), failed=len(failures | unread))
        return outcome

    def after(self, timer: Timer) -> None:
        """The message of a release has nothing left to do: where its workers have died of it, or it was cancelled, its jobs go on."""
        if release_in(timer.job) is None:
            return
        collection, number = _found(timer.job)
        row = self.ledger.get(timer.job.key)
        if row is None or not row.is_settled or self.collections.state(collection).number > number:
            return
        opened = self.collections.opened(collection)
        chosen: list[CollectedRow] = []
        if opened is not None and opened.number == number and row.state is State.FAILED:
            chosen = self.collections.rows(collection, opened.places)
            members = self._members(chosen)
            failure = Failed(row.error or "its workers died", WORKER_DIED)
            failures = {member.timer.job.identity: failure for member in members}
            self._end(
                members,
                failures,
                timer,
                Claim(owner=self.claimer.token(), fence=row.fence, lease_until=self.clock.now()),
            )
        self._finish(collection, number, chosen)

    def unserved(self, timer: Timer) -> None:
        """Its tenant is not served: of one that is deleted nothing is kept."""
        if release_in(timer.job) is None or not self.plans.of(timer.job.tenant).is_deleted:
            return
        collection, _ = _found(timer.job)
        for _ in range(_FORGET_PAGES):
            if not self.collections.forget(collection):
                return

    def enter(self, timer: Timer) -> None:
        """Put an attempt that a message has brought into its collection. Raises NotPlaced, and what the stores raise."""
        self.settler.collect(timer, enter=lambda: self.placer.enter(timer))

    def _choose(self, collection: CollectionId, number: int) -> list[CollectedRow]:
        """The rows of a release; none where it has ended before, or nothing is due."""
        now = self.clock.now()
        state = self.collections.state(collection)
        if state.number > number:
            return []
        if state.number < number:
            # The release before has placed this one, and has died before it said so.
            self.collections.advance(collection, number=number - 1)
        opened = self.collections.opened(collection)
        if opened is not None and opened.number >= number:
            return self.collections.rows(collection, opened.places) if opened.number == number else []
        rows = self._due(collection, until=upto(now))
        if not rows:
            return []
        mine = OpenRelease(number=number, places=tuple(row.place for row in rows))
        stands = self.collections.open(collection, mine, now=now)
        if stands == mine:
            return rows
        return self.collections.rows(collection, stands.places) if stands.number == number else []

    def _due(self, collection: CollectionId, *, until: str) -> list[CollectedRow]:
        rows = self.collections.waiting(collection, upto=until, limit=DEFAULT_MEMBERS)
        most = next((_most_of(row.timers[0].job) for row in rows if row.timers), 0)
        if most > DEFAULT_MEMBERS and len(rows) == DEFAULT_MEMBERS:
            rows = self.collections.waiting(collection, upto=until, limit=most)
        chosen: list[CollectedRow] = []
        size = 0
        for row in rows:
            if row.timers is None:
                continue  # of a newer Tickwheel, whose workers give it
            size += sum(len((_entry_of(timer) or "").encode()) for timer in row.timers)
            is_full = count_of(each.place for each in chosen) + len(row.timers) > most or size > RELEASE_BYTES
            if chosen and is_full:
                break
            chosen.append(row)
        return chosen

    def _members(self, chosen: Sequence[CollectedRow]) -> list[_Member]:
        """Those whose attempt has not been made, once each."""
        timers = {timer.job.identity: timer for row in chosen for timer in row.timers or ()}
        if not timers:
            return []
        rows = self.end_side_by_side(self.ledger.get, [timer.job.key for timer in timers.values()])
        members: list[_Member] = []
        for timer, row in zip(timers.values(), rows, strict=True):
            if may_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner=""):
                members.append(_Member(timer, row, _entry_of(timer)))
            else:
                # It has ended, as a rule in this release by a worker that has died since: its line and its callbacks may be missing.
                self.settler.ends.found(timer, row)
        return members

    def _failures(self, outcome: Outcome | None, given: Sequence[_Member]) -> dict[str, Failed]:
        """Those of a call, by identities. A target that answered 202 has taken them: nothing waits for its report."""
        if isinstance(outcome, Failed):
            return {member.timer.job.identity: outcome for member in given}
        answer = outcome.answer if isinstance(outcome, Succeeded) else ""
        return failures_in(answer, [member.timer for member in given]) if answer else {}

    def _end(self, members: Sequence[_Member], failures: dict[str, Failed], timer: Timer, claim: Claim) -> None:
        """Raises what the first of them raised: then the message of the release comes back, to those that are left."""
        said = f'{{"release":"{timer.job.identity}"}}'

        def end(member: _Member) -> Exception | None:
            failure = failures.get(member.timer.job.identity)
            try:
                if failure is None:
                    self._deliver(member, claim, result=said)
                else:
                    self._fail(member, failure, claim)
            except Exception as error:  # noqa: BLE001  the others have ended, and are to be told so
                return error
            return None

        for error in self.end_side_by_side(end, members):
            if error is not None:
                raise error

    def _deliver(self, member: _Member, claim: Claim, *, result: str) -> None:
        answer = self.ledger.end_collected(
            member.timer, Event.DELIVER, owner=claim.owner, now=self.clock.now(), result=result
        )
        if isinstance(answer, Refused):
            self._found(member.timer, answer.row)
        else:
            self.settler.ends.succeeded(member.timer, began_at=claim.began_at, result=KeptResult(result))

    def _fail(self, member: _Member, failure: Failed, claim: Claim) -> None:
        timer, now = member.timer, self.clock.now()
        past = PastAttempt(
            attempt=timer.attempt,
            ended_at=now,
            took=now - claim.began_at if claim.began_at is not None else None,
            error_class=failure.error_class,
            error=failure.error,
        )
        before = member.row.tried if member.row is not None else ""
        tried = with_attempt(before, past, room=room_for_attempts(timer.job))
        following = None
        if not failure.is_permanent:
            following = timer.next_attempt(failed_at=now, jitter=self.jitter(), retry_after=failure.retry_after)
        if following is None:
            if not self.settler.ends.bury(timer, failure, row=member.row, owner=claim.owner, tried=tried):
                self._found(timer, self.ledger.get(timer.job.key))
            return
        self.settler.place(following)
        answer = self.ledger.end_collected(
            timer, Event.RETURN, owner=claim.owner, now=now, following=following, error=failure.error, tried=tried
        )
        if isinstance(answer, Refused):
            self._found(timer, answer.row)
        else:
            self.settler.ends.retried(timer, failure)

    def _found(self, timer: Timer, row: LedgerRow | None) -> None:
        """Somebody else has ended it meanwhile. A cancel knows nothing of its callbacks, and its row in the collection goes."""
        self.settler.ends.found(timer, row)

    def _finish(self, collection: CollectionId, number: int, chosen: Sequence[CollectedRow]) -> None:
        """Each of its jobs has ended: the rows go, and what is left gets its release."""
        self.collections.remove(collection, [row.place for row in chosen])
        self.collections.advance(collection, number=number)
        self.placer.reopen(collection)

    def _prolong(self, timer: Timer, claim: Claim) -> None:
        """So that nobody takes the release over while the ends of its jobs are written."""
        lease_until = claim.lease_until + SETTLING
        try:
            self.ledger.extend(job_id_of(timer.job), fence=claim.fence, lease_until=lease_until, now=self.clock.now())
        except Exception as error:  # noqa: BLE001  what is not prolonged is taken over at worst
            self.journal.event("release_not_prolonged", job_id=str(job_id_of(timer.job)), error=fault_of(error))

    def _settle(self, timer: Timer, claim: Claim, *, count: int, failed: int) -> None:
        """It is no job of its tenant's: neither usage nor audit nor schedule hears of it."""
        result = f'{{"jobs":{count},"failed":{failed}}}'
        self.ledger.settle(
            timer, Event.SUCCEED, fence=claim.fence, owner=claim.owner, now=self.clock.now(), result=result
        )
        self.journal.event("released", job_id=str(job_id_of(timer.job)), count=count, failed=failed)


def _found(job: Job) -> tuple[CollectionId, int]:
    found = release_in(job)
    assert found is not None
    return found


def _most_of(job: Job) -> int:
    return job.collect.most if job.collect is not None else DEFAULT_MEMBERS


def _entry_of(timer: Timer) -> str | None:
    """A job as it is sent; None where its payload cannot be read."""
    try:
        text = unpack(timer.job.payload) if timer.job.payload.pointer is None else None
    except Undecodable:
        return None
    if text is None and timer.job.payload.pointer is not None:
        return None
    if text is not None and timer.job.occurrence is not None:
        text = fill_references(text, timer.job.occurrence)
    return entry_of(timer, text)
