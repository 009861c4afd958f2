"""Tenants and the whole stage, as the API tells them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from tickwheel.instants import parse_instant

TenantStatus = Literal["active", "paused", "draining", "deleting", "deleted"]
Unlimited = Literal["unlimited"]
LIMITS = (
    *("weight", "submission_rate", "submission_burst", "max_pending", "execution_rate", "max_concurrency", "subshards"),
    "top_priority",
)
"""The names of all limits."""


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """Whether jobs run. note: why. version: grows with every change.

    in_effect_by: from then on everything acts by the last change; None where there was none.
    """

    status: TenantStatus
    note: str
    version: int
    status_since: datetime | None
    changed_at: datetime | None
    in_effect_by: datetime | None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads what the API told."""
        return cls(**_status_of(body))


@dataclass(frozen=True, kw_only=True)
class Tenant(StageStatus):
    """A tenant as it stands.

    limits: in effect, by their names: numbers, rates a second, "unlimited", and the name of a priority. own_limits: which
    of them are not its plan's. principals: patterns of the ARNs that may act for it.
    """

    tenant: str
    plan: str
    limits: Mapping[str, float | str]
    own_limits: tuple[str, ...]
    principals: tuple[str, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads what the API told."""
        return cls(
            tenant=body["tenant"],
            plan=body["plan"],
            limits=dict(body["limits"]),
            own_limits=tuple(body["own_limits"]),
            principals=tuple(body["principals"]),
            **_status_of(body),
        )


def _status_of(body: Mapping[str, Any]) -> dict[str, Any]:
    instants = ("status_since", "changed_at", "in_effect_by")
    return {
        "status": body["status"],
        "note": body["note"],
        "version": int(body["version"]),
        **{name: parse_instant(body[name]) if name in body else None for name in instants},
    }
