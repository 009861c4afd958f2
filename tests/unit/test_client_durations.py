"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickwheel.client.durations import parse_duration, seconds


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        ("90", timedelta(seconds=90)),
        ("1.5s", timedelta(seconds=1.5)),
        ("250ms", timedelta(milliseconds=250)),
        ("5m", timedelta(minutes=5)),
        ("2H", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("PT1M30S", timedelta(seconds=90)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("P1DT1H", timedelta(hours=25)),
        ("P2W", timedelta(weeks=2)),
    ],
)
def test_a_duration_is_read_in_every_form(written: object, meant: timedelta) -> None:
    assert parse_duration(written) == meant


@pytest.mark.parametrize(
    "written",
    ["", "soon", "-5", -1, "P", "PT", "P1M", "P1Y", "5 minutes", True, None, float("nan"), float("inf"), "1e3", 1e300],
)
def test_anything_else_is_refused_with_the_forms_it_takes(written: object) -> None:
    with pytest.raises(ValueError, match="PT1M30S"):
        parse_duration(written)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650)))
def test_a_duration_survives_the_wire(duration: timedelta) -> None:
    assert parse_duration(seconds(duration)) == duration


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1h30m", timedelta(minutes=90)),
        ("2d 12h", timedelta(hours=60)),
        ("1m30.5s", timedelta(seconds=90.5)),
        ("1s250ms", timedelta(seconds=1.25)),
        ("1D2H3M4S5MS", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
    ],
)
def test_a_short_form_may_have_several_parts(written: str, meant: timedelta) -> None:
    assert parse_duration(written) == meant


@pytest.mark.parametrize("written", ["30m1h", "1h1h", "1h30", "h", "1h30m x", "1h-30m"])
def test_parts_out_of_order_twice_or_without_a_unit_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(written)
