"""How an operation is written down: what was asked, and how far it has come, as JSON.

Instants are milliseconds since the epoch, durations milliseconds. What is empty is left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.operations.operation import (
    Example,
    JobFilter,
    Operation,
    OperationKind,
    Progress,
    Shift,
    WalkPosition,
)

_STORED_RATE = 50.0
"""Jobs a second of an operation whose record names none; never changed, whatever requests without one get."""


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """The two texts of an operation: the first never changes, the second with every step."""

    asked: str
    progress: str


def encode_operation(operation: Operation) -> OperationRecord:
    """What was asked, and how far it has come."""
    wanted, shift, progress = operation.wanted, operation.shift, operation.progress
    asked = {
        "action": operation.action.value,
        "due_from": to_ms(wanted.due_from),
        "due_until": _ms(wanted.due_until),
        "target": wanted.target,
        "schedule": wanted.schedule_id,
        "tag": wanted.tag,
        "caller": operation.caller,
        "created_at": to_ms(operation.created_at),
        "fingerprint": operation.fingerprint,
        "by": shift.by // MILLISECOND if shift and shift.by is not None else None,
        "to": _ms(shift.to) if shift else None,
        "spread": shift.spread // MILLISECOND if shift else 0,
        "rate": operation.rate,
        "dry_run": operation.dry_run,
    }
    given = {
        "place": list(progress.place) if progress.place is not None else None,
        "share": progress.share,
        "examined": progress.examined,
        "matched": progress.matched,
        "done": progress.done,
        "refused": dict(progress.refused),
        "examples": [list(example) for example in progress.examples],
        "due_at": _ms(progress.due_at),
        "parts": progress.parts,
        "failures": progress.failures,
        "error": progress.error,
        "ended_at": _ms(operation.ended_at),
    }
    return OperationRecord(_text(asked), _text(given))


def decode_operation(record: OperationRecord, *, tenant: str, operation_id: str) -> Operation:
    """The operation that `encode_operation` wrote, without what the store keeps beside it: state, lease, stop.

    Raises Undecodable.
    """
    try:
        asked, given = json.loads(record.asked), json.loads(record.progress)
        return Operation(
            operation_id=operation_id,
            action=OperationKind(asked["action"]),
            wanted=JobFilter(
                tenant=tenant,
                due_from=from_ms(asked["due_from"]),
                due_until=_instant(asked, "due_until"),
                target=asked.get("target", ""),
                schedule_id=asked.get("schedule", ""),
                tag=asked.get("tag", ""),
            ),
            caller=asked.get("caller", ""),
            created_at=from_ms(asked["created_at"]),
            fingerprint=asked.get("fingerprint", ""),
            shift=_shift(asked),
            rate=asked.get("rate", _STORED_RATE),
            dry_run=asked.get("dry_run", False),
            progress=_progress(given),
            ended_at=_instant(given, "ended_at"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not an operation: {error!r}") from error


def _shift(asked: dict[str, Any]) -> Shift | None:
    if "by" not in asked and "to" not in asked:
        return None
    by = _duration(asked["by"]) if "by" in asked else None
    return Shift(by=by, to=_instant(asked, "to"), spread=_duration(asked.get("spread", 0)))


def _progress(given: dict[str, Any]) -> Progress:
    return Progress(
        place=WalkPosition(*given["place"]) if "place" in given else None,
        share=given.get("share", 0.0),
        examined=given.get("examined", 0),
        matched=given.get("matched", 0),
        done=given.get("done", 0),
        refused=given.get("refused", {}),
        examples=tuple(Example(*example) for example in given.get("examples", [])),
        due_at=_instant(given, "due_at"),
        parts=given.get("parts", 0),
        failures=given.get("failures", 0),
        error=given.get("error", ""),
    )


def _text(values: dict[str, Any]) -> str:
    present = {name: value for name, value in values.items() if value}
    return json.dumps(present, separators=(",", ":"), ensure_ascii=False)


def _ms(instant: datetime | None) -> int | None:
    return to_ms(instant) if instant is not None else None


def _instant(values: dict[str, Any], name: str) -> datetime | None:
    return from_ms(values[name]) if name in values else None


def _duration(milliseconds: int) -> timedelta:
    return milliseconds * MILLISECOND
