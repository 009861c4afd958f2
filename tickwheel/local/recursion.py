"""Recursive loop detection, which stops a chain of invocations through SQS in AWS and which ministack does not know there.

AWS counts in the trace header how often a function was invoked in a chain of requests: `Lineage=1:43e12f0f:15`, one part
for each function, separated by `|`. An SDK in a function passes the header on, SQS keeps it with the message, and after
about 16 invocations Lambda refuses the next: its messages become visible again until they have been received too often
(https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html). ministack counts calls of Invoke by itself.

Stricter than AWS in one thing: a function's `RecursiveLoop: Allow` is not asked. So what runs here passes without it.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ministack.services import cloudwatch, lambda_svc, sqs

MOST_INVOCATIONS = 16

Serve = Callable[..., Awaitable[None]]
Lineage = dict[str, int]
"""How often each function of a chain was invoked, by a name for it of eight hexadecimal digits."""

_LOG = logging.getLogger(__name__)
_HEADER = b"x-amzn-trace-id"
_LINEAGE = "Lineage="
_VERSION = "1:"

_sent_with: ContextVar[str] = ContextVar("sent_with", default="")
_invoked_by: ContextVar[Lineage | None] = ContextVar("invoked_by", default=None)


def install() -> None:
    """Let ministack count the invocations of chains through SQS, and stop long ones."""
    sqs._build_send_sys_attrs = _keeping_header(sqs._build_send_sys_attrs)  # noqa: SLF001
    lambda_svc._run_sqs_batch = _stopping_loops(lambda_svc._run_sqs_batch)  # noqa: SLF001
    lambda_svc._xray_trace_id_for_invocation = _with_lineage(lambda_svc._xray_trace_id_for_invocation)  # noqa: SLF001


def hearing_traces(serve: Serve) -> Serve:
    """An ASGI application before another, which lets what is sent to SQS keep the trace header of its request."""

    async def hear(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            _sent_with.set(next((value.decode() for name, value in scope["headers"] if name.lower() == _HEADER), ""))
        await serve(scope, receive, send)

    return hear


def parse_lineage(header: str) -> Lineage:
    """The counts in a trace header; none for one that has none, or something else in their place."""
    counts: Lineage = {}
    for part in header.split(";"):
        if not part.startswith(_LINEAGE):
            continue
        for function in part.removeprefix(_LINEAGE).removeprefix(_VERSION).split("|"):
            name, _, count = function.partition(":")
            if count.isdecimal():
                counts[name] = int(count)
    return counts


def format_lineage(lineage: Mapping[str, int]) -> str:
    """The counts as a part of a trace header."""
    return _LINEAGE + _VERSION + "|".join(f"{name}:{count}" for name, count in lineage.items())


def next_lineage(headers: Sequence[str], *, function: str) -> Lineage:
    """The counts of an invocation with messages of these trace headers, itself included: those of its longest chain."""
    name = hashlib.blake2b(function.encode(), digest_size=4).hexdigest()
    longest = max((parse_lineage(header) for header in headers), key=lambda lineage: lineage.get(name, 0), default={})
    return longest | {name: longest.get(name, 0) + 1}


def _keeping_header(build: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def keep_header(now: float, attributes: Any) -> dict[str, Any]:
        header = _sent_with.get()
        return ({"AWSTraceHeader": header} if header else {}) | build(now, attributes)

    return keep_header


def _stopping_loops(run: Callable[..., None]) -> Callable[..., None]:
    def stop_loops(esm: dict[str, Any], function: dict[str, Any], event: dict[str, Any], *rest: Any) -> None:
        headers = [record["attributes"].get("AWSTraceHeader", "") for record in event["Records"]]
        lineage = next_lineage(headers, function=esm["FunctionName"])
        if max(lineage.values()) > MOST_INVOCATIONS:
            _report_stopped(esm["FunctionName"])
            return  # its messages stay hidden for their visibility timeout, as after any failed invocation
        token = _invoked_by.set(lineage)
        try:
            run(esm, function, event, *rest)
        finally:
            _invoked_by.reset(token)

    return stop_loops


def _with_lineage(trace_id: Callable[..., str | None]) -> Callable[..., str | None]:
    def with_lineage(*arguments: Any, **named: Any) -> str | None:
        header, lineage = trace_id(*arguments, **named), _invoked_by.get()
        return f"{header};{format_lineage(lineage)}" if header and lineage else header

    return with_lineage


def _report_stopped(function: str) -> None:
    dimensions = {"FunctionName": function}
    cloudwatch.record_metric("AWS/Lambda", "RecursiveInvocationsDropped", 1, "Count", dimensions)
    _LOG.error("recursive loop detected: %s was not invoked again after %d times", function, MOST_INVOCATIONS)
