"""How a target is to be called, and which of its answers mean what."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from functions.domain.errors import InvalidJob


class Method(StrEnum):
    """The methods of a call over HTTP."""

    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    GET = "GET"


HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
"""RFC 9110's token, cut to a length."""

HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]{0,510}[\x21-\x7e])?", re.ASCII)
MAX_HEADERS = 20
STATUS_CODES = range(200, 600)
USUAL_SUCCESSES = range(200, 300)

RESERVED_HEADERS = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""What the connection or Tickwheel itself says."""

RESERVED_PREFIXES = ("tickwheel-", "webhook-")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """What differs from the usual call of a target.

    Over HTTP: its method; headers, as pairs of name and value; success_codes: statuses that mean success, none for
    200 to 299, where 202 means that the target completes the job later; retry_codes: statuses
    that are tried again although they are usually permanent; redirects never are. Of a Lambda function: is_async hands it over
    without waiting for its answer. Values of headers may be secrets: they are in no text that is made of this.
    """

    method: Method = Method.POST
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    success_codes: tuple[int, ...] = ()
    retry_codes: tuple[int, ...] = ()
    is_async: bool = False

    def __post_init__(self) -> None:
        if len(self.headers) > MAX_HEADERS:
            raise InvalidJob(f"has more than {MAX_HEADERS} headers", field="http.headers", value=len(self.headers))
        names = [check_header(name, value) for name, value in self.headers]
        for name in names:
            if names.count(name) > 1:
                raise InvalidJob("has a header twice", field="http.headers", value=name)
        for name, codes in (("http.success", self.success_codes), ("http.retry_on", self.retry_codes)):
            for code in codes:
                if code not in STATUS_CODES:
                    raise InvalidJob("must be HTTP statuses from 200 to 599", field=name, value=code)
        successes = self.success_codes or USUAL_SUCCESSES
        for code in self.retry_codes:
            if code in successes:
                raise InvalidJob(
                    "is a success: leave it out, or name the successes without it", field="http.retry_on", value=code
                )


def check_header(name: str, value: str) -> str:
    """The name in lower case; InvalidJob when it is not a header that a job may set. The value is never repeated."""
    if not HEADER_NAME.fullmatch(name):
        # Behind what could be a name may stand a value, as in "Authorization: …".
        start = HEADER_NAME.match(name)
        raise InvalidJob("is not the name of a header", field="http.headers", value=(start[0] if start else "") + "…")
    lower = name.lower()
    if lower in RESERVED_HEADERS or lower.startswith(RESERVED_PREFIXES):
        raise InvalidJob("is a header that Tickwheel or the connection sets itself", field="http.headers", value=name)
    if not HEADER_VALUE.fullmatch(value):
        raise InvalidJob(
            "must have a value of 1 to 512 printable ASCII characters, without space at its ends",
            field="http.headers",
            value=name,
        )
    return lower


USUAL = TargetOptions()
