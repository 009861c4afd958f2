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
from functions.api.http.problems import Refusals
from functions.api.http.reading import Request
from functions.api.http.requests import Rules
from functions.api.http.route import KEY, MERGE_PATCH, Routes
from functions.api.schedules import answers, batch, requests, stats_answers
from functions.api.schedules.bodies import ScheduleBody, read_schedule
from functions.api.schedules.conditions import ETAG, IF_MATCH, IF_NONE_MATCH, condition_of, tag_of
from functions.api.schedules.extra_runs import ExtraRuns
from functions.api.schedules.fire_counts import FireCountsBody, count_given, count_stored, start_of
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.patch import names_payload, names_spread, patched
from functions.api.schedules.standing import Standing
from functions.domain import errors
from functions.domain.jobs.submission import KEYED
from functions.domain.schedules.schedule import SCHEDULE_ID, Schedule, check_new_schedule, check_schedule_id

routes = Routes("a schedule", id={"schema": {"type": "string", "pattern": f"^{SCHEDULE_ID.pattern}$"}})

_A_PREVIEW = 10
"""Reads: fires are worked out, which is many steps."""


_OF_CHANGES = (errors.InvalidSchedule, errors.ScheduleBusy, errors.FiresExceeded, errors.RateExceeded, errors.NotPlaced)
_OF_DEFINITIONS = (
    *_OF_CHANGES,
    errors.InvalidJob,
    errors.UnknownHandler,
    errors.PriorityNotAllowed,
    errors.ScheduleBehind,
    errors.TooCostly,
    errors.SchedulesExceeded,
)
_OF_VERSIONS = (errors.ScheduleChanged, errors.ScheduleExists)
_OF_RUNS = (errors.InvalidSchedule, errors.InvalidJob, errors.ScheduleNotFound, *TOO_MUCH, errors.NotPlaced)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleServices:
    """What the routes of schedules work with. rules: of this moment; token: a fresh one, for a run without an idempotency key."""

    manager: ScheduleManager
    puts: batch.ScheduleBatch
    extra_runs: ExtraRuns
    admission: Admission
    refusals: Refusals
    rules: Callable[[], Rules]
    token: Callable[[], str]


@routes.route("GET /v1/schedules", access=QUERY, query=requests.PageQuery, answers={200: "Schedules"}, reads=10)
def list_schedules(services: ScheduleServices, request: Request) -> Response[str]:
    """List the schedules of a tenant."""
    query, now = request.query_as(requests.PageQuery), services.rules().now
    standings, after = services.manager.page(query.tenant, after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, answers.schedules_body(standings, now=now, after=after))


@routes.route(
    "POST /v1/schedules:fires",
    access=BODY,
    body=FireCountsBody,
    refuses=(errors.InvalidSchedule,),
    answers={200: "FireCounts"},
    reads=20,
)
def count_fires(services: ScheduleServices, request: Request) -> Response[str]:
    """Count the fires of up to 100 schedules for each minute."""
    body = request.body_as(FireCountsBody)
    rules = services.rules()
    start = start_of(body.start or rules.now)
    if body.tenant is None:
        counts = count_given(body, rules, start=start, default_spread=services.manager.default_spread)
    else:
        active, after = services.manager.active(body.tenant, after=body.after, limit=requests.MOST_SCHEDULES)
        counts = count_stored(active, body, start=start, goes_on_after=after)
    return answer(HTTPStatus.OK, counts)


@routes.route(
    "POST /v1/schedules:batch",
    access=BODY,
    body=batch.ScheduleBatchBody,
    answers={200: "ScheduleResults"},
    judges_each=True,
)
def put_schedules(services: ScheduleServices, request: Request) -> Response[str]:
    """Create or replace up to 25 schedules."""
    if request.has_key:
        raise errors.InvalidInput("a batch takes no Idempotency-Key header: putting a schedule again changes nothing")
    body, rules = request.body_as(batch.ScheduleBatchBody), services.rules()
    judged = [
        answers.put_body(each, now=rules.now)
        if isinstance(each, batch.Put)
        else answers.refused_body(services.refusals.problem(each))
        for each in services.puts.put(body.schedules, rules, caller=request.caller)
    ]
    return answer(HTTPStatus.OK, answers.results_body(judged))


@routes.route(
    "PUT /v1/schedules/{id}",
    access=BODY,
    query=requests.ChangeQuery,
    body=ScheduleBody,
    headers=(IF_NONE_MATCH, IF_MATCH, KEY),
    refuses=(*_OF_DEFINITIONS, *_OF_VERSIONS),
    answers={200: "Schedule | Difference", 201: "Schedule"},
    answer_headers=(ETAG,),
    dry_run_reads=_A_PREVIEW,
)
def put_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Create or replace a schedule. With `dry_run`, report the difference and change nothing."""
    query, condition = request.query_as(requests.ChangeQuery), condition_of(request, token=services.token)
    body = read_schedule(request.body, services.rules())
    schedule = check_new_schedule(body.schedule(query.tenant, schedule_id))
    if query.dry_run:
        difference = services.manager.compare(schedule, count=query.count, condition=condition)
        return answer(HTTPStatus.OK, answers.difference_body(difference))
    services.admission.check(schedule.tenant, schedule.job.priority)
    services.admission.check_flows(schedule.tenant, schedule.job.flows, field="job.flow")
    standing, is_new = services.manager.put(schedule, condition=condition, caller=request.caller)
    return _answer(services, standing, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


@routes.route(
    "PATCH /v1/schedules/{id}",
    access=BODY,
    query=requests.ChangeQuery,
    body="SchedulePatch",
    body_type=MERGE_PATCH,
    headers=(IF_MATCH, KEY),
    refuses=(errors.ScheduleNotFound, *_OF_DEFINITIONS, errors.ScheduleChanged),
    answers={200: "Schedule | Difference"},
    answer_headers=(ETAG,),
    dry_run_reads=_A_PREVIEW,
)
def patch_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Update a schedule. With `dry_run`, report the difference and change nothing."""
    query, patch = request.query_as(requests.ChangeQuery), request.body
    condition = condition_of(request, token=services.token)
    rules, schedule_id = services.rules(), check_schedule_id(schedule_id)
    takes_default = names_spread(patch)

    def edit(current: Schedule) -> Schedule:
        stored = services.manager.stored_payload(current) if names_payload(patch) else None
        edited = patched(current, patch, rules, stored_payload=stored)
        # What it has, it may keep.
        if edited.job.priority is not current.job.priority:
            services.admission.check_priority(query.tenant, edited.job.priority)
        if edited.job.flows != current.job.flows:
            services.admission.check_flows(query.tenant, edited.job.flows, field="job.flow")
        return edited

    if query.dry_run:
        edited = edit(services.manager.get(query.tenant, schedule_id).stored.schedule)
        difference = services.manager.compare(
            edited, count=query.count, takes_default=takes_default, condition=condition
        )
        return answer(HTTPStatus.OK, answers.difference_body(difference))
    services.admission.check_open(query.tenant)
    found = services.manager.patch(
        query.tenant, schedule_id, edit, takes_default=takes_default, condition=condition, caller=request.caller
    )
    return _answer(services, found)


@routes.route(
    "GET /v1/schedules/{id}",
    access=QUERY,
    query=requests.TenantQuery,
    refuses=(errors.InvalidSchedule, errors.ScheduleNotFound),
    answers={200: "Schedule"},
    answer_headers=(ETAG,),
)
def get_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Get a schedule."""
    query = request.query_as(requests.TenantQuery)
    return _answer(services, services.manager.get(query.tenant, check_schedule_id(schedule_id)))


@routes.route(
    "DELETE /v1/schedules/{id}",
    access=BODY,
    query=requests.TenantQuery,
    headers=(IF_MATCH, KEY),
    refuses=(errors.InvalidSchedule, errors.ScheduleNotFound, errors.ScheduleBusy, errors.ScheduleChanged),
    answers={200: "Deleted"},
)
def delete_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Delete a schedule."""
    tenant, schedule_id = request.query_as(requests.TenantQuery).tenant, check_schedule_id(schedule_id)
    condition = condition_of(request, token=services.token)
    services.manager.delete(tenant, schedule_id, condition=condition, caller=request.caller)
    return answer(HTTPStatus.OK, answers.deleted_body(tenant, schedule_id))


@routes.route(
    "GET /v1/schedules/{id}:preview",
    access=QUERY,
    query=requests.PreviewQuery,
    refuses=(errors.InvalidSchedule, errors.TooCostly, errors.ScheduleNotFound),
    answers={200: "Fires"},
    reads=_A_PREVIEW,
)
def preview_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Preview the next fires of a schedule."""
    query = request.query_as(requests.PreviewQuery)
    schedule_id = check_schedule_id(schedule_id)
    found = services.manager.preview(query.tenant, schedule_id, count=query.count, begins=query.after)
    return answer(HTTPStatus.OK, answers.fires_body(found))


@routes.route(
    "GET /v1/schedules/{id}:stats",
    access=QUERY,
    query=requests.TenantQuery,
    refuses=(errors.InvalidSchedule, errors.ScheduleNotFound),
    answers={200: "ScheduleStats"},
    reads=_A_PREVIEW,
)
def schedule_stats(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Get the figures of a schedule: its gaps beside those that its definition expects, waits, outcomes and lag."""
    query = request.query_as(requests.TenantQuery)
    found = services.manager.stats(query.tenant, check_schedule_id(schedule_id))
    return answer(HTTPStatus.OK, stats_answers.stats_body(found))


@routes.route(
    "POST /v1/schedules/{id}:pause",
    access=BODY,
    query=requests.TenantQuery,
    body=requests.PauseBody,
    is_body_required=False,
    headers=(IF_MATCH, KEY),
    refuses=(errors.InvalidSchedule, errors.ScheduleNotFound, errors.ScheduleBusy, errors.ScheduleChanged),
    answers={200: "Schedule"},
    answer_headers=(ETAG,),
)
def pause_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Pause a schedule."""
    tenant, schedule_id = request.query_as(requests.TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.optional_body_as(requests.PauseBody)
    condition = condition_of(request, token=services.token)
    found = services.manager.pause(tenant, schedule_id, note=body.note, condition=condition, caller=request.caller)
    return _answer(services, found)


@routes.route(
    "POST /v1/schedules/{id}:resume",
    access=BODY,
    query=requests.TenantQuery,
    body=requests.ResumeBody,
    is_body_required=False,
    headers=(IF_MATCH, KEY),
    refuses=(*_OF_CHANGES, errors.TooCostly, errors.ScheduleNotFound, errors.ScheduleChanged),
    answers={200: "Schedule"},
    answer_headers=(ETAG,),
)
def resume_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Resume a paused schedule, starting from now."""
    tenant, schedule_id = request.query_as(requests.TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.optional_body_as(requests.ResumeBody)
    services.admission.check_open(tenant)
    condition = condition_of(request, token=services.token)
    found = services.manager.resume(tenant, schedule_id, note=body.note, condition=condition, caller=request.caller)
    return _answer(services, found)


@routes.route(
    "POST /v1/schedules/{id}:trigger",
    access=BODY,
    query=requests.TenantQuery,
    body=requests.TriggerBody,
    is_body_required=False,
    headers=(KEY,),
    refuses=_OF_RUNS,
    answers={202: "Triggered"},
)
def trigger_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Trigger one run of a schedule now."""
    tenant, schedule_id = request.query_as(requests.TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.optional_body_as(requests.TriggerBody)
    services.admission.check_open(tenant)
    job_id = services.extra_runs.trigger(
        tenant, schedule_id, token=_token(services, request), overlap=body.overlap, caller=request.caller
    )
    return answer(HTTPStatus.ACCEPTED, answers.triggered_body(job_id))


@routes.route(
    "POST /v1/schedules/{id}:backfill",
    access=BODY,
    query=requests.TenantQuery,
    body=requests.BackfillBody,
    headers=(KEY,),
    refuses=(*_OF_RUNS, errors.TooCostly),
    answers={200: "Backfill", 202: "Backfill"},
    dry_run_reads=_A_PREVIEW,
)
def backfill_schedule(services: ScheduleServices, request: Request, schedule_id: str) -> Response[str]:
    """Backfill a schedule: run its fires of a past time range. With `dry_run`, report them and run nothing."""
    tenant, schedule_id = request.query_as(requests.TenantQuery).tenant, check_schedule_id(schedule_id)
    body = request.body_as(requests.BackfillBody)
    if not body.dry_run:
        services.admission.check_open(tenant)
    token = _token(services, request)
    backfill = services.extra_runs.backfill(tenant, schedule_id, body, token=token, caller=request.caller)
    return answer(HTTPStatus.OK if body.dry_run else HTTPStatus.ACCEPTED, answers.backfill_body(backfill))


def _answer(services: ScheduleServices, standing: Standing, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    stored_payload = services.manager.stored_payload(standing.stored.schedule)
    body = answers.schedule_body(standing, now=services.rules().now, stored_payload=stored_payload)
    return answer(status, body, headers={"ETag": tag_of(body["version"])})


def _token(services: ScheduleServices, request: Request) -> str:
    """What makes a repeat of the request the same run: short, because it stands in the identity of its jobs."""
    key = request.key(refused_as=errors.InvalidJob)
    if key is None:
        return services.token()
    return KEYED + hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
