"""What a tenant may do: its plan. A tenant without one has the stage's default."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.domain.errors import InvalidInput, Undecodable
from functions.domain.instants import from_ms, to_ms

MIN_WEIGHT = 0.1
MAX_WEIGHT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPlan:
    """The share of a tenant, and whether it has any.

    weight: its share where more is due than may go out. is_paused: nothing of it is promoted. note: why, for people.
    version: grows with every change.

    Raises InvalidInput, which names the field.
    """

    weight: float = 1.0
    is_paused: bool = False
    note: str = ""
    version: int = 0
    changed_at: datetime | None = None

    def __post_init__(self) -> None:
        if not MIN_WEIGHT <= self.weight <= MAX_WEIGHT:
            raise InvalidInput(f"weight is {self.weight:g}, but must be from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}")


def encode_plan(plan: TenantPlan) -> str:
    """A plan as its row holds it; what has its usual value is left out."""
    usual = TenantPlan()
    values: dict[str, Any] = {
        "weight": plan.weight if plan.weight != usual.weight else None,
        "paused": plan.is_paused or None,
        "note": plan.note or None,
        "version": plan.version or None,
        "changed_at": to_ms(plan.changed_at) if plan.changed_at is not None else None,
    }
    said = {name: value for name, value in values.items() if value is not None}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def decode_plan(text: str) -> TenantPlan:
    """The plan that `encode_plan` wrote. Raises Undecodable."""
    try:
        said: dict[str, Any] = json.loads(text)
        return TenantPlan(
            weight=said.get("weight", 1.0),
            is_paused=said.get("paused", False),
            note=said.get("note", ""),
            version=said.get("version", 0),
            changed_at=from_ms(said["changed_at"]) if "changed_at" in said else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, InvalidInput) as error:
        raise Undecodable(f"not a plan: {error!r}") from error
