"""For code that Tickwheel calls over HTTP: whether a request is from there, and which attempt of which job it is.

    delivery = verify(request)          # Django, Flask, an event of API Gateway or of a function URL
    delivery = await verify_async(request)  # FastAPI, Starlette, aiohttp
    delivery = verify_bytes(body, headers)  # anything else

Each raises InvalidSignature, to be answered with 401. The scheme is Standard Webhooks 1.0.0
(https://www.standardwebhooks.com), so that its libraries do as well.
"""

import base64
import binascii
import hashlib
import hmac
import inspect
import json
import os
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tickwheel.errors import InvalidSignature

__all__ = ["Delivery", "InvalidSignature", "verify", "verify_async", "verify_bytes"]

VARIABLE = "TICKWHEEL_WEBHOOK_SECRETS"
"""Where the secrets are looked for that are not named: one, or several with spaces between them."""

MAX_AGE = timedelta(minutes=5)
"""How far a request's time and the receiver's may be apart, as libraries of the standard have it."""

_SHORTEST_KEY = 24
"""Bytes: the standard's least."""

_LONGEST_NUMBER = 18
_PREFIX = "whsec_"
_VERSION = "v1,"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A call that was signed with the tenant's key.

    idempotency_key, sent_at and body are covered by the signature. What else is here is what the sender says beside it:
    whoever sees a request could send it again within MAX_AGE with other values in these.

    idempotency_key: the same for each attempt of a job. fence: grows with each claim: refuse one that is smaller than one
    you have seen. attempt: from 1.
    """

    body: bytes = field(repr=False)
    idempotency_key: str
    sent_at: datetime
    job_id: str | None
    tenant: str | None
    attempt: int | None
    fence: int | None
    scheduled_at: datetime | None

    @property
    def payload(self) -> Any:
        """The job's payload. Of a release of a collection: a list, an object for each of its jobs."""
        return json.loads(self.body) if self.body else None


def verify(request: Any, *, secrets: str | Iterable[str] | None = None, now: datetime | None = None) -> Delivery:
    """The delivery in a request of Django or Flask, or in an event of API Gateway (REST or HTTP) or of a function URL.

    secrets: `whsec_…` of `tickwheel webhook-keys TENANT`, one or several; else those in TICKWHEEL_WEBHOOK_SECRETS.
    Raises InvalidSignature, TypeError for another kind of request, ValueError where there is no secret or a malformed one.
    """
    body, headers = _event(request) if isinstance(request, Mapping) else (_body(request), request.headers)
    return verify_bytes(body, headers, secrets=secrets, now=now)


async def verify_async(
    request: Any, *, secrets: str | Iterable[str] | None = None, now: datetime | None = None
) -> Delivery:
    """The delivery in a request of Starlette, FastAPI or aiohttp, whose body has to be waited for. As `verify`."""
    read = getattr(request, "body", None) or getattr(request, "read", None)
    body = read() if callable(read) else None
    if not isinstance(body, Awaitable):
        raise TypeError(f"{type(request).__name__} has no body that is waited for: use verify or verify_bytes")
    return verify_bytes(await body, request.headers, secrets=secrets, now=now)


def verify_bytes(
    body: bytes,
    headers: Mapping[str, str],
    *,
    secrets: str | Iterable[str] | None = None,
    now: datetime | None = None,
) -> Delivery:
    """The delivery of a body, as its bytes came, and of headers, whatever the case of their names. As `verify`."""
    keys = _keys(secrets)
    found = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp, signatures = (_header(found, f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    sent_at = _sent_at(timestamp, now or datetime.now(UTC))
    content = f"{message_id}.{timestamp}.".encode() + body
    given = [each.removeprefix(_VERSION).encode() for each in signatures.split(" ") if each.startswith(_VERSION)]
    expected = [base64.b64encode(hmac.digest(key, content, hashlib.sha256)) for key in keys]
    if not any(hmac.compare_digest(ours, theirs) for ours in expected for theirs in given):
        raise InvalidSignature(
            "no signature fits: the secret is not this tenant's, or the body is not the bytes that came"
        )
    return Delivery(
        body=body,
        idempotency_key=_idempotency_key(found, message_id),
        sent_at=sent_at,
        job_id=found.get("tickwheel-job-id"),
        tenant=found.get("tickwheel-tenant"),
        attempt=_number(found.get("tickwheel-attempt")),
        fence=_number(found.get("tickwheel-fence")),
        scheduled_at=_instant(found.get("tickwheel-scheduled-at")),
    )


def _event(event: Mapping[str, Any]) -> tuple[bytes, Mapping[str, str]]:
    headers, body = event.get("headers"), event.get("body")
    if not isinstance(headers, Mapping) or not isinstance(body, str | None):
        raise TypeError("the event has no headers and body: use it as API Gateway or a function URL hands it over")
    text = (body or "").encode()
    return (base64.b64decode(text) if event.get("isBase64Encoded") else text), headers


def _body(request: Any) -> bytes:
    # Flask's attribute `data` is empty for forms; its method is not.
    body = request.get_data() if hasattr(request, "get_data") else getattr(request, "body", None)
    if isinstance(body, bytes):
        return body
    if inspect.iscoroutine(body):
        body.close()
    hint = "verify_async" if callable(body) or inspect.isawaitable(body) else "verify_bytes"
    raise TypeError(f"{type(request).__name__} does not have its body as bytes: use {hint}")


def _keys(secrets: str | Iterable[str] | None) -> list[bytes]:
    given = os.environ.get(VARIABLE, "") if secrets is None else secrets
    texts = given.split() if isinstance(given, str) else list(given)
    if not texts:
        raise ValueError(
            f"there is no secret to verify with: give secrets, or set {VARIABLE} (`tickwheel webhook-keys`)"
        )
    try:
        keys = [base64.b64decode(text.removeprefix(_PREFIX), validate=True) for text in texts]
    except (binascii.Error, ValueError):
        keys = [b""]
    if any(len(key) < _SHORTEST_KEY for key in keys):
        # Not the text: it may be nearly the secret.
        raise ValueError("a secret is not whsec_ and base 64: take it as `tickwheel webhook-keys` prints it")
    return keys


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise InvalidSignature(f"there is no header {name}: it is not from Tickwheel, or a proxy has dropped it")
    return value


def _sent_at(timestamp: str, now: datetime) -> datetime:
    try:
        sent_at = datetime.fromtimestamp(int(timestamp), UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidSignature("webhook-timestamp is not in seconds since 1970") from None
    if abs(now - sent_at) > MAX_AGE:
        raise InvalidSignature(
            f"it was sent at {sent_at:%Y-%m-%dT%H:%M:%SZ}, and here it is {now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}: "
            "it is sent again by somebody, or a clock is off"
        )
    return sent_at


def _idempotency_key(headers: Mapping[str, str], message_id: str) -> str:
    key = headers.get("idempotency-key", "")
    # Only the id is signed; it is the key without its dots.
    if key.replace(".", "%2E") != message_id:
        raise InvalidSignature("Idempotency-Key is not the key of this webhook-id: somebody has changed it")
    return key


def _number(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if text is not None and is_number else None


def _instant(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
