"""Carry operations on: walk over a tenant's rows in the far ring, and do to each selected job what one request does.

An operation continues from its last step when a turn of it dies: what is repeated is found to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.faults import fault_of
from functions.domain.operations.operation import (
    Example,
    Operation,
    OperationKind,
    OperationState,
    Stretch,
    rest_of,
    share_done,
    stretches,
)
from functions.domain.wheel import Wheel
from functions.operations.apply_to_job import NOT_PLACED, Applier, SelectedJob
from functions.operations.export import ExportPart, describe
from functions.operations.row_walk import Finding, Walk
from functions.operations.selected_jobs import SelectedJobs
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.operations import ExportStore, OperationStore
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.tenants import TenantPlans
from functions.ports.timers import TimerStore
from functions.services.tenants.submission_rates import SubmissionRates

LEASE = timedelta(minutes=2)
"""Prolonged by every step: a turn that dies holds its operation no longer than this and SKEW."""

STEP = timedelta(seconds=5)
PAGE = 100
AHEAD = timedelta(seconds=60)
"""How far ahead jobs that are to run are staggered, and half as much again for the last page of a turn."""

MOST_FAILURES = 10
"""Turns in a row that end in an error, after which an operation is given up."""

MAKING_WORK = (OperationKind.RUN_NOW, OperationKind.RESCHEDULE)
"""What takes from the submission rate of its tenant, a job at a time. What cancels and exports makes none."""

ENOUGH_FAILURES = 3
"""Turns after which jobs that cannot be stored no longer hold up the others: they are counted as refused."""

_MOST_OPEN = 1_000
_LONGEST_ERROR = 400


@dataclass(slots=True)
class WorkReport:
    """What one turn did."""

    worked: int = 0
    ended: int = 0
    jobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationExecutor:
    """Carries operations on. token: a fresh owner token.

    side_by_side: maps a function over items at the same time, answers in order.
    """

    wheel: Wheel
    clock: Clock
    operations: OperationStore
    timers: TimerStore
    ledger: Ledger
    payloads: PayloadStore
    exports: ExportStore
    applier: Applier
    plans: TenantPlans
    submission_rates: SubmissionRates
    journal: Journal
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
    audit: AuditTrail

    def carry_on(self, *, time_limit: timedelta) -> WorkReport:
        """Carry on what is open, oldest first, each for its share of at most 80 % of the time limit."""
        report = WorkReport()
        ends_at = self.clock.monotonic() + 0.8 * time_limit.total_seconds()
        waiting = self.operations.open(limit=_MOST_OPEN)
        for number, (tenant, operation_id) in enumerate(waiting):
            left = ends_at - self.clock.monotonic()
            if left <= 0:
                break
            try:
                if self.plans.of(tenant).is_deleted:
                    continue  # it goes with its tenant
                self._take_turn(tenant, operation_id, time=left / (len(waiting) - number), report=report)
            except Exception as error:  # noqa: BLE001  one that cannot even be read must not hold up the others
                name = {"operation": operation_id, "tenant": tenant}
                self.journal.event("operation_failed", **name, error=_text_of(error))
                self.journal.count("operation_failures")
        return report

    def _take_turn(self, tenant: str, operation_id: str, *, time: float, report: WorkReport) -> None:
        now = self.clock.now()
        operation = self.operations.take(
            tenant, operation_id, owner=self.token(), lease_until=now + LEASE, now=now, skew=self.wheel.skew
        )
        if operation is None:
            return
        turn = _Turn(self, operation, ends_at=self.clock.monotonic() + time)
        turn.run()
        report.worked += 1
        report.ended += turn.has_ended
        report.jobs += turn.jobs


@dataclass(slots=True)
class _Turn:
    """One turn of an operation: what is recorded of it, and what has been done since.

    _fault: why the turn is over. _repeats_page: the next turn begins at the same page.
    _is_throttled: its tenant submits as much as it may, and will for longer than this turn: the rest waits for the next one.
    _done_before: jobs that it had been done to when the turn began.
    """

    executor: OperationExecutor
    operation: Operation
    ends_at: float
    has_ended: bool = False
    jobs: int = 0
    _way: Sequence[Stretch] = ()
    _part: ExportPart = field(default_factory=ExportPart)
    _fault: str = ""
    _repeats_page: bool = False
    _is_throttled: bool = False
    _done_before: int = field(init=False)
    _selected: SelectedJobs = field(init=False)

    def __post_init__(self) -> None:
        self._done_before = self.operation.progress.done
        self._selected = SelectedJobs(ledger=self.executor.ledger, clock=self.executor.clock)

    def run(self) -> None:
        """Until its end, the end of its time, or an error, after which the next turn continues."""
        try:
            self._walk()
        except Exception as error:  # noqa: BLE001  one that fails must not hold up the others
            self._fail(_text_of(error))

    def _walk(self) -> None:
        if self.operation.stop_requested:
            self._end(OperationState.STOPPED)
            return
        executor = self.executor
        marked = executor.timers.days(self.operation.tenant)
        self._way = stretches(marked, self.operation.wanted, wheel=executor.wheel)
        recorded_at = executor.clock.monotonic()
        for finding in self._the_walk().findings(rest_of(self._way, self.operation.progress.place)):
            if self._is_ahead():
                self._record(is_last=True)
                return
            for part, selected in self._admitted(finding):
                self._act(part, selected)
                if self._fault:
                    self._note_failure(self._fault)
                    return
                now = executor.clock.monotonic()
                is_over = now >= self.ends_at
                if is_over or self._part.is_full or now - recorded_at >= STEP.total_seconds():
                    if not self._record(is_last=is_over):
                        return
                    recorded_at = now
            if self._is_throttled:
                self._record(is_last=True)
                return
        self._end(OperationState.DONE)

    def _the_walk(self) -> Walk:
        executor, page = self.executor, PAGE
        if self.operation.action is OperationKind.RUN_NOW:
            # However slow: none may be staggered into the far ring, where the walk would find it again.
            page = min(PAGE, int(self.operation.rate * AHEAD.total_seconds() / 2))
        return Walk(
            wheel=executor.wheel,
            timers=executor.timers,
            tenant=self.operation.tenant,
            page=page,
            side_by_side=executor.side_by_side,
        )

    def _act(self, finding: Finding, selected: Sequence[SelectedJob]) -> None:
        """Do it to the selected jobs of a part of a page that wait."""
        refused: list[Example] = []
        shown: list[Example] = []
        done: list[str] = []
        if self.operation.dry_run:
            shown = [Example(str(job.job_id)) for job in selected]
        elif self.operation.action is OperationKind.EXPORT:
            payloads = self.executor.payloads
            self._part.add(self.executor.side_by_side(lambda job: describe(job, payloads), selected))
            done = [str(job.job_id) for job in selected]
        elif selected:
            done, refused = self._act_on(selected)
        self.jobs += len(done)
        # Where a page is read again, only jobs that are done already count: they are not selected again.
        examined, matched = (0, len(done)) if self._repeats_page else (len(finding.rows), len(selected))
        progress = self.operation.progress.counting(
            examined=examined, matched=matched, done=len(done), refused=refused, shown=shown
        )
        if not self._repeats_page:
            progress = replace(progress, place=finding.place)
        self.operation = replace(self.operation, progress=progress)

    def _admitted(self, finding: Finding) -> Iterator[tuple[Finding, Sequence[SelectedJob]]]:
        """A page, with the selected jobs; where that creates work, in parts that its tenant may submit, each in its time."""
        selected = self._selected.of(self.operation, finding.rows)
        takes = not self.operation.dry_run and self.operation.action in MAKING_WORK
        while takes:
            taken = self.executor.submission_rates.take(self.operation.tenant, len(selected))
            if taken.refusal is None:
                break
            following, selected = selected[taken.count :], selected[: taken.count]
            end = next(number for number, row in enumerate(finding.rows) if row.timer is following[0].timer)
            # Without a row the walk stays where it is.
            if rows := finding.rows[:end]:
                yield Finding(rows, finding.place._replace(key=rows[-1].key)), selected
            if not self._has_waited(taken.refusal.retry_after):
                self._is_throttled = True
                return
            finding, selected = Finding(finding.rows[end:], finding.place), following
        yield finding, selected

    def _has_waited(self, wait: timedelta) -> bool:
        """False where that would be longer than this turn, or than its lease surely bears."""
        clock = self.executor.clock
        if wait > LEASE / 2 or clock.monotonic() + wait.total_seconds() >= self.ends_at:
            return False
        clock.sleep(wait)
        return True

    def _act_on(self, selected: Sequence[SelectedJob]) -> tuple[list[str], list[Example]]:
        """The ids of those that it was done to, and the others."""
        executor, operation = self.executor, self.operation
        pairs = list(zip(selected, self._staggered(len(selected)), strict=True))
        answers = executor.side_by_side(lambda pair: executor.applier.apply(operation, *pair), pairs)
        done = [str(job.job_id) for job, answer in zip(selected, answers, strict=True) if answer is None]
        # A page at a time: a turn lasts minutes, and the next one after a crash finds these jobs done and reports nothing about them.
        executor.audit.flush()
        if done:
            executor.journal.event("operation_acted", **self.operation.log_keys, jobs=done)
        refused = [answer for answer in answers if isinstance(answer, Example)]
        unplaced = [answer for answer in refused if answer.code == NOT_PLACED]
        faults = [_text_of(answer) for answer in answers if isinstance(answer, Exception)]
        is_patient = operation.progress.failures < ENOUGH_FAILURES
        self._repeats_page = bool(faults) or (bool(unplaced) and is_patient)
        # Where nothing could be stored, it may be the jobs or the store: the next turn shows which.
        if self._repeats_page or (unplaced and not done):
            self._fault = next(iter(faults), "") or unplaced[0].detail
        return done, [] if self._repeats_page else refused

    def _staggered(self, count: int) -> list[datetime | None]:
        """When each of the next jobs is to run."""
        if self.operation.action is not OperationKind.RUN_NOW:
            return [None] * count
        gap = timedelta(seconds=1) / self.operation.rate
        now = self.executor.clock.now()
        first = max(self.operation.progress.due_at or now, now)
        self._note(due_at=first + count * gap)
        return [first + number * gap for number in range(count)]

    def _is_ahead(self) -> bool:
        due_at = self.operation.progress.due_at
        return due_at is not None and due_at > self.executor.clock.now() + AHEAD

    def _record(self, *, is_last: bool) -> bool:
        """A step: what has been done so far is on record. False when the turn is over."""
        if not self._put_part():
            return False
        progress = self.operation.progress
        progress = replace(progress, share=share_done(self._way, progress.place))
        if is_last:
            progress = replace(progress, failures=0, error="")
        lease_until = None if is_last else self.executor.clock.now() + LEASE
        saved = self.executor.operations.save(replace(self.operation, progress=progress), lease_until=lease_until)
        if saved is None:
            return False  # the lease was over: another turn continues from the last step
        self.operation = saved
        if saved.stop_requested:
            self._end(OperationState.STOPPED)
            return False
        return not is_last

    def _put_part(self) -> bool:
        """False when the lease is over: another turn may be about to put a part of that number, with more in it."""
        if not self._part.lines:
            return True
        lease_until = self.operation.lease_until
        if lease_until is None or lease_until < self.executor.clock.now():
            return False
        number = self.operation.progress.parts + 1
        self._part.put(self.executor.exports, self.operation.tenant, self.operation.operation_id, number)
        self._note(parts=number)
        return True

    def _end(self, state: OperationState, *, error: str = "") -> None:
        if not self._put_part():
            return
        share = 1.0 if state is OperationState.DONE else self.operation.progress.share
        progress = replace(self.operation.progress, share=share, error=error)
        ended = replace(self.operation, state=state, progress=progress, ended_at=self.executor.clock.now())
        if not self.executor.operations.finish(ended):
            return
        self.has_ended = True
        self.executor.journal.event(
            "operation_ended",
            **self.operation.log_keys,
            state=state.value,
            matched=progress.matched,
            done=progress.done,
            refused=dict(progress.refused),
            error=error,
        )

    def _fail(self, error: str) -> None:
        """The steps on record stand. What was done since the last is done again, and finds itself done."""
        operation = self.operation
        recorded = self.executor.operations.get(operation.tenant, operation.operation_id)
        if recorded is None or recorded.owner != operation.owner or recorded.state.is_over:
            self._report_failure(error)
            return
        # Instants that were given to jobs stay given: what is done again comes behind them.
        self.operation = replace(recorded, progress=replace(recorded.progress, due_at=operation.progress.due_at))
        self._part = ExportPart()
        self._note_failure(error)

    def _note_failure(self, error: str) -> None:
        """The turn is over, and the next one continues from here."""
        self._report_failure(error)
        progress = self.operation.progress
        failures = 1 if progress.done > self._done_before else progress.failures + 1
        self._note(failures=failures, error=error)
        if failures >= MOST_FAILURES:
            self._end(OperationState.FAILED, error=error)
        else:
            self.executor.operations.save(self.operation, lease_until=None)

    def _note(self, **changes: Any) -> None:
        self.operation = replace(self.operation, progress=replace(self.operation.progress, **changes))

    def _report_failure(self, error: str) -> None:
        self.executor.journal.event("operation_failed", **self.operation.log_keys, error=error)
        self.executor.journal.count("operation_failures")


def _text_of(error: Exception) -> str:
    return fault_of(error)[:_LONGEST_ERROR]
