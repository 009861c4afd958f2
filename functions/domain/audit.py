"""The audit trail: one line of JSON for each execution that ended, and for each action of somebody who manages jobs.

A line has ids, instants, outcomes and classes of errors; never a payload, the value of a header, or more of a target than
its destination. What is not known is left out. `COLUMNS` is the table that lines are read as.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from functions.domain.batches import batches
from functions.domain.instants import MILLISECOND, format_instant, from_ms, require_aware, to_ms
from functions.domain.jobs.claims import ABANDONED, LedgerRow
from functions.domain.jobs.job import Delivery, Job
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.occurrence import fire_of
from functions.domain.lifecycle import State
from functions.domain.targets.targets import destination_of

VERSION = 1
"""The version of a line: raised when a field changes its meaning, not when one is added."""

LINE_LIMIT = 128_000
"""Bytes of a line; half of what a log event holds, which is where it goes when nothing else takes it."""

RECORD_LIMIT = 1_000_000
"""Bytes of a record: what Firehose takes, 1,000 KiB, less what is not worth counting."""

SCHEDULER = "tickwheel"
"""The caller of what the scheduler does by itself."""

_LONGEST_TEXT = 1_000
_ID_BYTES = 12

COLUMNS: Mapping[str, str] = {
    "v": "int",
    "kind": "string",
    "line_id": "string",
    "happened_at": "string",
    "tenant": "string",
    "job_id": "string",
    "schedule_id": "string",
    "outcome": "string",
    "attempt": "int",
    "priority": "string",
    "delivery": "string",
    "target": "string",
    "scheduled_at": "string",
    "due_at": "string",
    "began_at": "string",
    "lag_ms": "bigint",
    "duration_ms": "bigint",
    "error_class": "string",
    "reason": "string",
    "again": "boolean",
    "action": "string",
    "caller": "string",
    "subject": "string",
    "before": "string",
    "after": "string",
    "cut": "int",
}
"""Every field of a line, with its type in the Glue catalogue."""


class ActionName(StrEnum):
    """What somebody does who manages jobs, tenants or the stage."""

    JOB_CANCEL = "job.cancel"
    JOB_RUN_NOW = "job.run_now"
    JOB_CHANGE = "job.change"
    JOB_COMPLETE = "job.complete"
    """A target that answered 202 reports success."""
    JOB_FAIL = "job.fail"
    SCHEDULE_PUT = "schedule.put"
    SCHEDULE_PATCH = "schedule.patch"
    SCHEDULE_PAUSE = "schedule.pause"
    SCHEDULE_RESUME = "schedule.resume"
    SCHEDULE_DELETE = "schedule.delete"
    SCHEDULE_TRIGGER = "schedule.trigger"
    SCHEDULE_BACKFILL = "schedule.backfill"
    DEAD_LETTERS_REPLAY = "dead_letters.replay"
    DEAD_LETTERS_PURGE = "dead_letters.purge"
    BREAKER_RESET = "breaker.reset"
    FLOW_PUT = "flow.put"
    FLOW_DELETE = "flow.delete"
    OPERATION_ACCEPT = "operation.accept"
    OPERATION_STOP = "operation.stop"
    TENANT_PUT = "tenant.put"
    TENANT_PATCH = "tenant.patch"
    TENANT_PAUSE = "tenant.pause"
    TENANT_DRAIN = "tenant.drain"
    TENANT_RESUME = "tenant.resume"
    TENANT_DELETE = "tenant.delete"
    TENANT_ERASE = "tenant.erase"
    """All that there was of it is gone."""
    STAGE_PAUSE = "stage.pause"
    STAGE_RESUME = "stage.resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an execution came to its end.

    attempt: with which; 0 where it ended before its first. due_at, began_at: of that attempt, where they are known.
    target: whatever its job calls, of which only the destination is recorded. reason: of a skip, and of a run that was given up. is_repeated: it is recorded
    again, from its ledger row, because the first line may have been lost.
    """

    job_id: JobId
    outcome: State
    attempt: int
    ended_at: datetime
    due_at: datetime | None = None
    began_at: datetime | None = None
    target: str = ""
    error_class: str = ""
    reason: str = ""
    is_repeated: bool = False

    def __post_init__(self) -> None:
        for instant in (self.ended_at, self.due_at, self.began_at):
            if instant is not None:
                require_aware(instant)

    @property
    def line_id(self) -> str:
        """The same whenever this end is recorded. A job that failed may be replayed and end again, no other."""
        is_one_of_many = self.outcome is State.FAILED and self.job_id.delivery is not Delivery.AT_MOST_ONCE
        name = f"{self.job_id}#{self.attempt if is_one_of_many else ''}"
        return hashlib.blake2b(name.encode(), digest_size=_ID_BYTES).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What somebody has done. caller: who. tenant: whose, empty for the stage. subject: the id of what it was done to.

    before, after: the description of the subject; None where nothing is known or was there. Equal: nothing changed.
    """

    action: ActionName
    caller: str
    tenant: str
    subject: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


AuditLine = Ending | Action
"""What becomes a line."""

Record = tuple[str, ...]
"""Lines that are sent together, each ended by a line feed."""


def ending_of(job_id: JobId, row: LedgerRow, *, now: datetime, attempt: int = 0, target: str = "") -> Ending | None:
    """The end of an execution from its ledger row; None for one that has not ended, or continues under another id.

    attempt: of whoever found the row, for one that was never claimed. Neither its start nor its class of error is known.
    """
    if not row.is_settled or row.state is State.MOVED:
        return None
    return Ending(
        # As it was first called: a request that was repeated may have another due time in its id.
        job_id=parse_job_id(row.job_id) if row.job_id else job_id,
        outcome=row.state,
        attempt=row.attempt or attempt,
        ended_at=row.updated_at or now,
        due_at=row.due_at,
        target=target,
        reason=_reason(row),
        is_repeated=True,
    )


def _reason(row: LedgerRow) -> str:
    """The reason of an end whose row keeps one as its first word; other errors may hold what a target said."""
    if row.state is State.CANCELLED and row.error == ABANDONED:
        return ABANDONED
    return row.error.partition(":")[0] if row.state is State.SKIPPED else ""


def described(job: Job) -> dict[str, Any]:
    """A job for the before and after of an action: nothing of its payload or its headers."""
    return {
        "id": str(job_id_of(job)),
        "scheduled_at": _text_of(job.scheduled_at),
        "target": destination_of(job.target),
        "priority": job.priority.name.lower(),
        "delivery": job.delivery.value,
        **({"tags": list(job.tags)} if job.tags else {}),
    }


def encode_ending(ending: Ending) -> str:
    """The line of an execution, without a line feed."""
    job_id, fire = ending.job_id, fire_of(ending.job_id.identity)
    return _line(
        {
            "kind": "execution",
            "line_id": ending.line_id,
            "happened_at": _text_of(ending.ended_at),
            "tenant": job_id.tenant,
            "job_id": str(job_id),
            "schedule_id": fire[0] if fire else None,
            "outcome": ending.outcome.value,
            "attempt": ending.attempt,
            "priority": job_id.priority.name.lower(),
            "delivery": job_id.delivery.value,
            "target": destination_of(ending.target) or None,
            "scheduled_at": _text_of(job_id.due_at),
            "due_at": _text_of(ending.due_at),
            "began_at": _text_of(ending.began_at),
            "lag_ms": _ms_between(ending.due_at, ending.began_at),
            "duration_ms": _ms_between(ending.began_at, ending.ended_at),
            "error_class": ending.error_class or None,
            "reason": ending.reason or None,
            "again": ending.is_repeated,
        }
    )


def encode_action(action: Action, *, line_id: str, happened_at: datetime) -> str:
    """The line of an action, without a line feed. One that would be too long says how many bytes were left out of it."""
    fields = {
        "kind": "action",
        "line_id": line_id,
        "happened_at": _text_of(happened_at),
        "tenant": action.tenant or None,
        "again": False,
        "action": action.action.value,
        "caller": action.caller,
        "subject": action.subject or None,
    }
    changed = {"before": _text(action.before), "after": _text(action.after)}
    line = _line({**fields, **changed})
    if (size := len(line.encode())) <= LINE_LIMIT:
        return line
    return _line({**fields, "cut": size})


def packed(lines: Sequence[str]) -> Iterator[Record]:
    """The lines in as few records as they fit into: a record costs as if it were a multiple of 5 KB."""
    return map(tuple, batches(lines, size_of=lambda line: len(line.encode()) + 1, most_size=RECORD_LIMIT))


def _line(values: Mapping[str, Any]) -> str:
    given = {
        name: value[:_LONGEST_TEXT] if isinstance(value, str) and name not in ("before", "after") else value
        for name, value in values.items()
        if value is not None
    }
    return json.dumps({"v": VERSION, **given}, separators=(",", ":"), ensure_ascii=False)


def _text(values: Mapping[str, Any] | None) -> str | None:
    return None if values is None else json.dumps(values, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _text_of(instant: datetime | None) -> str | None:
    """As the stores keep it: to the millisecond, rounded up."""
    return None if instant is None else format_instant(from_ms(to_ms(instant)))


def _ms_between(start: datetime | None, end: datetime | None) -> int | None:
    return None if start is None or end is None else round((end - start) / MILLISECOND)
