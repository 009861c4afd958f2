"""The audit trail on Firehose, which writes what it gets to S3 some minutes later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from functions.adapters.clients import is_transient
from functions.domain.audit import Record
from functions.domain.batches import batches
from functions.domain.faults import fault_of
from functions.ports.clock import Clock
from functions.ports.recorder import Untaken

if TYPE_CHECKING:
    from mypy_boto3_firehose import FirehoseClient

MOST_RECORDS = 500
MOST_BYTES = 4_000_000
"""The most of a batch: Firehose takes 4 MiB."""

ATTEMPTS = 2

_PAUSE = timedelta(milliseconds=100)


class FirehoseAuditStream:
    """Sends in full batches, and what was refused of a batch once more.

    client: makes one attempt a call, and waits a second at most. A call that was not answered in time is not repeated: the
    jobs of this invocation wait. One whose connection was closed is: the service closes those that were idle, and a copy of
    a line does no harm.
    """

    def __init__(self, client: FirehoseClient, stream: str, *, clock: Clock) -> None:
        self._client = client
        self._stream = stream
        self._clock = clock

    def put(self, records: Sequence[Record]) -> Untaken:
        """After a batch without an answer, those behind it are not tried."""
        left: list[Record] = []
        reason = ""
        full = list(batches(records, most=MOST_RECORDS, size_of=_bytes_of, most_size=MOST_BYTES))
        for number, batch in enumerate(full):
            waiting, fault, has_answered = self._put_batch(batch)
            left += waiting
            reason = fault or reason
            if not has_answered:
                left += [record for behind in full[number + 1 :] for record in behind]
                break
        return Untaken(left, reason)

    def _put_batch(self, batch: Sequence[Record]) -> tuple[Sequence[Record], str, bool]:
        """What is left of it, why, and whether the service answered."""
        waiting, reason, has_answered = batch, "", False
        for attempt in range(ATTEMPTS):
            if attempt:
                self._clock.sleep(_PAUSE)
            try:
                answer = self._client.put_record_batch(
                    DeliveryStreamName=self._stream, Records=[{"Data": _data_of(record)} for record in waiting]
                )
            except ClientError as error:
                reason, has_answered = fault_of(error), True
                if not is_transient(error):
                    break
                continue
            except ConnectionClosedError as error:
                reason, has_answered = fault_of(error), False
                continue
            except BotoCoreError as error:
                return waiting, fault_of(error), False
            has_answered = True
            outcomes = list(zip(waiting, answer["RequestResponses"], strict=True))
            waiting = [record for record, outcome in outcomes if "ErrorCode" in outcome]
            if not waiting:
                return (), "", True
            reason = next(outcome["ErrorCode"] for _, outcome in outcomes if "ErrorCode" in outcome)
        return waiting, reason, has_answered


def _data_of(record: Record) -> bytes:
    return "".join(f"{line}\n" for line in record).encode()


def _bytes_of(record: Record) -> int:
    return len(_data_of(record))
