"""The submission API: each route parses, calls one function, answers."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import ValidationError

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.admission.quota import Quota
from functions.api.dead_letters.finder import LetterFinder
from functions.api.dead_letters.purge import Purger
from functions.api.dead_letters.replay import Replayer
from functions.api.dead_letters.routes import CONTEXT as LETTERS
from functions.api.dead_letters.routes import LetterDesk
from functions.api.dead_letters.routes import router as letter_router
from functions.api.http.access import Guard
from functions.api.http.answers import accepted_body, answer, found_body, problem_answer, webhook_keys_body
from functions.api.http.problems import CONTENT_TYPE, Misshapen, problem, problem_of
from functions.api.http.read_rates import ReadRates
from functions.api.http.reading import KEY_HEADER, body_of, caller_of, trace_of
from functions.api.http.requests import BatchBody, JobBody, Rules, check_key
from functions.api.http.router import serve
from functions.api.jobs.explain import Explainer
from functions.api.jobs.find import Finder
from functions.api.jobs.intake import Intake
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.report_outcome import Finisher
from functions.api.jobs.routes import CONTEXT as JOBS
from functions.api.jobs.routes import JobDesk
from functions.api.jobs.routes import router as job_router
from functions.api.jobs.submit import Submitter
from functions.api.operations.operator import OperationManager
from functions.api.operations.routes import CONTEXT as OPERATIONS
from functions.api.operations.routes import router as operation_router
from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.routes import CONTEXT, Desk, router
from functions.api.stage.health import HealthReader
from functions.api.stage.pulse import PulseReader
from functions.api.stage.routes import CONTEXT as HEALTH
from functions.api.stage.routes import router as health_router
from functions.api.targets.routes import BreakerServices
from functions.api.targets.routes import routes as breaker_routes
from functions.api.tenants.manager import TenantManager
from functions.api.tenants.routes import CONTEXT as TENANTS
from functions.api.tenants.routes import router as tenant_router
from functions.domain.errors import InvalidInput, Shed, TickwheelError
from functions.domain.faults import fault_of, places_of
from functions.domain.jobs.job import check_new_tenant, check_tenant
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from functions.domain.targets.webhooks import keys_of
from functions.domain.trace import Trace
from functions.runtime.deadline import ANSWER_WITHIN, FLUSH_WITHIN, OutOfTime, within
from functions.runtime.observability import logger
from functions.runtime.settings import ApiSettings
from functions.runtime.uncaught import without_texts
from functions.runtime.wiring import Wiring, identity, token
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.moves import follow
from functions.services.jobs.rescheduler import Rescheduler

if TYPE_CHECKING:
    from functions.api.http import shapes
    from functions.api.jobs import shapes as jobs

REQUESTS_FAILED = "requests_failed"

MOST_ANSWERED = 2_900_000
"""Characters, all of them ASCII. Lambda hands 6 MB on, with the body as a text inside of JSON, in which half of it may be escaped:
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

DESCRIPTION = Path(__file__).with_name("openapi.json")
"""Made with the package: a process that answers does not make it."""

app = APIGatewayHttpResolver()
app.include_router(router)
app.include_router(letter_router)
app.include_router(job_router)
app.include_router(operation_router)
app.include_router(tenant_router)
app.include_router(health_router)
settings = ApiSettings.from_environment()
wiring = Wiring(
    settings,
    parts={
        "admission": Admission,
        "asked": AskedFires,
        "finder": LetterFinder,
        "gate": Gate,
        "known": KnownIds,
        "purger": Purger,
        "quota": Quota,
        "replayer": Replayer,
        "submitter": Submitter,
    },
)
wiring.confirm()
guard = Guard(plans=wiring.plans, operators=settings.OPERATORS, tenant_claim=settings.JWT_TENANT_CLAIM)
read_rates = wiring.build(ReadRates)
app.use([guard.admit, read_rates.admit])
admission = wiring.part("admission", Admission)
quota = wiring.part("quota", Quota)
intake = wiring.build(Intake)
canceller = wiring.part("canceller", Canceller)
known_ids = wiring.part("known", KnownIds)
finder = wiring.build(Finder)
manager = wiring.build(ScheduleManager, limits=lambda tenant: wiring.plans.of(tenant).load_limits)
serve(app, breaker_routes, wiring.build(BreakerServices, breaker_store=wiring.breaker_store), checks=())
letter_desk = wiring.build(LetterDesk)
finisher = wiring.build(Finisher)
explainer = wiring.build(Explainer, finder=finder, breakers=wiring.breaker_store, backlogs=quota.backlog)
rescheduler = wiring.part("rescheduler", Rescheduler)
operation_manager = wiring.build(OperationManager, identity=identity)
tenant_manager = wiring.build(
    TenantManager, store=wiring.tenants, usage=wiring.usage_store, plans=settings.PLANS, backlogs=quota.backlog
)
health_reader = wiring.build(HealthReader, breakers=wiring.breaker_store, pulse=wiring.build(PulseReader))


@app.post("/v1/jobs")
def submit_job() -> Response[str]:
    """Take one job in."""
    key = check_key(app.current_event.headers.get(KEY_HEADER))
    rules = _rules(has_key=key is not None)
    submission = _read(body_of(app.current_event), rules, key=key, trace=trace_of(app.current_event))
    admission.check(submission.tenant, submission.priority)
    admission.check_shed(submission.priority)
    outcome = intake.submit([submission])[0]
    if isinstance(outcome, TickwheelError):
        raise outcome
    return answer(HTTPStatus.ACCEPTED, accepted_body(outcome))


@app.post("/v1/jobs:batch")
def submit_batch() -> Response[str]:
    """Take up to 500 jobs in, with a result for each."""
    if KEY_HEADER in app.current_event.headers:
        raise InvalidInput("a batch takes no Idempotency-Key header: give each of its jobs an idempotency_key")
    rules, trace = _rules(), trace_of(app.current_event)
    batch = BatchBody.model_validate(body_of(app.current_event))
    results: list[jobs.Result | None] = []
    submissions: list[Submission] = []
    for job in batch.jobs:
        try:
            submission = _read(job, rules, key=None, trace=trace)
            admission.check(submission.tenant, submission.priority)
            admission.check_shed(submission.priority)
        except (ValidationError, TickwheelError) as error:
            results.append(_refusal(error))
        else:
            submissions.append(submission)
            results.append(None)
    outcomes = iter(intake.submit(submissions))
    return answer(HTTPStatus.OK, {"results": [result or _result(next(outcomes)) for result in results]})


@app.get("/v1/jobs/<job_id>")
def get_job(job_id: str) -> Response[str]:
    """Tell what is known of a job."""
    return answer(HTTPStatus.OK, found_body(finder.find(parse_job_id(unquote(job_id)))))


@app.delete("/v1/jobs/<job_id>")
def cancel_job(job_id: str) -> Response[str]:
    """Stop a job that has not run."""
    caller = caller_of(app.current_event)
    asked = known_ids.check(parse_job_id(unquote(job_id)))
    parsed, is_cancelled = follow(partial(canceller.cancel, caller=caller), asked)
    state = "cancelled" if is_cancelled else "cancel_requested"
    wiring.journal.event("job_cancelled", job_id=str(parsed), state=state, caller=caller)
    return answer(HTTPStatus.OK if is_cancelled else HTTPStatus.ACCEPTED, {"id": str(parsed), "state": state})


@app.get("/v1/tenants/<tenant>/webhook-keys")
def get_webhook_keys(tenant: str) -> Response[str]:
    """Tell what the signatures of a tenant's requests are made with."""
    keys = keys_of(check_tenant(unquote(tenant)), wiring.webhook_keys.read())
    told = answer(HTTPStatus.OK, webhook_keys_body(keys))
    told.headers["Cache-Control"] = "no-store"
    return told


@app.get("/openapi.json")
def openapi() -> Response[str]:
    """Describe this API."""
    return Response(status_code=HTTPStatus.OK, content_type="application/json", body=DESCRIPTION.read_text())


@app.exception_handler([ValidationError, Misshapen, TickwheelError])
def refuse(error: Exception) -> Response[str]:
    """Tell an error as a problem."""
    return problem_answer(_told(error))


@app.exception_handler(Exception)
def excuse(error: Exception) -> Response[str]:
    """A store failed, or there is a fault in Tickwheel: the log says which."""
    logger.error("request_failed", extra={"error": fault_of(error), "places": places_of(error)})
    wiring.journal.count(REQUESTS_FAILED)
    title = "Something failed; submit or ask again"
    return problem_answer(problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", title))


@app.not_found
def no_route(_: NotFoundError) -> Response[str]:
    """Tell that there is no such route."""
    return problem_answer(problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route"))


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
@without_texts
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function."""
    # The resolver forgets its context after each request.
    desk = Desk(manager=manager, admission=admission, payloads=wiring.payloads, rules=_rules, token=token)
    job_desk = JobDesk(
        admission=admission,
        known=known_ids,
        finisher=finisher,
        explainer=explainer,
        rescheduler=rescheduler,
        rules=_rules,
    )
    app.append_context(**{CONTEXT: desk, JOBS: job_desk, LETTERS: letter_desk})
    app.append_context(**{OPERATIONS: operation_manager, TENANTS: tenant_manager, HEALTH: health_reader})
    left = context.get_remaining_time_in_millis() / 1_000
    try:
        with within(min(ANSWER_WITHIN, left - FLUSH_WITHIN)):
            return _bounded(app.resolve(event, context))
    except OutOfTime as error:
        return _late(error)
    finally:
        try:
            with within(FLUSH_WITHIN):
                wiring.audit.flush()
                wiring.tally.flush()
                wiring.pulse.flush()
        except OutOfTime as error:
            logger.error("flush_failed", extra={"error": fault_of(error)})
        wiring.journal.flush()


def _late(error: OutOfTime) -> dict[str, Any]:
    """The answer to a request that took too long: some of it may have been done."""
    logger.error("request_failed", extra={"error": fault_of(error), "places": places_of(error)})
    wiring.journal.count(REQUESTS_FAILED)
    title = f"It took longer than {ANSWER_WITHIN} s; ask again, or for less at once"
    return _plain(problem(HTTPStatus.SERVICE_UNAVAILABLE, "out_of_time", title))


def _bounded(answered: dict[str, Any]) -> dict[str, Any]:
    """The answer itself, or what to do where it is larger than Lambda hands on."""
    if len(answered["body"]) <= MOST_ANSWERED:
        return answered
    detail = "ask for fewer at once, by a smaller `limit`, or send fewer at once"
    title = "The answer is too large"
    return _plain(problem(HTTPStatus.UNPROCESSABLE_ENTITY, "answer_too_large", title, detail=detail))


def _plain(told: shapes.Problem) -> dict[str, Any]:
    """A problem as the gateway takes it."""
    headers = {"Content-Type": CONTENT_TYPE}
    return {"statusCode": told["status"], "headers": headers, "body": json.dumps(told), "isBase64Encoded": False}


def _rules(*, has_key: bool = False) -> Rules:
    return Rules(
        now=wiring.clock.now(),
        allow_plain_http=settings.ALLOW_PLAIN_HTTP,
        allowed=settings.ALLOWED_TARGETS,
        max_timeout=timedelta(seconds=settings.MAX_TIMEOUT_SECONDS),
        has_key=has_key,
    )


def _read(job: Any, rules: Rules, *, key: str | None, trace: Trace | None) -> Submission:
    """A job as its tenant asks for it. Raises ValidationError, InvalidJob."""
    body = JobBody.model_validate(job, context=rules)
    check_new_tenant(body.tenant)
    return body.submission(now=rules.now, idempotency_key=key, trace=trace)


def _result(outcome: Any) -> jobs.Result:
    if isinstance(outcome, TickwheelError):
        return _refusal(outcome)
    return {"status": int(HTTPStatus.ACCEPTED), "job": accepted_body(outcome)}


def _refusal(error: Exception) -> jobs.Result:
    refused = _told(error)
    return {"status": refused["status"], "problem": refused}


def _told(error: Exception) -> shapes.Problem:
    """The problem that an error is told as; counted where it is the fault of the stage, which sheds on purpose."""
    told = problem_of(error)
    if told["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, Shed):
        wiring.journal.count(REQUESTS_FAILED)
    return told
