"""Whether a history keeps the promises: a function of the history alone, invariant by invariant."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property, partial
from itertools import pairwise

from functions.domain.instants import MILLISECOND, SECOND, parse_instant
from functions.domain.jobs.job import MAX_PARKED, Delivery
from functions.domain.jobs.occurrence import identity_of
from functions.domain.lifecycle import TERMINAL, State
from verification.collected import check_collections
from verification.history import Call, Cancel, Fires, History, Job, Row
from verification.tellings import check_tellings

_NO_CALL_NEEDED = frozenset({"breaker_open", "flow_wait_too_long", "run_deadline"})
"""Classes of errors with which a job fails for good although its target was never called."""


class Invariant(StrEnum):
    """What is promised, in a few words."""

    NOTHING_LOST = "nothing_lost"
    """Every accepted job comes to an end: an effect, a dead letter, or for a reason that can be read."""
    NOTHING_EARLY = "nothing_early"
    """No target is called before its job is due, by the clock of whoever calls."""
    ONE_EFFECT = "one_effect"
    """exactly_once: nothing is called once it is settled, and nothing succeeds twice for which no worker died or
    stalled. at_most_once: one call."""
    ONE_AT_A_TIME = "one_at_a_time"
    """exactly_once: no call begins while another of its job is under way within its lease."""
    FENCES_GROW = "fences_grow"
    """exactly_once: of the calls that a target takes, each has a larger fence than the one before."""
    DEAD_LETTERS_ACCOUNTED = "dead_letters_accounted"
    """What has failed has one dead letter, and nothing else has."""
    TENANTS_APART = "tenants_apart"
    """Each call bears the tenant and the payload that were submitted, and nobody else's."""
    CANCELS_KEPT = "cancels_kept"
    """What was cancelled is not called any more; what was asked to stop is not begun again."""
    ENDS_AGREE = "ends_agree"
    """The ledger records an end that agrees with what the target saw."""
    SCHEDULES_KEPT = "schedules_kept"
    """Every fire that a schedule owes comes to an end, and none that it does not owe runs."""
    FLOWS_KEPT = "flows_kept"
    """No more calls begin in any time than the rate of their flow and its burst, and no more run at once than its bound."""
    ORDER_KEPT = "order_kept"
    """Jobs of an ordered flow run one at a time through all of their attempts, and by their due times as far as they are known."""
    CALLBACKS_KEPT = "callbacks_kept"
    """Each end of a job is told once to each callback that asked for it, as it was, and nothing else is told."""
    DEADLINES_KEPT = "deadlines_kept"
    """No call begins of a job whose run has taken as long as it may."""
    COLLECTIONS_KEPT = "collections_kept"
    """Jobs are given with others of their collection alone, in time, in one call at a time, and end as the answers say."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What was not kept, of which job or schedule, and how."""

    invariant: Invariant
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """checks: how often each invariant was looked at."""

    checks: Counter[Invariant] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)


def judge(history: History) -> Judgement:
    """Look at everything that was asked for, and at everything that happened."""
    return _Judge(history).judge()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What stands behind a key: a job, or a fire of a schedule."""

    tenant: str
    delivery: Delivery
    due_at: datetime
    payload: str | None
    expires_at: datetime | None = None
    hastened_at: datetime | None = None
    ends_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """A job of an ordered flow, from its first call to its end."""

    key: str
    due_at: datetime
    begun_at: datetime
    ended_at: datetime
    is_first: bool


class _Judge:
    def __init__(self, history: History) -> None:
        self._history = history
        self._judgement = Judgement()
        self._jobs = {job.key: job for job in history.jobs}
        self._fires = {fires.key: fires for fires in history.fires}
        self._calls: dict[str, list[Call]] = defaultdict(list)
        for call in history.calls:
            self._calls[call.key].append(call)
        self._letters = Counter(letter.key for letter in history.letters)
        self._replays: dict[str, list[datetime]] = defaultdict(list)
        for replay in history.replays:
            self._replays[replay.key].append(replay.asked_at)

    def judge(self) -> Judgement:
        for job in self._history.jobs:
            self._check_end(job)
        for fires in self._history.fires:
            self._check_fires(fires)
        for call in self._history.calls:
            self._check_call(call)
        for key in sorted({*self._calls, *self._history.rows, *self._letters}):
            self._check_key(key)
        for cancel in self._history.cancels:
            self._check_cancel(cancel)
        for flow in sorted({(job.tenant, job.flow.key) for job in self._history.jobs if job.flow is not None}):
            self._check_flow(*flow)
            self._check_order(*flow)
        check_tellings(self._history, self._calls, partial(self._expect, Invariant.CALLBACKS_KEPT))
        check_collections(self._history, partial(self._expect, Invariant.COLLECTIONS_KEPT))
        return self._judgement

    def _expect(self, invariant: Invariant, key: str, is_true: bool, text: str) -> None:
        self._judgement.checks[invariant] += 1
        if not is_true:
            self._note(invariant, key, text)

    def _note(self, invariant: Invariant, key: str, text: str) -> None:
        self._judgement.violations.append(Violation(invariant, key, text))

    def _check_end(self, job: Job) -> None:
        asked = self._asked(job.key)
        if asked is None or not job.is_accepted:
            return
        self._expect(Invariant.NOTHING_LOST, job.key, self._has_ended(job.key, asked), self._standing(job.key))

    def _check_fires(self, fires: Fires) -> None:
        for at in sorted(fires.due):
            key = _fire_key(fires, at)
            asked = _Asked(fires.tenant, fires.delivery, at, fires.payload)
            has_ended = self._has_ended(key, asked)
            self._expect(Invariant.SCHEDULES_KEPT, key, has_ended, f"a fire was lost: {self._standing(key)}")

    def _has_ended(self, key: str, asked: _Asked) -> bool:
        if asked.delivery is not Delivery.AT_LEAST_ONCE:
            row = self._history.rows.get(key)
            return row is not None and row.state in TERMINAL
        is_expired = asked.expires_at is not None and asked.expires_at <= self._history.ended_at
        is_done = any(call.is_success for call in self._calls[key]) or self._letters[key] > 0
        return is_expired or is_done or key in self._cancelled

    def _check_call(self, call: Call) -> None:
        asked = self._asked(call.key)
        if asked is None:
            is_fire = _schedule_of(call.key) in self._fires
            invariant = Invariant.SCHEDULES_KEPT if is_fire else Invariant.TENANTS_APART
            self._note(invariant, call.key, "was called, and nobody has asked for it")
            return
        early = asked.due_at - (call.called_at + call.ahead)
        is_hastened = asked.hastened_at is not None and asked.hastened_at <= call.called_at
        is_in_time = (early <= _RESOLUTION or is_hastened) and call.scheduled_at == asked.due_at
        text = f"called at {call.called_at} for {call.scheduled_at}, its caller {call.ahead} ahead, due {asked.due_at}"
        self._expect(Invariant.NOTHING_EARLY, call.key, is_in_time, text)
        job = self._jobs.get(call.key)
        # A replay, and whoever lets a job run now, begins its age anew.
        counts = not self._replays[call.key] and asked.hastened_at is None
        counts = counts and call.key not in self._history.disturbed
        if job is not None and job.ends_by is not None and counts:
            late = call.called_at + call.ahead - job.ends_by
            text = f"called at {call.called_at}, its caller {call.ahead} ahead, and was to end by {job.ends_by}"
            self._expect(Invariant.DEADLINES_KEPT, call.key, late < _TO_A_CALL, text)
        is_its_own = call.tenant == asked.tenant and call.payload == asked.payload
        is_payload_its_own = call.payload == asked.payload
        payloads = (
            "its own payload" if is_payload_its_own else f"{call.payload!r:.80} for a payload of {asked.payload!r:.80}"
        )
        text = f"called for tenant {call.tenant}, with {payloads}"
        self._expect(Invariant.TENANTS_APART, call.key, is_its_own, text)

    def _check_key(self, key: str) -> None:
        asked, row = self._asked(key), self._history.rows.get(key)
        if asked is None:
            # Its calls have been reported.
            is_known = key in self._calls or _schedule_of(key) in self._fires
            self._expect(Invariant.TENANTS_APART, key, is_known, "has a row or a dead letter, and nobody asked for it")
            return
        taken = [call for call in self._calls[key] if call.is_taken]
        match asked.delivery:
            case Delivery.EXACTLY_ONCE:
                self._check_exactly_once(key, taken, row)
            case Delivery.AT_MOST_ONCE:
                text = f"started {len(taken)} times: {_listed(taken)}"
                self._expect(Invariant.ONE_EFFECT, key, len(taken) <= 1, text)
            case Delivery.AT_LEAST_ONCE:
                return
        has_failed = row is not None and row.state is State.FAILED
        count, state = self._letters[key], row.state if row else State.ABSENT
        self._expect(
            Invariant.DEAD_LETTERS_ACCOUNTED, key, count == int(has_failed), f"is {state}, with {count} dead letters"
        )
        if row is not None and (key not in self._jobs or self._jobs[key].collect is None):
            self._check_agreement(key, taken, row, asked)

    def _check_exactly_once(self, key: str, taken: Sequence[Call], row: Row | None) -> None:
        settled_at = row.settled_at if row else None
        over = [*(row.over if row else ()), *([(settled_at, _FOREVER)] if settled_at else ())]
        late = [call for call in taken if any(since < call.called_at < until for since, until in over)]
        successes = [call for call in taken if call.is_success]
        is_single = not late and (len(successes) <= 1 or key in self._history.disturbed)
        self._expect(Invariant.ONE_EFFECT, key, is_single, f"settled at {settled_at}: {_listed(taken)}")
        for before, call in pairwise(taken):
            is_alone = call.called_at >= before.until
            self._expect(Invariant.ONE_AT_A_TIME, key, is_alone, f"{_listed([before, call])}, until {before.until}")
            grows = call.fence > before.fence and call.attempt >= before.attempt
            self._expect(Invariant.FENCES_GROW, key, grows, _listed([before, call]))

    def _check_agreement(self, key: str, taken: Sequence[Call], row: Row, asked: _Asked) -> None:
        is_disturbed = key in self._history.disturbed
        successes = [call for call in taken if call.is_success]
        match row.state:
            case State.SUCCEEDED:
                agrees = any(call.attempt == row.attempt for call in successes)
            case State.ATTEMPTED:
                # After so long it fails where its destination is left alone just then, and keeps no letter.
                # And so it does when its run has taken as long as it may.
                limits = (asked.due_at + MAX_PARKED, asked.ends_by)
                is_over = row.settled_at is not None and any(
                    limit is not None and row.settled_at + self._history.slack >= limit for limit in limits
                )
                agrees = is_disturbed or len(taken) == 1 or (is_over and not taken)
            case State.FAILED:
                classes = {letter.error_class for letter in self._history.letters if letter.key == key}
                agrees = is_disturbed or (bool(taken) and not successes) or bool(classes & _NO_CALL_NEEDED)
            case _:
                agrees = is_disturbed or not successes
        is_behind = all(call.fence <= row.fence and call.attempt <= row.attempt for call in taken)
        # A started job has no fence.
        agrees = agrees and (is_behind or row.state is State.ATTEMPTED)
        text = f"is {row.state} at attempt {row.attempt}, fence {row.fence}, {row.reason!r}; its target saw {_listed(taken)}"
        self._expect(Invariant.ENDS_AGREE, key, agrees, text)

    def _check_cancel(self, cancel: Cancel) -> None:
        if cancel.answered_at is None:
            return
        taken = [call for call in self._calls[cancel.key] if call.is_taken]
        # A replay lets a job go on of which the cancel came too late.
        replayed_at = min((at for at in self._replays[cancel.key] if at > cancel.answered_at), default=None)
        after = [
            call
            for call in taken
            if call.called_at > cancel.answered_at and (replayed_at is None or call.called_at < replayed_at)
        ]
        # What was asked to stop may have been just about to call.
        is_kept = len(after) <= (0 if cancel.is_final else 1)
        text = f"{'cancelled' if cancel.is_final else 'asked to stop'} at {cancel.answered_at}, then {_listed(after)}"
        self._expect(Invariant.CANCELS_KEPT, cancel.key, is_kept, text)

    def _check_flow(self, tenant: str, flow_key: str) -> None:
        """By the calls of workers that nothing has happened to: what was let through before a stall begins after it."""
        of_flow = [
            job
            for job in self._history.jobs
            if job.flow is not None and (job.tenant, job.flow.key) == (tenant, flow_key)
        ]
        limits = next((job.flow.limits for job in of_flow if job.flow is not None), None)
        calls = sorted(
            (call for job in of_flow if job.key not in self._history.disturbed for call in self._calls[job.key]),
            key=lambda call: call.called_at,
        )
        key = f"{tenant}#{flow_key}"
        if limits is not None and limits.concurrency is not None:
            for number, call in enumerate(calls):
                beside = [each for each in calls[:number] if _is_under_way(each, call.called_at)]
                text = f"{_listed([*beside, call])} run at once, of {limits.concurrency}"
                self._expect(Invariant.FLOWS_KEPT, key, len(beside) < limits.concurrency, text)
        if limits is not None and limits.rate is not None:
            for number, first in enumerate(calls):
                for count, last in enumerate(calls[number:], start=1):
                    span = last.called_at - first.called_at
                    most = limits.bucket + (span + self._history.slack) / limits.rate.interval
                    self._expect(
                        Invariant.FLOWS_KEPT, key, count <= most, f"{count} calls within {span}, of {most:.1f}"
                    )

    def _check_order(self, tenant: str, flow_key: str) -> None:
        jobs = [
            job
            for job in self._history.jobs
            if job.flow is not None and job.is_ordered and (job.tenant, job.flow.key) == (tenant, flow_key)
        ]
        runs = sorted((run for job in jobs for run in self._runs(job)), key=lambda run: (run.begun_at, run.ended_at))
        for number, run in enumerate(runs):
            beside = [each for each in runs[:number] if each.ended_at > run.begun_at]
            text = f"its turn began at {run.begun_at}, while that of {', '.join(each.key for each in beside)} went on"
            self._expect(Invariant.ORDER_KEPT, run.key, not beside, text)
            # A worker that stalls may have had its turn long before its first call.
            if run.is_first and run.key not in self._history.disturbed:
                begun = {each.key for each in beside}
                passed = [job for job in jobs if job.key not in begun and self._should_precede(job, run)]
                text = f"due at {run.due_at}, began at {run.begun_at}, before {', '.join(job.key for job in passed)}"
                self._expect(Invariant.ORDER_KEPT, run.key, not passed, text)

    def _should_precede(self, job: Job, run: _Run) -> bool:
        """Whether a job was to run before: it was known and due by then, not for so long that it passed for lost, and had not ended."""
        if job.known_at is None or job.due_at >= run.due_at:
            return False
        could_start_at, row = max(job.due_at, job.known_at), self._history.rows.get(job.key)
        ended_at = self._ends(row)[0] if row is not None else _FOREVER
        is_waiting = could_start_at + self._history.slack <= run.begun_at < could_start_at + _PASSES_FOR_LOST
        return is_waiting and ended_at > run.begun_at

    def _runs(self, job: Job) -> list[_Run]:
        """From its first call to its end, and from the first of each replay to the end of that."""
        row = self._history.rows.get(job.key)
        ends = self._ends(row) if row is not None else [_FOREVER]
        begins = [_LONG_AGO, *(until for _, until in (row.over if row is not None else ()))]
        runs: list[_Run] = []
        for number, (since, ended_at) in enumerate(zip(begins, ends, strict=True)):
            calls = [
                call.called_at for call in self._calls[job.key] if call.is_taken and since <= call.called_at <= ended_at
            ]
            # The calls of a worker that was held up may fall into a later run.
            if calls and (number == 0 or job.key not in self._history.disturbed):
                runs.append(_Run(job.key, job.due_at, min(calls), ended_at, is_first=number == 0))
        return runs

    def _ends(self, row: Row) -> list[datetime]:
        return [*(since for since, _ in row.over), row.settled_at or _FOREVER]

    def _asked(self, key: str) -> _Asked | None:
        job = self._jobs.get(key)
        if job is not None:
            return _Asked(
                job.tenant, job.delivery, job.due_at, job.payload, job.expires_at, job.hastened_at, job.ends_by
            )
        fires = self._fires.get(_schedule_of(key))
        if fires is None:
            return None
        at = parse_instant(key.partition(":")[2])
        is_owed = at in fires.due or at in fires.possible
        return _Asked(fires.tenant, fires.delivery, at, fires.payload) if is_owed else None

    @cached_property
    def _cancelled(self) -> frozenset[str]:
        return frozenset(cancel.key for cancel in self._history.cancels if cancel.is_final)

    def _standing(self, key: str) -> str:
        row = self._history.rows.get(key)
        state = f"{row.state} at attempt {row.attempt}" if row else "without a row"
        return f"{state}; {self._letters[key]} dead letters; its target saw {_listed(self._calls[key])}"


_FOREVER = datetime.max.replace(tzinfo=UTC)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_PASSES_FOR_LOST = timedelta(minutes=55)
"""Of which nothing is known for an hour, by any clock, is passed over."""

_TO_A_CALL = SECOND
"""From the look at a clock until a call begins."""
_RESOLUTION = MILLISECOND
"""Instants are kept in whole milliseconds."""


def _is_under_way(call: Call, at: datetime) -> bool:
    """Whether a call has its permit then: a target that answered 202 has given it back."""
    return not call.is_held and call.is_taken and at < call.until


def _schedule_of(key: str) -> str:
    return key.partition(":")[0]


def _fire_key(fires: Fires, at: datetime) -> str:
    tenant, _, schedule_id = fires.key.partition("#")
    return f"{tenant}#{identity_of(schedule_id, at)}"


def _listed(calls: Sequence[Call]) -> str:
    if not calls:
        return "no call"
    return ", ".join(
        f"attempt {call.attempt} with fence {call.fence} at {call.called_at:%H:%M:%S.%f} ({call.answer})"
        for call in calls
    )
