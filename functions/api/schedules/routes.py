"""The routes of schedules: each parses, calls one function, answers. A verb is what follows the colon in a path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.admission.admission import Admission
from functions.api.http.answers import answer, problem_answer
from functions.api.http.problems import problem
from functions.api.http.reading import KEY_HEADER, Model, body_of, caller_of, query_of, read_as
from functions.api.http.requests import Rules, check_key
from functions.api.schedules.answers import backfill_body, difference_body, fires_body, schedule_body
from functions.api.schedules.bodies import read_schedule
from functions.api.schedules.fire_counts import MOST_SCHEDULES, FireCountsBody, count_given, count_stored, start_of
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.patch import names_payload, patched
from functions.api.schedules.requests import (
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
from functions.domain.instants import format_instant
from functions.domain.jobs.submission import KEYED
from functions.domain.schedules.schedule import Schedule, check_new_schedule, check_schedule_id
from functions.domain.schedules.state import Status
from functions.ports.payloads import PayloadStore

CONTEXT = "schedules"
"""The name under which the routes find what they need in the resolver's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the routes need. rules: of this moment; token: a fresh one, for a run without an idempotency key."""

    manager: ScheduleManager
    admission: Admission
    payloads: PayloadStore
    rules: Callable[[], Rules]
    token: Callable[[], str]


router = APIGatewayHttpRouter()


@router.put("/v1/schedules/<schedule_id>")
def put_schedule(schedule_id: str) -> Response[str]:
    """Create or replace a schedule; or tell what that would change."""
    desk, query = _desk(), _query(ChangeQuery)
    body = read_schedule(body_of(router.current_event), desk.rules())
    schedule = check_new_schedule(body.schedule(query.tenant, unquote(schedule_id)))
    if query.dry_run:
        return answer(HTTPStatus.OK, difference_body(desk.manager.compare(schedule, count=query.count)))
    desk.admission.check(schedule.tenant, schedule.job.priority)
    standing, is_new = desk.manager.put(schedule, caller=_caller())
    return _told(standing, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


@router.patch("/v1/schedules/<schedule_id>")
def patch_schedule(schedule_id: str) -> Response[str]:
    """Change parts of a schedule; or tell what that would change."""
    desk, query, patch = _desk(), _query(ChangeQuery), body_of(router.current_event)
    rules, schedule_id = desk.rules(), check_schedule_id(unquote(schedule_id))

    def edit(current: Schedule) -> Schedule:
        stored = _stored_payload(current) if names_payload(patch) else None
        edited = patched(current, patch, rules, stored_payload=stored)
        # What it has, it may keep.
        if edited.job.priority is not current.job.priority:
            desk.admission.check_priority(query.tenant, edited.job.priority)
        return edited

    if query.dry_run:
        edited = edit(desk.manager.get(query.tenant, schedule_id).stored.schedule)
        return answer(HTTPStatus.OK, difference_body(desk.manager.compare(edited, count=query.count)))
    desk.admission.check_open(query.tenant)
    return _told(desk.manager.patch(query.tenant, schedule_id, edit, caller=_caller()))


@router.get("/v1/schedules/<path>")
def get_schedule(path: str) -> Response[str]:
    """Tell a schedule as it stands; or its next fires."""
    schedule_id, verb = _split(path)
    if verb == "preview":
        query = _query(PreviewQuery)
        schedule_id = check_schedule_id(schedule_id)
        found = _desk().manager.preview(query.tenant, schedule_id, count=query.count, begins=query.after)
        return answer(HTTPStatus.OK, fires_body(found))
    if verb:
        return _no_verb(verb, "preview")
    return _told(_desk().manager.get(_query(TenantQuery).tenant, check_schedule_id(schedule_id)))


@router.get("/v1/schedules")
def list_schedules() -> Response[str]:
    """Tell a tenant's schedules, page by page."""
    query, now = _query(PageQuery), _now()
    standings, after = _desk().manager.page(query.tenant, after=query.after, limit=query.limit)
    listed = [schedule_body(standing, now=now) for standing in standings]
    return answer(HTTPStatus.OK, {"schedules": listed, "next": after})


@router.delete("/v1/schedules/<schedule_id>")
def delete_schedule(schedule_id: str) -> Response[str]:
    """Remove a schedule."""
    tenant, schedule_id = _query(TenantQuery).tenant, check_schedule_id(unquote(schedule_id))
    _desk().manager.delete(tenant, schedule_id, caller=_caller())
    return answer(HTTPStatus.OK, {"id": schedule_id, "tenant": tenant, "status": Status.DELETED.value})


@router.post("/v1/schedules/<path>")
def act_on_schedule(path: str) -> Response[str]:
    """Do what the verb of the path says."""
    schedule_id, verb = _split(path)
    if verb not in _VERBS:
        return _no_verb(verb, *_VERBS)
    return _VERBS[verb](_query(TenantQuery).tenant, check_schedule_id(schedule_id))


@router.post("/v1/schedules:fires")
def count_fires() -> Response[str]:
    """Count the fires of up to 100 schedules by the minute."""
    desk, body = _desk(), read_as(FireCountsBody, body_of(router.current_event))
    rules = desk.rules()
    start = start_of(body.start or rules.now)
    if body.tenant is None:
        counts = count_given(body, rules, start=start)
    else:
        active, after = desk.manager.active(body.tenant, after=body.after, limit=MOST_SCHEDULES)
        counts = count_stored(active, body, start=start, goes_on_after=after)
    return answer(HTTPStatus.OK, {"start": format_instant(start), "results": counts.results, "next": counts.next})


def _pause(tenant: str, schedule_id: str) -> Response[str]:
    body = read_as(PauseBody, _optional_body())
    return _told(_desk().manager.pause(tenant, schedule_id, note=body.note, caller=_caller()))


def _resume(tenant: str, schedule_id: str) -> Response[str]:
    body = read_as(ResumeBody, _optional_body())
    _desk().admission.check_open(tenant)
    return _told(_desk().manager.resume(tenant, schedule_id, note=body.note, caller=_caller()))


def _trigger(tenant: str, schedule_id: str) -> Response[str]:
    body = read_as(TriggerBody, _optional_body())
    _desk().admission.check_open(tenant)
    job_id = _desk().manager.trigger(tenant, schedule_id, token=_token(), overlap=body.overlap, caller=_caller())
    return answer(HTTPStatus.ACCEPTED, {"job": job_id})


def _backfill(tenant: str, schedule_id: str) -> Response[str]:
    body = read_as(BackfillBody, body_of(router.current_event))
    if not body.dry_run:
        _desk().admission.check_open(tenant)
    backfill = _desk().manager.backfill(
        tenant,
        schedule_id,
        start=body.start,
        end=body.end,
        overlap=body.overlap,
        per_minute=body.per_minute,
        token=_token(),
        is_dry_run=body.dry_run,
        after=body.after,
        caller=_caller(),
    )
    return answer(HTTPStatus.OK if body.dry_run else HTTPStatus.ACCEPTED, backfill_body(backfill))


_VERBS: dict[str, Callable[[str, str], Response[str]]] = {
    "pause": _pause,
    "resume": _resume,
    "trigger": _trigger,
    "backfill": _backfill,
}


def _desk() -> Desk:
    return router.context[CONTEXT]


def _caller() -> str:
    return caller_of(router.current_event)


def _now() -> datetime:
    return _desk().rules().now


def _told(standing: Standing, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    stored_payload = _stored_payload(standing.stored.schedule)
    return answer(status, schedule_body(standing, now=_now(), stored_payload=stored_payload))


def _stored_payload(schedule: Schedule) -> str | None:
    pointer = schedule.job.payload.pointer
    return None if pointer is None else _desk().payloads.get(pointer)


def _split(path: str) -> tuple[str, str]:
    """The id, and the verb after the last colon, which no id has in it."""
    schedule_id, colon, verb = unquote(path).rpartition(":")
    return (schedule_id, verb) if colon else (verb, "")


def _no_verb(verb: str, *known: str) -> Response[str]:
    title = "There is no such route"
    detail = f"{verb[:100]!r} is nothing that can be asked of a schedule: append one of :{', :'.join(known)}"
    return problem_answer(problem(HTTPStatus.NOT_FOUND, "no_such_route", title, detail=detail))


def _token() -> str:
    """What makes a repeat of the request the same run: short, because it stands in the identity of its jobs."""
    key = check_key(router.current_event.headers.get(KEY_HEADER))
    if key is None:
        return _desk().token()
    return KEYED + hashlib.blake2b(key.encode(), digest_size=8).hexdigest()


def _query(model: type[Model]) -> Model:
    return read_as(model, query_of(router.current_event))


def _optional_body() -> Any:
    return body_of(router.current_event) if router.current_event.body else {}
