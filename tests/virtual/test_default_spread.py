"""What becomes of a schedule when the default spread changes, at whatever moment of its chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations

import pytest

from functions.api.http.requests import Rules
from functions.api.schedules.patch import names_spread, patched
from functions.domain.instants import MINUTE, SECOND
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.shifts import spread_of
from functions.domain.schedules.spread import DefaultSpread, SpreadFrom
from testkit.builders import LOCAL_WHEEL, NOON, a_schedule, a_template
from tests.virtual.stage import VirtualStage

BEGIN = NOON - 10 * MINUTE
FIRST, SECOND_ONE = NOON, NOON + 30 * MINUTE
"""Its nominal times until the end."""

END = SECOND_ONE + 22 * MINUTE
RULES = Rules(now=BEGIN, allow_plain_http=False, max_timeout=timedelta(seconds=50))


def delay_below(spread: timedelta) -> timedelta:
    return spread_of(replace(HALF_HOURLY, spread=spread))


def a_default(spread: timedelta | None) -> DefaultSpread | None:
    return None if spread is None else DefaultSpread(spread, SpreadFrom.TENANT)


HALF_HOURLY = a_schedule(
    tenant="acme", schedule_id="nightly-3", rule=CronRule("*/30 * * * *"), job=a_template(target="https://example.com")
)
SHORT, LONG = 2 * MINUTE, 20 * MINUTE


def moments(*offs: timedelta) -> Iterator[datetime]:
    """Around the nominal time, its fires with either spread, and when these enter the near ring."""
    delays = [timedelta(0), delay_below(SHORT), delay_below(LONG)]
    for delay in delays:
        for ahead in (timedelta(0), LOCAL_WHEEL.guard):
            for off in offs or (-SECOND, timedelta(0), SECOND, MINUTE):
                yield FIRST + delay - ahead + off


class Life:
    """A schedule that says no spread, of a tenant whose default changes."""

    def __init__(self, default: timedelta | None) -> None:
        self.default = a_default(default)
        self.stage = VirtualStage(wheel=LOCAL_WHEEL, now=BEGIN)
        self.manager = replace(self.stage.manager, default_spread=lambda _: self.default)
        self.manager.put(HALF_HOURLY)

    def patch(self, patch: dict[str, object]) -> None:
        def edit(current: Schedule) -> Schedule:
            return patched(current, patch, RULES)

        self.manager.patch("acme", HALF_HOURLY.schedule_id, edit, takes_default=names_spread(patch))

    def fires(self) -> list[datetime]:
        """When its target was called, until the end."""
        self.stage.run_until(END)
        assert not self.stage.targets.early
        return sorted(at for calls in self.stage.targets.calls.values() for at in calls)


def test_the_spreads_of_these_tests_are_apart():
    assert SECOND < delay_below(SHORT) < MINUTE * 2 < delay_below(LONG) - MINUTE


@pytest.mark.long
@pytest.mark.parametrize(("before", "default"), list(permutations([None, SHORT, LONG], 2)))
def test_a_changed_default_neither_moves_nor_repeats_nor_skips_a_fire_whoever_puts_the_definition_again(
    before: timedelta | None, default: timedelta | None
):
    delay = timedelta(0) if before is None else delay_below(before)
    expected = [FIRST + delay, SECOND_ONE + delay]
    for moment in moments(timedelta(0), SECOND):
        life = Life(before)
        life.stage.run_until(moment)
        life.default = a_default(default)
        life.manager.put(HALF_HOURLY)
        life.patch({"history": 20})

        fires = life.fires()

        assert [round_down(at) for at in fires] == expected, moment


@pytest.mark.long
def test_a_longer_default_that_is_asked_for_repeats_and_skips_nothing():
    for moment in moments():
        life = Life(None)
        life.stage.run_until(moment)
        life.default = a_default(LONG)
        life.patch({"spread": None})

        fires = [round_down(at) for at in life.fires()]

        # What has fired stays; what has not comes later.
        first = FIRST if moment >= FIRST else FIRST + delay_below(LONG)
        assert fires == [first, SECOND_ONE + delay_below(LONG)], moment


@pytest.mark.long
def test_a_shorter_default_that_is_asked_for_repeats_nothing_and_leaves_out_only_a_fire_whose_new_time_has_passed():
    for moment in moments():
        life = Life(LONG)
        life.stage.run_until(moment)
        life.default = None
        life.patch({"spread": None})

        fires = [round_down(at) for at in life.fires()]

        has_fired, is_passed = moment >= FIRST + delay_below(LONG), moment >= FIRST
        first = [FIRST + delay_below(LONG)] if has_fired else [] if is_passed else [FIRST]
        assert fires == [*first, SECOND_ONE], moment


def round_down(at: datetime) -> datetime:
    """To the second: what is worked off at an instant takes some milliseconds."""
    return at.replace(microsecond=0)
