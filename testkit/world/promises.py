"""What the scheduler has promised, and whether it keeps it: asked at every call of a target, and after every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from functions.api.jobs.submit import Accepted
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.far_ring.cursor import Cursors
from functions.domain.jobs.callbacks import is_callback
from functions.domain.jobs.claims import LEASE_MARGIN, MAX_RESCUES, LedgerRow
from functions.domain.jobs.collection import release_in
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from functions.domain.lifecycle import TRANSITIONS, State
from functions.ports.targets import Invocation
from testkit.fakes import InMemoryExportStore
from testkit.world.accepted import Expected
from testkit.world.callbacks import CallbackPromises
from testkit.world.calls import CallPromises
from testkit.world.carriers import carriers, leads_on
from testkit.world.collected import ReleasedJobs, given_in
from testkit.world.collections import CollectionPromises
from testkit.world.fires import Run
from testkit.world.flows import FlowPromises
from testkit.world.operated import OPERATES, OperationPromises, is_cancelled_by
from testkit.world.process import Process
from testkit.world.schedules import SchedulePromises
from testkit.world.stores import KeptByAll, SeenDeadLetters, SeenOperations

_MOVES = {(source, to) for sources, to in TRANSITIONS.values() for source in (*sources, to)}


class Stores(KeptByAll, Protocol):
    """What outlives every process."""

    dead_letters: SeenDeadLetters
    operations: SeenOperations
    exports: InMemoryExportStore


class Promises:
    """Everything that was promised. broken: what was not kept."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.jobs: dict[str, Expected] = {}
        self.sent: dict[str, Submission] = {}
        self.runs: dict[str, list[Run]] = {}
        self.broken: list[str] = []
        self.refused_keys: set[str] = set()
        self.schedules = SchedulePromises(stores, self)
        self.operations = OperationPromises(stores, self)
        self.at_once = CallPromises(self.expect)
        self.flows = FlowPromises(stores, self.expect, jobs=self.jobs)
        self.collections = CollectionPromises(stores, self.expect, jobs=self.jobs, runs=self.runs)
        self.callbacks = CallbackPromises(self.expect)
        self.released = ReleasedJobs(self.expect)
        self._answered: dict[str, str] = {}
        self._successes: Counter[str] = Counter()
        self._lapses: Counter[str] = Counter()
        self._held_up: set[str] = set()
        self._in_company: set[tuple[str, int]] = set()
        self._releases: Counter[str] = Counter()
        self._completed: set[str] = set()
        self._reported_as_failed: set[str] = set()
        self._replays: Counter[str] = Counter()
        self._held: list[Run] = []

    def expect(self, is_true: bool, violation: str) -> None:
        """Note a violation."""
        if not is_true:
            self.broken.append(violation)

    def submitted(self, submission: Submission) -> None:
        """A client has sent it, whatever becomes of it: it may send it again."""
        self.collections.is_used |= submission.collect is not None
        self.flows.submitted(submission)
        if submission.idempotency_key is not None:
            self.sent.setdefault(submission.idempotency_key, submission)

    def accepted(self, submission: Submission, answer: Accepted) -> None:
        """A client received that its job will run."""
        first = self._answered.setdefault(parse_job_id(answer.job_id).key, answer.job_id)
        self.expect(first == answer.job_id, f"two ids: answered {first} and {answer.job_id}")
        if answer.job_id not in self.jobs:
            self.jobs[answer.job_id] = self._expected(answer.job_id, submission)

    def waiting(self) -> list[str]:
        """The ids of jobs that may be worth a cancel."""
        settled = {key for key, row in self._stores.ledger.rows.items() if row.is_settled}
        return [job_id for job_id, expected in self.jobs.items() if expected.job_id.key not in settled]

    def cancelled(self, job_id: str) -> None:
        """A client received that its job will not run."""
        self.jobs[job_id].is_cancelled = True

    def cancel_requested(self, job_id: str) -> None:
        """A client received that no attempt will follow the one that is running."""
        expected = self.jobs[job_id]
        row = self._stores.ledger.rows.get(expected.job_id.key)
        if expected.last_attempt is None and row is not None:
            expected.last_attempt = row.attempt

    def held(self, run: Run) -> None:
        """A target answered 202."""
        self._held.append(run)
        self.at_once.goes_on(run)
        self.flows.goes_on(run)

    def running(self) -> list[Run]:
        """What targets go on with by themselves."""
        return [run for run in self._held if not run.has_ended]

    def completed(self, run: Run) -> None:
        """A target received that its success is recorded."""
        key = parse_job_id(run.job_id).key
        row = self._stores.ledger.rows.get(key)
        is_its_own = row is not None and row.fence == run.fence
        self.expect(is_its_own, f"a stale fence was heard: {run.job_id} with {run.fence}, its row is {row}")
        self._completed.add(key)

    def has_failed(self, run: Run) -> None:
        """A target reports that it has failed."""
        self._reported_as_failed.add(parse_job_id(run.job_id).key)

    def replayed(self, letter_id: DeadLetterId) -> None:
        """An operator asks for another budget of attempts."""
        key = f"{letter_id.tenant}#{letter_id.identity}"
        self._replays[key] += 1
        self.operations.replayed(key)
        self.schedules.fires.replayed(key)
        self.flows.replayed(key)
        self.callbacks.replayed(key)
        for expected in self.jobs.values():
            if expected.job_id.key == key:
                expected.last_attempt = None  # a cancel that came too late is forgotten

    def _moved(self, key: str, row: LedgerRow) -> None:
        """It continues under another id, whether its client receives that or not."""
        for expected in [expected for expected in self.jobs.values() if expected.job_id.key == key]:
            self.jobs[row.moved_to] = self._expected(row.moved_to, expected.submission)

    def _cancelled(self, key: str, row: LedgerRow, *, by_operation: bool) -> None:
        """What carries it is there until later: it says what the job was."""
        for timer in carriers(self._stores).get(key, ()):
            if is_callback(timer.job.identity):
                self.callbacks.cancelled(timer)
        timer = self._stores.timers.get(parse_job_id(row.job_id)) if row.job_id else None
        if timer is not None and by_operation:
            self.operations.cancelled(timer)

    def _expected(self, job_id: str, submission: Submission) -> Expected:
        known, known_at = self._stores.history.moment, self._stores.clock.instant
        return Expected(parse_job_id(job_id), submission, known=known, known_at=known_at)

    def ledger_changed(self, before: Mapping[str, LedgerRow], after: Mapping[str, LedgerRow], process: Process) -> None:
        """The rows around one call: states change by the lifecycle's table, and fences only grow."""
        for key, row in after.items():
            old = before.get(key)
            if old is row:
                continue
            state, fence = (old.state, old.fence) if old else (State.ABSENT, 0)
            self.expect((state, row.state) in _MOVES, f"the lifecycle was left: {key} from {state} to {row.state}")
            self.expect(row.fence >= fence, f"the fence did not grow: {key}")
            by_operation = process.name.startswith(OPERATES)
            if row.state is State.MOVED and state is not State.MOVED:
                self._moved(key, row)
                self.operations.moved(key, row, by_operation=by_operation)
            if is_cancelled_by(old, row):
                self._cancelled(key, row, by_operation=by_operation)
            if row.is_settled and not (old is not None and old.is_settled):
                self.callbacks.ended(key, row.state)
            if row.state is State.SUCCEEDED and state is not State.SUCCEEDED:
                self._successes[key] += 1
                self.expect(self._successes[key] == 1, f"settled twice: {key}")
            self._releases[key] += state is State.RUNNING and row.state is State.SCHEDULED
            is_taken = row.fence > fence
            has_lapsed = state is State.RUNNING and (is_taken or row.state is State.FAILED)
            self._lapses[key] += has_lapsed and (key, fence) not in self._in_company
            if is_taken and process.is_in_company:
                self._in_company.add((key, row.fence))
            self.collections.ledger_changed(key, old, row)
            self.schedules.fires.ledger_changed(key, old, row, process)

    def cursors_moved(self, shard: int, before: Cursors, after: Cursors) -> None:
        """What a shard has passed stays passed."""
        for priority, cursor in before.items():
            now = after[priority]
            self.expect(now.at >= cursor.at, f"a cursor went back: shard {shard}, {priority.name}, to {now.at}")
            for tenant in {*cursor.own, *now.own}:
                was, at = cursor.position_of(tenant), now.position_of(tenant)
                self.expect(at >= was, f"a cursor went back: shard {shard}, {priority.name}, {tenant}, to {at}")

    def begin(
        self, timer: Timer, invocation: Invocation, payload: str | None, process: Process, called_at: datetime
    ) -> Run | None:
        """A target is called: all that must be true at that moment. called_at: by the worker's clock.

        None when a request has been held up until its lease was over: only its fence can stop it, and does.
        """
        runs = self.runs.setdefault(timer.job.key, [])
        run = Run(
            job_id=invocation.job_id,
            attempt=invocation.attempt,
            fence=invocation.fence,
            clock=process.clock,
            lease_until=invocation.deadline + LEASE_MARGIN,
        )
        is_leased = timer.job.delivery is Delivery.EXACTLY_ONCE
        if is_leased:
            longest = timer.job.timeout if timer.ends_by is None else min(timer.job.timeout, timer.ends_by - called_at)
            self.expect(called_at + longest <= run.lease_until, f"called at the end of its lease: {run.job_id}")
        if is_leased and called_at < process.clock.now() and not run.is_live:
            self._held_up.add(timer.job.key)
            return None
        self._check_time(timer, run, called_at)
        self.callbacks.begin(timer, payload)
        self.released.begin(timer, given_in(timer, payload) or ())
        if release_in(timer.job) is not None:
            pass  # the same release may be due at several times, and has an id for each
        elif timer.job.occurrence is None:
            self._check_identity(timer, run, runs, payload)
        else:
            self.schedules.fires.begin(timer, run, payload, process, called_at=called_at, is_again=bool(runs))
        match timer.job.delivery:
            case Delivery.AT_MOST_ONCE:
                self.expect(not runs, f"at most once ran again: {run.job_id}")
            case Delivery.EXACTLY_ONCE:
                self._check_fences(run, runs)
            case Delivery.AT_LEAST_ONCE:
                pass
        runs.append(run)
        self.at_once.begin(timer.job.tenant, run, process, ends_at=called_at + timer.job.timeout)
        self.flows.begin(timer, run, process, called_at=called_at)
        self.collections.begin(timer, run, payload, process, called_at=called_at)
        return run

    def _check_time(self, timer: Timer, run: Run, called_at: datetime) -> None:
        job = timer.job
        self.expect(called_at >= timer.due_at, f"early: {run.job_id} at {called_at}, due {timer.due_at}")
        claimed_at = run.lease_until - LEASE_MARGIN - job.timeout
        is_in_time = job.run_deadline is None or called_at < claimed_at + job.timeout
        self.expect(is_in_time, f"called after the deadline of its run: {run.job_id}")
        is_expired = job.expires_at is not None and claimed_at >= job.expires_at
        self.expect(not is_expired, f"ran after it expired: {run.job_id}")

    def _check_identity(self, timer: Timer, run: Run, runs: list[Run], payload: str | None) -> None:
        expected = self.jobs.get(run.job_id)
        others = {other.job_id for other in runs} - {run.job_id}
        self.expect(not others, f"two ids: of one key ran {run.job_id} and {others}")
        answered = self._answered.get(timer.job.key, run.job_id)
        self.expect(run.job_id == answered, f"two ids: answered {answered}, ran {run.job_id}")
        if expected is None:
            return
        self.expect(not expected.is_cancelled, f"ran after its cancel: {run.job_id}")
        is_further = expected.last_attempt is not None and run.attempt > expected.last_attempt
        self.expect(not is_further, f"tried again after its cancel was requested: {run.job_id}")
        self.expect(timer.job.tenant == expected.submission.tenant, f"tenants mixed: {run.job_id}")
        self.expect(payload == expected.submission.payload, f"ran with another payload: {run.job_id}")

    def is_done_without_ledger(self, key: str) -> bool:
        """Whether an at_least_once job has had its effect, or is a dead letter."""
        letters = self._stores.dead_letters.letters.values()
        is_buried = any(f"{letter.tenant}#{letter.identity}" == key for letter in letters)
        return is_buried or any(run.is_success for run in self.runs.get(key, ()))

    def _check_fences(self, run: Run, runs: list[Run]) -> None:
        key = parse_job_id(run.job_id).key
        row = self._stores.ledger.rows.get(key)
        self.expect(row is not None and not row.is_settled, f"ran after it was settled: {run.job_id} is {row}")
        self.expect(not any(other.is_live for other in runs), f"two live runs: {run.job_id}")
        self.expect(all(other.fence < run.fence for other in runs), f"the fence did not grow: {run.job_id}")
        self.expect(all(other.attempt <= run.attempt for other in runs), f"attempts ran backwards: {run.job_id}")
        of_this_attempt = sum(other.attempt == run.attempt for other in runs) + 1
        # What was released is claimed afresh, with as many lives as the first time.
        most = (1 + MAX_RESCUES) * (1 + self._releases[key])
        self.expect(of_this_attempt <= most, f"run without end: {run.job_id} for the {of_this_attempt}th time")

    def check_nothing_lost(self, *, is_over: bool = False) -> None:
        """Each job that was promised is still on its way, or has come to its end. is_over: it must have."""
        stores = self._stores
        on_their_way = carriers(stores)
        buried = {letter.job_id for letter in stores.dead_letters.letters.values()}
        for job_id, expected in self.jobs.items():
            row = stores.ledger.rows.get(expected.job_id.key)
            if self._has_ended(expected, row, is_buried=job_id in buried):
                continue
            timers = on_their_way.get(expected.job_id.key, ())
            is_carried = not is_over and any(leads_on(timer, row) for timer in timers)
            attempts = sorted({timer.attempt for timer in timers})
            self.expect(is_carried, f"lost: {job_id} is {row}, on its way: {attempts}")
        for key in self._completed:
            row = stores.ledger.rows.get(key)
            is_kept = row is not None and row.state is State.SUCCEEDED
            self.expect(is_kept, f"its target got the answer that it is done: {key} is {row}")

    def _has_ended(self, expected: Expected, row: LedgerRow | None, *, is_buried: bool) -> bool:
        if expected.is_cancelled:
            return True
        if expected.job_id.delivery is not Delivery.AT_LEAST_ONCE:
            return row is not None and row.is_settled
        if row is not None and row.state is State.CANCELLED:
            return True
        expires_after = expected.submission.expires_after
        # Its worker's clock may be ahead.
        latest = self._stores.clock.instant + self._stores.wheel.skew
        if expires_after is not None and latest >= expected.job_id.due_at + expires_after:
            return True
        succeeded = any(run.is_success for run in self.runs.get(expected.job_id.key, ()))
        return succeeded or is_buried or bool(expected.removed_by)

    def check_callbacks(self) -> None:
        """All is over: each end was told to who asked for it."""
        asked = {each.job_id: each.submission.callbacks for each in self.jobs.values() if each.submission.callbacks}
        letters = list(self._stores.dead_letters.letters.values())
        self.callbacks.check(
            asked,
            rows=self._stores.ledger.rows,
            letters=letters,
            succeeded=lambda key: any(run.is_success for run in self.runs.get(key, ())),
        )

    def check_dead_letters(self) -> None:
        """A dead letter and its failed row are one; a job has one at most, and has deserved it."""
        timers = [letter.timer for letter in self._stores.dead_letters.letters.values() if letter.timer is not None]
        letters = Counter(timer.job.key for timer in timers if timer.job.is_ledgered)
        for key, row in self._stores.ledger.rows.items():
            has_failed = row.state is State.FAILED
            self.expect(not has_failed or letters[key] > 0, f"failed without a dead letter: {key}")
            # The letter of a replay that died before its end stays.
            is_fair = has_failed or not letters[key] or key in self._replays
            self.expect(is_fair, f"a dead letter without having failed: {key} is {row}")
            self.expect(letters[key] <= 1 + self._replays[key], f"two dead letters: {key}")
        for letter in self._stores.dead_letters.letters.values():
            if letter.timer is not None:
                is_deserved = self._deserves(letter.timer) or self._took_too_long(letter.timer, letter.dead_at)
                self.expect(is_deserved, f"buried without deaths: {letter.timer.job.key}")

    def _deserves(self, timer: Timer) -> bool:
        """Whether a dead letter is in order: its queue refused it, an attempt failed, or a worker died of it alone."""
        key, keys = timer.job.key, self.collections.keys_of(timer)
        has_failed = any(run.has_ended and not run.is_success for run in self.runs.get(key, ()))
        chosen_for = self.released.releases_of(key)
        # Of a release whose workers have died each of its jobs has failed an attempt.
        has_failed = has_failed or any(self.runs.get(each) or self._lapses[each] for each in chosen_for)
        has_lapsed = any(self._lapses[each] > 0 or each in self._held_up for each in keys) or not timer.job.is_ledgered
        # Of a held attempt: it was completed, or timed out.
        fell_silent = any(parse_job_id(run.job_id).key == key and not run.is_success for run in self._held)
        has_failed = has_failed or fell_silent or key in self._reported_as_failed
        return "poison" in timer.job.target or has_failed or key in self.refused_keys or has_lapsed

    def _took_too_long(self, timer: Timer, instant: datetime) -> bool:
        """Whether its run had a deadline that was over by then, by a clock that may be ahead."""
        return timer.is_over_at(instant + self._stores.wheel.skew)

    def note_refusal(self, timer: Timer) -> None:
        """A queue has said that it will never take it."""
        self.refused_keys.add(timer.job.key)
        self.schedules.fires.refused(timer)
