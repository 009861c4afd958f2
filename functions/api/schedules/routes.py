"""The routes of schedules: each parses, calls one function, answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.admission.admission import TOO_MUCH, Admission
from functions.api.http.access import BODY, QUERY
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.requests import Rules
from functions.api.http.route import KEY, MERGE_PATCH, Routes
from functions.api.schedules.answers import backfill_body, difference_body, fires_body, schedule_body
from functions.api.schedules.bodies import ScheduleBody, read_schedule
from functions.api.schedules.fire_counts import FireCountsBody, count_given, count_stored, start_of
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.patch import names_payload, patched
from functions.api.schedules.requests import (
    MOST_SCHEDULES,
    BackfillBody,
    ChangeQuery,
    PageQuery,
    PauseBody,
    PreviewQuery,
    ResumeBody,
    TenantQuery,
    TriggerBody,
)
from functions.api.schedules.standing import Standing
from functions.domain.errors import (
    FiresExceeded,
    InvalidJob,
    InvalidSchedule,
    NotPlaced,
    PriorityNotAllowed,
    RateExceeded,
    ScheduleBehind,
    ScheduleBusy,
    ScheduleNotFound,
    SchedulesExceeded,
    TooCostly,
)
from functions.domain.instants import format_instant
from functions.domain.jobs.submission import KEYED
from functions.domain.schedules.schedule import SCHEDULE_ID, Schedule, check_new_schedule, check_schedule_id
from functions.domain.schedules.state import Status
from functions.ports.payloads import PayloadStore

routes = Routes("a schedule", id={"schema": {"type": "string", "pattern": f"^{SCHEDULE_ID.pattern}$"}})

_A_PREVIEW = 10
"""Reads: fires are worked out, which is many steps."""


_OF_CHANGES = (InvalidSchedule, ScheduleBusy, FiresExceeded, RateExceeded, NotPlaced)
_OF_RUNS = (InvalidSchedule, InvalidJob, ScheduleNotFound, *TOO_MUCH, NotPlaced)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleServices:
    """What the routes of schedules work with. rules: of this moment; token: a fresh one, for a run without an idempotency key."""

    manager: ScheduleManager
    admission: Admission
    payloads: PayloadStore
    rules: Callable[[], Rules]
    token: Callable[[], str]


@routes.route("GET /v1/schedules", access=QUERY, query=PageQuery, answers={200: "Schedules"}, reads=10)
def list_schedules(services: ScheduleServices, request: Request) -> Response[str]:
    """List the schedules of a tenant."""
    query, now = request.query_as(PageQuery), services.rules().now
    standings, after = services.manager.page(query.tenant, after=query.after, limit=query.limit)
    listed = [schedule_body(standing, now=now) for standing in standings]
    return answer(HTTPStatus.OK, {"schedules": listed, "next": after})


@routes.route(
    "POST /v1/schedules:fires",
    access=BODY,
    body=FireCountsBody,
    refuses=(InvalidSchedule,),
    answers={200: "FireCounts"},
    reads=20,
)
def count_fires(services: ScheduleServices, request: Request) -> Response[str]:
    """Count the fires of up to 100 schedules for each minute."""
    body = request.body_as(FireCountsBody)
    rules = services.rules()
    start = start_of(body.start or rules.now)
    if body.tenant is None:
        counts = count_given(body, rules, start=start)
    else:
        active, after = services.manager.active(body.tenant, after=body.after, limit=MOST_SCHEDULES)
        counts = count_stored(active, body, start=start, goes_on_after=after)
    return answer(HTTPStatus.OK, {"start": format_instant(start), "results": counts.results, "next": counts.next})


@routes.route(
    "PUT /v1/schedules/{id}",
    access=BODY,
    query=ChangeQuery,
    body=ScheduleBody,
    refuses=(*_OF_CHANGES, InvalidJob, PriorityNotAllowed, ScheduleBehind, TooCostly, SchedulesExceeded),
    answers={200: "Schedule | Difference", 201: "Schedule"},
    dry_run_reads=_A_PREVIEW,
)
def put_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Create or replace a schedule. With `dry_run`, report the difference and change nothing."""
    query = request.query_as(ChangeQuery)
    body = read_schedule(request.body, services.rules())
    schedule = check_new_schedule(body.schedule(query.tenant, schedule_id))
    if query.dry_run:
        return answer(HTTPStatus.OK, difference_body(services.manager.compare(schedule, count=query.count)))
    services.admission.check(schedule.tenant, schedule.job.priority)
    standing, is_new = services.manager.put(schedule, caller=request.caller)
    return _answer(services, standing, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


@routes.route(
    "PATCH /v1/schedules/{id}",
    access=BODY,
    query=ChangeQuery,
    body="SchedulePatch",
    body_type=MERGE_PATCH,
    refuses=(
        ScheduleNotFound,
        *_OF_CHANGES,
        InvalidJob,
        PriorityNotAllowed,
        ScheduleBehind,
        TooCostly,
        SchedulesExceeded,
    ),
    answers={200: "Schedule | Difference"},
    dry_run_reads=_A_PREVIEW,
)
def patch_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Update a schedule. With `dry_run`, report the difference and change nothing."""
    query, patch = request.query_as(ChangeQuery), request.body
    rules, schedule_id = services.rules(), check_schedule_id(schedule_id)

    def edit(current: Schedule) -> Schedule:
        stored = _stored_payload(services, current) if names_payload(patch) else None
        edited = patched(current, patch, rules, stored_payload=stored)
        # What it has, it may keep.
        if edited.job.priority is not current.job.priority:
            services.admission.check_priority(query.tenant, edited.job.priority)
        return edited

    if query.dry_run:
        edited = edit(services.manager.get(query.tenant, schedule_id).stored.schedule)
        return answer(HTTPStatus.OK, difference_body(services.manager.compare(edited, count=query.count)))
    services.admission.check_open(query.tenant)
    return _answer(services, services.manager.patch(query.tenant, schedule_id, edit, caller=request.caller))


@routes.route(
    "GET /v1/schedules/{id}",
    access=QUERY,
    query=TenantQuery,
    refuses=(InvalidSchedule, ScheduleNotFound),
    answers={200: "Schedule"},
)
def get_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Get a schedule."""
    query = request.query_as(TenantQuery)
    return _answer(services, services.manager.get(query.tenant, check_schedule_id(schedule_id)))


@routes.route(
    "DELETE /v1/schedules/{id}",
    access=BODY,
    query=TenantQuery,
    refuses=(InvalidSchedule, ScheduleNotFound, ScheduleBusy),
    answers={200: "Deleted"},
)
def delete_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Delete a schedule."""
    tenant, schedule_id = request.query_as(TenantQuery).tenant, check_schedule_id(schedule_id)
    services.manager.delete(tenant, schedule_id, caller=request.caller)
    return answer(HTTPStatus.OK, {"id": schedule_id, "tenant": tenant, "status": Status.DELETED.value})


@routes.route(
    "GET /v1/schedules/{id}:preview",
    access=QUERY,
    query=PreviewQuery,
    refuses=(InvalidSchedule, TooCostly, ScheduleNotFound),
    answers={200: "Fires"},
    reads=_A_PREVIEW,
)
def preview_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Preview the next fires of a schedule."""
    query = request.query_as(PreviewQuery)
    schedule_id = check_schedule_id(schedule_id)
    found = services.manager.preview(query.tenant, schedule_id, count=query.count, begins=query.after)
    return answer(HTTPStatus.OK, fires_body(found))


@routes.route(
    "POST /v1/schedules/{id}:pause",
    access=BODY,
    query=TenantQuery,
    body=PauseBody,
    is_body_required=False,
    refuses=(InvalidSchedule, ScheduleNotFound, ScheduleBusy),
    answers={200: "Schedule"},
)
def pause_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Pause a schedule."""
    tenant, schedule_id = request.query_as(TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.optional_body_as(PauseBody)
    return _answer(services, services.manager.pause(tenant, schedule_id, note=body.note, caller=request.caller))


@routes.route(
    "POST /v1/schedules/{id}:resume",
    access=BODY,
    query=TenantQuery,
    body=ResumeBody,
    is_body_required=False,
    refuses=(*_OF_CHANGES, TooCostly, ScheduleNotFound),
    answers={200: "Schedule"},
)
def resume_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Resume a paused schedule, starting from now."""
    tenant, schedule_id = request.query_as(TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.optional_body_as(ResumeBody)
    services.admission.check_open(tenant)
    return _answer(services, services.manager.resume(tenant, schedule_id, note=body.note, caller=request.caller))


@routes.route(
    "POST /v1/schedules/{id}:trigger",
    access=BODY,
    query=TenantQuery,
    body=TriggerBody,
    is_body_required=False,
    headers=(KEY,),
    refuses=_OF_RUNS,
    answers={202: "Triggered"},
)
def trigger_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Trigger one run of a schedule now."""
    tenant, schedule_id = request.query_as(TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.optional_body_as(TriggerBody)
    services.admission.check_open(tenant)
    job_id = services.manager.trigger(
        tenant, schedule_id, token=_token(services, request), overlap=body.overlap, caller=request.caller
    )
    return answer(HTTPStatus.ACCEPTED, {"job": job_id})


@routes.route(
    "POST /v1/schedules/{id}:backfill",
    access=BODY,
    query=TenantQuery,
    body=BackfillBody,
    headers=(KEY,),
    refuses=(*_OF_RUNS, TooCostly),
    answers={200: "Backfill", 202: "Backfill"},
    dry_run_reads=_A_PREVIEW,
)
def backfill_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Backfill a schedule: run its fires of a past time range. With `dry_run`, report them and run nothing."""
    tenant, schedule_id = request.query_as(TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.body_as(BackfillBody)
    if not body.dry_run:
        services.admission.check_open(tenant)
    token = _token(services, request)
    backfill = services.manager.backfill(tenant, schedule_id, body, token=token, caller=request.caller)
    return answer(HTTPStatus.OK if body.dry_run else HTTPStatus.ACCEPTED, backfill_body(backfill))


def _answer(services: ScheduleServices, standing: Standing, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    stored_payload = _stored_payload(services, standing.stored.schedule)
    return answer(status, schedule_body(standing, now=services.rules().now, stored_payload=stored_payload))


def _stored_payload(services: ScheduleServices, schedule: Schedule) -> str | None:
    pointer = schedule.job.payload.pointer
    return None if pointer is None else services.payloads.get(pointer)


def _token(services: ScheduleServices, request: Request) -> str:
    """What makes a repeat of the request the same run: short, because it stands in the identity of its jobs."""
    key = request.key(refused_as=InvalidJob)
    if key is None:
        return services.token()
    return KEYED + hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
