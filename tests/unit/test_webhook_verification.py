"""What the client's `verify` takes is what workers sign, and nothing else; it never quotes a secret."""

import asyncio
import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.targets.webhooks import WebhookKey, keys_of, parse_master_keys, signed_headers
from tickwheel.webhooks import InvalidSignature, verify, verify_async, verify_bytes

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
OLD, NEW = (parse_master_keys(f'{{"current_id": "{name}", "current": "{name * 16}"}}')[0] for name in ("k1", "k2"))
BODY = b'{"invoice":7}'
SAID = {
    "Tickwheel-Job-Id": "j1~acme~x",
    "Tickwheel-Tenant": "acme",
    "Tickwheel-Attempt": "2",
    "Tickwheel-Fence": "3",
    "Tickwheel-Scheduled-At": "2027-03-01T11:59:00.000Z",
}


def secret_of(master: WebhookKey, tenant: str = "acme") -> str:
    return keys_of(tenant, [master])[0].shown


def sent(*masters: WebhookKey, key: str = "acme#x", body: bytes = BODY, at: datetime = NOW) -> dict[str, str]:
    return {
        "Idempotency-Key": key,
        **SAID,
        **signed_headers(keys_of("acme", masters or (OLD,)), idempotency_key=key, body=body, at=at),
    }


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=80),
    st.binary(max_size=200),
)
def test_whatever_a_worker_signs_is_taken(key: str, body: bytes) -> None:
    found = verify_bytes(body, sent(key=key, body=body), secrets=secret_of(OLD), now=NOW)

    assert (found.idempotency_key, found.body, found.sent_at) == (key, body, NOW)


def test_it_says_which_attempt_of_which_job_it_is() -> None:
    found = verify_bytes(BODY, sent(), secrets=secret_of(OLD), now=NOW)

    assert (found.job_id, found.tenant, found.attempt, found.fence) == ("j1~acme~x", "acme", 2, 3)
    assert found.scheduled_at == datetime(2027, 3, 1, 11, 59, tzinfo=UTC)
    assert found.payload == {"invoice": 7}


@pytest.mark.parametrize("secrets", [[secret_of(OLD)], [secret_of(NEW)], [secret_of(NEW), secret_of(OLD)]])
def test_during_a_rotation_either_secret_is_enough(secrets: list[str]) -> None:
    assert verify_bytes(BODY, sent(NEW, OLD), secrets=secrets, now=NOW).idempotency_key == "acme#x"


def test_the_secrets_of_the_environment_are_taken_where_none_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWHEEL_WEBHOOK_SECRETS", f"{secret_of(NEW)} {secret_of(OLD)}")

    assert verify_bytes(BODY, sent(), now=NOW).tenant == "acme"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"webhook-id": ""}, "no header webhook-id"),
        ({"webhook-timestamp": ""}, "no header webhook-timestamp"),
        ({"webhook-signature": ""}, "no header webhook-signature"),
        ({"webhook-id": "acme#y"}, "no signature fits"),
        ({"webhook-timestamp": str(int(NOW.timestamp()) + 1)}, "no signature fits"),
        ({"webhook-timestamp": "noon"}, "not in seconds"),
        ({"webhook-timestamp": "9" * 5_000}, "not in seconds"),
        ({"webhook-signature": "v1,"}, "no signature fits"),
        ({"webhook-signature": "v1,AAAA v2,BBBB"}, "no signature fits"),
        ({"webhook-signature": "v1,é"}, "no signature fits"),
        ({"Idempotency-Key": "acme#y"}, "Idempotency-Key is not the key"),
        ({"Idempotency-Key": ""}, "Idempotency-Key is not the key"),
    ],
)
def test_a_header_that_was_changed_is_refused(changed: Mapping[str, str], problem: str) -> None:
    with pytest.raises(InvalidSignature, match=problem):
        verify_bytes(BODY, {**sent(), **changed}, secrets=secret_of(OLD), now=NOW)


def test_a_key_with_dots_is_given_as_the_job_has_it() -> None:
    headers = sent(key="acme#a.b")
    assert headers["webhook-id"] == "acme#a%2Eb"

    assert verify_bytes(BODY, headers, secrets=secret_of(OLD), now=NOW).idempotency_key == "acme#a.b"


def test_the_key_of_another_tenant_signs_nothing_here() -> None:
    with pytest.raises(InvalidSignature, match="not this tenant's"):
        verify_bytes(BODY, sent(), secrets=secret_of(OLD, "globex"), now=NOW)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_request_of_another_time_is_refused_with_both_times(minutes: int) -> None:
    late = NOW + timedelta(minutes=minutes)

    with pytest.raises(InvalidSignature, match=r"sent at 2027-03-01T12:00:00Z, and here it is 2027-03-01T1[12]:"):
        verify_bytes(BODY, sent(), secrets=secret_of(OLD), now=late)


@pytest.mark.parametrize("secrets", [None, "", []])
def test_without_a_secret_nothing_is_taken(secrets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TICKWHEEL_WEBHOOK_SECRETS", raising=False)

    with pytest.raises(ValueError, match="no secret to verify with"):
        verify_bytes(BODY, sent(), secrets=secrets, now=NOW)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_AAAA", "hunter2 and more", "whsec_" + "é" * 32])
def test_a_malformed_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match="not whsec_ and base 64") as refused:
        verify_bytes(BODY, sent(), secrets=[secret], now=NOW)

    assert secret not in str(refused.value).replace("whsec_ and", "")
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("value", ["", "-1", "1.5", "٣", "9" * 5_000])
def test_what_is_beside_the_signature_and_no_number_is_none(value: str) -> None:
    found = verify_bytes(BODY, sent() | {"Tickwheel-Fence": value}, secrets=secret_of(OLD), now=NOW)

    assert found.fence is None


def test_an_event_of_a_function_url_is_read_with_its_lower_case_headers() -> None:
    headers = {name.lower(): value for name, value in sent().items()}
    event = {"headers": headers, "body": base64.b64encode(BODY).decode(), "isBase64Encoded": True}

    assert verify(event, secrets=secret_of(OLD), now=NOW).body == BODY


@pytest.mark.parametrize("event", [{}, {"headers": {}}, {"headers": None, "body": "x"}, {"headers": {}, "body": 7}])
def test_an_event_of_another_kind_is_a_mistake_of_the_receiver_and_no_forgery(event: dict[str, Any]) -> None:
    with pytest.raises((TypeError, InvalidSignature)) as raised:
        verify(event, secrets=secret_of(OLD), now=NOW)

    assert raised.type is (InvalidSignature if event == {"headers": {}} else TypeError)


class Awaited:
    """A request whose body has to be waited for."""

    def __init__(self) -> None:
        self.headers = sent()

    async def body(self) -> bytes:
        return BODY


def test_a_body_that_has_to_be_waited_for_is_refused_with_what_to_call() -> None:
    with pytest.raises(TypeError, match="use verify_async"):
        verify(Awaited(), secrets=secret_of(OLD), now=NOW)


def test_a_body_that_has_to_be_waited_for_is_waited_for() -> None:
    found = asyncio.run(verify_async(Awaited(), secrets=secret_of(OLD), now=NOW))

    assert found.body == BODY


def test_a_body_that_is_there_is_refused_with_what_to_call_by_the_one_that_waits() -> None:
    with pytest.raises(TypeError, match="use verify or verify_bytes"):
        asyncio.run(verify_async(SimpleNamespace(body=BODY, headers=sent()), secrets=secret_of(OLD), now=NOW))
