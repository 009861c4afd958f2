"""SQS as it is seen from above the socket: takes batches, counts what AWS bills, keeps messages until they are due."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from bench.boundary import Handler, answer, body_of
from bench.clock import SettableClock

BATCH = 10
QUEUE_URLS = tuple(f"https://sqs.us-east-1.amazonaws.com/000000000000/{name}" for name in ("c", "h", "n", "l"))

_BILLED_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that becomes visible at that instant."""

    body: str
    visible_at: datetime


class HeldQueues:
    """Four queues in one: what is measured sends, and the benchmark receives.

    On AWS the event source mapping receives and deletes, so no code of ours does: a delivery of up to ten messages
    counts as two requests.
    """

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._messages: list[HeldMessage] = []
        self._requests = 0

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What to register, by event."""
        return {"before-send.sqs": self._send}

    @property
    def is_empty(self) -> bool:
        """Whether no message waits."""
        return not self._messages

    def take_requests(self) -> int:
        """Requests so far; they start from zero again."""
        with self._lock:
            requests, self._requests = self._requests, 0
            return requests

    def deliver(self, *, only_soonest: bool = False) -> Iterator[list[HeldMessage]]:
        """Every message in batches of ten, the clock at the instant at which the last of them is visible.

        only_soonest: those that are visible now, else at the first instant at which one is.
        """
        messages, self._messages = self._messages, []
        now = self._clock.now()
        if only_soonest and messages:
            now = max(now, min(message.visible_at for message in messages))
            self._messages = [message for message in messages if message.visible_at > now]
            messages = [message for message in messages if message.visible_at <= now]
        self._clock.set(max([now, *(message.visible_at for message in messages)]))
        for start in range(0, len(messages), BATCH):
            self._requests += 2
            yield messages[start : start + BATCH]

    def _send(self, request: AWSPreparedRequest, event_name: str, **_: object) -> AWSResponse:
        if not event_name.endswith(".SendMessageBatch"):
            raise NotImplementedError(f"these queues have no answer to {event_name}")
        entries = json.loads(body_of(request))["Entries"]
        now = self._clock.now()
        size = sum(len(entry["MessageBody"].encode()) for entry in entries)
        with self._lock:
            self._requests += -(-size // _BILLED_BYTES)
            self._messages += [
                HeldMessage(entry["MessageBody"], now + timedelta(seconds=entry["DelaySeconds"])) for entry in entries
            ]
        taken = [
            {
                "Id": entry["Id"],
                "MessageId": f"message-{entry['Id']}",
                "MD5OfMessageBody": hashlib.md5(entry["MessageBody"].encode(), usedforsecurity=False).hexdigest(),
            }
            for entry in entries
        ]
        return answer(request, json.dumps({"Successful": taken, "Failed": []}).encode())
