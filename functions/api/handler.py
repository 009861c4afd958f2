"""The submission API: each route parses, calls one function, answers."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.s3.submission_files import sent_file
from functions.adapters.submission_queues import queue_of, sent_message
from functions.api.app import app_of
from functions.api.http.problems import CONTENT_TYPE, REQUESTS_FAILED, problem
from functions.api.jobs.file_intake import FileIntake
from functions.api.jobs.message_intake import MessageIntake
from functions.api.parts import PARTS
from functions.domain.errors import InvalidInput
from functions.domain.faults import fault_of, places_of
from functions.domain.jobs.submission_queues import files_name
from functions.runtime.after_answer import AfterAnswer
from functions.runtime.deadline import ANSWER_WITHIN, COUNT_WITHIN, FLUSH_WITHIN, OutOfTime, within
from functions.runtime.handler_files import HandlerFiles
from functions.runtime.observability import logger
from functions.runtime.settings import ApiSettings
from functions.runtime.uncaught import without_texts
from functions.runtime.wiring import Wiring

MOST_ANSWERED = 2_900_000
"""Characters, all of them ASCII. Lambda hands 6 MB on, with the body as a text inside of JSON, in which half of it may be escaped:
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

_RECORDS = "Records"
"""What an event of a queue has, and a request has not."""

DESCRIPTION = Path(__file__).with_name("openapi.json")
"""Made with the package: a process that answers does not make it."""

settings = ApiSettings.from_environment()
wiring = Wiring(settings, parts=PARTS)
wiring.confirm()


def _report(error: BaseException) -> None:
    logger.error("request_failed", extra={"error": fault_of(error), "places": places_of(error)})
    wiring.journal.count(REQUESTS_FAILED)


app = app_of(
    wiring,
    settings,
    webhook_keys=wiring.webhook_keys,
    handlers=HandlerFiles().names,
    document=DESCRIPTION.read_text,
    report=_report,
)
message_intake = wiring.build(MessageIntake, refusals=app.refusals, queues=wiring.submission_queues, rules=app.rules)
file_intake = wiring.build(FileIntake, refusals=app.refusals, files=wiring.submission_files, rules=app.rules)


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
            return _bounded(app.resolver.resolve(event, context))
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
