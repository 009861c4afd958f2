"""What is promised about operations: they change only selected jobs, each once, and leave none out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from functions.domain.far_ring.timer_key import is_alarm_key, owner_of
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import REQUEST_LIMIT, LedgerRow
from functions.domain.jobs.collection import release_in
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.lifecycle import State
from functions.domain.operations.operation import Operation, OperationKind, OperationState
from functions.domain.wheel import Wheel
from testkit.fakes import FakeClock, InMemoryExportStore
from testkit.world.carriers import timer_of
from testkit.world.stores import SeenLedger, SeenOperations, SeenTimers

OPERATES = "operate"
"""How the processes that carry operations on are called."""

CLOCKS_DIFFER = 6 * SECOND
"""At most, those of whoever asks for an operation and of whoever writes a row."""


class Stores(Protocol):
    """What outlives every process."""

    wheel: Wheel
    clock: FakeClock
    timers: SeenTimers
    ledger: SeenLedger
    operations: SeenOperations
    exports: InMemoryExportStore


class Expecting(Protocol):
    """Whoever notes violations."""

    def expect(self, is_true: bool, violation: str) -> None:
        """Note a violation."""


@dataclass(frozen=True)
class _Row:
    timer: Timer
    key: str
    written_at: datetime


@dataclass
class _Asked:
    """An operation as it was asked for. meant: rows of ledgered jobs, by the jobs.

    removed: jobs that have lost a row since. moved: jobs that it has given another time, by their first keys.
    exported: those that an export must have.
    """

    operation: Operation
    asked_at: datetime
    meant: dict[str, _Row]
    removed: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    exported: set[str] = field(default_factory=set)
    has_ended: bool = False


class OperationPromises:
    """Everything that follows from what was asked for."""

    def __init__(self, stores: Stores, promises: Expecting) -> None:
        self._stores = stores
        self._promises = promises
        self._asked: dict[str, _Asked] = {}
        self._put_at: dict[str, datetime] = {}
        self._first_keys: dict[str, str] = {}
        self._replayed: set[str] = set()

    def look(self) -> None:
        """After a call that may change it: what is new, and what has ended."""
        now = self._stores.clock.instant
        for key in self._stores.timers.written:
            self._put_at.setdefault("#".join(owner_of(key)), now)
        for operation in self._stores.operations.rows.values():
            if operation.operation_id not in self._asked:
                self._asked[operation.operation_id] = _Asked(operation, now, self._meant(operation))
            asked = self._asked[operation.operation_id]
            if operation.state.is_over and not asked.has_ended:
                asked.has_ended = True
                if operation.state is OperationState.DONE and not operation.dry_run:
                    self._check_complete(asked, operation)

    def replayed(self, key: str) -> None:
        """It goes on after its end."""
        self._replayed.add(key)

    def removed(self, timer: Timer, *, by_operation: bool) -> None:
        """A far row has been removed."""
        for asked in self._asked.values():
            asked.removed.add(timer.job.key)
        if by_operation:
            self._touched(timer)

    def cancelled(self, timer: Timer) -> None:
        """A turn has cancelled a job, or asked for that."""
        self._touched(timer)

    def moved(self, key: str, row: LedgerRow, *, by_operation: bool) -> None:
        """A job goes on under another key."""
        to = parse_job_id(row.moved_to)
        first_key = self._first_keys.get(key, key)
        self._first_keys[to.key] = first_key
        if not by_operation:
            return
        by = to.due_at - parse_job_id(row.job_id).due_at
        movers = [asked for asked in self._asked.values() if asked.operation.shift and asked.operation.shift.by == by]
        self._promises.expect(len(movers) == 1, f"no operation shifts by that: {key} by {by}")
        for asked in movers:
            self._promises.expect(first_key not in asked.moved, f"shifted twice: {first_key}")
            asked.moved.add(first_key)

    def check_exports(self) -> None:
        """Each holds what has waited all the time, once."""
        for operation_id, asked in self._asked.items():
            if not asked.exported:
                continue
            tenant = asked.operation.tenant
            parts = range(1, self._stores.operations.rows[tenant, operation_id].progress.parts + 1)
            lines = [line for part in parts for line in self._stores.exports.parts[tenant, operation_id, part]]
            exported = [parse_job_id(json.loads(line)["id"]).key for line in lines]
            for key in asked.exported:
                self._promises.expect(exported.count(key) == 1, f"not once in an export: {key} in {exported}")

    def open(self) -> list[Operation]:
        """Operations that are not over."""
        return [operation for operation in self._stores.operations.rows.values() if not operation.state.is_over]

    def _touched(self, timer: Timer) -> None:
        """A turn has done something to the job of a far row: some operation must mean it."""
        key = timer.job.key
        put_at = self._put_at.get(key)
        is_selected = any(
            asked.operation.wanted.tenant == timer.job.tenant
            and release_in(timer.job) is None
            and asked.operation.wanted.tag in ("", *timer.job.tags)
            and asked.operation.action is not OperationKind.EXPORT
            and not asked.operation.dry_run
            and (put_at is None or put_at <= asked.asked_at + CLOCKS_DIFFER)
            for asked in self._asked.values()
        )
        self._promises.expect(is_selected, f"no operation means it: {key}")

    def _meant(self, operation: Operation) -> dict[str, _Row]:
        found: dict[str, _Row] = {}
        for rows in self._stores.timers.rows.values():
            for key, record in rows.items():
                if is_alarm_key(key):
                    continue
                timer = timer_of(record, owner_of(key)[0])
                if release_in(timer.job) is not None:
                    continue  # of a collection: no job of its tenant's
                row = self._stores.ledger.rows.get(timer.job.key)
                written_at = self._stores.timers.written[key]
                is_selected = timer.job.tenant == operation.tenant and operation.wanted.matches(timer)
                is_over = row is not None and row.is_settled
                if is_selected and not is_over and timer.job.is_ledgered and written_at <= operation.created_at:
                    found[timer.job.key] = _Row(timer, key, written_at)
        return found

    def _check_complete(self, asked: _Asked, operation: Operation) -> None:
        for key, met in asked.meant.items():
            timer = met.timer
            is_rewritten = self._stores.timers.written[met.key] != met.written_at
            if key in asked.removed or key in self._replayed or is_rewritten:
                continue  # somebody else has let it run, or submitted it, or given it another budget
            row = self._stores.ledger.rows.get(key)
            is_first = timer.attempt == 1 and timer.due_at == timer.job.scheduled_at
            if operation.action is OperationKind.CANCEL:
                is_stopped = row is not None and (row.is_settled or row.cancel_requested)
                self._promises.expect(is_stopped, f"left out by a cancel: {key} is {row}")
            elif is_first and row is None and self._is_far(timer) and not operation.progress.refused:
                is_export = operation.action is OperationKind.EXPORT
                self._promises.expect(is_export, f"left out by a {operation.action}: {key}")
                asked.exported.add(key)

    def _is_far(self, timer: Timer) -> bool:
        """Whether whoever asked for it while its operation was open could have changed it."""
        wheel = self._stores.wheel
        return timer.due_at - self._stores.clock.instant > wheel.guard + wheel.skew + REQUEST_LIMIT + CLOCKS_DIFFER


def is_cancelled_by(old: LedgerRow | None, row: LedgerRow) -> bool:
    """Whether a write has cancelled a job, or asked for that."""
    was_cancelled = old is not None and (old.state is State.CANCELLED or old.cancel_requested)
    return not was_cancelled and (row.state is State.CANCELLED or row.cancel_requested)
