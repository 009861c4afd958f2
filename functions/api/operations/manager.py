"""Accept operations on many jobs, and return their state. The executor carries them out, step by step."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.api.admission.admission import Admission
from functions.api.http.requests import HORIZON
from functions.api.operations.answers import filter_body, shift_body
from functions.domain.audit import Action, ActionName
from functions.domain.errors import InvalidInput, KeyReused, OperationNotFound, TooManyOperations
from functions.domain.faults import fault_of
from functions.domain.instants import MILLISECOND, format_instant, to_ms, to_the_millisecond
from functions.domain.jobs.claims import REQUEST_LIMIT
from functions.domain.jobs.job import TENANT
from functions.domain.operations import operation as rules
from functions.domain.targets.targets import destination_of
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.operations import ExportStore, OperationStore
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.timers import Waker

MOST_OPEN = 10
"""Operations of a tenant that are not over. Requests at the same moment may come to a few more."""

RETRY_AFTER = timedelta(seconds=60)
"""When a tenant that has so many may ask again."""

OPERATION_ID = re.compile(rf"{rules.MARK}[0-9a-z]{{25}}", re.ASCII)

_ID_DIGITS = 25
_MOST_COUNTED = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An operation as it was asked for. due_from, rate: None where that was not said."""

    tenant: str
    action: rules.OperationKind
    due_from: datetime | None = None
    due_until: datetime | None = None
    target: str = ""
    schedule_id: str = ""
    tag: str = ""
    shift: rules.Shift | None = None
    rate: float | None = None
    dry_run: bool = False

    @property
    def fingerprint(self) -> str:
        """What makes two requests the same one."""
        values = {
            "action": self.action.value,
            "due_from": _ms(self.due_from),
            "due_until": _ms(self.due_until),
            "target": self.target,
            "schedule": self.schedule_id,
            "tag": self.tag,
            "by": self.shift.by // MILLISECOND if self.shift and self.shift.by is not None else None,
            "to": _ms(self.shift.to) if self.shift else None,
            "spread": self.shift.spread // MILLISECOND if self.shift else 0,
            "rate": self.rate,
            "dry_run": self.dry_run,
        }
        # What is empty is left out: a field that comes later leaves those that do not say it their fingerprints.
        given = {name: value for name, value in values.items() if value}
        return hashlib.blake2b(json.dumps(given).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationManager:
    """Accepts, returns and stops operations. identity: a fresh random identity, in hexadecimal digits.

    caller: who asks, for the audit line.
    """

    wheel: Wheel
    clock: Clock
    operations: OperationStore
    exports: ExportStore
    waker: Waker
    journal: Journal
    admission: Admission
    identity: Callable[[], str]
    audit: AuditTrail

    def accept(self, asked: Asked, *, key: str | None, caller: str) -> rules.Operation:
        """The operation, open; or, under an idempotency key that was used, its first one as it stands.

        Raises InvalidInput, KeyReused, TooManyOperations, TenantClosed.
        """
        operation_id = rules.MARK + (self.identity() if key is None else _digest(asked.tenant, key))[:_ID_DIGITS]
        first = None if key is None else self.operations.get(asked.tenant, operation_id)
        if first is not None:
            return self._accepted_before(_same(first, asked), caller=caller)
        if asked.action is rules.OperationKind.RUN_NOW and not asked.dry_run:
            self.admission.check_open(asked.tenant)
        operation = self._operation(asked, operation_id, caller=caller)
        self._check_room(asked.tenant)
        found = self.operations.create(operation)
        # One of this very moment is its own, whose first write got no answer.
        if found is not None and found.created_at != operation.created_at:
            return self._accepted_before(_same(found, asked), caller=caller)
        self._note(ActionName.OPERATION_ACCEPT, operation, caller=caller, before=None)
        self.journal.event("operation_accepted", **operation.log_keys, **_described(operation))
        self._wake(operation)
        return operation

    def get(self, tenant: str, operation_id: str) -> rules.Operation:
        """The operation as it stands. Raises OperationNotFound."""
        operation = self.operations.get(*_checked(tenant, operation_id))
        if operation is None:
            raise OperationNotFound(tenant, operation_id)
        return operation

    def parts(self, operation: rules.Operation) -> Sequence[str] | None:
        """Where the files of an export may be downloaded for the next minutes; None of what has none."""
        is_there = operation.action is rules.OperationKind.EXPORT and operation.state is rules.OperationState.DONE
        if not is_there or operation.dry_run:
            return None
        return self.exports.urls(operation.tenant, operation.operation_id, operation.progress.parts)

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[Sequence[rules.Operation], str | None]:
        """A tenant's operations behind an id, in the order of their ids; where the next page begins, None at the end."""
        found, has_more = self.operations.page(tenant, after=after, limit=limit)
        return found, found[-1].operation_id if has_more and found else None

    def stop(self, tenant: str, operation_id: str, *, caller: str) -> rules.Operation:
        """Ask that it ends at its next step; nothing happens to what is over. Raises OperationNotFound."""
        operation = self.operations.stop(*_checked(tenant, operation_id))
        if operation is None:
            raise OperationNotFound(tenant, operation_id)
        self._note(ActionName.OPERATION_STOP, operation, caller=caller, before=None)
        if not operation.state.is_over:
            self.journal.event("operation_stop_requested", **operation.log_keys | {"caller": caller})
            self._wake(operation)
        return operation

    def _accepted_before(self, operation: rules.Operation, *, caller: str) -> rules.Operation:
        """Whoever repeats a request may have got no answer, and its line may be lost."""
        self._note(ActionName.OPERATION_ACCEPT, operation, caller=caller, before=_standing(operation))
        return operation

    def _note(
        self, action: ActionName, operation: rules.Operation, *, caller: str, before: Mapping[str, object] | None
    ) -> None:
        after = {**operation.log_keys, **_described(operation), **_standing(operation)}
        self.audit.note(
            Action(
                action=action,
                caller=caller,
                tenant=operation.tenant,
                subject=operation.operation_id,
                before=before,
                after=after,
            )
        )

    def _operation(self, asked: Asked, operation_id: str, *, caller: str) -> rules.Operation:
        now = to_the_millisecond(self.clock.now())
        if asked.shift is not None:
            self._check_shift(asked.shift, now=now)
        return rules.Operation(
            operation_id=operation_id,
            action=asked.action,
            wanted=_filter_of(asked, now=now),
            caller=caller,
            created_at=now,
            fingerprint=asked.fingerprint,
            shift=asked.shift,
            rate=asked.rate or rules.USUAL_RATE,
            dry_run=asked.dry_run,
        )

    def _check_shift(self, shift: rules.Shift, *, now: datetime) -> None:
        """What no job could be moved to is refused at once."""
        if shift.to is None:
            return
        if not self.wheel.is_surely_far(shift.to, now=now + REQUEST_LIMIT):
            reach = self.wheel.guard + self.wheel.skew + REQUEST_LIMIT
            raise InvalidInput(
                f"to must be at least {reach.total_seconds():g} s ahead, it is now {format_instant(now)}: for an earlier "
                "time, run the jobs now"
            )
        if shift.to + shift.spread > now + HORIZON:
            raise InvalidInput("to, or the end of its spread, is more than ten years ahead")

    def _check_room(self, tenant: str) -> None:
        open_count = sum(owner == tenant for owner, _ in self.operations.open(limit=_MOST_COUNTED))
        if open_count >= MOST_OPEN:
            raise TooManyOperations(tenant, limit=MOST_OPEN, retry_after=RETRY_AFTER)

    def _wake(self, operation: rules.Operation) -> None:
        """It is accepted whether somebody wakes for it or not: the next tick finds it."""
        try:
            self.waker.wake()
        except Exception as error:  # noqa: BLE001  nothing depends on it
            self.journal.event("waking_failed", **operation.log_keys, error=fault_of(error))


def _filter_of(asked: Asked, *, now: datetime) -> rules.JobFilter:
    due_from = asked.due_from or now - rules.USUAL_REACH
    if due_from < now - rules.MOST_REACH:
        earliest = format_instant(now - rules.MOST_REACH)
        raise InvalidInput(f"due_from must not be before {earliest}: no job is found later than 14 days after its time")
    if asked.due_from is None and asked.due_until is not None and asked.due_until <= due_from:
        raise InvalidInput(f"due_until is before due_from, which is {format_instant(due_from)} where it is not said")
    return rules.JobFilter(
        tenant=asked.tenant,
        due_from=due_from,
        due_until=asked.due_until,
        target=asked.target,
        schedule_id=asked.schedule_id,
        tag=asked.tag,
    )


def _same(first: rules.Operation, asked: Asked) -> rules.Operation:
    if first.fingerprint != asked.fingerprint:
        raise KeyReused(first.operation_id, kind="operation", difference="asks for something else")
    return first


def _checked(tenant: str, operation_id: str) -> tuple[str, str]:
    """What could be taken apart wrongly in a key names no operation."""
    if not TENANT.fullmatch(tenant) or not OPERATION_ID.fullmatch(operation_id):
        raise OperationNotFound(tenant[:80], operation_id)
    return tenant, operation_id


def _digest(tenant: str, key: str) -> str:
    """100 bits of a key's hash, so that two keys of a tenant do not collide."""
    return hashlib.blake2b(f"{tenant}#{key}".encode(), digest_size=13).hexdigest()


def _standing(operation: rules.Operation) -> dict[str, object]:
    return {"state": operation.state.value, "stop_requested": operation.stop_requested}


def _described(operation: rules.Operation) -> dict[str, object]:
    """What it is about, for the log: of a target only its destination, because a path may hold a secret."""
    wanted = replace(operation.wanted, target=destination_of(operation.wanted.target))
    asked: dict[str, object] = {"filter": filter_body(wanted), **shift_body(operation.shift)}
    return asked | ({"rate": operation.rate} if operation.action is rules.OperationKind.RUN_NOW else {})


def _ms(instant: datetime | None) -> int | None:
    return to_ms(instant) if instant is not None else None
