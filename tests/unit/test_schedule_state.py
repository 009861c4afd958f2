from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.instants import HOUR, MILLISECOND, SECOND, to_seconds
from functions.domain.jobs.occurrence import UNBOUND, Occurrence
from functions.domain.schedules.state import MOST_CUTS, Cut, ScheduleState, Status, changed
from testkit.builders import NOON, a_link, a_state

STATE = a_state(version=3, cuts=(Cut(1, NOON - HOUR), Cut(2, NOON), Cut(3, NOON + HOUR)))


class TestWhoMayRun:
    @pytest.mark.parametrize(
        ("version", "fire_at", "may_run"),
        [
            (1, NOON - SECOND, True),
            (1, NOON, True),
            (1, NOON + MILLISECOND, False),
            (1, NOON + 2 * HOUR, False),
            (2, NOON, True),
            (2, NOON + MILLISECOND, True),
            (2, NOON + HOUR, True),
            (2, NOON + HOUR + MILLISECOND, False),
            (3, NOON + HOUR, True),
            (3, NOON + HOUR + MILLISECOND, True),
            (3, NOON + 99 * HOUR, True),
            (4, NOON + HOUR, False),
            (4, NOON + 99 * HOUR, False),
        ],
    )
    def test_a_version_decides_the_fires_up_to_the_instant_at_which_the_next_took_over(
        self, version: int, fire_at: datetime, *, may_run: bool
    ):
        assert STATE.may_run(an_occurrence(version, fire_at)) is may_run

    @pytest.mark.parametrize("fire_at", [NOON - 99 * HOUR, NOON, NOON + 99 * HOUR])
    def test_a_fire_that_no_version_decided_may_always_run(self, fire_at: datetime):
        assert STATE.may_run(an_occurrence(UNBOUND, fire_at))

    @pytest.mark.parametrize(("asked_of", "may_run"), [(4, False), (5, True), (6, True), (7, True)])
    def test_an_extra_run_belongs_to_the_schedule_that_it_was_asked_of(self, asked_of: int, *, may_run: bool):
        state = a_state(version=7, born=5)

        assert state.may_run(an_occurrence(-asked_of, NOON)) is may_run

    def test_a_fire_of_a_version_whose_end_is_forgotten_does_not_run(self):
        state = replace(STATE, cuts=STATE.cuts[2:])

        assert not state.may_run(an_occurrence(1, NOON - SECOND))
        assert state.may_run(an_occurrence(2, NOON))

    def test_a_state_that_has_forgotten_every_change_knows_its_own_version(self):
        state = replace(STATE, cuts=())

        assert state.may_run(an_occurrence(3, NOON))
        assert not state.may_run(an_occurrence(2, NOON))

    @given(
        changes=st.lists(st.timedeltas(timedelta(0), 10 * HOUR), min_size=1, max_size=2 * MOST_CUTS),
        fire_after=st.timedeltas(-HOUR, 12 * HOUR),
    )
    def test_of_the_versions_that_a_fire_lies_behind_only_the_last_may_run_it(
        self, changes: list[timedelta], fire_after: timedelta
    ):
        state: ScheduleState | None = None
        begins: list[datetime] = []
        for now in changes:  # by clocks that differ
            state = changed(state, status=Status.ACTIVE, now=NOON + now)
            begins.append(state.changed_at)
        assert state is not None
        fire_at = NOON + fire_after

        # Each version decides fires after its own begin only.
        deciding = [version for version, begun_at in enumerate(begins, start=state.born) if begun_at < fire_at]
        running = [version for version in deciding if state.may_run(an_occurrence(version, fire_at))]

        is_remembered = not deciding or deciding[-1] >= state.version - MOST_CUTS
        assert running == (deciding[-1:] if is_remembered else [])


class TestChanges:
    def test_the_first_version_begins_when_its_schedule_is_created(self):
        state = changed(None, status=Status.ACTIVE, now=NOON, note="hello")

        first = to_seconds(NOON)
        assert state == ScheduleState(
            version=first, born=first, status=Status.ACTIVE, changed_at=NOON, note="hello", cuts=(Cut(first, NOON),)
        )

    def test_what_is_left_of_a_schedule_that_was_forgotten_is_older_than_one_of_its_name(self):
        forgotten = changed(None, status=Status.ACTIVE, now=NOON)
        for number in range(100):
            forgotten = changed(forgotten, status=Status.ACTIVE, now=NOON + number * SECOND)

        state = changed(None, status=Status.ACTIVE, now=NOON + timedelta(days=30))

        for version in range(forgotten.born, forgotten.version + 1):
            assert not state.may_run(an_occurrence(version, NOON + timedelta(days=31)))
            assert not state.may_run(an_occurrence(-version, NOON + timedelta(days=31)))

    def test_a_change_begins_the_next_version_and_leaves_its_chain_to_be_set(self):
        before = replace(STATE, link=a_link(), alarm_at=NOON, note="old", failures=frozenset({"run"}))

        state = changed(before, status=Status.PAUSED, now=NOON + 2 * HOUR, note="new")

        assert (state.version, state.status, state.changed_at, state.note) == (4, Status.PAUSED, NOON + 2 * HOUR, "new")
        assert state.cuts == (*STATE.cuts, Cut(4, NOON + 2 * HOUR))
        assert (state.link, state.alarm_at, state.failures) == (None, None, frozenset())

    def test_so_many_changes_are_remembered(self):
        state = changed(None, status=Status.ACTIVE, now=NOON)
        for number in range(1, MOST_CUTS + 5):
            state = changed(state, status=Status.ACTIVE, now=NOON + number * SECOND)

        assert [cut.version for cut in state.cuts] == list(range(state.version - MOST_CUTS + 1, state.version + 1))

    def test_fires_that_are_dropped_do_not_count_and_are_not_remembered(self):
        before = replace(STATE, fire_count=9, recent=(NOON, NOON + 2 * HOUR, NOON + 2 * HOUR + MILLISECOND))

        state = changed(before, status=Status.ACTIVE, now=NOON + 2 * HOUR, dropped_count=1)

        assert (state.fire_count, state.recent) == (8, (NOON, NOON + 2 * HOUR))

    def test_no_fewer_than_no_fires_are_counted(self):
        assert changed(STATE, status=Status.ACTIVE, now=NOON, dropped_count=1).fire_count == 0


def test_a_link_stands_further_while_its_run_is_awaited_and_further_still_at_the_next_fire():
    links = [a_link(), a_link(is_awaited=True), a_link(NOON + MILLISECOND), a_link(NOON + MILLISECOND, is_awaited=True)]

    assert all(behind.position < ahead.position for behind, ahead in pairwise(links))


def an_occurrence(version: int, fire_at: datetime) -> Occurrence:
    return Occurrence(schedule_id="nightly", fire_at=fire_at, nominal_at=fire_at, version=version)
