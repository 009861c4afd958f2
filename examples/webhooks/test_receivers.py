"""Each receiver takes what is signed, refuses what is not, and acts once for each key."""

import asyncio
import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

import django
import httpx
import pytest
from django.conf import settings
from django.test import RequestFactory
from standardwebhooks.webhooks import Webhook

from examples.webhooks import receivers

SECRET = "whsec_" + base64.b64encode(b"a key of thirty-two bytes, or so").decode()
BODY = json.dumps({"invoice": 7}).encode()
KEY = "acme#invoice.7"

Receive = Callable[[bytes, Mapping[str, str]], int]


def to_fastapi(body: bytes, headers: Mapping[str, str]) -> int:
    async def post() -> int:
        transport = httpx.ASGITransport(app=receivers.fastapi_app)
        async with httpx.AsyncClient(transport=transport, base_url="http://receiver") as client:
            return (await client.post("/hooks/invoice", content=body, headers=dict(headers))).status_code

    return asyncio.run(post())


def to_flask(body: bytes, headers: Mapping[str, str]) -> int:
    return receivers.flask_app.test_client().post("/hooks/invoice", data=body, headers=dict(headers)).status_code


def to_django(body: bytes, headers: Mapping[str, str]) -> int:
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"])
        django.setup()
    request = RequestFactory().post("/hooks/invoice", body, content_type="application/json", headers=dict(headers))
    return receivers.django_invoice(request).status_code


def to_lambda(body: bytes, headers: Mapping[str, str]) -> int:
    event = {"headers": dict(headers), "body": body.decode(), "isBase64Encoded": False}
    return receivers.lambda_handler(event, None)["statusCode"]


def to_lambda_in_base_64(body: bytes, headers: Mapping[str, str]) -> int:
    event = {"headers": dict(headers), "body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    return receivers.lambda_handler(event, None)["statusCode"]


@pytest.fixture(params=[to_fastapi, to_flask, to_django, to_lambda, to_lambda_in_base_64])
def receive(request: pytest.FixtureRequest) -> Receive:
    return request.param


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TICKWHEEL_WEBHOOK_SECRETS", SECRET)
    receivers.done.clear()
    yield
    receivers.done.clear()


def signed(body: bytes = BODY, *, at: datetime | None = None) -> dict[str, str]:
    """As Tickwheel sends it, by the standard's own library."""
    at = at or datetime.now(UTC)
    message_id = KEY.replace(".", "%2E")
    return {
        "Content-Type": "application/json",
        "Idempotency-Key": KEY,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(SECRET).sign(message_id, at, body.decode()),
        "Tickwheel-Attempt": "1",
    }


def test_a_signed_request_has_its_effect(receive: Receive) -> None:
    assert receive(BODY, signed()) == 200

    assert receivers.done == {KEY: {"invoice": 7}}


def test_a_second_attempt_changes_nothing(receive: Receive) -> None:
    assert receive(BODY, signed()) == receive(BODY, signed() | {"Tickwheel-Attempt": "2"}) == 200

    assert receivers.done == {KEY: {"invoice": 7}}


def test_a_request_that_nobody_signed_is_answered_401(receive: Receive) -> None:
    assert receive(BODY, {"Content-Type": "application/json", "Idempotency-Key": KEY}) == 401
    assert receivers.done == {}


def test_a_body_that_was_changed_is_answered_401(receive: Receive) -> None:
    assert receive(BODY.replace(b"7", b"8"), signed()) == 401
    assert receivers.done == {}


def test_a_request_that_is_sent_again_later_is_answered_401(receive: Receive) -> None:
    assert receive(BODY, signed(at=datetime.now(UTC) - timedelta(minutes=6))) == 401
    assert receivers.done == {}
