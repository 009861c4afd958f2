import base64
import json
import zlib
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.envelope import (
    PAYLOAD_LIMIT,
    decode_envelope,
    decode_timer,
    encode_envelope,
    encode_timer,
    unpack,
    written_size,
)
from functions.domain.errors import Undecodable
from functions.domain.job import Payload
from functions.domain.retry import RetryPolicy
from tests.builders import NOON, a_timer


def a_packed(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw)).decode()


USUAL = {"retry": RetryPolicy(), "timeout": timedelta(seconds=30)}


def test_a_record_leaves_out_what_is_usual():
    timer = a_timer(identity="j1", payload=Payload(), **USUAL)

    record = json.loads(encode_timer(timer))

    assert record == {
        "i": "j1",
        "g": "https://example.com/hook",
        "d": 1_803_902_400_000,
        "b": timer.job.bucket,
        "h": timer.job.shard,
    }


def test_a_record_of_a_usual_job_with_a_payload_of_half_a_kilobyte_fits_one_write_unit():
    payload = json.dumps({"order": "x" * 200, "note": list(range(80))}, separators=(",", ":"))
    assert 450 < len(payload) <= 512

    assert len(encode_timer(a_timer(identity="k" * 33, payload=Payload(text=payload), **USUAL))) < 900


def test_an_envelope_names_its_version_and_its_tenant():
    timer = a_timer(tenant="globex")

    assert json.loads(encode_envelope([timer])) == {"v": 1, "t": "globex", "j": [json.loads(encode_timer(timer))]}


def test_an_envelope_may_hold_several_jobs_of_a_tenant():
    timers = [a_timer(), a_timer(attempt=2, backoff=timedelta(seconds=3))]

    assert decode_envelope(encode_envelope(timers)) == timers


def test_a_compressible_payload_is_packed_and_counted_as_written():
    text = json.dumps(["the same words"] * 100)

    assert '"z":' in encode_timer(a_timer(payload=Payload(text=text)))
    assert written_size(text) < len(text) / 5
    payload = decode_timer(encode_timer(a_timer(payload=Payload(text=text))), tenant="acme").job.payload
    assert (payload.text, payload.packed is None) == (None, False)
    assert unpack(payload) == text


def test_a_packed_payload_is_written_again_as_it_was_read():
    record = encode_timer(a_timer(payload=Payload(text=json.dumps(["the same words"] * 100))))

    assert encode_timer(decode_timer(record, tenant="acme")) == record


def test_a_payload_that_is_not_packed_is_its_text():
    assert unpack(Payload(text='{"n":1}')) == '{"n":1}'
    assert unpack(Payload()) is None


def test_a_short_payload_is_left_as_it_is():
    assert '"p":"{\\"n\\":1}"' in encode_timer(a_timer(payload=Payload(text='{"n":1}')))


def test_a_body_holds_no_character_that_sqs_refuses():
    body = encode_envelope([a_timer(payload=Payload(text='"\ufffe\uffff"'))])

    assert not set("\ufffe\uffff") & set(body)
    assert decode_envelope(body)[0].job.payload.text == '"\ufffe\uffff"'


def test_an_envelope_of_a_newer_version_says_so():
    with pytest.raises(Undecodable, match="version 2 is not 1: written by a newer Tickwheel"):
        decode_envelope('{"v":2,"t":"acme","j":[]}')


def test_a_packed_payload_that_would_not_fit_into_memory_is_refused():
    bomb = a_timer(payload=Payload(text='"' + "0" * (PAYLOAD_LIMIT + 10) + '"'))

    packed = decode_timer(encode_timer(bomb), tenant="acme").job.payload

    with pytest.raises(Undecodable, match="larger than the limit"):
        unpack(packed)


def test_a_packed_payload_of_the_limit_is_unpacked():
    text = '"' + "0" * (PAYLOAD_LIMIT - 2) + '"'

    assert unpack(decode_timer(encode_timer(a_timer(payload=Payload(text=text))), tenant="acme").job.payload) == text


@pytest.mark.parametrize("packed", ["not base 85 \x00", "00000", "é", "", a_packed(b"\xff"), a_packed(b"1" * 999)[:-5]])
def test_a_packed_payload_that_tickwheel_did_not_write_is_undecodable_when_it_is_unpacked(packed: str):
    record = json.loads(encode_timer(a_timer())) | {"z": packed}
    timer = decode_timer(json.dumps(record), tenant="acme")

    with pytest.raises(Undecodable):
        unpack(timer.job.payload)


@pytest.mark.parametrize(
    "changed",
    [
        {"i": "a#b"},
        {"i": None},
        {"d": "soon"},
        {"d": 10**30},
        {"c": 9},
        {"m": 3},
        {"r": [0, 5, 2000]},
        {"r": [9, 5, 2000, 3000]},
        {"r": [0, 0, 2000, 3000]},
        {"o": "x"},
        {"e": []},
        {"k": {}},
        {"r": [0, 5, 999, 3000]},
        {"p": 7},
        {"z": ["x"]},
        {"u": {}},
    ],
)
def test_a_record_that_tickwheel_did_not_write_is_undecodable(changed: dict[str, Any]):
    record = json.loads(encode_timer(a_timer())) | changed

    with pytest.raises(Undecodable):
        decode_timer(json.dumps(record), tenant="acme")


@pytest.mark.parametrize("missing", ["i", "g", "d", "b", "h"])
def test_a_record_without_a_part_that_is_always_there_is_undecodable(missing: str):
    record = json.loads(encode_timer(a_timer()))
    del record[missing]

    with pytest.raises(Undecodable):
        decode_timer(json.dumps(record), tenant="acme")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "hello",
        "null",
        "[]",
        "{}",
        '{"v":1}',
        '{"v":1,"t":"acme"}',
        '{"v":1,"t":"a b","j":[{}]}',
        '{"v":1,"t":7,"j":5}',
    ],
)
def test_a_body_that_tickwheel_did_not_write_is_undecodable(body: str):
    with pytest.raises(Undecodable):
        decode_envelope(body)


def test_a_record_is_read_for_the_tenant_of_its_key():
    assert decode_timer(encode_timer(a_timer(due_at=NOON)), tenant="globex").job.tenant == "globex"
