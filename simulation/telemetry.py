"""What is reported of jobs beside the jobs: the audit trail on Firehose, and the counts of use and of the pulse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from functions.adapters.firehose import FirehoseAuditStream
from functions.services.telemetry.audit_trail import Trail
from simulation.limits import Limits
from simulation.network import Line
from simulation.partitions import Use

STEP_BYTES = 5 * 1_024
"""Firehose bills a record in steps of 5 KB."""


class DiscardingStore:
    """A store of counts that nobody asks for: in the memory of a long run each would be kept."""

    def add(self, *_: Any) -> None:
        """Forgotten."""

    def name(self, *_: Any) -> None:
        """Forgotten."""


class Stream:
    """The stream of a stage, whose quotas are of the whole. steps: of 5 KB, of the sample."""

    def __init__(self, limits: Limits, *, share: float) -> None:
        self._share = share
        window = int(limits.quota_window)
        self.requests = Use(limits.firehose_requests, window)
        self.bytes = Use(limits.firehose_bytes, window)
        self.steps = 0

    def take(self, sizes: Sequence[int], *, at: float) -> bool:
        """Whether it takes a batch of records."""
        requests, total = 1 / self._share, sum(sizes) / self._share
        is_taken = self.requests.is_within_quota(int(at), requests) and self.bytes.is_within_quota(int(at), total)
        if is_taken:
            self.requests.note(int(at), requests)
            self.bytes.note(int(at), total)
            self.steps += sum(-(-size // STEP_BYTES) for size in sizes)
        return is_taken


class _Client:
    """Firehose, as a client calls it."""

    def __init__(self, stream: Stream, line: Line) -> None:
        self._stream = stream
        self._line = line

    def put_record_batch(self, *, DeliveryStreamName: str, Records: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        del DeliveryStreamName
        self._line.send_call()
        if not self._stream.take([len(record["Data"]) for record in Records], at=self._line.clock.at):
            raise ClientError({"Error": {"Code": "ServiceUnavailableException", "Message": "Slow down."}}, "Put")
        return {"RequestResponses": [{} for _ in Records]}


def trail_on(stream: Stream, line: Line, journal: Any, token: Any) -> Trail:
    """The audit trail of a process, with the adapter that is deployed."""
    client: Any = _Client(stream, line)
    adapter = FirehoseAuditStream(client, "audit", clock=line.clock)
    return Trail(clock=line.clock, stream=adapter, journal=journal, identity=token)
