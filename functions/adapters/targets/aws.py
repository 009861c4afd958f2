"""What AWS runs, as targets: a Lambda function, an SQS queue, an SNS topic, an EventBridge bus, a Step Functions machine.

Each call is one request. What it carries beside the payload is for whoever receives it to deduplicate by.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    HTTPClientError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.exceptions import ConnectionError as NotConnected

from functions.adapters import clients
from functions.adapters.targets.calls import TIMEOUT, Call
from functions.domain.instants import format_instant
from functions.domain.jobs.results import WHOLE_LIMIT
from functions.domain.targets.http_answers import ACCEPTED, is_pending, result_of
from functions.domain.targets.kinds import SERVICES, Kind, client_of
from functions.domain.targets.options import TargetOptions
from functions.domain.targets.targets import Target, parse_target
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded

_CLIENTS = 64
_QUEUES = 1_024
_ERROR_TYPE = re.compile(r"[A-Za-z0-9_.]{1,100}", re.ASCII)

# Services spell the same few things in their own ways. The first that is found in a code counts.
_THROTTLED = re.compile(r"throttl|toomanyrequests|overlimit|limitexceeded|quotaexceeded", re.IGNORECASE)
_ACCESS_DENIED = re.compile(r"accessdenied|authoriz|invalidsecurity$|kms", re.IGNORECASE)
_NOT_FOUND = re.compile(r"notfound|nonexistent|doesnotexist|statemachinedeleting", re.IGNORECASE)
# Of the service, of the worker's own credentials, which are renewed, or of its clock.
_TRIED_AGAIN = re.compile(
    r"internal|unavailable|timeout|expired|signature|clienttoken|unrecognizedclient", re.IGNORECASE
)
_TRIED_AGAIN_STATUSES = frozenset({408, 409, 410})
"""A function that is just being changed, or whose file system does not answer."""


class AwsCaller:
    """Calls what an ARN names, in the region that the ARN names."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client_of = lru_cache(_CLIENTS)(clients.target)
        self._urls = lru_cache(_QUEUES)(_find_queue)
        self._senders: Mapping[Kind, Callable[[_Sending], Outcome]] = {
            Kind.LAMBDA: _invoke,
            Kind.SQS: self._send_message,
            Kind.SNS: _publish,
            Kind.EVENTS: _put_event,
            Kind.STATES: _start_execution,
        }

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call once. A function that overruns the timeout continues, with a stale fence."""
        parsed, call = parse_target(target), Call(timeout)
        text = "null" if payload is None else payload

        def attempt() -> Outcome:
            try:
                client = self._client(parsed, call.seconds)
                sending = _Sending(
                    call=call, client=client, target=parsed, text=text, invocation=invocation, options=options
                )
                return self._senders[parsed.kind](sending)
            except (BotoCoreError, ClientError) as error:
                return _failure(error, parsed, size=len(text.encode()))

        return call.run(attempt)

    def _client(self, target: Target, seconds: float) -> Any:
        # A client's timeouts are its own. Those of the next power of two end a thread soon after its call; the call ends
        # in time by itself.
        rounded = 2 ** math.ceil(math.log2(max(1.0, seconds)))
        with self._lock:  # clients may be used side by side, but not made
            return self._client_of(client_of(target.kind), target.region, seconds=rounded)

    def _send_message(self, sending: _Sending) -> Outcome:
        url = self._urls(sending.client, sending.target.name, sending.target.account)
        answer = sending.client.send_message(QueueUrl=url, MessageBody=sending.text, **_beside(sending))
        return _succeeded(message_id=answer["MessageId"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """All that one request is made of."""

    call: Call
    client: Any
    target: Target
    text: str
    invocation: Invocation
    options: TargetOptions


def attempt_fields(invocation: Invocation) -> dict[str, Any]:
    """What a receiver gets besides the payload."""
    return {
        "job_id": invocation.job_id,
        "tenant": invocation.tenant,
        "idempotency_key": invocation.idempotency_key,
        "attempt": invocation.attempt,
        "fence": invocation.fence,
        "scheduled_at": format_instant(invocation.scheduled_at),
        "traceparent": invocation.traceparent,
    }


def digest_of(idempotency_key: str) -> str:
    """64 characters that stand for an idempotency key where a service takes no such text."""
    return hashlib.sha256(idempotency_key.encode()).hexdigest()


def _invoke(sending: _Sending) -> Outcome:
    function, payload = sending.target.text, sending.text.encode()
    if sending.options.is_async:
        sending.client.invoke(FunctionName=function, InvocationType="Event", Payload=payload)
        return Succeeded(result_of(ACCEPTED, b"", is_whole=True))
    context = {**attempt_fields(sending.invocation), "deadline": format_instant(sending.invocation.deadline)}
    answer = sending.client.invoke(
        FunctionName=function,
        InvocationType="RequestResponse",
        ClientContext=base64.b64encode(json.dumps({"custom": context}).encode()).decode(),
        Payload=payload,
    )
    # It has run: what comes or does not come of its answer changes nothing about that.
    sending.call.record(lambda: _judge(answer, b"", is_whole=False))
    try:
        body = answer["Payload"].read(WHOLE_LIMIT)
        is_whole = not answer["Payload"].read(1)  # it raises when less has come than was announced
    except BotoCoreError:
        return _judge(answer, b"", is_whole=False)
    return _judge(answer, body, is_whole=is_whole)


def _judge(answer: Any, body: bytes, *, is_whole: bool) -> Outcome:
    value = _parsed(body)
    if "FunctionError" in answer:
        # Only the type: its message may hold what the payload does.
        named = value.get("errorType") if isinstance(value, dict) else None
        kind = named if isinstance(named, str) and _ERROR_TYPE.fullmatch(named) else answer["FunctionError"]
        return Failed(f"{kind}: the function failed; its log says why", error_class="function_error")
    said = body.decode(errors="replace") if is_whole else ""
    return Pending() if is_pending(value) else Succeeded(result_of(answer["StatusCode"], body, is_whole=is_whole), said)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _find_queue(client: Any, name: str, account: str) -> str:
    return client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]


def _publish(sending: _Sending) -> Outcome:
    answer = sending.client.publish(TopicArn=sending.target.text, Message=sending.text, **_beside(sending))
    return _succeeded(message_id=answer["MessageId"])


def _put_event(sending: _Sending) -> Outcome:
    # The payload's own text: read and written again, its numbers might change.
    detail = f'{json.dumps(attempt_fields(sending.invocation))[:-1]}, "payload": {sending.text}}}'
    entry = {
        "Source": "tickwheel",
        "DetailType": "Tickwheel Job",
        "Detail": detail,
        "EventBusName": sending.target.text,
    }
    answer = sending.client.put_events(Entries=[entry])
    (put,) = answer["Entries"]
    if answer["FailedEntryCount"]:
        return _refusal(str(put.get("ErrorCode")), 0, sending.target, size=len(detail.encode()))
    return _succeeded(event_id=put["EventId"])


def _start_execution(sending: _Sending) -> Outcome:
    client, name = sending.client, digest_of(sending.invocation.idempotency_key)
    try:
        client.start_execution(stateMachineArn=sending.target.text, name=name, input=sending.text)
    except client.exceptions.ExecutionAlreadyExists:
        # An attempt before this one has started it.
        return _succeeded(execution=name)
    return _succeeded(execution=name)


def _beside(sending: _Sending) -> dict[str, Any]:
    """What a message has beside its text."""
    invocation = sending.invocation
    attributes = {
        # Under the name that libraries of W3C Trace Context look for.
        name if name == "traceparent" else f"tickwheel-{name.replace('_', '-')}": {
            "DataType": "String",
            "StringValue": str(value),
        }
        for name, value in attempt_fields(invocation).items()
    }
    if not sending.target.is_fifo:
        return {"MessageAttributes": attributes}
    return {
        "MessageAttributes": attributes,
        "MessageGroupId": invocation.tenant,
        "MessageDeduplicationId": digest_of(invocation.idempotency_key),
    }


def _succeeded(**result: str) -> Succeeded:
    return Succeeded(json.dumps(result))


def _failure(error: BotoCoreError | ClientError, target: Target, *, size: int) -> Failed:
    """A call without a usable answer. The texts of these errors are not repeated: some hold what was sent."""
    name = type(error).__name__
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return _refusal(clients.code_of(error) or name, status, target, size=size)
    if isinstance(error, ReadTimeoutError | ConnectTimeoutError):
        return Failed(f"{name}: no answer of {target.destination} in time", error_class=TIMEOUT)
    if isinstance(error, HTTPClientError | NotConnected):
        return Failed(f"{name}: no connection for {target.destination}", error_class="connection")
    if isinstance(error, ParamValidationError):
        return _invalid(name, target, size=size)
    return Failed(f"{name}: the worker could not ask for {target.destination}", error_class="service_error")


def _refusal(code: str, status: int, target: Target, *, size: int) -> Failed:
    """What an error code of AWS means. status: 0 where an answer has none of its own."""
    if _THROTTLED.search(code) or status == 429:  # noqa: PLR2004
        return Failed(f"{code}: {target.destination} is throttled", error_class="throttled")
    if _ACCESS_DENIED.search(code):
        return _denied(code, target)
    if _NOT_FOUND.search(code):
        return _missing(code, target)
    if _TRIED_AGAIN.search(code) or status in _TRIED_AGAIN_STATUSES or status >= 500:  # noqa: PLR2004
        return Failed(f"{code}: {target.kind} cannot serve {target.destination} now", error_class="service_error")
    if status == 403:  # noqa: PLR2004
        return _denied(code, target)
    return _missing(code, target) if status == 404 else _invalid(code, target, size=size)  # noqa: PLR2004


def _denied(code: str, target: Target) -> Failed:
    return Failed(
        f"{code}: the worker may not call {SERVICES[target.kind].calls} on {target.text}: add it to the stage's `targets` in "
        "infra/stage.py and deploy; when it is there, its own policy or its key refuses the worker's role",
        error_class="access_denied",
        is_permanent=True,
    )


def _missing(code: str, target: Target) -> Failed:
    return Failed(
        f"{code}: there is no {target.text}, or the worker may not see it: create it, or submit the job with another "
        "target",
        error_class="not_found",
        is_permanent=True,
    )


def _invalid(code: str, target: Target, *, size: int) -> Failed:
    return Failed(
        f"{code}: {target.kind} refuses this job for {target.destination}; it was sent {size} bytes: see what it takes, "
        "and submit the job with another payload",
        error_class="invalid",
        is_permanent=True,
        is_its_own=True,
    )
