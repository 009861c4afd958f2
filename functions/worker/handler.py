"""Executes batches of the ready queues."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.sqs import ring_of
from functions.domain.faults import fault_of, places_of
from functions.domain.instants import from_ms
from functions.ports.ready_queue import Receipt
from functions.runtime.entry_point import entry_point, time_left
from functions.runtime.handler_files import HandlerFiles
from functions.runtime.observability import logger
from functions.runtime.settings import WorkerSettings
from functions.runtime.wiring import Wiring
from functions.worker.execute import Worker
from functions.worker.handlers import HANDLERS
from functions.worker.message import Message
from functions.worker.parts import PARTS
from functions.worker.told_runs import ToldTargets, tell_not_loaded, tell_output, telling
from functions.worker.user_handlers import RegisteredHandlers

files = HandlerFiles()
if files.is_live:
    tell_output()


def _note_not_loaded(module: str, error: BaseException) -> None:
    fault, places = fault_of(error), places_of(error)
    logger.error("handlers_not_loaded", extra={"handlers": module, "error": fault, "places": places})
    if files.is_live:
        tell_not_loaded(module, error)


handlers = RegisteredHandlers(HANDLERS, files, note=_note_not_loaded, around=telling if files.is_live else None)
wiring = Wiring(
    WorkerSettings.from_environment(),
    parts=PARTS,
    handlers=handlers,
    around_targets=ToldTargets if files.is_live else None,
)
wiring.confirm()
worker = wiring.build(Worker, side_by_side=wiring.run_side_by_side)


@entry_point(wiring)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function; answers which messages must come back."""
    ends_at = wiring.clock.now() + time_left(context)
    handlers.refresh()
    returned = worker.execute([_message(record) for record in event["Records"]], ends_at=ends_at)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned]}


def _message(record: dict[str, Any]) -> Message:
    return Message(
        message_id=record["messageId"],
        body=record["body"],
        receipt=Receipt(record["eventSourceARN"], record["receiptHandle"]),
        receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
        ring=ring_of(record.get("messageAttributes", {})),
        seen_at=from_ms(int(record["attributes"]["ApproximateFirstReceiveTimestamp"])),
    )


startup.is_over()
