from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from functions.adapters.system_clock import SystemClock
from testkit.builders import NOON

HALF = timedelta(milliseconds=500)


class SetClock(SystemClock):
    """A system clock whose hands the test moves."""

    instant = NOON

    def now(self) -> datetime:
        return self.instant


def test_the_wall_clock_is_aware_utc():
    before = datetime.now(UTC)
    now = SystemClock().now()

    assert now.tzinfo is UTC
    assert before <= now <= datetime.now(UTC)


def test_the_monotonic_clock_is_never_set_back():
    clock = SystemClock()

    assert clock.monotonic() <= clock.monotonic()


@pytest.mark.parametrize("duration", [timedelta(0), timedelta(seconds=-5)])
def test_a_wait_that_is_over_takes_no_time(duration: timedelta):
    SystemClock().sleep(duration)


def test_a_clock_that_has_seen_no_answer_takes_itself_for_right():
    assert SystemClock().offset() == timedelta(0)


@pytest.mark.parametrize("ahead", [timedelta(seconds=40), timedelta(seconds=-40), timedelta(0)])
def test_a_clock_compares_itself_with_the_date_of_an_answer(ahead: timedelta):
    clock = SetClock()

    clock.observe_response(an_answer(NOON - ahead))

    # The header is cut to whole seconds: half a second is the best guess at what was lost.
    assert clock.offset() == ahead - HALF


def test_the_truest_of_the_last_answers_counts_because_a_slow_one_makes_the_clock_look_fast():
    clock = SetClock()
    for late in (9, 1, 30):
        clock.observe_response(an_answer(NOON - timedelta(seconds=late)))

    assert clock.offset() == HALF


@pytest.mark.parametrize(
    ("seconds", "truest"),
    [
        ((-40, -39, -10), -40),
        ((-1, 40, 40), -1),
        ((40, 41, 70), 40),
        ((5, -5), -5),
    ],
)
def test_the_smallest_difference_is_the_truest_because_the_way_of_an_answer_only_ever_adds(
    seconds: tuple[int, ...], truest: int
):
    clock = SetClock()
    for ahead in seconds:
        clock.observe_response(an_answer(NOON - timedelta(seconds=ahead)))

    assert clock.offset() == timedelta(seconds=truest) - HALF


def test_a_clock_that_is_set_right_is_believed_when_its_wrong_answers_are_forgotten():
    clock = SetClock()
    offsets: list[timedelta] = []
    for ahead in [-40, *[0] * 8]:
        clock.observe_response(an_answer(NOON - timedelta(seconds=ahead)))
        offsets.append(clock.offset() + HALF)

    assert offsets == [timedelta(seconds=-40)] * 8 + [timedelta(0)]


def test_an_old_answer_is_forgotten():
    clock = SetClock()
    clock.observe_response(an_answer(NOON))
    for _ in range(8):
        clock.observe_response(an_answer(NOON - timedelta(seconds=30)))

    assert clock.offset() == timedelta(seconds=30) - HALF


def test_an_answer_without_a_date_says_nothing():
    clock = SetClock()

    clock.observe_response(SimpleNamespace(headers={}))

    assert clock.offset() == timedelta(0)


def an_answer(stamped_at: datetime) -> SimpleNamespace:
    return SimpleNamespace(headers={"Date": format_datetime(stamped_at, usegmt=True)})
