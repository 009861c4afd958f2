import base64
import json
import random
import zlib
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import NewerVersion, Undecodable
from functions.domain.far_ring.timer_key import alarm_key, timer_key
from functions.domain.far_ring.timer_record import (
    PAYLOAD_LIMIT,
    decode_alarm,
    decode_envelope,
    decode_timer,
    encode_alarm,
    encode_envelope,
    encode_timer,
    unpack,
    written_size,
)
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job import Payload, Priority, Timer
from functions.domain.jobs.occurrence import Keeps, Occurrence
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.schedules.defaults import STORED
from functions.domain.schedules.state import Link
from functions.domain.targets.options import USUAL as USUAL_OPTIONS
from functions.domain.targets.options import Method, TargetOptions
from testkit.builders import NOON, a_link, a_schedule, a_template, a_timer, an_alarm, an_occurrence_timer, every


def a_packed(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw)).decode()


USUAL = {"retry": STORED.retry, "timeout": timedelta(seconds=30)}


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
    with pytest.raises(NewerVersion, match="this one reads version 1"):
        decode_envelope('{"v":2,"t":"acme","j":[]}')


@pytest.mark.parametrize("version", ["0", "-1", "null", '"2"', "1.5", "[1]"])
def test_what_is_no_version_is_of_no_newer_tickwheel(version: str):
    with pytest.raises(Undecodable) as caught:
        decode_envelope(f'{{"v":{version},"t":"acme","j":[]}}')
    assert type(caught.value) is Undecodable


def test_an_envelope_without_a_job_is_none():
    with pytest.raises(Undecodable, match="it holds no job"):
        decode_envelope('{"v":1,"t":"acme","j":[]}')


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
        {"r": [0, 5, 2000, 3000, 999]},
        {"f": 7},
        {"f": [1]},
        {"f": [1, "noon"]},
        {"l": 7},
        {"l": ["a b"]},
        {"l": [7]},
        {"x": []},
        {"x": {"m": "HEAD"}},
        {"x": {"h": {"Host": "x"}}},
        {"x": {"h": {"X-Key": 7}}},
        {"x": {"h": ["X-Key"]}},
        {"x": {"s": [199]}},
        {"x": {"r": 404}},
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


FIRE = Occurrence(
    schedule_id="nightly",
    fire_at=NOON,
    nominal_at=NOON - timedelta(minutes=7, milliseconds=1),
    version=12,
    index=41,
    previous_at=NOON - timedelta(days=1),
    overlap=Overlap.REPLACE,
    pause_after=3,
    is_end_to_start=True,
    keeps=Keeps(3, 10),
)
USUAL_FIRE = Occurrence(schedule_id="nightly", fire_at=NOON, nominal_at=NOON, version=1)
LINK = Link(
    at=NOON,
    nominal_at=NOON - timedelta(minutes=7, milliseconds=1),
    index=41,
    previous_at=NOON - timedelta(days=1),
    is_awaited=True,
    merged_count=2,
)


OPTIONS = TargetOptions(
    method=Method.PUT,
    headers=(("X-Key", "hush"), ("A", '\\ "')),
    success_codes=(200, 409),
    retry_codes=(404,),
    is_async=True,
)


class TestOptions:
    @pytest.mark.parametrize(
        "options",
        [
            OPTIONS,
            *(replace(OPTIONS, **{part.name: getattr(USUAL_OPTIONS, part.name)}) for part in fields(TargetOptions)),
            *(replace(USUAL_OPTIONS, **{part.name: getattr(OPTIONS, part.name)}) for part in fields(TargetOptions)),
        ],
    )
    def test_options_are_read_as_they_were_written(self, options: TargetOptions):
        timer = a_timer(options=options)

        assert decode_timer(encode_timer(timer), tenant="acme") == timer

    def test_what_is_usual_is_left_out_of_options(self):
        record = json.loads(encode_timer(a_timer(options=TargetOptions(retry_codes=(404,)))))

        assert record["x"] == {"r": [404]}

    def test_tags_the_age_of_a_policy_and_the_budget_of_a_replay_are_read_as_they_were_written(self):
        retry = RetryPolicy(max_age=timedelta(hours=6))
        timer = replace(a_timer(tags=("b", "a"), retry=retry).replayed(due_at=NOON + MILLISECOND), spent=1)

        assert decode_timer(encode_timer(timer), tenant="acme") == timer

    def test_a_record_from_before_there_were_options_has_the_usual_ones(self):
        record = {"i": "j1", "g": "handler:echo", "d": 1_803_902_400_000, "b": 1, "h": 0, "r": [3, 5, 2_000, 600_000]}

        timer = decode_timer(json.dumps(record), tenant="acme")

        assert (timer.job.options, timer.job.tags, timer.job.retry) == (USUAL_OPTIONS, (), STORED.retry)
        assert (timer.spent, timer.counted_from) == (0, None)

    def test_what_the_headers_of_a_spoiled_record_hold_is_not_repeated(self):
        record = json.loads(encode_timer(a_timer(options=OPTIONS)))
        record["x"]["h"] = {"X-Key": "hush\n"}

        with pytest.raises(Undecodable) as refused:
            decode_timer(json.dumps(record), tenant="acme")

        assert "hush" not in str(refused.value)


class TestOccurrences:
    @pytest.mark.parametrize(
        "fire",
        [
            FIRE,
            USUAL_FIRE,
            *(replace(FIRE, **{part.name: getattr(USUAL_FIRE, part.name)}) for part in fields(Occurrence)),
            *(replace(USUAL_FIRE, **{part.name: getattr(FIRE, part.name)}) for part in fields(Occurrence)),
            replace(FIRE, nominal_at=NOON + MILLISECOND),
        ],
    )
    def test_an_occurrence_is_read_as_it_was_written(self, fire: Occurrence):
        timer = with_fire(fire)

        assert decode_timer(encode_timer(timer), tenant="acme") == timer

    def test_what_is_usual_is_left_out_of_an_occurrence(self):
        record = json.loads(encode_timer(with_fire(USUAL_FIRE)))

        assert record["n"] == ["nightly", 1_803_902_400_000, 1]

    def test_a_job_that_is_no_occurrence_says_nothing_of_one(self):
        assert "n" not in json.loads(encode_timer(a_timer()))
        assert decode_timer(encode_timer(a_timer()), tenant="acme").job.occurrence is None

    @pytest.mark.parametrize(
        "written",
        [
            None,
            [],
            ["a#b", 1, 1],
            ["nightly", "noon", 1],
            ["nightly", 1, 1, 0, 0, 0, 4],
            ["nightly", 1, 1, 0, 0, 0, 0, 0, 0, 0],
            ["nightly", 10**30, 1],
            {"i": 1},
            7,
        ],
        ids=str,
    )
    def test_an_occurrence_that_tickwheel_did_not_write_is_undecodable(self, written: Any):
        record = json.loads(encode_timer(with_fire(FIRE))) | {"n": written}

        with pytest.raises(Undecodable):
            decode_timer(json.dumps(record), tenant="acme")

    def test_a_far_row_of_an_occurrence_with_a_payload_of_half_a_kilobyte_fits_one_write_unit(self):
        noise = base64.b85encode(random.Random(1).randbytes(392)).decode().replace('"', "'").replace("\\", "/")
        payload = json.dumps({"blob": noise}, separators=(",", ":"))
        assert 490 < len(payload) <= 512
        schedule = a_schedule(
            tenant="a-tenant-with-a-name",
            schedule_id="a-schedule-whose-name-says-what-it-is-for",
            rule=every(days=1),
            spread=timedelta(minutes=15),
            overlap=Overlap.FORBID,
            pause_after_failures=3,
            job=a_template(payload=Payload(text=payload), **USUAL),
        )
        timer = an_occurrence_timer(
            schedule,
            version=12,
            index=12_345,
            previous_at=NOON - timedelta(days=1),
            nominal_at=NOON - timedelta(minutes=7),
        )

        assert row_size(timer_key(timer.job, due_at=NOON), encode_timer(timer)) < 1_024


class TestAlarms:
    @pytest.mark.parametrize(
        "link",
        [
            LINK,
            a_link(),
            *(replace(LINK, **{part.name: getattr(a_link(), part.name)}) for part in fields(Link)),
            *(replace(a_link(), **{part.name: getattr(LINK, part.name)}) for part in fields(Link)),
        ],
    )
    @pytest.mark.parametrize("priority", Priority)
    def test_an_alarm_is_read_as_it_was_written(self, link: Link, priority: Priority):
        schedule = a_schedule(job=a_template(priority=priority))
        alarm = an_alarm(schedule, alarm_at=NOON + MILLISECOND, link=link, version=7, shard=3)

        assert decode_alarm(encode_alarm(alarm), tenant="acme") == alarm

    def test_an_alarm_is_read_for_the_tenant_of_its_key(self):
        assert decode_alarm(encode_alarm(an_alarm()), tenant="globex").tenant == "globex"

    def test_what_is_usual_is_left_out_of_an_alarm(self):
        at = 1_803_902_400_000

        assert json.loads(encode_alarm(an_alarm(shard=1))) == {
            "i": "nightly",
            "v": 1,
            "h": 1,
            "c": 2,
            "d": at,
            "f": at,
            "n": 0,
        }

    @pytest.mark.parametrize(
        "changed",
        [{"f": "noon"}, {"f": 10**30}, {"c": 9}, {"d": None}, {"m": []}, {"p": "x"}],
        ids=str,
    )
    def test_an_alarm_that_tickwheel_did_not_write_is_undecodable(self, changed: dict[str, Any]):
        with pytest.raises(Undecodable):
            decode_alarm(json.dumps(json.loads(encode_alarm(an_alarm())) | changed), tenant="acme")

    @pytest.mark.parametrize("text", ["", "hello", "null", "[]", "{}", "7"])
    def test_a_text_that_is_no_alarm_is_undecodable(self, text: str):
        with pytest.raises(Undecodable):
            decode_alarm(text, tenant="acme")

    @pytest.mark.parametrize("missing", ["i", "v", "h", "c", "d", "f", "n"])
    def test_an_alarm_without_a_part_that_is_always_there_is_undecodable(self, missing: str):
        record = json.loads(encode_alarm(an_alarm()))
        del record[missing]

        with pytest.raises(Undecodable):
            decode_alarm(json.dumps(record), tenant="acme")

    def test_a_far_row_of_an_alarm_of_the_longest_names_fits_one_write_unit(self):
        schedule = a_schedule(tenant="t" * 64, schedule_id="s" * 128)
        alarm = an_alarm(schedule, alarm_at=NOON + timedelta(days=400), link=LINK, version=123_456)

        assert row_size(alarm_key(alarm), encode_alarm(alarm)) < 1_024


def with_fire(fire: Occurrence) -> Timer:
    timer = a_timer()
    return replace(timer, job=replace(timer.job, occurrence=fire))


def row_size(key: str, record: str) -> int:
    """Bytes of a far row, names included: a number takes no more than its digits."""
    row = {"p": "1803902400#0001", "s": key, "j": record, "w": "1803902400000", "x": "1803902400"}
    return sum(len(name) + len(value.encode()) for name, value in row.items())


@pytest.mark.parametrize(
    "forged",
    [
        {"b": -1},  # an id of it would never come to its end
        {"b": {}},
        {"h": 1.5},
        {"a": "2"},
        {"a": -1},
        {"o": 10**15},
        {"o": True},
        {"k": -5},
        {"d": 10**15},
        {"f": [[], None]},
        {"g": "handler:\ud800"},
        {"n": ["s", 1_803_902_400_000, "1"]},
    ],
    ids=str,
)
def test_a_record_with_a_forged_part_is_refused_before_anybody_works_with_it(forged: dict[str, Any]):
    body = json.loads(encode_envelope([a_timer()]))
    body["j"][0] |= forged
    with pytest.raises(Undecodable):
        decode_envelope(json.dumps(body))
