"""Consumes the dead-letter queues of the ready queues."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.dead_letters.dead_message import DeadMessageHandler
from functions.domain.faults import fault_of
from functions.domain.instants import from_ms
from functions.runtime.entry_point import entry_point
from functions.runtime.settings import DeadLettersSettings
from functions.runtime.wiring import Wiring

wiring = Wiring(DeadLettersSettings.from_environment())
dead_messages = wiring.build(DeadMessageHandler)


@entry_point(wiring)
def handler(event: dict[str, Any], _: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function; answers which messages must come back."""
    returned = [record["messageId"] for record in event["Records"] if not _keep(record)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned]}


def _keep(record: dict[str, Any]) -> bool:
    attributes = record["attributes"]
    try:
        return dead_messages.bury(
            record["body"],
            message_id=record["messageId"],
            seen_at=from_ms(int(attributes["ApproximateFirstReceiveTimestamp"])),
            receive_count=int(attributes["ApproximateReceiveCount"]),
        )
    except Exception as error:  # noqa: BLE001  one message must not send the others of its batch back
        wiring.journal.event("not_buried", message_id=record["messageId"], error=fault_of(error))
        return False


startup.is_over()
