"""Executes batches of the ready queues."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.sqs import ring_of
from functions.domain.instants import from_ms
from functions.ports.ready_queue import Receipt
from functions.runtime.entry_point import entry_point, time_left
from functions.runtime.settings import WorkerSettings
from functions.runtime.wiring import Wiring
from functions.worker.execute import Worker
from functions.worker.handlers import HANDLERS
from functions.worker.message import Message
from functions.worker.parts import PARTS

wiring = Wiring(WorkerSettings.from_environment(), parts=PARTS, handlers=HANDLERS)
wiring.confirm()
worker = wiring.build(Worker, side_by_side=wiring.run_side_by_side)


@entry_point(wiring)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function; answers which messages must come back."""
    ends_at = wiring.clock.now() + time_left(context)
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
