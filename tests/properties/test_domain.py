"""The rules of the domain for all inputs that there can be, not for the ones we thought of."""

from __future__ import annotations

import base64
import json
import string
import zlib
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from functions.api.http.requests import Rules, compact_json, parse_body
from functions.api.jobs.bodies import JobBody
from functions.domain.dead_letters.dead_letter_id import parse_dead_letter_id
from functions.domain.errors import (
    InvalidDeadLetterId,
    InvalidInput,
    InvalidJob,
    InvalidJobId,
    InvalidPattern,
    InvalidWheel,
    Undecodable,
)
from functions.domain.far_ring import cursor as cursor_module
from functions.domain.far_ring.cursor import ClassCursor, Cursors, OwnCursor, Position, decode_cursors, encode_cursors
from functions.domain.far_ring.delays import delay_seconds
from functions.domain.far_ring.timer_key import NO_TENANT, class_bounds, key_of, owner_of
from functions.domain.far_ring.timer_record import (
    decode_envelope,
    decode_timer,
    encode_envelope,
    encode_timer,
    unpack,
    written_size,
)
from functions.domain.instants import (
    MILLISECOND,
    SECOND,
    format_instant,
    from_ms,
    from_seconds,
    parse_duration,
    parse_instant,
    to_ms,
    to_seconds,
)
from functions.domain.jobs.claims import LEDGER_LIFE, expires_at
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority, Timer, check_tenant
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.retry import (
    MAX_AGE,
    MAX_BACKOFF,
    MAX_INTERVALS,
    MIN_BACKOFF,
    Jitter,
    RetryPolicy,
    Strategy,
    spread,
)
from functions.domain.targets.options import STATUS_CODES, USUAL_SUCCESSES, Method, TargetOptions
from functions.domain.targets.targets import AllowedTargets, parse_target
from functions.domain.wheel import Ring, Wheel
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON, a_job

TENANT_LETTERS = string.ascii_letters + string.digits + "._-"
IDENTITY_LETTERS = TENANT_LETTERS + ":+"
HEADER_LETTERS = string.ascii_letters + string.digits + "!#$%&'*+.^_`|~-"

instants = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
whole_ms = instants.map(lambda instant: from_ms(to_ms(instant)))
tenants = st.text(TENANT_LETTERS, min_size=1, max_size=64)
identities = st.text(IDENTITY_LETTERS, min_size=1, max_size=200)
milliseconds = st.integers(0, 43_200_000).map(lambda count: count * MILLISECOND)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
texts = json_values.map(compact_json).map(Payload)
any_payload = texts | st.just(Payload()) | st.builds(Payload, pointer=st.text(min_size=1))
tags = st.lists(st.text(TENANT_LETTERS + ":/=+", min_size=1, max_size=64), max_size=10, unique=True).map(tuple)
header_names = st.text(HEADER_LETTERS, min_size=1, max_size=62).map("X-".__add__)
header_values = st.text(string.printable[:95], min_size=1, max_size=60).map(str.strip).filter(bool)
header_lists = st.lists(st.tuples(header_names, header_values), max_size=4, unique_by=lambda header: header[0].lower())
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def seconds(low: int, high: int) -> st.SearchStrategy[timedelta]:
    return st.integers(low, high).map(lambda count: timedelta(seconds=count))


def a_small_job(payload: str) -> Job:
    return a_job(payload=Payload(text=payload))


def unpacked(timer: Timer) -> Timer:
    """A timer with the text of its payload, as its worker has it."""
    payload = timer.job.payload
    if payload.pointer is not None:
        return timer
    return replace(timer, job=replace(timer.job, payload=Payload(text=unpack(payload))))


def an_offset(minutes: int) -> timezone:
    return timezone(timedelta(minutes=minutes))


def is_taken_by_sqs(letter: str) -> bool:
    """As SQS documents it: #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD, #x10000 to #x10FFFF."""
    return letter in "\t\n\r" or " " <= letter <= "\ud7ff" or "\ue000" <= letter <= "\ufffd" or letter >= "\U00010000"


@st.composite
def wheels(draw: st.DrawFn) -> Wheel:
    """Any wheel that is valid."""
    bucket = draw(st.integers(1, 300))
    lookahead = draw(st.integers(90, 300))
    skew = draw(st.integers(0, 900 - bucket - lookahead))
    guard = draw(st.integers(bucket + lookahead + skew, 900))
    shards = draw(st.integers(1, 9_999))
    return Wheel(
        bucket=bucket * SECOND,
        lookahead=lookahead * SECOND,
        skew=skew * SECOND,
        guard=guard * SECOND,
        write_shards=shards,
        scan_shards=shards + draw(st.integers(0, 10)),
    )


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    base = draw(st.integers(MIN_BACKOFF // MILLISECOND, MAX_BACKOFF // MILLISECOND)) * MILLISECOND
    cap = draw(st.integers(base // MILLISECOND, MAX_BACKOFF // MILLISECOND)) * MILLISECOND
    jitter = draw(st.none() | st.sampled_from(Jitter))
    if draw(st.booleans()):
        gaps = st.integers(MIN_BACKOFF // MILLISECOND, MAX_BACKOFF // MILLISECOND).map(lambda gap: gap * MILLISECOND)
        return RetryPolicy.of_intervals(
            draw(st.lists(gaps, min_size=1, max_size=MAX_INTERVALS)),
            attempts=draw(st.none() | st.integers(1, 100)),
            max_age=draw(st.none() | seconds(MIN_BACKOFF // SECOND, MAX_AGE // SECOND)),
            jitter=jitter,
        )
    return RetryPolicy(
        strategy=draw(st.sampled_from(Strategy)),
        attempts=draw(st.integers(1, 100)),
        base=base,
        cap=cap,
        max_age=draw(st.none() | seconds(MIN_BACKOFF // SECOND, MAX_AGE // SECOND)),
        jitter=jitter,
    )


@st.composite
def options(draw: st.DrawFn) -> TargetOptions:
    success = draw(st.sets(st.sampled_from(STATUS_CODES), max_size=3))
    retry_on = draw(st.sets(st.sampled_from(STATUS_CODES), max_size=3)) - (success or set(USUAL_SUCCESSES))
    return TargetOptions(
        method=draw(st.sampled_from(Method)),
        headers=tuple(draw(header_lists)),
        success_codes=tuple(success),
        retry_codes=tuple(retry_on),
        is_async=draw(st.booleans()),
    )


@st.composite
def jobs(draw: st.DrawFn, payloads: st.SearchStrategy[Payload] | None = None) -> Job:
    return Job(
        tenant=draw(tenants),
        identity=draw(identities),
        bucket=draw(st.integers(0, 2**32)),
        shard=draw(st.integers(0, 9_999)),
        target=draw(st.sampled_from(["https://example.com/é?a=b", "handler:echo"])),
        payload=draw(any_payload if payloads is None else payloads),
        scheduled_at=draw(whole_ms),
        priority=draw(st.sampled_from(Priority)),
        delivery=draw(st.sampled_from(Delivery)),
        precision=draw(st.sampled_from(Precision)),
        retry=draw(policies()),
        timeout=draw(milliseconds),
        expires_at=draw(st.none() | whole_ms),
        options=draw(options()),
        tags=draw(tags),
    )


@st.composite
def timers(draw: st.DrawFn, payloads: st.SearchStrategy[Payload] | None = None) -> Timer:
    attempt = draw(st.integers(1, 100))
    backoff = draw(milliseconds) if attempt > 1 else timedelta(0)
    spent, counted_from = draw(st.just((0, None)) | st.tuples(st.integers(0, attempt - 1), whole_ms))
    counted_on = draw(st.none() | whole_ms) if counted_from is not None else None
    return Timer(
        job=draw(jobs(payloads)),
        due_at=draw(whole_ms),
        attempt=attempt,
        backoff=backoff,
        spent=spent,
        counted_from=counted_from,
        counted_on=counted_on,
        is_granted=draw(st.booleans()),
    )


class TestWheel:
    @given(wheels(), instants)
    def test_each_instant_lies_in_exactly_one_bucket(self, wheel: Wheel, instant: datetime):
        bucket = wheel.bucket_of(instant)

        assert from_seconds(bucket) <= instant < wheel.ends_at(bucket)
        assert wheel.bucket_of(from_seconds(bucket)) == bucket
        assert wheel.bucket_of(wheel.ends_at(bucket)) == wheel.next_bucket(bucket)
        assert bucket % (wheel.bucket // SECOND) == 0

    @given(wheels(), instants, st.timedeltas(timedelta(days=-1), timedelta(days=3_000)))
    def test_a_far_row_is_written_before_its_bucket_opens_by_skew_or_more(
        self, wheel: Wheel, now: datetime, ahead: timedelta
    ):
        due_at = now + ahead
        assume(wheel.place(due_at, now=now) is Ring.FAR)

        opens_at = from_seconds(wheel.bucket_of(due_at)) - wheel.lookahead
        assert now <= opens_at - wheel.skew
        assert now <= wheel.closes_at(due_at) <= opens_at - wheel.skew

    @given(wheels(), instants, st.timedeltas(timedelta(days=-1), timedelta(hours=1)))
    def test_a_near_timer_is_within_the_reach_of_a_delay_and_never_early(
        self, wheel: Wheel, now: datetime, ahead: timedelta
    ):
        due_at = now + ahead
        assume(wheel.place(due_at, now=now) is Ring.NEAR)

        arrives_at = now + delay_seconds(due_at, now=now, precision=Precision.DEFAULT) * SECOND
        # The last millisecond is the worker's to hold: a second of delay for it would be late.
        assert due_at - MILLISECOND <= arrives_at
        assert arrives_at < max(due_at, now) + SECOND - MILLISECOND

    @given(wheels(), instants, st.timedeltas(timedelta(0), timedelta(hours=1)), st.floats(0, 1))
    def test_nothing_is_written_into_an_open_bucket_even_by_a_writer_whose_clock_is_skew_behind(
        self, wheel: Wheel, now: datetime, before: timedelta, share: float
    ):
        end_of_the_last_open_bucket = wheel.ends_at(wheel.horizon(now=now))
        due_at = end_of_the_last_open_bucket - MILLISECOND - before

        assert wheel.place(due_at, now=now - wheel.skew * share) is Ring.NEAR

    @given(wheels(), instants)
    def test_the_horizon_holds_what_starts_within_the_lookahead_and_no_more(self, wheel: Wheel, now: datetime):
        horizon = wheel.horizon(now=now)

        assert from_seconds(horizon) - wheel.lookahead <= now
        assert from_seconds(wheel.next_bucket(horizon)) - wheel.lookahead > now

    @given(
        bucket=seconds(-10, 400),
        lookahead=seconds(0, 600),
        skew=seconds(-10, 400),
        guard=seconds(0, 1_200),
        write_shards=st.integers(-1, 10_001),
        scan_shards=st.integers(-1, 10_001),
    )
    def test_a_wheel_is_born_exactly_when_its_constants_keep_every_job(self, **constants: Any):
        bucket, lookahead, skew, guard = (constants[name] for name in ("bucket", "lookahead", "skew", "guard"))
        is_safe = (
            bucket >= SECOND
            and skew >= timedelta(0)
            and lookahead >= timedelta(seconds=90)
            and lookahead + bucket + skew <= guard <= timedelta(seconds=900)
            and 1 <= constants["write_shards"] <= min(9_999, constants["scan_shards"])
        )

        if is_safe:
            assert Wheel(**constants).guard == guard
        else:
            with pytest.raises(InvalidWheel):
                Wheel(**constants)

    @given(wheels(), tenants, identities, st.integers(1, 64))
    def test_a_shard_is_stable_and_is_one_that_is_written(
        self, wheel: Wheel, tenant: str, identity: str, subshards: int
    ):
        shard = wheel.shard_of(tenant, identity, subshards=subshards)

        assert 0 <= shard < wheel.write_shards <= wheel.scan_shards
        assert shard == wheel.shard_of(tenant, identity, subshards=subshards)
        assert (shard - wheel.shard_of(tenant, identity)) % wheel.write_shards < subshards


class TestDelays:
    @given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)), st.sampled_from(Precision))
    def test_a_delay_is_one_that_sqs_takes(self, due_at: datetime, now: datetime, precision: Precision):
        assert 0 <= delay_seconds(due_at, now=now, precision=precision) <= 900

    @given(instants, st.timedeltas(timedelta(0), timedelta(seconds=899)))
    def test_an_exact_message_arrives_one_to_two_seconds_before_its_instant(self, now: datetime, left: timedelta):
        due_at = now + left
        arrives_at = now + delay_seconds(due_at, now=now, precision=Precision.EXACT) * SECOND

        assert arrives_at <= due_at
        assert arrives_at == now or SECOND <= due_at - arrives_at < 2 * SECOND


class TestKeys:
    @given(st.sampled_from(Priority), tenants, whole_ms, identities)
    def test_a_key_says_whose_it_is_and_lies_within_its_class(
        self, priority: Priority, tenant: str, due_at: datetime, identity: str
    ):
        key = key_of(priority, tenant, due_at, identity)

        assert owner_of(key) == (tenant, identity)
        assert [other for other in Priority if class_bounds(other)[0] < key < class_bounds(other)[1]] == [priority]

    @given(st.sampled_from(Priority), tenants, whole_ms, whole_ms, identities, identities)
    def test_the_keys_of_a_tenant_are_in_the_order_of_their_times(
        self, priority: Priority, tenant: str, one: datetime, other: datetime, first: str, second: str
    ):
        assume(one < other)

        assert key_of(priority, tenant, one, first) < key_of(priority, tenant, other, second)

    @given(st.text())
    def test_a_foreign_key_has_an_owner_whose_name_no_tenant_can_bear_unless_it_is_formed_like_one(self, key: str):
        tenant, identity = owner_of(key)

        assert key.count("#") == 3 or (tenant, identity) == (NO_TENANT, key)
        with pytest.raises(InvalidJob):
            check_tenant(NO_TENANT)


class TestJobIds:
    @given(
        st.builds(
            JobId,
            tenant=tenants,
            priority=st.sampled_from(Priority),
            delivery=st.sampled_from(Delivery),
            bucket=st.integers(0, 2**40),
            shard=st.integers(0, 9_999),
            due_at=whole_ms,
            identity=identities,
        )
    )
    def test_an_id_is_read_back_as_it_was_written(self, job_id: JobId):
        assert parse_job_id(str(job_id)) == job_id

    @given(jobs(), jobs())
    def test_two_jobs_share_an_id_only_when_they_share_their_rows(self, one: Job, other: Job):
        assume(job_id_of(one) != job_id_of(other))

        assert str(job_id_of(one)) != str(job_id_of(other))

    @given(
        st.text()
        | st.text("~j1e2l3m0azZ9-_+ ", max_size=60)
        | st.from_regex(r"\Aj1~[a-z]{1,3}~[0-4][elm]~-?[0-9a-z]{1,14}~-?[0-9a-z]{1,5}~-?[0-9a-z]{1,14}~[a-z~-]{0,4}\Z")
    )
    @example("j1~a~2e~-1~0~0~x")
    @example("j1~a~2e~0~0~" + "z" * 300 + "~x")
    def test_a_text_is_the_id_that_it_spells_or_is_refused(self, text: str):
        with suppress(InvalidJobId):
            assert str(parse_job_id(text)) == text

    @given(jobs(), st.integers(0, 300), st.characters())
    def test_an_id_with_a_character_changed_is_another_id_or_none(self, job: Job, place: int, letter: str):
        text = str(job_id_of(job))
        place %= len(text)
        changed = text[:place] + letter + text[place + 1 :]

        try:
            assert str(parse_job_id(changed)) == changed
        except InvalidJobId:
            assert changed != text


class TestDeadLetterIds:
    @given(
        tenants | st.just(NO_TENANT),
        instants,
        st.text(min_size=1, max_size=200),
    )
    def test_an_id_is_read_back_as_it_was_written(self, tenant: str, dead_at: datetime, identity: str):
        letter = DeadLetter(tenant=tenant, identity=identity, dead_at=dead_at, error="it hurts")

        assert parse_dead_letter_id(str(letter.letter_id)) == letter.letter_id

    @given(st.text() | st.text("~d1j0azZ9-_+ ", max_size=60) | st.from_regex(r"\Ad1~[a-z?]{0,3}~-?[0-9a-z]{1,14}~.*\Z"))
    @example("d1~~0~x")
    def test_a_text_is_the_id_that_it_spells_or_is_refused(self, text: str):
        with suppress(InvalidDeadLetterId):
            assert str(parse_dead_letter_id(text)) == text


class TestEnvelopes:
    @given(timers())
    def test_a_timer_is_read_back_as_it_was_written(self, timer: Timer):
        assert unpacked(decode_timer(encode_timer(timer), tenant=timer.job.tenant)) == timer

    @given(timers())
    @example(Timer(job=a_small_job('"' + "ab" * 300 + '"'), due_at=NOON))
    def test_what_was_read_is_written_again_as_it_was(self, timer: Timer):
        record = encode_timer(timer)

        assert encode_timer(decode_timer(record, tenant=timer.job.tenant)) == record

    @given(st.text() | st.binary().map(lambda raw: base64.b85encode(raw).decode()))
    @example(base64.b85encode(zlib.compress(b"1" * 300_000)).decode())
    @example(base64.b85encode(zlib.compress(b"1" * 999)[:-1]).decode())
    def test_any_other_packing_is_undecodable_and_nothing_worse(self, packed: str):
        with pytest.raises(Undecodable):
            unpack(Payload(packed=packed))

    @given(timers(texts))
    @example(Timer(job=a_small_job('"\ufffe\uffff\x00\U0001f600"'), due_at=NOON))
    @example(Timer(job=a_small_job('"' + "\ufffe\uffff" * 300 + '"'), due_at=NOON))
    def test_a_body_holds_any_payload_and_nothing_that_sqs_refuses(self, timer: Timer):
        body = encode_envelope([timer])

        assert [unpacked(read) for read in decode_envelope(body)] == [timer]
        assert all(is_taken_by_sqs(letter) for letter in body)

    @given(st.integers(0, 3_000), st.sampled_from(["a", "ab\x7f", "\U0001f600", "\\u0000"]))
    def test_a_payload_of_any_length_is_read_back_and_its_size_counted(self, count: int, letters: str):
        text = f'"{letters * count}"'
        timer = Timer(job=a_small_job(text), due_at=NOON)

        assert unpacked(decode_timer(encode_timer(timer), tenant="acme")) == timer
        assert written_size(text) <= max(256 * 4, len(text.encode()))

    @given(st.text() | any_json.map(json.dumps))
    @example('{"v":1e999,"t":"a","j":[]}')
    @example('{"v":1,"t":"a","j":[{"i":"x","g":"y","d":1e999,"b":0,"h":0}]}')
    @example("[" * 100_000)
    @example("9" * 5_000)
    def test_any_other_text_is_undecodable_and_nothing_worse(self, text: str):
        for decode in (decode_envelope, lambda text: decode_timer(text, tenant="acme")):
            with suppress(Undecodable):
                decode(text)

    @given(timers(), st.sampled_from("igdbhscmqroeakuzpxlfn"), any_json)
    def test_a_record_with_any_part_forged_is_a_timer_or_undecodable(self, timer: Timer, part: str, forged: Any):
        record = json.loads(encode_timer(timer)) | {part: forged}
        with suppress(Undecodable):
            assert isinstance(decode_timer(json.dumps(record), tenant="acme"), Timer)

    @given(st.characters(categories=["Cs"]))
    def test_half_a_surrogate_pair_is_refused_at_the_door(self, half: str):
        rules = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
        body = parse_body(json.dumps({"tenant": "acme", "target": "handler:x", "payload": {"a": [half]}}))

        with pytest.raises(ValidationError) as refused:
            JobBody.model_validate(body, context=rules)
        assert refused.value.errors()[0]["loc"] == ("payload",)


class TestRetries:
    @given(policies(), st.integers(1, 99), milliseconds, st.floats(0, 1, exclude_max=True))
    def test_a_gap_lies_between_the_base_and_the_cap(
        self, policy: RetryPolicy, attempt: int, previous: timedelta, jitter: float
    ):
        assert policy.base <= policy.backoff(attempt=attempt, previous=previous, jitter=jitter) <= policy.cap

    @given(policies(), st.integers(1, 98), milliseconds, st.floats(0, 1, exclude_max=True))
    def test_a_gap_never_shrinks_from_attempt_to_attempt_where_chance_has_no_say(
        self, policy: RetryPolicy, attempt: int, previous: timedelta, jitter: float
    ):
        assume(policy.strategy is not Strategy.DECORRELATED_JITTER and not policy.intervals)
        first = policy.backoff(attempt=attempt, previous=previous, jitter=jitter)

        assert policy.backoff(attempt=attempt + 1, previous=first, jitter=jitter) >= first

    @given(policies(), milliseconds, st.floats(0, 1, exclude_max=True))
    def test_a_jitter_only_shortens_a_gap_to_a_second_at_least(
        self, policy: RetryPolicy, gap: timedelta, jitter: float
    ):
        gap = min(max(gap, policy.base), policy.cap)

        assert MIN_BACKOFF <= policy.jittered(gap, jitter=jitter) <= gap

    @given(policies(), milliseconds, milliseconds, st.floats(0, 1, exclude_max=True))
    def test_jitter_grows_with_the_gap_before(
        self, policy: RetryPolicy, shorter: timedelta, longer: timedelta, jitter: float
    ):
        shorter, longer = sorted((shorter, longer))

        assert policy.backoff(attempt=1, previous=shorter, jitter=jitter) <= policy.backoff(
            attempt=1, previous=longer, jitter=jitter
        )

    @given(timers(), whole_ms, st.floats(0, 1, exclude_max=True), st.none() | seconds(0, 1_000_000))
    def test_a_next_attempt_is_due_after_the_failure_and_within_the_ledger_s_memory(
        self, timer: Timer, failed_at: datetime, jitter: float, retry_after: timedelta | None
    ):
        # No attempt fails before it is due, but for the clock of whoever saw it.
        failed_at = max(failed_at, timer.due_at - timedelta(seconds=5))
        retry, first_at = timer.job.retry, timer.counted_from or timer.job.scheduled_at
        following = timer.next_attempt(failed_at=failed_at, jitter=jitter, retry_after=retry_after)

        if retry.max_age is None or failed_at + MAX_BACKOFF - first_at <= retry.max_age:
            assert (following is None) is (not timer.is_granted or timer.attempt - timer.spent >= retry.attempts)
        if following is None:
            return
        assert following.attempt == timer.attempt + 1
        assert following.is_granted
        assert retry.max_age is None or following.due_at - first_at <= retry.max_age
        assert retry_after is None or following.due_at >= failed_at + min(retry_after, MAX_BACKOFF)
        assert failed_at <= following.due_at <= failed_at + spread(MAX_BACKOFF, jitter=1.0)
        assert following.due_at >= failed_at + MIN_BACKOFF
        assert following.due_at < expires_at(now=failed_at, due_at=following.due_at, lease_until=None) - LEDGER_LIFE / 2


class TestInstants:
    @given(st.datetimes(timezones=st.timezones() | st.integers(-1_439, 1_439).map(an_offset)))
    def test_an_instant_reads_as_datetime_reads_it(self, instant: datetime):
        offset = instant.utcoffset()
        assume(offset is not None and not offset % timedelta(minutes=1))  # RFC 3339 has no seconds in an offset
        text = instant.isoformat()

        try:
            expected = instant.astimezone(UTC)
        except OverflowError:
            with pytest.raises(InvalidInput):
                parse_instant(text)
        else:
            assert parse_instant(text) == expected

    @given(st.text() | st.text("0123456789-:TtZz+. ", max_size=40))
    @example("9999-12-31T23:59:59.9999999Z")
    @example("0001-01-01T00:00:00+23:59")
    def test_a_text_is_an_instant_or_refused_and_nothing_worse(self, text: str):
        with suppress(InvalidInput):
            assert parse_instant(text).tzinfo is UTC

    @given(whole_ms)
    def test_an_instant_of_whole_milliseconds_is_read_back_as_it_was_given(self, instant: datetime):
        assert parse_instant(format_instant(instant)) == instant

    @given(st.datetimes(timezones=st.just(UTC)))
    def test_what_is_kept_of_an_instant_is_never_earlier_and_less_than_a_millisecond_later(self, instant: datetime):
        assume(instant < datetime.max.replace(tzinfo=UTC) - SECOND)

        assert timedelta(0) <= from_ms(to_ms(instant)) - instant < MILLISECOND
        assert timedelta(0) <= instant - from_seconds(to_seconds(instant)) < SECOND

    @given(st.timedeltas(timedelta(0), timedelta(days=999_999)))
    def test_a_duration_of_seconds_is_the_timedelta_of_as_many(self, duration: timedelta):
        assert parse_duration(duration.total_seconds()) == timedelta(seconds=duration.total_seconds())

    @given(
        st.integers(0, 999), st.integers(0, 999), st.integers(0, 9_999), st.integers(0, 9_999), st.integers(0, 99_999)
    )
    def test_an_iso_duration_is_the_sum_of_its_parts(self, weeks: int, days: int, hours: int, minutes: int, rest: int):
        text = f"P{weeks}W{days}DT{hours}H{minutes}M{rest}S"

        assert parse_duration(text) == timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=rest)

    @given(st.text() | st.text("PTWDHMSY0123456789.-+", max_size=30) | st.floats() | st.integers())
    @example(86_400_000_000_000.0)
    @example(10**400)
    @example("P999999W999999DT99999999H9999999999M999999999999.999999S")
    def test_a_value_is_a_duration_or_refused_and_nothing_worse(self, value: str | float):
        with suppress(InvalidInput):
            assert parse_duration(value) >= timedelta(0)


PARTS_OF_ARNS = ["arn", "aws", "sqs", "lambda", "function", "eu-west-1", "1" * 12, "x", ""]


class TestNames:
    @given(tenants)
    def test_every_name_of_the_alphabet_is_a_tenant(self, tenant: str):
        assert check_tenant(tenant) == tenant

    @given(st.text())
    def test_a_text_is_a_tenant_only_when_it_is_of_the_alphabet(self, text: str):
        if 1 <= len(text) <= 64 and set(text) <= set(TENANT_LETTERS):
            assert check_tenant(text) == text
        else:
            with pytest.raises(InvalidJob):
                check_tenant(text)

    @given(
        st.text()
        | st.text().map("https://".__add__)
        | st.text(":/?#[]@!a1.%\\", max_size=30).map("https:".__add__)
        | st.lists(st.sampled_from(PARTS_OF_ARNS)).map(":".join)
    )
    def test_a_text_is_a_target_or_refused_and_nothing_worse(self, text: str):
        with suppress(InvalidJob):
            assert parse_target(text).text == text

    @given(st.text("ab-*?.", max_size=12), st.from_regex(r"[ab-]{1,8}", fullmatch=True))
    def test_what_a_pattern_of_arns_allows_iam_s_pattern_matches_too(self, name: str, queue: str):
        pattern = f"arn:aws:sqs:*:*:{name}"
        with suppress(InvalidPattern):
            if AllowedTargets((pattern,)).is_allowed(parse_target(f"arn:aws:sqs:eu-west-1:{'1' * 12}:{queue}")):
                assert fnmatchcase(queue, name)


positions = st.builds(Position, st.integers(0, 2**40), st.text())
own_cursors = st.builds(OwnCursor, positions, st.integers(0, 500), st.booleans())
class_cursors = st.builds(
    ClassCursor,
    positions,
    st.dictionaries(tenants, own_cursors, max_size=5),
    tenants | st.just(""),
    st.none() | positions,
)
cursors = st.fixed_dictionaries(dict.fromkeys(Priority, class_cursors))


class TestCursors:
    @given(cursors)
    def test_cursors_are_read_back_as_they_were_written(self, cursors: Cursors):
        assert decode_cursors(encode_cursors(cursors)) == cursors
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(cursor_module, "MOST_PLAIN", 0)
            assert decode_cursors(encode_cursors(cursors)) == cursors

    @given(st.text() | any_json.map(json.dumps))
    def test_any_other_text_is_undecodable(self, text: str):
        with pytest.raises(Undecodable):
            decode_cursors(text)
