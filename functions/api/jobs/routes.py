"""The routes of jobs that were submitted: each parses, calls one function, answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.admission.admission import Admission
from functions.api.http.answers import answer, problem_answer
from functions.api.http.problems import problem
from functions.api.http.reading import body_of, caller_of, read_as
from functions.api.http.requests import Rules
from functions.api.jobs.answers import ended_body, explanation_body, heartbeat_body, waiting_body
from functions.api.jobs.explain import Explainer
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.report_outcome import TARGET_FAILED, Finisher
from functions.api.jobs.requests import CompleteBody, FailBody, HeartbeatBody, patched
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import JobId, parse_job_id
from functions.domain.lifecycle import State
from functions.ports.targets import Failed
from functions.services.jobs.rescheduler import Edited, Rescheduler

CONTEXT = "jobs"
"""The name under which the routes find what they need in the resolver's context."""

RUN_NOW = "run-now"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDesk:
    """What the routes need. known: which ids Tickwheel gave. rules: of this moment."""

    admission: Admission
    known: KnownIds
    finisher: Finisher
    explainer: Explainer
    rescheduler: Rescheduler
    rules: Callable[[], Rules]


router = APIGatewayHttpRouter()


@router.patch("/v1/jobs/<job_id>")
def change_job(job_id: str) -> Response[str]:
    """Give a job that waits another time or another content."""
    desk, parsed, patch = _desk(), _parsed(job_id), body_of(router.current_event)
    desk.known.check(parsed)
    rules = desk.rules()

    def edit(job: Job, payload: str | None) -> Edited:
        edited = patched(job, payload, patch, rules)
        # What it has, it may keep.
        if edited.submission.priority is not job.priority:
            desk.admission.check_priority(job.tenant, edited.submission.priority)
        return edited

    desk.admission.take_one(parsed.tenant)
    waiting = desk.rescheduler.change(parsed, edit, caller=caller_of(router.current_event))
    return answer(HTTPStatus.OK, waiting_body(waiting, asked=parsed))


@router.post("/v1/jobs/<path>")
def act_on_job(path: str) -> Response[str]:
    """Do what the verb of the path says."""
    job_id, _, verb = unquote(path).rpartition(":")
    if verb != RUN_NOW:
        title = "There is no such route"
        detail = f"nothing can be asked of a job by POST but that it runs now: append :{RUN_NOW} to its id"
        return problem_answer(problem(HTTPStatus.NOT_FOUND, "no_such_route", title, detail=detail))
    parsed = _desk().known.check(parse_job_id(job_id))
    # It waits already, so it takes from the rate alone.
    _desk().admission.take_one(parsed.tenant)
    waiting = _desk().rescheduler.run_now(parsed, caller=caller_of(router.current_event))
    return answer(HTTPStatus.ACCEPTED, waiting_body(waiting, asked=parsed))


@router.get("/v1/jobs/<job_id>/explain")
def explain_job(job_id: str) -> Response[str]:
    """Tell why a job has not run yet, or what became of it."""
    return answer(HTTPStatus.OK, explanation_body(*_desk().explainer.explain(_parsed(job_id))))


@router.post("/v1/jobs/<job_id>/heartbeat")
def heartbeat(job_id: str) -> Response[str]:
    """Prolong the lease of an attempt whose target goes on by itself."""
    parsed, body = _parsed(job_id), read_as(HeartbeatBody, body_of(router.current_event))
    row = _desk().finisher.heartbeat(parsed, fence=body.fence, lease=body.lease)
    return answer(HTTPStatus.OK, heartbeat_body(parsed, row))


@router.post("/v1/jobs/<job_id>/complete")
def complete(job_id: str) -> Response[str]:
    """Settle an attempt as succeeded."""
    parsed, body = _parsed(job_id), read_as(CompleteBody, body_of(router.current_event))
    _desk().finisher.complete(parsed, fence=body.fence, result=body.text, caller=caller_of(router.current_event))
    return answer(HTTPStatus.OK, ended_body(parsed, State.SUCCEEDED))


@router.post("/v1/jobs/<job_id>/fail")
def fail(job_id: str) -> Response[str]:
    """Settle an attempt as failed."""
    parsed, body = _parsed(job_id), read_as(FailBody, body_of(router.current_event))
    failure = Failed(body.error, TARGET_FAILED, is_permanent=body.permanent, retry_after=body.wait)
    caller = caller_of(router.current_event)
    state = _desk().finisher.fail(parsed, fence=body.fence, failure=failure, caller=caller)
    return answer(HTTPStatus.OK, ended_body(parsed, state))


def _desk() -> JobDesk:
    return router.context[CONTEXT]


def _parsed(job_id: str) -> JobId:
    return parse_job_id(unquote(job_id))
