# Written by `make format` (`scripts/sync_client.py`) from async_calls/tenants.py: change it there.
"""Operations on tenants, as `client.tenants`. All except `get` and `usage` are for operators.

A change is retried when its answer was lost, unless it names the version that it changes: then the repeat
would be refused where the first request was applied.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Literal
from urllib.parse import quote, urlencode

from tickwheel.client.answers import read_answer
from tickwheel.client.calls.call import Call, listed
from tickwheel.client.durations import seconds
from tickwheel.client.fields import encode, without_none
from tickwheel.client.tenants import LIMITS, StageStatus, Tenant, Usage
from tickwheel.errors import FieldProblem, InvalidRequest

_PATH = "/v1/tenants"
_PARTS = ("plan", "limits", "principals", "note")


class Tenants:
    """Gets and updates tenants. Every call raises ApiProblem if the scheduler refuses it, and Unreachable.

    version: the one that is changed; ApiProblem (409 `tenant_changed`) where it is another by now.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def get(self, tenant: str) -> Tenant:
        """Gets a tenant. One that was never changed has the default settings."""
        return read_answer(Tenant.from_json, self._call("GET", _path_of(tenant), repeatable=True))

    def list(self, *, page_size: int = 100) -> Iterator[Tenant]:
        """Lists the tenants that have settings of their own, in the order of their ids; one request per page."""
        return listed(self._call, _PATH, "tenants", Tenant, limit=page_size)

    def usage(self, tenant: str, *, first: date | None = None, last: date | None = None) -> Usage:
        """Gets the approximate usage of a tenant on these UTC days, both inclusive: by default 30 days until today, at most 400."""
        query = urlencode(
            {name: day.isoformat() for name, day in (("from", first), ("until", last)) if day is not None}
        )
        path = f"{_path_of(tenant)}/usage"
        return read_answer(Usage.from_json, self._call("GET", f"{path}?{query}" if query else path, repeatable=True))

    def put(
        self,
        tenant: str,
        *,
        plan: str | None = None,
        limits: Mapping[str, float | str | timedelta] | None = None,
        principals: Sequence[str] = (),
        note: str = "",
        version: int | None = None,
    ) -> Tenant:
        """Creates or replaces the settings of a tenant. Omitted settings have their defaults. Re-creates a deleted tenant.

        limits: numbers, rates a second, "unlimited", the name of a priority, and the `spread` as a timedelta.
        """
        body = without_none(
            {"plan": plan, "limits": _as_sent(limits or {}), "principals": list(principals), "note": note}
        )
        return self._change("PUT", _path_of(tenant), body, version)

    def patch(
        self,
        tenant: str,
        *,
        plan: str | None = None,
        limits: Mapping[str, float | str | timedelta] | None = None,
        principals: Sequence[str] | None = None,
        note: str | None = None,
        unset: Sequence[str] = (),
        version: int | None = None,
    ) -> Tenant:
        """Updates the given settings of a tenant. `principals` replaces the current ones.

        unset: names of limits that are to be its plan's again; or plan, limits, principals, note: its usual one. Raises
        InvalidRequest for a name that is none, or that is set at the same time.
        """
        said = without_none(
            {"plan": plan, "principals": None if principals is None else list(principals), "note": note}
        )
        body: dict[str, Any] = {**said, **({"limits": _as_sent(limits)} if limits else {})}
        problems = [
            FieldProblem("unset", f"has {name!r}: use one of {', '.join((*_PARTS, *LIMITS))}")
            for name in unset
            if name not in (*_PARTS, *LIMITS)
        ]
        problems += [
            FieldProblem(name, "is set and unset at the same time")
            for name in unset
            if name in body or name in (limits or {})
        ]
        if problems:
            raise InvalidRequest(problems)
        for name in unset:
            if name in _PARTS:
                body[name] = None
        for name in unset:
            # Where all of them go, each goes.
            if name in LIMITS and "limits" not in unset:
                body["limits"] = {**body.get("limits", {}), name: None}
        return self._change("PATCH", _path_of(tenant), body, version)

    def pause(self, tenant: str, *, note: str = "", version: int | None = None) -> Tenant:
        """Pauses a tenant: none of its jobs is promoted or called until it is resumed."""
        return self._turn(tenant, "pause", note, version)

    def resume(self, tenant: str, *, note: str = "", version: int | None = None) -> Tenant:
        """Resumes a paused or draining tenant."""
        return self._turn(tenant, "resume", note, version)

    def drain(self, tenant: str, *, note: str = "", version: int | None = None) -> Tenant:
        """Drains a tenant: accepts nothing new for it, and runs its existing jobs."""
        return self._turn(tenant, "drain", note, version)

    def delete(self, tenant: str, *, confirm: str, ledger: Literal["scan", "ttl"] = "scan") -> Tenant:
        """Starts the deletion of a tenant and all its data. Repeated, it continues the same deletion.

        Nothing of it is taken in anywhere from the answer's `in_effect_by` on.

        confirm: its id again. ledger: "scan" looks for its rows in the whole ledger; "ttl" lets them expire, 22 days after
        they were due.
        """
        query = urlencode({"confirm": confirm, "ledger": ledger})
        answer = self._call("DELETE", f"{_path_of(tenant)}?{query}", repeatable=True)
        return read_answer(Tenant.from_json, answer)

    def _turn(self, tenant: str, verb: str, note: str, version: int | None) -> Tenant:
        return self._change("POST", f"{_path_of(tenant)}:{verb}", {"note": note}, version)

    def _change(self, method: str, path: str, body: dict[str, Any], version: int | None) -> Tenant:
        return read_answer(Tenant.from_json, changed(self._call, method, path, body, version))


def turn_stage(call: Call, verb: str, *, note: str, version: int | None) -> StageStatus:
    """Pauses or resumes the stage."""
    return read_answer(StageStatus.from_json, changed(call, "POST", f"/v1/{verb}", {"note": note}, version))


def changed(call: Call, method: str, path: str, body: dict[str, Any], version: int | None) -> Any:
    """The answer to a change."""
    asked = {**body, **({"version": version} if version is not None else {})}
    return call(method, path, repeatable=version is None, content=encode(asked))


def _as_sent(limits: Mapping[str, float | str | timedelta]) -> dict[str, float | str]:
    return {name: seconds(limit) if isinstance(limit, timedelta) else limit for name, limit in limits.items()}


def _path_of(tenant: str) -> str:
    return f"{_PATH}/{quote(tenant, safe='')}"
