"""What an HTTP response, or the lack of one, means for its request."""

import re
from typing import Any

import httpx

from tickwheel.client.batches import MAY_HAVE_BEEN_APPLIED, NOT_APPLIED
from tickwheel.errors import ApiProblem, FieldProblem, InvalidJob, Unreachable

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_CONFLICT = 409  # with a Retry-After: not yet


def trace_headers(traceparent: str | None) -> dict[str, str]:
    """The scheduler ignores what is not valid, as the standard says; whoever passes one on purpose wants to know."""
    if traceparent is None:
        return {}
    if not _TRACEPARENT.fullmatch(traceparent):
        form = "must be VERSION-TRACE-PARENT-FLAGS in lower-case hexadecimal digits, 2, 32, 16 and 2 of them"
        raise InvalidJob([FieldProblem("traceparent", form, traceparent)])
    return {"traceparent": traceparent}


def json_of(response: httpx.Response) -> Any:
    """The JSON of a successful response; raises Unreachable."""
    try:
        return response.json()
    except ValueError as error:
        message = f"{response.request.url} answered {response.status_code} with something that is not JSON"
        raise Unreachable(message, may_have_been_applied=True) from error


def problem_of(response: httpx.Response, *, repeatable: bool) -> tuple[ApiProblem, bool]:
    """What a response refuses, and whether it is safe to ask again."""
    status = response.status_code
    is_early = status == _CONFLICT and "Retry-After" in response.headers
    safe = status in NOT_APPLIED or is_early or (repeatable and status in MAY_HAVE_BEEN_APPLIED)
    return ApiProblem.from_json(_json_or_none(response), status=status), safe


def unreachable(address: str, error: httpx.TransportError) -> Unreachable:
    """What it means that there was no response."""
    never_sent = isinstance(error, _NEVER_SENT)
    reason = str(error) or type(error).__name__
    advice = "check the address, or start the local cloud with `tickwheel local up`" if never_sent else "ask again"
    return Unreachable(f"no answer from {address} ({reason}): {advice}", may_have_been_applied=not never_sent)


def _json_or_none(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
