from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.jobs.retry import MAX_BACKOFF
from functions.domain.targets.http_answers import (
    AnswerMeaning,
    Judgement,
    is_pending,
    judge,
    parse_retry_after,
    result_of,
)
from functions.domain.targets.options import USUAL, TargetOptions
from testkit.builders import NOON

STATUSES = range(100, 1_000)


def verdict(status: int, **options: Any) -> AnswerMeaning:
    return judge(status, None, options=TargetOptions(**options), now=NOON).meaning


@pytest.mark.parametrize(
    ("statuses", "meaning"),
    [
        ([200, 201, 203, 204, 206, 299], AnswerMeaning.SUCCESS),
        ([202], AnswerMeaning.PENDING),
        ([300, 301, 302, 303, 304, 307, 308, 399], AnswerMeaning.REDIRECT),
        ([400, 401, 403, 404, 405, 409, 410, 413, 418, 422, 451, 499], AnswerMeaning.REFUSAL),
        ([408, 425, 429, 500, 501, 502, 503, 504, 599], AnswerMeaning.TRY_AGAIN),
        ([100, 101, 103, 600, 999], AnswerMeaning.TRY_AGAIN),
    ],
)
def test_a_status_means_what_it_usually_does(statuses: list[int], meaning: AnswerMeaning):
    assert {verdict(status) for status in statuses} == {meaning}


def test_with_a_list_of_successes_exactly_those_succeed():
    successes = (200, 302, 404, 500)

    for status in range(200, 600):
        assert (verdict(status, success_codes=successes) is AnswerMeaning.SUCCESS) == (status in successes)


def test_with_a_list_of_successes_no_answer_is_pending_and_another_2xx_is_a_refusal():
    assert verdict(202, success_codes=(200,)) is AnswerMeaning.REFUSAL
    assert verdict(204, success_codes=(200,)) is AnswerMeaning.REFUSAL
    assert verdict(202, success_codes=(200, 202)) is AnswerMeaning.SUCCESS


def test_what_a_job_wants_tried_again_is_no_refusal():
    assert verdict(404, retry_codes=(404, 409)) is AnswerMeaning.TRY_AGAIN
    assert verdict(204, success_codes=(200,), retry_codes=(204,)) is AnswerMeaning.TRY_AGAIN


def test_no_job_makes_a_redirect_anything_but_a_failure_or_a_success_of_its_own():
    assert verdict(302, retry_codes=(302,)) is AnswerMeaning.REDIRECT


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_is_taken_from_those_who_ask_for_one(status: int):
    assert judge(status, "7", options=USUAL, now=NOON) == Judgement(AnswerMeaning.TRY_AGAIN, timedelta(seconds=7))


@pytest.mark.parametrize("status", [200, 202, 301, 404, 408, 500, 502])
def test_a_wait_is_not_taken_from_others(status: int):
    assert judge(status, "7", options=USUAL, now=NOON).retry_after is None


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("0", timedelta(0)),
        ("120", timedelta(minutes=2)),
        ("43200", MAX_BACKOFF),
        ("43201", MAX_BACKOFF),
        ("9999999999", MAX_BACKOFF),
        (" 5\t", timedelta(seconds=5)),
        ("Mon, 01 Mar 2027 12:00:30 GMT", timedelta(seconds=30)),
        ("Monday, 01-Mar-27 12:00:30 GMT", timedelta(seconds=30)),
        ("Mon Mar  1 12:00:30 2027", timedelta(seconds=30)),
        ("Mon, 01 Mar 2027 12:00:00 GMT", timedelta(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_BACKOFF),
    ],
)
def test_a_wait_is_seconds_or_a_date_and_half_a_day_at_most(text: str, wait: timedelta):
    assert parse_retry_after(text, now=NOON) == wait


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-1", "+1", "1.5", "1e3", "0x10", "1_000", "PT5M", "5 seconds", "soon", "\u0663", "12345678901"),
        *("9" * 40, "1" * 10_000, "Mon, 01 Mar 2027 11:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"),
        *("Mon, 32 Mar 2027 12:00:00 GMT", "2027-03-01T13:00:00Z", "Mon, 01 Mar 2027 12:00:30 +999999999"),
        "Mon, 01 Mar 99999999999 12:00:30 GMT",
        "Mon, 01 Mar 2027 12:00:30 GMT" + " (or so)" * 10,
    ],
)
def test_a_wait_that_is_none_or_in_the_past_is_ignored(text: str):
    assert parse_retry_after(text, now=NOON) is None


@given(st.text(max_size=80) | st.from_regex(r"[A-Za-z]{3}, \d{1,9} Mar \d{1,9} \d{1,4}:\d{1,4}:\d{1,4} [+-]?\w{1,9}"))
def test_whatever_a_target_says_the_wait_is_within_its_bounds(text: str):
    wait = parse_retry_after(text, now=NOON)

    assert wait is None or timedelta(0) <= wait <= MAX_BACKOFF


@given(st.datetimes(datetime(1900, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001  the bounds are naive
def test_a_date_means_the_time_until_then(date: datetime):
    date = date.replace(microsecond=0)
    expected = min(date - NOON, MAX_BACKOFF) if date >= NOON else None

    assert parse_retry_after(format_datetime(date, usegmt=True), now=NOON) == expected


@given(st.integers(100, 999), st.lists(st.integers(200, 599)), st.lists(st.integers(300, 599)))
def test_every_status_has_one_meaning_whatever_its_options(status: int, successes: list[int], again: list[int]):
    again = [code for code in again if code not in successes]
    options = TargetOptions(success_codes=tuple(successes), retry_codes=tuple(again))

    judgement = judge(status, "5", options=options, now=NOON)

    assert (judgement.meaning is AnswerMeaning.SUCCESS) == (
        status in successes or (not successes and status in range(200, 300) and status != 202)
    )
    assert judgement.retry_after is None or judgement.meaning is AnswerMeaning.TRY_AGAIN


@pytest.mark.parametrize("value", [{"statusCode": 202}, {"statusCode": 202, "body": ""}])
def test_a_function_says_that_it_goes_on_as_an_http_answer_would(value: Any):
    assert is_pending(value)


@pytest.mark.parametrize("value", [None, 202, "202", [], {}, {"status": 202}, {"statusCode": "202"}])
def test_anything_else_that_a_function_returns_is_its_result(value: Any):
    assert not is_pending(value)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", '{"status":200}'),
        (b"null", '{"status":200,"body":null}'),
        (b' {"b": [1, 2.5, true]}\n', '{"status":200,"body":{"b":[1,2.5,true]}}'),
        (b"done", '{"status":200,"body":"done"}'),
        ("\u00fc".encode(), '{"status":200,"body":"\\u00fc"}'),
        (b"\xef\xbb\xbf[1]", '{"status":200,"body":[1]}'),
        (b"\xff", '{"status":200,"body":"\\ufffd"}'),
        (b"NaN", '{"status":200,"body":"NaN"}'),
        (b"[Infinity]", '{"status":200,"body":"[Infinity]"}'),
        (b"1e999", '{"status":200,"body":"1e999"}'),
        (b'"\\ud800"', '{"status":200,"body":"\\ud800"}'),
    ],
)
def test_a_body_that_fits_is_kept_as_what_it_is(body: bytes, text: str):
    assert result_of(200, body, is_whole=True) == text


def test_a_body_that_is_not_whole_is_a_text_however_much_it_looks_like_json():
    assert result_of(201, b"[1]", is_whole=False) == '{"status":201,"body":"[1]","truncated":true}'
    assert result_of(201, b"", is_whole=False) == '{"status":201,"truncated":true}'
