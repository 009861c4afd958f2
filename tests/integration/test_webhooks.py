"""Signatures through the real handlers: the API shows a tenant's keys, and its receivers verify with them."""

import json

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.http_sink import HttpSink, Received, saying
from tests.integration.stage import MASTER_KEYS, Stage


def test_a_receiver_verifies_a_request_with_the_keys_that_the_api_shows(stage: Stage, sink: HttpSink):
    stage.submit(target=sink.url, payload={"n": 1})
    stage.work()

    (request,) = sink.requests
    verify(request, keys_of(stage, "acme")["k1"])
    with pytest.raises(WebhookVerificationError):
        verify(request, keys_of(stage, "globex")["k1"])


def test_during_a_rotation_receivers_verify_with_either_key_and_after_it_with_the_new_one(stage: Stage, sink: HttpSink):
    first = keys_of(stage, "acme")["k1"]
    stage.submit(target=sink.url)
    stage.work()

    stage.secrets.put_secret_value(SecretId=stage.webhook_secret, SecretString=rotated("k2", keeps_previous=True))
    keys = keys_of(stage, "acme")
    assert (list(keys), keys["k1"]) == (["k2", "k1"], first)
    stage.forget_modules()  # a fresh worker reads what there is now
    stage.submit(target=sink.url)
    stage.work()
    stage.secrets.put_secret_value(SecretId=stage.webhook_secret, SecretString=rotated("k2", keeps_previous=False))
    stage.forget_modules()
    stage.submit(target=sink.url)
    stage.work()

    before, during, after = sink.requests
    assert [each.headers["tickwheel-key-ids"] for each in sink.requests] == ["k1", "k2 k1", "k2"]
    verify(before, keys["k1"])
    verify(during, keys["k1"])
    verify(during, keys["k2"])
    verify(after, keys["k2"])
    with pytest.raises(WebhookVerificationError):
        verify(after, keys["k1"])


def test_every_attempt_of_a_job_has_the_same_id(stage: Stage, sink: HttpSink):
    sink.respond = saying(b"", 500)
    stage.submit(target=sink.url, idempotency_key="order.7", retry={"base": 1, "strategy": "fixed"})

    stage.work()
    stage.work(within_seconds=5)

    ids = [request.headers["webhook-id"] for request in sink.requests]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert "." not in ids[0]


def test_keys_are_reported_to_whom_they_are_not_kept_from_and_to_no_log(
    stage: Stage, sink: HttpSink, capfd: pytest.CaptureFixture[str]
):
    status, answer = stage.call("GET", "/v1/tenants/acme/webhook-keys")
    stage.submit(target=sink.url)
    stage.work()

    assert status == 200
    written = "".join(capfd.readouterr())
    assert written
    assert "whsec_" not in written
    for secret in (answer["keys"][0]["secret"], json.loads(MASTER_KEYS)["current"]):
        assert secret.removeprefix("whsec_") not in written


@pytest.mark.parametrize("tenant", ["a%20b", "a%23b", "a" * 65])
def test_what_is_no_tenant_has_no_keys(stage: Stage, tenant: str):
    status, answer = stage.call("GET", f"/v1/tenants/{tenant}/webhook-keys")

    assert (status, answer["errors"][0]["field"]) == (422, "tenant")


def test_without_keys_a_job_waits_and_is_neither_sent_nor_failed(stage: Stage, sink: HttpSink):
    stage.secrets.delete_secret(SecretId=stage.webhook_secret)
    job_id = stage.submit(target=sink.url)["id"]

    assert len(stage.work()["batchItemFailures"]) == 1
    assert stage.get(job_id)["state"] not in {"succeeded", "failed"}
    assert sink.requests == []


def test_a_handler_needs_no_keys(stage: Stage):
    stage.secrets.delete_secret(SecretId=stage.webhook_secret)
    job_id = stage.submit()["id"]

    assert stage.work() == {"batchItemFailures": []}
    assert stage.get(job_id)["state"] == "succeeded"


def test_what_a_target_says_is_reported_with_its_job(stage: Stage, sink: HttpSink):
    sink.respond = saying(b'{"invoice": 7}', 201)
    short = stage.submit(target=sink.url)["id"]
    stage.work()
    sink.respond = saying(json.dumps(["\u00fc" * 1_000]).encode())
    long = stage.submit(target=sink.url)["id"]
    stage.work()

    assert stage.get(short)["result"] == {"status": 201, "body": {"invoice": 7}}
    assert stage.get(long)["result"] == {"status": 200, "body": ["\u00fc" * 1_000]}


def test_an_address_that_the_stage_does_not_allow_ends_its_job_at_once(
    stage: Stage, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ALLOWED_NETWORKS", "[]")
    job_id = stage.submit(target=sink.url)["id"]
    stage.work()

    found = stage.get(job_id)
    assert (found["state"], found["attempt"]) == ("failed", 1)
    assert found["error"].startswith("RefusedAddress: 127.0.0.1 is at 127.0.0.1, which is loopback")
    assert sink.requests == []


def verify(request: Received, secret: str) -> None:
    Webhook(secret).verify(request.body, request.headers, json_parse=False)


def keys_of(stage: Stage, tenant: str) -> dict[str, str]:
    status, answer = stage.call("GET", f"/v1/tenants/{tenant}/webhook-keys")
    assert status == 200
    return {key["id"]: key["secret"] for key in answer["keys"]}


def rotated(key_id: str, *, keeps_previous: bool) -> str:
    before = json.loads(MASTER_KEYS)
    previous = {"previous_id": before["current_id"], "previous": before["current"]} if keeps_previous else {}
    return json.dumps({"current_id": key_id, "current": "n" * 64, **previous})
