from datetime import UTC, datetime, timedelta, timezone

import pytest

from functions.domain.errors import InvalidInput
from functions.domain.instants import (
    format_instant,
    from_ms,
    parse_duration,
    parse_instant,
    require_aware,
    to_ms,
    to_seconds,
)
from testkit.builders import NOON


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-03-01T12:00:00Z", NOON),
        ("2027-03-01t12:00:00z", NOON),
        ("2027-03-01 12:00:00Z", NOON),
        ("2027-03-01T13:00:00+01:00", NOON),
        ("2027-02-28T23:30:00-12:30", NOON),
        ("2027-03-01T12:00:00.5Z", NOON + timedelta(milliseconds=500)),
        ("2027-03-01T12:00:00.000000001Z", NOON + timedelta(microseconds=1)),
        ("2027-03-01T11:59:59.999999999Z", NOON),
    ],
)
def test_an_rfc_3339_text_is_an_instant_in_utc_and_never_an_earlier_one(text: str, instant: datetime):
    assert parse_instant(text) == instant
    assert parse_instant(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2027-03-01",
        "2027-03-01T12:00Z",
        "2027-03-01T12:00:00",
        "2027-03-01T12:00:00+0100",
        "2027-03-01T12:00:00.Z",
        "2027-03-01T12:00:00.0000000001Z",
        "2027-13-01T12:00:00Z",
        "2027-03-01T24:00:00Z",
        "2027-03-01T12:00:60Z",
        "2027-03-01T12:00:00+24:00",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.9999999Z",
        "\uff12\uff10\uff12\uff17-03-01T12:00:00Z",
        " 2027-03-01T12:00:00Z",
        "2027-03-01T12:00:00Z\n",
        "1803902400",
    ],
)
def test_any_other_text_is_refused(text: str):
    with pytest.raises(InvalidInput):
        parse_instant(text)


@pytest.mark.parametrize(
    ("value", "duration"),
    [
        (0, timedelta(0)),
        (1.5, timedelta(seconds=1.5)),
        ("PT0S", timedelta(0)),
        ("PT90S", timedelta(seconds=90)),
        ("PT0.25S", timedelta(milliseconds=250)),
        ("P2W", timedelta(weeks=2)),
        ("P1DT2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_a_duration_is_seconds_or_iso_8601(value: str | float, duration: timedelta):
    assert parse_duration(value) == duration


@pytest.mark.parametrize(
    "value",
    [
        "",
        "P",
        "PT",
        "P1Y",
        "P1M",
        "PT1,5S",
        "P-1D",
        "90",
        "pt1s",
        "PT1S ",
        "PT1H1H",
        -0.001,
        float("nan"),
        float("inf"),
        float("-inf"),
        1e300,
        86_400_000_000_000.0,
        10**400,
        -(10**400),
    ],
)
def test_any_other_duration_is_refused(value: str | float):
    with pytest.raises(InvalidInput):
        parse_duration(value)


def test_an_instant_is_reported_in_utc_to_the_millisecond():
    local = datetime(2027, 3, 1, 13, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=1)))

    assert format_instant(local) == "2027-03-01T12:00:00.123Z"


def test_a_naive_time_is_refused_at_birth():
    with pytest.raises(InvalidInput, match="has no offset from UTC"):
        require_aware(datetime(2027, 3, 1))  # noqa: DTZ001  the point


def test_an_instant_is_kept_in_milliseconds_rounded_up_and_in_seconds_rounded_down():
    assert to_ms(NOON + timedelta(microseconds=1)) == to_ms(NOON) + 1
    assert from_ms(to_ms(NOON)) == NOON
    assert to_seconds(NOON + timedelta(milliseconds=999)) == to_seconds(NOON)
