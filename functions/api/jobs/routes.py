"""The routes of jobs: each parses, calls one function, answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.admission.admission import TOO_MUCH, Admission
from functions.api.http.access import BODY, JOB
from functions.api.http.answers import answer
from functions.api.http.problems import Refusals
from functions.api.http.reading import Request
from functions.api.http.requests import Rules
from functions.api.http.route import KEY, MERGE_PATCH, TEXT, TRACEPARENT, Routes
from functions.api.jobs import answers
from functions.api.jobs.asked import AskedFor
from functions.api.jobs.batch_intake import AskedJob, BatchIntake
from functions.api.jobs.bodies import BatchBody, JobBody
from functions.api.jobs.called_back import CalledBack
from functions.api.jobs.explain import Explainer
from functions.api.jobs.find import Finder
from functions.api.jobs.intake import Intake
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.report_outcome import TARGET_FAILED, OutcomeReports
from functions.api.jobs.requests import CompleteBody, FailBody, HeartbeatBody, patched
from functions.api.jobs.submit import Accepted
from functions.api.jobs.whole_results import WholeResults
from functions.domain import errors
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from functions.domain.lifecycle import State
from functions.ports.recorder import Journal
from functions.ports.targets import Failed
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.moves import follow
from functions.services.jobs.rescheduler import Rescheduler

routes = Routes(
    "a job",
    id={
        "schema": TEXT,
        "description": "The id of a job, exactly as the API returned it. Any other value is answered with 404: `not_a_job_id` if it is not in the format of a job id, otherwise `job_not_found`.",
    },
)


_OF_CANCELS = (errors.AlreadySettled, errors.Moved, errors.TooLate, errors.JobBusy, errors.NotPlaced)
_OF_CHANGES = (errors.NotChangeable, *_OF_CANCELS, errors.RateExceeded)
_OF_ATTEMPTS = (errors.AlreadySettled, errors.StaleFence, errors.NotHeld, errors.JobBusy)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobServices:
    """What the routes of jobs work with. known: which ids Tickwheel gave. rules: of this moment."""

    admission: Admission
    batch: BatchIntake
    intake: Intake
    finder: Finder
    asked_for: AskedFor
    called_back: CalledBack
    whole_results: WholeResults
    known: KnownIds
    canceller: Canceller
    outcome_reports: OutcomeReports
    explainer: Explainer
    rescheduler: Rescheduler
    refusals: Refusals
    journal: Journal
    rules: Callable[[], Rules]


@routes.route(
    "POST /v1/jobs",
    access=BODY,
    body=JobBody,
    headers=(KEY, TRACEPARENT),
    refuses=(
        errors.InvalidJob,
        errors.UnknownHandler,
        errors.KeyReused,
        errors.PriorityNotAllowed,
        *TOO_MUCH,
        errors.Shed,
        errors.NotPlaced,
    ),
    answers={202: "Accepted"},
)
def submit_job(services: JobServices, request: Request) -> Response[str]:
    """Submit a job."""
    key = request.key(refused_as=errors.InvalidJob)
    asked = AskedJob(body=request.body, key=key, trace=request.trace)
    (outcome,) = services.intake.submit([services.batch.read(asked, services.rules())])
    if isinstance(outcome, errors.TickwheelError):
        raise outcome
    return answer(HTTPStatus.ACCEPTED, answers.accepted_body(outcome))


@routes.route(
    "POST /v1/jobs:batch",
    access=BODY,
    body=BatchBody,
    headers=(TRACEPARENT,),
    refuses=(errors.InvalidJob, errors.UnknownHandler),
    answers={200: "Results"},
    judges_each=True,
)
def submit_jobs(services: JobServices, request: Request) -> Response[str]:
    """Submit up to 500 jobs."""
    if request.has_key:
        raise errors.InvalidInput("a batch takes no Idempotency-Key header: give each of its jobs an idempotency_key")
    body, trace = BatchBody.model_validate(request.body), request.trace
    outcomes = services.batch.take([AskedJob(body=job, trace=trace) for job in body.jobs], services.rules())
    judged = [_result(services, outcome) for outcome in outcomes]
    return answer(HTTPStatus.OK, answers.results_body(judged))


@routes.route("GET /v1/jobs/{id}", access=JOB, answers={200: "Job"})
def get_job(services: JobServices, _: Request, job_id: str) -> Response[str]:
    """Get a job: what it was submitted with, its state and its attempts."""
    found = services.finder.find(parse_job_id(job_id))
    asked = services.asked_for.job_of(found)
    called, result = services.called_back.of(found, asked), services.whole_results.of(found)
    return answer(HTTPStatus.OK, answers.found_body(found, asked, called=called, result=result))


@routes.route("GET /v1/jobs/{id}/payload", access=JOB, refuses=(errors.NotKept,), answers={200: "JobPayload"}, reads=2)
def get_job_payload(services: JobServices, _: Request, job_id: str) -> Response[str]:
    """Get the payload of a job."""
    found = services.finder.find(parse_job_id(job_id))
    return answer(HTTPStatus.OK, answers.payload_body(found, services.asked_for.payload_of(found)))


@routes.route("DELETE /v1/jobs/{id}", access=JOB, refuses=_OF_CANCELS, answers={200: "Cancelled", 202: "Cancelled"})
def cancel_job(services: JobServices, request: Request, job_id: str) -> Response[str]:
    """Cancel a job, or request that its running attempt is not retried."""
    asked = services.known.check(parse_job_id(job_id))
    parsed, is_cancelled = follow(partial(services.canceller.cancel, caller=request.caller), asked)
    body = answers.cancelled_body(parsed, is_cancelled=is_cancelled)
    services.journal.event("job_cancelled", job_id=body["id"], state=body["state"], caller=request.caller)
    return answer(HTTPStatus.OK if is_cancelled else HTTPStatus.ACCEPTED, body)


@routes.route(
    "PATCH /v1/jobs/{id}",
    access=JOB,
    body="JobPatch",
    body_type=MERGE_PATCH,
    refuses=(*_OF_CHANGES, errors.InvalidJob, errors.UnknownHandler, errors.PriorityNotAllowed),
    answers={200: "Waiting"},
)
def change_job(services: JobServices, request: Request, job_id: str) -> Response[str]:
    """Update the time or the content of a waiting job. The job continues under a new id."""
    parsed, patch = parse_job_id(job_id), request.body
    services.known.check(parsed)
    rules = services.rules()

    def edit(job: Job, payload: str | None) -> Submission:
        edited = patched(job, payload, patch, rules)
        # What it has, it may keep.
        if edited.priority is not job.priority:
            services.admission.check_priority(job.tenant, edited.priority)
        if edited.flows != job.flows:
            services.admission.check_flows(job.tenant, edited.flows)
        return edited

    services.admission.take_one(parsed.tenant)
    waiting = services.rescheduler.change(parsed, edit, caller=request.caller)
    return answer(HTTPStatus.OK, answers.waiting_body(waiting, asked=parsed))


@routes.route("POST /v1/jobs/{id}:run-now", access=JOB, refuses=_OF_CHANGES, answers={202: "Waiting"})
def run_job_now(services: JobServices, request: Request, job_id: str) -> Response[str]:
    """Run a waiting job, or its next attempt, now."""
    parsed = services.known.check(parse_job_id(job_id))
    # It waits already, so it takes from the rate alone.
    services.admission.take_one(parsed.tenant)
    waiting = services.rescheduler.run_now(parsed, caller=request.caller)
    return answer(HTTPStatus.ACCEPTED, answers.waiting_body(waiting, asked=parsed))


@routes.route("GET /v1/jobs/{id}/explain", access=JOB, answers={200: "Explanation"}, reads=5)
def explain_job(services: JobServices, _: Request, job_id: str) -> Response[str]:
    """Explain why a job has not run yet, or how it ended."""
    return answer(HTTPStatus.OK, answers.explanation_body(*services.explainer.explain(parse_job_id(job_id))))


@routes.route(
    "POST /v1/jobs/{id}/heartbeat", access=JOB, body=HeartbeatBody, refuses=_OF_ATTEMPTS, answers={200: "Heartbeat"}
)
def heartbeat_job(services: JobServices, request: Request, job_id: str) -> Response[str]:
    """Renew the lease of an attempt whose target is still working."""
    parsed, body = parse_job_id(job_id), request.body_as(HeartbeatBody)
    row = services.outcome_reports.heartbeat(parsed, fence=body.fence, lease=body.lease)
    return answer(HTTPStatus.OK, answers.heartbeat_body(parsed, row))


@routes.route(
    "POST /v1/jobs/{id}/complete",
    access=JOB,
    body=CompleteBody,
    refuses=(*_OF_ATTEMPTS, errors.NotPlaced),
    answers={200: "Ended"},
)
def complete_job(services: JobServices, request: Request, job_id: str) -> Response[str]:
    """Complete an attempt: report that its target has succeeded."""
    parsed, body = parse_job_id(job_id), request.body_as(CompleteBody)
    services.outcome_reports.complete(parsed, fence=body.fence, result=body.text, caller=request.caller)
    return answer(HTTPStatus.OK, answers.ended_body(parsed, State.SUCCEEDED))


@routes.route(
    "POST /v1/jobs/{id}/fail",
    access=JOB,
    body=FailBody,
    refuses=(*_OF_ATTEMPTS, errors.NotPlaced),
    answers={200: "Ended"},
)
def fail_job(services: JobServices, request: Request, job_id: str) -> Response[str]:
    """Fail an attempt: report that its target has failed."""
    parsed, body = parse_job_id(job_id), request.body_as(FailBody)
    failure = Failed(body.error, TARGET_FAILED, is_permanent=body.permanent, retry_after=body.wait)
    state = services.outcome_reports.fail(parsed, fence=body.fence, failure=failure, caller=request.caller)
    return answer(HTTPStatus.OK, answers.ended_body(parsed, state))


def _result(services: JobServices, outcome: Accepted | Exception) -> answers.Result:
    if isinstance(outcome, Accepted):
        return answers.result_body(outcome)
    return answers.refused_body(services.refusals.problem(outcome))
