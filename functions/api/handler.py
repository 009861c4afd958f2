"""The submission API: each route parses, calls one function, answers."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import ValidationError

from functions.adapters.s3.submission_files import sent_file
from functions.adapters.submission_queues import queue_of, sent_message
from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.admission.quota import Quota
from functions.api.dead_letters.finder import DeadLetterFinder
from functions.api.dead_letters.purge import Purger
from functions.api.dead_letters.replay import Replayer
from functions.api.dead_letters.routes import DeadLetterServices
from functions.api.dead_letters.routes import routes as dead_letter_routes
from functions.api.http.access_check import AccessCheck
from functions.api.http.answers import problem_answer
from functions.api.http.problems import CONTENT_TYPE, REQUESTS_FAILED, Misshapen, Refusals, problem
from functions.api.http.read_rates import ReadRates
from functions.api.http.requests import Rules
from functions.api.http.route import Routes
from functions.api.http.router import serve
from functions.api.jobs.asked import AskedFor
from functions.api.jobs.batch_intake import BatchIntake
from functions.api.jobs.called_back import CalledBack
from functions.api.jobs.explain import Explainer
from functions.api.jobs.file_intake import FileIntake
from functions.api.jobs.find import Finder
from functions.api.jobs.intake import Intake
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.message_intake import MessageIntake
from functions.api.jobs.report_outcome import OutcomeReports
from functions.api.jobs.routes import JobServices
from functions.api.jobs.routes import routes as job_routes
from functions.api.jobs.submit import Submitter
from functions.api.jobs.whole_results import WholeResults
from functions.api.operations.manager import OperationManager
from functions.api.operations.routes import routes as operation_routes
from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.extra_runs import ExtraRuns
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.routes import ScheduleServices
from functions.api.schedules.routes import routes as schedule_routes
from functions.api.stage.health import HealthReader
from functions.api.stage.pulse import PulseReader
from functions.api.stage.routes import StageServices
from functions.api.stage.routes import routes as stage_routes
from functions.api.targets.flow_routes import FlowServices
from functions.api.targets.flow_routes import routes as flow_routes
from functions.api.targets.routes import BreakerServices
from functions.api.targets.routes import routes as breaker_routes
from functions.api.tenants.manager import TenantManager
from functions.api.tenants.routes import TenantServices
from functions.api.tenants.routes import routes as tenant_routes
from functions.domain.errors import InvalidInput, TickwheelError
from functions.domain.faults import fault_of, places_of
from functions.domain.jobs.submission_queues import files_name
from functions.runtime.after_answer import AfterAnswer
from functions.runtime.deadline import ANSWER_WITHIN, COUNT_WITHIN, FLUSH_WITHIN, OutOfTime, within
from functions.runtime.observability import logger
from functions.runtime.settings import ApiSettings
from functions.runtime.uncaught import without_texts
from functions.runtime.wiring import Wiring, identity

MOST_ANSWERED = 2_900_000
"""Characters, all of them ASCII. Lambda hands 6 MB on, with the body as a text inside of JSON, in which half of it may be escaped:
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

_RECORDS = "Records"
"""What an event of a queue has, and a request has not."""

DESCRIPTION = Path(__file__).with_name("openapi.json")
"""Made with the package: a process that answers does not make it."""

settings = ApiSettings.from_environment()
wiring = Wiring(
    settings,
    parts={
        "admission": Admission,
        "asked": AskedFires,
        "asked_for": AskedFor,
        "called_back": CalledBack,
        "extra_runs": ExtraRuns,
        "batch": BatchIntake,
        "finder": DeadLetterFinder,
        "outcome_reports": OutcomeReports,
        "gate": Gate,
        "intake": Intake,
        "known": KnownIds,
        "purger": Purger,
        "quota": Quota,
        "replayer": Replayer,
        "submitter": Submitter,
        "whole_results": WholeResults,
    },
)
wiring.confirm()
quota = wiring.part("quota", Quota)
finder = wiring.build(Finder)
refusals = wiring.build(Refusals)


def _rules() -> Rules:
    return Rules(
        now=wiring.clock.now(),
        allow_plain_http=settings.ALLOW_PLAIN_HTTP,
        allowed=settings.ALLOWED_TARGETS,
        max_timeout=timedelta(seconds=settings.MAX_TIMEOUT_SECONDS),
    )


SERVICES: tuple[tuple[Routes, Any], ...] = (
    (
        job_routes,
        wiring.build(
            JobServices,
            finder=finder,
            explainer=wiring.build(Explainer, finder=finder, breakers=wiring.breaker_store, backlogs=quota.backlog),
            refusals=refusals,
            rules=_rules,
        ),
    ),
    (
        schedule_routes,
        wiring.build(
            ScheduleServices,
            manager=wiring.build(
                ScheduleManager,
                limits=lambda tenant: wiring.plans.of(tenant).load_limits,
                default_spread=lambda tenant: wiring.plans.of(tenant).default_spread,
            ),
            rules=_rules,
        ),
    ),
    (dead_letter_routes, wiring.build(DeadLetterServices)),
    (breaker_routes, wiring.build(BreakerServices, breaker_store=wiring.breaker_store)),
    (flow_routes, wiring.build(FlowServices)),
    (operation_routes, wiring.build(OperationManager, identity=identity)),
    (
        tenant_routes,
        TenantServices(
            manager=wiring.build(
                TenantManager,
                store=wiring.tenants,
                usage=wiring.usage_store,
                plans=settings.PLANS,
                backlogs=quota.backlog,
            ),
            webhook_keys=wiring.webhook_keys,
        ),
    ),
    (
        stage_routes,
        StageServices(
            health=wiring.build(
                HealthReader,
                stage=wiring.settings.STAGE,
                breakers=wiring.breaker_store,
                pulse=wiring.build(PulseReader),
            ),
            document=DESCRIPTION.read_text,
        ),
    ),
)
"""What answers the routes of each resource."""

message_intake = wiring.build(MessageIntake, refusals=refusals, queues=wiring.submission_queues, rules=_rules)
file_intake = wiring.build(FileIntake, refusals=refusals, files=wiring.submission_files, rules=_rules)

app = APIGatewayHttpResolver()
access_check = wiring.build(AccessCheck, operators=settings.OPERATORS, tenant_claim=settings.JWT_TENANT_CLAIM)
read_rates = wiring.build(ReadRates)
for routes, services in SERVICES:
    serve(app, routes, services, checks=(access_check.check, read_rates.check))


@app.exception_handler([ValidationError, Misshapen, TickwheelError])
def on_refused(error: Exception) -> Response[str]:
    """Answer an error as a problem."""
    return problem_answer(refusals.problem(error))


@app.exception_handler(Exception)
def on_unexpected(error: Exception) -> Response[str]:
    """A store failed, or there is a fault in Tickwheel: the log says which."""
    _report(error)
    title = "Something failed; submit or ask again"
    return problem_answer(problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", title))


@app.not_found
def no_route(_: NotFoundError) -> Response[str]:
    """Answer that there is no such route."""
    return problem_answer(problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route"))


def _in_time(flush: Callable[[], None], *, seconds: float) -> None:
    try:
        with within(seconds):
            flush()
    except OutOfTime as error:
        logger.error("flush_failed", extra={"error": fault_of(error)})


counts = AfterAnswer(lambda: _in_time(wiring.write_counts, seconds=settings.PATIENCE * COUNT_WITHIN))


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
@without_texts
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function."""
    answer = _messages_taken if _RECORDS in event else _answered
    try:
        with wiring.plans.one_revision():
            return answer(event, context)
    finally:
        counts.answered()


def _answered(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    try:
        with within(min(ANSWER_WITHIN, _time_left(context))):
            return _bounded(app.resolve(event, context))
    except OutOfTime as error:
        return _late(error)
    finally:
        _flush()


def _messages_taken(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """What an event source mapping brings from submission queues; which of it must come back."""
    if queue_of(event[_RECORDS][0]) == files_name(settings.STAGE):
        return _files_taken(event, context)
    messages = [sent_message(record, stage=settings.STAGE) for record in event[_RECORDS]]
    done: set[str] = set()
    try:
        with within(_time_left(context)):
            done.update(message_intake.take(messages))
    except OutOfTime as error:
        _report(error)
    finally:
        _flush()
    returned = [message.message_id for message in messages if message.message_id not in done]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned]}


def _files_taken(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """A turn of each file that the event source mapping brings, which is one at a time; which must come back."""
    returned: list[str] = []
    for record in event[_RECORDS]:
        try:
            file = sent_file(record["body"])
        except (InvalidInput, ValueError, KeyError, TypeError) as error:
            # An object beside the files, or a message that nobody could read the next time either.
            wiring.journal.event("file_failed", message_id=record["messageId"], error=fault_of(error))
            continue
        try:
            with within(_time_left(context)):
                file_intake.take(file, time_left=timedelta(seconds=_time_left(context)))
        except (Exception, OutOfTime) as error:  # noqa: BLE001  whatever it is, the turn comes again
            wiring.journal.event("file_failed", message_id=record["messageId"], error=fault_of(error))
            returned.append(record["messageId"])
        finally:
            _flush()
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned]}


def _time_left(context: LambdaContext) -> float:
    """Seconds until what is written down behind an answer has to begin."""
    return context.get_remaining_time_in_millis() / 1_000 - settings.PATIENCE * (FLUSH_WITHIN + COUNT_WITHIN)


def _flush() -> None:
    _in_time(wiring.audit.flush, seconds=settings.PATIENCE * FLUSH_WITHIN)
    wiring.journal.flush()


def _report(error: BaseException) -> None:
    logger.error("request_failed", extra={"error": fault_of(error), "places": places_of(error)})
    wiring.journal.count(REQUESTS_FAILED)


def _late(error: OutOfTime) -> dict[str, Any]:
    """The answer to a request that took too long: some of it may have been done."""
    _report(error)
    title = f"It took longer than {ANSWER_WITHIN} s; ask again, or for less at once"
    return _plain(problem(HTTPStatus.SERVICE_UNAVAILABLE, "out_of_time", title))


def _bounded(answered: dict[str, Any]) -> dict[str, Any]:
    """The answer itself, or what to do where it is larger than Lambda hands on."""
    if len(answered["body"]) <= MOST_ANSWERED:
        return answered
    detail = "ask for fewer at once, by a smaller `limit`, or send fewer at once"
    title = "The answer is too large"
    return _plain(problem(HTTPStatus.UNPROCESSABLE_ENTITY, "answer_too_large", title, detail=detail))


def _plain(problem: Mapping[str, Any]) -> dict[str, Any]:
    """A problem as the gateway takes it."""
    headers = {"Content-Type": CONTENT_TYPE}
    return {"statusCode": problem["status"], "headers": headers, "body": json.dumps(problem), "isBase64Encoded": False}


startup.is_over()
