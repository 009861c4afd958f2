"""Carry out what CloudFormation asks for: a schedule, or a role that may act for a tenant, as a resource of a user's stack.

CloudFormation may ask twice, and gives up a creation by a deletion. So a schedule is created only where there is none, under a
key that is always the same for a resource of a stack: a repeat of its own creation is answered as the first was, and somebody
else's schedule of that name is neither changed nor deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from functions.domain.errors import InvalidInput
from functions.domain.jobs.job import TENANT
from functions.domain.schedules.schedule import SCHEDULE_ID
from functions.domain.tenants.access import check_pattern
from functions.domain.tenants.plan import MAX_PRINCIPALS
from functions.ports.resources import ApiAnswer, ApiUnreachable, StageApi

SCHEDULE = "Custom::TickwheelSchedule"
PRINCIPAL = "Custom::TickwheelPrincipal"

FAILED = "failed:"
"""How the physical id of what could not be created begins. Its deletion, which follows, finds out what there is."""

_CONFLICT = frozenset({"schedule_exists", "schedule_changed"})
_GONE = frozenset({"schedule_not_found", "tenant_deleted"})
_NEVER = '"0"'
"""A version that no schedule has: a PUT under this condition succeeds only where the schedule is already as it says."""

_CHANGED = frozenset({"tenant_changed", "tenant_busy"})
_TRIES = 8


class NotProvided(Exception):
    """Why not, in words for whoever reads the events of his stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request of CloudFormation. what: `Create`, `Update` or `Delete`. physical_id: empty for what is created.

    before: its former properties, of an update. owner: of this resource of this stack, whatever is asked of it.
    """

    what: str
    kind: str
    request_id: str
    owner: str
    physical_id: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> Asked:
        """From an event as https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html has it."""
        owner = f"{event['StackId']}\0{event['LogicalResourceId']}"
        return cls(
            what=event["RequestType"],
            kind=event["ResourceType"],
            request_id=event["RequestId"],
            owner=hashlib.blake2b(owner.encode(), digest_size=16).hexdigest(),
            physical_id=event.get("PhysicalResourceId", ""),
            properties=event.get("ResourceProperties", {}),
            before=event.get("OldResourceProperties", {}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """What became of it. reason: why it failed; empty where it did not."""

    physical_id: str
    reason: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])


def provide(asked: Asked, api: StageApi) -> Provided:
    """Do it, or say why not. Raises nothing that the API answered."""
    try:
        return _KINDS[asked.kind](asked, api)
    except KeyError:
        reason = f"{asked.kind} is no resource of Tickwheel: use {' or '.join(_KINDS)}"
    except NotProvided as refused:
        reason = str(refused)
    except ApiUnreachable:
        reason = "the API of the stage did not answer in time"
    return Provided(physical_id=physical_id_of(asked), reason=reason)


def physical_id_of(asked: Asked) -> str:
    """Of what failed: CloudFormation keeps what it had, and deletes what it did not know before."""
    return asked.physical_id or f"{FAILED}{asked.request_id}"


@dataclass(frozen=True, slots=True)
class _Schedule:
    tenant: str
    schedule_id: str
    definition: Mapping[str, Any]

    @classmethod
    def read(cls, properties: Mapping[str, Any]) -> _Schedule:
        tenant, schedule_id = properties.get("Tenant"), properties.get("ScheduleId")
        if not isinstance(tenant, str) or not TENANT.fullmatch(tenant):
            raise NotProvided(f"Tenant is {tenant!r:.80}, but must match {TENANT.pattern}")
        if not isinstance(schedule_id, str) or not SCHEDULE_ID.fullmatch(schedule_id):
            raise NotProvided(f"ScheduleId is {schedule_id!r:.80}, but must match {SCHEDULE_ID.pattern}")
        try:
            definition = json.loads(properties.get("Definition", ""))
        except (TypeError, ValueError, RecursionError):
            definition = None
        if not isinstance(definition, dict):
            # As an object it would lose its types: CloudFormation makes texts of numbers.
            raise NotProvided("Definition must be the JSON text of an object, what PUT of a schedule takes as its body")
        return cls(tenant, schedule_id, definition)

    @property
    def physical_id(self) -> str:
        return f"{self.tenant}/{self.schedule_id}"

    def put(self, api: StageApi, headers: Mapping[str, str] | None = None) -> ApiAnswer:
        return api.ask("PUT", self._path, query=self._query, body=self.definition, headers=headers or {})

    def create(self, api: StageApi, owner: str) -> ApiAnswer:
        return self.put(api, {"If-None-Match": "*", "Idempotency-Key": owner})

    def delete(self, api: StageApi) -> None:
        answer = api.ask("DELETE", self._path, query=self._query)
        if not answer.is_done and answer.code not in _GONE:
            raise NotProvided(f"{self.physical_id} was not deleted: {_problem(answer)}")

    def clean(self, api: StageApi, owner: str) -> None:
        """Delete it if a creation for this owner that failed has made it nevertheless."""
        answer = self.create(api, owner)
        if answer.is_done:
            self.delete(api)
        elif answer.status >= 500:  # noqa: PLR2004
            raise NotProvided(f"whether {self.physical_id} was created is not known: {_problem(answer)}")

    @property
    def _path(self) -> str:
        return f"/v1/schedules/{self.schedule_id}"

    @property
    def _query(self) -> dict[str, str]:
        return {"tenant": self.tenant}


def _schedule(asked: Asked, api: StageApi) -> Provided:
    if asked.what == "Delete":
        return _delete_schedule(asked, api)
    wanted = _Schedule.read(asked.properties)
    if asked.what == "Update" and wanted.physical_id == asked.physical_id:
        former = _Schedule.read(asked.before) if asked.before else wanted
        if former.physical_id != wanted.physical_id:
            # Back from a replacement that failed, about which nobody else knows any more.
            former.clean(api, asked.owner)
        answer = wanted.put(api)
    else:
        answer = wanted.create(api, asked.owner)
        if asked.what == "Update" and answer.code in _CONFLICT:
            # Back from a replacement that succeeded: what it took the place of is still there, as it was.
            answer = wanted.put(api, {"If-Match": _NEVER})
    if answer.code in _CONFLICT:
        raise NotProvided(
            f"there is a schedule {wanted.schedule_id} of tenant {wanted.tenant}, which this stack has not made: give "
            "this one another id, or delete that one"
        )
    if not answer.is_done:
        raise NotProvided(f"{wanted.physical_id}: {_problem(answer)}")
    attributes = {"Tenant": wanted.tenant, "ScheduleId": wanted.schedule_id}
    return Provided(physical_id=wanted.physical_id, attributes=attributes)


def _delete_schedule(asked: Asked, api: StageApi) -> Provided:
    try:
        there = _Schedule.read(asked.properties)
    except NotProvided:
        return Provided(physical_id=asked.physical_id)  # it could not be created
    if there.physical_id == asked.physical_id:
        there.delete(api)
    else:
        there.clean(api, asked.owner)
    return Provided(physical_id=asked.physical_id)


def _principal(asked: Asked, api: StageApi) -> Provided:
    tenant, principal = (asked.properties.get(name) for name in ("Tenant", "Principal"))
    is_given = isinstance(tenant, str) and TENANT.fullmatch(tenant) and isinstance(principal, str)
    if asked.what == "Delete" and not is_given:
        return Provided(physical_id=asked.physical_id)
    if not isinstance(tenant, str) or not isinstance(principal, str) or not TENANT.fullmatch(tenant):
        raise NotProvided(
            f"Tenant is {tenant!r:.80} and Principal {principal!r:.80}: use a tenant's id, and the ARN of a role"
        )
    if asked.what == "Delete":
        _change_principals(api, tenant, lambda there: [each for each in there if each != principal])
        return Provided(physical_id=asked.physical_id)
    try:
        check_pattern(principal)
    except InvalidInput as error:
        raise NotProvided(f"Principal: {error}") from None
    _change_principals(api, tenant, lambda there: there if principal in there else [*there, principal])
    return Provided(physical_id=f"{tenant}/{principal}")


def _change_principals(api: StageApi, tenant: str, change: Callable[[list[str]], list[str]]) -> None:
    path, answer = f"/v1/tenants/{tenant}", ApiAnswer(0, {})
    for _ in range(_TRIES):
        answer = api.ask("GET", path)
        if not answer.is_done:
            break
        there = list(answer.body.get("principals", []))
        wanted = change(there)
        if wanted == there or (len(wanted) < len(there) and answer.body.get("status") in ("deleting", "deleted")):
            return
        if len(wanted) > MAX_PRINCIPALS:
            raise NotProvided(
                f"tenant {tenant} has {MAX_PRINCIPALS} principals, and there can be no more: let one role, or a pattern "
                "of the names of several, act for it"
            )
        answer = api.ask("PATCH", path, body={"principals": wanted, "version": answer.body["version"]})
        if answer.is_done:
            return
        if answer.code not in _CHANGED:
            break
    raise NotProvided(f"the principals of tenant {tenant} were not changed: {_problem(answer)}")


_KINDS: Mapping[str, Callable[[Asked, StageApi], Provided]] = {SCHEDULE: _schedule, PRINCIPAL: _principal}


def _problem(answer: ApiAnswer) -> str:
    """What the API says of it: its problems are for callers, and repeat no secret."""
    told = answer.body.get("detail") or answer.body.get("title") or answer.body.get("message") or ""
    return ": ".join(filter(None, [f"{answer.status} {answer.code}".strip(), str(told)]))
