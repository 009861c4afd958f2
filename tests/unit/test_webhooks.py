import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from functions.domain.errors import MalformedWebhookSecret
from functions.domain.targets.webhooks import WebhookKey, keys_of, message_id_of, parse_master_keys, signed_headers
from testkit.builders import NOON

OLD = WebhookKey("k1", b"o" * 64)
NEW = WebhookKey("k2", b"n" * 64)
BODY = '{"n":"\u00e9"}'.encode()

TENANTS = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
IDENTITIES = st.from_regex(r"[A-Za-z0-9._:+-]{1,200}", fullmatch=True)


def signed(
    *masters: WebhookKey, tenant: str = "acme", key: str = "acme#x", body: bytes = BODY, at: datetime | None = None
):
    return signed_headers(keys_of(tenant, masters), idempotency_key=key, body=body, at=at or datetime.now(UTC))


def verify(headers: dict[str, str], *, master: WebhookKey, tenant: str = "acme", body: bytes = BODY) -> None:
    """As a receiver of that tenant does it; raises WebhookVerificationError."""
    (key,) = keys_of(tenant, [master])
    Webhook(key.shown).verify(body, headers, json_parse=False)


def test_the_headers_are_those_of_the_standard():
    headers = signed(OLD, key="acme#order-7", at=NOON + timedelta(milliseconds=999))

    (key,) = keys_of("acme", [OLD])
    content = b"acme#order-7." + str(int(NOON.timestamp())).encode() + b"." + BODY
    expected = base64.b64encode(hmac.new(key.secret, content, hashlib.sha256).digest()).decode()
    assert headers == {
        "webhook-id": "acme#order-7",
        "webhook-timestamp": str(int(NOON.timestamp())),
        "webhook-signature": f"v1,{expected}",
        "Tickwheel-Key-Ids": "k1",
    }


def test_a_tenant_s_key_is_derived_from_the_master_key_as_the_docs_say():
    (key,) = keys_of("acme", [OLD])

    assert key == WebhookKey("k1", hmac.new(b"o" * 64, b"tickwheel webhook acme", hashlib.sha256).digest())
    assert key.shown == "whsec_" + base64.b64encode(key.secret).decode()
    assert 24 <= len(key.secret) <= 64


def test_a_library_of_the_standard_verifies_it():
    verify(signed(OLD), master=OLD)


@given(TENANTS, IDENTITIES, st.text(max_size=300).map(str.encode))
def test_a_library_of_the_standard_verifies_whatever_is_sent(tenant: str, identity: str, body: bytes):
    headers = signed(OLD, tenant=tenant, key=f"{tenant}#{identity}", body=body)

    verify(headers, master=OLD, tenant=tenant, body=body)


def test_a_request_without_a_body_is_signed_too():
    verify(signed(OLD, body=b""), master=OLD, body=b"")


def test_during_a_rotation_both_keys_sign_the_current_one_first():
    headers = signed(NEW, OLD)

    assert headers["Tickwheel-Key-Ids"] == "k2 k1"
    assert len(headers["webhook-signature"].split(" ")) == 2
    verify(headers, master=NEW)
    verify(headers, master=OLD)
    new, old = headers["webhook-signature"].split(" ")
    assert [new] == signed(NEW, at=_at(headers))["webhook-signature"].split(" ")
    assert [old] == signed(OLD, at=_at(headers))["webhook-signature"].split(" ")


def test_after_a_rotation_the_key_of_before_verifies_nothing():
    with pytest.raises(WebhookVerificationError):
        verify(signed(NEW), master=OLD)


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_that_was_tampered_with_does_not_verify(header: str):
    headers = signed(OLD)
    changed = {
        "webhook-id": "acme#y",
        "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1),
        "webhook-signature": "v1," + base64.b64encode(b"\0" * 32).decode(),
    }

    with pytest.raises(WebhookVerificationError):
        verify({**headers, header: changed[header]}, master=OLD)


def test_a_body_that_was_tampered_with_does_not_verify():
    with pytest.raises(WebhookVerificationError):
        verify(signed(OLD), master=OLD, body=BODY + b" ")


def test_a_request_that_is_sent_again_much_later_does_not_verify():
    with pytest.raises(WebhookVerificationError, match="too old"):
        verify(signed(OLD, at=datetime.now(UTC) - timedelta(minutes=6)), master=OLD)


def test_a_receiver_of_one_tenant_cannot_sign_for_another():
    (mine,) = keys_of("acme", [OLD])
    forged = signed_headers([mine], idempotency_key="globex#x", body=BODY, at=datetime.now(UTC))

    with pytest.raises(WebhookVerificationError):
        verify(forged, master=OLD, tenant="globex")


@given(TENANTS, TENANTS)
def test_tenants_have_keys_of_their_own(one: str, other: str):
    assert (keys_of(one, [OLD]) == keys_of(other, [OLD])) == (one == other)


@given(TENANTS, IDENTITIES, TENANTS, IDENTITIES)
def test_an_id_has_no_dot_and_is_that_of_one_job(tenant: str, identity: str, other: str, name: str):
    one, two = f"{tenant}#{identity}", f"{other}#{name}"

    assert "." not in message_id_of(one)
    assert (message_id_of(one) == message_id_of(two)) == (one == two)


def test_the_id_is_the_same_for_every_attempt_and_the_time_is_the_attempt_s():
    first, second = signed(OLD, at=NOON), signed(OLD, at=NOON + timedelta(seconds=30))

    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 30
    assert first["webhook-signature"] != second["webhook-signature"]


def test_one_signature_does_not_fit_two_requests_of_jobs_with_dots_in_their_names():
    at = NOON
    stamp = str(int(at.timestamp()))
    one = signed(OLD, key=f"acme#x.{stamp}", body=b"1", at=at)
    two = signed(OLD, key="acme#x", body=f"{stamp}.1".encode(), at=at)

    assert one["webhook-signature"] != two["webhook-signature"]


def test_a_secret_of_a_stage_holds_its_current_key_and_during_a_rotation_the_one_before():
    text = json.dumps({"current_id": "k2", "current": "n" * 64, "previous_id": "k1", "previous": "o" * 64})

    assert parse_master_keys(text) == (NEW, OLD)
    assert parse_master_keys(json.dumps({"current_id": "k1", "current": "o" * 64})) == (OLD,)


S3CRET = "s3cret" * 8


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ("s3cret", "is not JSON"),
        ([S3CRET], "is not a JSON object"),
        ({}, "has no current_id"),
        ({"current": S3CRET}, "has no current_id"),
        ({"current_id": "k1"}, "has no current of at least 32"),
        ({"current_id": "k1", "current": "s3cret"}, "has no current of at least 32"),
        ({"current_id": "k1", "current": [S3CRET]}, "has no current of at least 32"),
        ({"current_id": "s3cret s3cret", "current": S3CRET}, "has no current_id"),
        ({"current_id": "s3cret\r\nX: y", "current": S3CRET}, "has no current_id"),
        ({"current_id": 7, "current": S3CRET}, "has no current_id"),
        ({"current_id": "k1", "current": S3CRET, "previous": S3CRET}, "has no previous_id"),
        ({"current_id": "k1", "current": S3CRET, "previous_id": "k0"}, "has no previous of at least 32"),
        ({"current_id": "k1", "current": S3CRET, "previous_id": "k1", "previous": S3CRET}, "the same id"),
    ],
)
def test_a_secret_that_is_no_such_thing_is_refused_without_a_word_of_it(fields: Any, fault: str):
    with pytest.raises(MalformedWebhookSecret, match=fault) as refused:
        parse_master_keys(fields if isinstance(fields, str) else json.dumps(fields))

    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_secret_is_in_no_text_that_is_made_of_a_key():
    assert repr(WebhookKey("k1", b"s3cret")) == str(WebhookKey("k1", b"s3cret")) == "WebhookKey(id='k1')"


def _at(headers: dict[str, str]) -> datetime:
    return datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
