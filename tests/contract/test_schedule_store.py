"""What every store of schedules keeps: definition and state of one version, and a state that only its truth changes."""

from dataclasses import MISSING, fields, replace
from datetime import datetime
from typing import Any

import pytest

from functions.adapters.dynamodb.schedule_updates import DELETED_LIFE
from functions.domain.errors import FiresExceeded, SchedulesExceeded, Undecodable
from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.job import Payload
from functions.domain.jobs.job_id import job_id_of
from functions.domain.schedules.asked_runs import AskedRun
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.fire_figures import LAST_BUCKET, NO_FIGURES, FireFigures
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.load import Load, LoadLimits, Share
from functions.domain.schedules.state import ASIDES_COUNT_FOR, Cut, Link, ScheduleState, SkipReason, Status
from functions.ports.ledger import Applied
from functions.ports.schedules import MOST_TOGETHER, Behind, ScheduleStore, ScheduleWrite, StoredSchedule
from testkit.builders import NOON, a_link, a_state, a_stored_schedule, a_template, an_occurrence_timer, every
from tests.contract.conftest import ON_DYNAMODB, ScheduleSubject

KEY = "acme#nightly"


ASKED = AskedRun(due_at=NOON, token="k-5f0c9a1be27d3586")
BACKFILLED = AskedRun(due_at=NOON + SECOND, token="6a1be27d3586f00d", fire_at=NOON - 24 * HOUR)


def a_kept_run(at: datetime) -> KeptRun:
    job_id = job_id_of(an_occurrence_timer(fire_at=at).job)
    return KeptRun(job_id=job_id, has_succeeded=True, attempt=1, ended_at=at)


def a_write(schedule_id: str, *, fires: int = 1, limits: LoadLimits | None = None, **stored: Any) -> ScheduleWrite:
    return ScheduleWrite(
        new=a_stored_schedule(schedule_id=schedule_id, **stored),
        state=a_state(share=Share(1, fires)),
        seen=None,
        limits=limits or LoadLimits(),
    )


class TestTogether:
    """Several schedules of one tenant, in one write."""

    def test_each_is_written_as_it_would_be_by_itself(self, schedules: ScheduleStore):
        assert schedules.change_together([a_write(str(number), fires=number) for number in range(1, MOST_TOGETHER + 1)])

        keys = [f"acme#{number}" for number in range(1, MOST_TOGETHER + 1)]
        found = schedules.get_many(keys)
        assert found == {key: schedules.get(key) for key in keys}
        assert all(stored is not None and state is not None for stored, state in found.values())
        assert schedules.load("acme") == Load(MOST_TOGETHER, sum(range(1, MOST_TOGETHER + 1)))

    def test_what_is_not_there_has_an_answer_too(self, schedules: ScheduleStore):
        assert schedules.change_together([a_write("a")])

        found = schedules.get_many(["acme#b", "acme#a"])

        assert found["acme#b"] == (None, None)
        assert found["acme#a"] == schedules.get("acme#a")

    def test_where_one_is_refused_none_is_written(self, schedules: ScheduleStore):
        assert schedules.change_together([a_write("b")])
        before = schedules.get("acme#b")

        assert not schedules.change_together([a_write("a"), a_write("b", fires=7), a_write("c")])

        found = schedules.get_many(["acme#a", "acme#b", "acme#c"])
        assert found == {"acme#a": (None, None), "acme#b": before, "acme#c": (None, None)}
        assert schedules.load("acme") == Load(1, 1)

    def test_together_they_may_not_come_to_more_than_is_allowed(self, schedules: ScheduleStore):
        limits = LoadLimits(schedules=2, fires_per_minute=100)

        assert not schedules.change_together([a_write(name, limits=limits) for name in "abc"])
        assert schedules.load("acme") == Load()
        assert schedules.change_together([a_write(name, limits=limits) for name in "ab"])
        assert not schedules.change_together([a_write("c", limits=limits)])
        assert schedules.load("acme") == Load(2, 2)

    def test_of_some_that_are_there_only_what_their_shares_change_by_is_added(self, schedules: ScheduleStore):
        assert schedules.change_together([a_write("a", fires=5), a_write("b", fires=7)])
        seen = {name: schedules.state(f"acme#{name}") for name in "ab"}

        writes: list[ScheduleWrite] = []
        for name, fires in (("a", 6), ("b", 7)):
            state = seen[name]
            assert state is not None
            after = replace(state, version=2, share=Share(2, fires))
            writes.append(ScheduleWrite(new=a_stored_schedule(schedule_id=name, version=2), state=after, seen=state))
        assert schedules.change_together(writes)

        assert schedules.load("acme") == Load(2, 13)
        assert not schedules.change_together(writes), "what was seen is no more"


class TestSums:
    """What the schedules of a tenant come to is written with each of them."""

    def put(
        self, schedules: ScheduleStore, schedule_id: str = "nightly", *, fires: int = 1, **options: Any
    ) -> ScheduleState:
        state = a_state(share=Share(1, fires))
        assert schedules.change(a_stored_schedule(schedule_id=schedule_id), state, seen=None, **options)
        return state

    def change(
        self, schedules: ScheduleStore, seen: ScheduleState, *, limits: LoadLimits | None = None, **changes: Any
    ) -> ScheduleState:
        after = replace(seen, **{"version": seen.version + 1, **changes})
        stored = a_stored_schedule(version=after.version, status=after.status)
        assert schedules.change(stored, after, seen=seen, limits=limits or LoadLimits())
        return after

    def test_a_tenant_without_schedules_comes_to_nothing(self, schedules: ScheduleStore):
        assert schedules.load("acme") == Load()

    def test_each_schedule_adds_to_the_sum_of_its_own_tenant(self, schedules: ScheduleStore):
        self.put(schedules, "a", fires=12)
        self.put(schedules, "b", fires=60)
        other = a_stored_schedule(tenant="acme2")
        assert schedules.change(other, a_state(share=Share(1, 5)), seen=None)

        assert (schedules.load("acme"), schedules.load("acme2")) == (Load(2, 72), Load(1, 5))

    def test_a_change_adds_what_its_share_has_changed_by(self, schedules: ScheduleStore):
        first = self.put(schedules, fires=12)

        faster = self.change(schedules, first, share=Share(2, 60))
        assert schedules.load("acme") == Load(1, 60)

        paused = self.change(schedules, faster, status=Status.PAUSED, link=None, share=Share(3, 0))
        assert schedules.load("acme") == Load(1, 0)

        self.change(schedules, paused, status=Status.DELETED, link=None, share=None)
        assert schedules.load("acme") == Load()
        assert schedules.get(KEY)[0] is None

    def test_a_change_that_is_lost_adds_nothing(self, schedules: ScheduleStore):
        first = self.put(schedules, fires=12)
        self.change(schedules, first, share=Share(2, 60))

        late = replace(first, version=2, share=Share(2, 30))
        assert not schedules.change(a_stored_schedule(version=2), late, seen=first)

        assert schedules.load("acme") == Load(1, 60)

    def test_a_schedule_of_a_version_that_did_not_count_adds_all_of_its_share_when_it_is_changed(
        self, schedules: ScheduleStore
    ):
        uncounted = a_state()
        assert schedules.change(a_stored_schedule(), uncounted, seen=None)
        assert (schedules.load("acme"), schedules.state(KEY)) == (Load(), uncounted)

        self.change(schedules, uncounted, share=Share(2, 60))

        assert schedules.load("acme") == Load(1, 60)

    def test_one_schedule_too_many_is_refused_with_the_figures_and_not_written(self, schedules: ScheduleStore):
        limits = LoadLimits(schedules=2)
        self.put(schedules, "a", limits=limits)
        self.put(schedules, "b", limits=limits)

        with pytest.raises(SchedulesExceeded) as refused:
            self.put(schedules, "c", limits=limits)

        assert (refused.value.count, refused.value.limit) == (2, 2)
        assert (schedules.load("acme"), schedules.get("acme#c")) == (Load(2, 2), (None, None))

    def test_fires_beyond_the_limit_are_refused_with_the_figures_and_not_written(self, schedules: ScheduleStore):
        limits = LoadLimits(fires_per_minute=2)
        first = self.put(schedules, "nightly", fires=60, limits=limits)
        self.put(schedules, "b", fires=60, limits=limits)

        with pytest.raises(FiresExceeded) as refused:
            self.put(schedules, "c", fires=1, limits=limits)
        with pytest.raises(FiresExceeded):
            self.change(schedules, first, share=Share(2, 61), limits=limits)

        assert (refused.value.per_minute, refused.value.added, refused.value.limit) == (2, 1 / 60, 2)
        assert (schedules.load("acme"), schedules.state(KEY)) == (Load(2, 120), first)

    def test_a_schedule_that_is_too_much_by_itself_is_refused_to_a_tenant_without_any(self, schedules: ScheduleStore):
        with pytest.raises(FiresExceeded):
            self.put(schedules, fires=3_600, limits=LoadLimits(fires_per_minute=10))

        assert schedules.load("acme") == Load()

    def test_what_does_not_add_to_a_sum_that_is_beyond_its_limit_is_taken(self, schedules: ScheduleStore):
        first = self.put(schedules, fires=600)
        nothing_more = LoadLimits(schedules=1, fires_per_minute=1)

        same = self.change(schedules, first, share=Share(2, 600), limits=nothing_more)
        slower = self.change(schedules, same, share=Share(3, 300), limits=nothing_more)
        self.change(schedules, slower, status=Status.PAUSED, link=None, share=Share(4, 0), limits=nothing_more)

        assert schedules.load("acme") == Load(1, 0)

    def test_a_lost_race_is_reported_as_that_also_where_the_limit_is_reached(self, schedules: ScheduleStore):
        limits = LoadLimits(schedules=1)
        self.put(schedules, limits=limits)

        assert not schedules.change(a_stored_schedule(), a_state(share=Share(1, 1)), seen=None, limits=limits)

    def test_a_share_is_put_right_once_with_its_sum(self, schedules: ScheduleStore):
        ended = self.put(schedules, fires=12)

        assert schedules.recount(KEY, Share(1, 0), seen=ended)
        assert not schedules.recount(KEY, Share(1, 0), seen=ended)

        assert schedules.load("acme") == Load(1, 0)
        assert schedules.state(KEY) == replace(ended, share=Share(1, 0))

    def test_a_share_that_was_counted_in_another_way_is_put_right_once(self, schedules: ScheduleStore):
        first = self.put(schedules, fires=12)
        assert schedules.recount(KEY, Share(1, 1, counted_by=1), seen=first)
        otherwise = replace(first, share=Share(1, 1, counted_by=1))
        assert schedules.state(KEY) == otherwise

        assert schedules.recount(KEY, Share(1, 60), seen=otherwise)
        assert not schedules.recount(KEY, Share(1, 60), seen=otherwise)

        assert schedules.load("acme") == Load(1, 60)

    def test_a_share_that_was_never_counted_is_counted_once(self, schedules: ScheduleStore):
        uncounted = a_state()
        assert schedules.change(a_stored_schedule(), uncounted, seen=None)

        assert schedules.recount(KEY, Share(1, 12), seen=uncounted)
        assert not schedules.recount(KEY, Share(1, 12), seen=uncounted)

        assert schedules.load("acme") == Load(1, 12)

    def test_what_is_given_back_by_a_recount_is_not_given_back_again_by_a_change(self, schedules: ScheduleStore):
        seen = self.put(schedules, fires=12)
        assert schedules.recount(KEY, Share(1, 0), seen=seen)

        deleted = replace(seen, version=2, status=Status.DELETED, link=None, share=None)
        assert not schedules.change(a_stored_schedule(version=2, status=Status.DELETED), deleted, seen=seen)
        met = replace(seen, share=Share(1, 0))
        assert schedules.change(a_stored_schedule(version=2, status=Status.DELETED), deleted, seen=met)

        assert schedules.load("acme") == Load()

    def test_a_share_of_an_older_version_is_not_put_right(self, schedules: ScheduleStore):
        first = self.put(schedules, fires=12)
        self.change(schedules, first, share=Share(2, 60))

        assert not schedules.recount(KEY, Share(1, 0), seen=first)
        assert not schedules.recount("acme#gone", None, seen=first)

        assert schedules.load("acme") == Load(1, 60)

    def test_a_sum_is_no_schedule_to_whoever_reads_all_of_them(self, schedules: ScheduleStore):
        self.put(schedules)

        assert list(schedules.scan(after=None, limit=10).states) == [KEY]
        assert [stored.key for stored in schedules.page("acme", after="", limit=10)[0]] == [KEY]


class TestChanges:
    def test_a_schedule_that_was_never_put_has_neither_definition_nor_state(self, schedules: ScheduleStore):
        assert schedules.get(KEY) == (None, None)
        assert schedules.state(KEY) is None

    def test_a_schedule_is_got_as_it_was_created(self, schedules: ScheduleStore):
        stored, state = a_stored_schedule(job=a_template(payload=Payload(text='{"é":"\U0001f600"}'))), a_state()

        assert schedules.change(stored, state, seen=None)

        assert schedules.get(KEY) == (stored, state)
        assert schedules.state(KEY) == state

    def test_a_definition_remembers_the_conditional_requests_that_have_changed_it(self, schedules: ScheduleStore):
        stored = a_stored_schedule(requests=("0f3a", "9c2e"))

        assert schedules.change(stored, a_state(), seen=None)

        assert schedules.get(KEY)[0] == stored
        assert schedules.definitions([KEY]) == {KEY: stored}

    def test_a_state_is_read_as_it_was_written_in_every_field(self, schedules: ScheduleStore):
        state = a_state(
            version=7,
            status=Status.ACTIVE,
            born=5,
            changed_at=NOON - HOUR - MILLISECOND,
            note="für später",
            cuts=(Cut(6, NOON - 2 * HOUR), Cut(7, NOON - HOUR - MILLISECOND)),
            link=a_link(nominal_at=NOON - SECOND, index=41, previous_at=NOON - HOUR, merged_count=2),
            alarm_at=NOON + MILLISECOND,
            fire_count=41,
            recent=(NOON - 2 * HOUR, NOON - HOUR),
            share=Share(7, 12),
        )
        assert schedules.change(a_stored_schedule(version=7), state, seen=None)
        now = NOON + 2 * MILLISECOND
        assert schedules.take_slot(KEY, "the holder", seen=state, now=now)
        assert schedules.wait_for_slot(KEY, "who waits", seen=state, now=now + SECOND)
        schedules.note_failure(KEY, "a run")
        assert state.link is not None
        figures = FireFigures({bucket: bucket + 1 for bucket in range(LAST_BUCKET + 1)}, 4, 5 * MILLISECOND)
        decided = a_plan(link=state.link, skips={SkipReason.COALESCED: 2}, misfire_count=3, figures=figures)
        advance(schedules, decided, before=state.link, version=7, alarm_at=state.alarm_at)
        schedules.note_skip(KEY, SkipReason.OVERLAP, fire_at=NOON - 3 * HOUR)
        schedules.note_aside(KEY, version=7, now=now)
        assert schedules.keep_runs(KEY, (a_kept_run(NOON),), seen=state)
        assert schedules.remember_asked(KEY, (ASKED, BACKFILLED), seen=state)

        read = schedules.state(KEY)

        assert read == replace(
            state,
            kept_runs=(a_kept_run(NOON),),
            asked_runs=(ASKED, BACKFILLED),
            holder="the holder",
            holder_since=now,
            waiting="who waits",
            waiting_since=now + SECOND,
            failures=frozenset({"a run"}),
            misfire_count=3,
            skips={SkipReason.COALESCED: 2, SkipReason.OVERLAP: 1},
            last_skip=(SkipReason.OVERLAP, NOON - 3 * HOUR),
            asides=1,
            aside_at=now,
            figures=figures,
        )
        defaults = {part.name: part.default for part in fields(ScheduleState) if part.default is not MISSING}
        assert [name for name, default in defaults.items() if getattr(read, name) == default] == []

    def test_a_second_creation_is_refused_and_changes_nothing(self, schedules: ScheduleStore):
        stored, state = created(schedules)

        assert not schedules.change(a_stored_schedule(rule=every(days=1)), a_state(note="mine"), seen=None)
        assert schedules.get(KEY) == (stored, state)

    def test_a_replaced_schedule_is_got_in_its_new_version_with_the_instants_of_both(self, schedules: ScheduleStore):
        _, state = created(schedules)
        stored = replace(a_stored_schedule(version=2, rule=every(days=1)), changed_at=NOON + HOUR)
        changed = a_state(version=2, link=a_link(NOON + HOUR), changed_at=NOON + HOUR)

        assert schedules.change(stored, changed, seen=state)
        assert schedules.get(KEY) == (stored, changed)

    def test_a_change_that_saw_an_older_version_is_refused_and_changes_nothing(self, schedules: ScheduleStore):
        _, first = created(schedules)
        stored, state = changed(schedules, first)

        assert not schedules.change(a_stored_schedule(version=2, rule=every(days=9)), a_state(version=2), seen=first)
        assert schedules.get(KEY) == (stored, state)

    @pytest.mark.parametrize(
        "before", [a_link(), a_link(is_awaited=True)], ids=["at its next fire", "waiting for the end of a run"]
    )
    @pytest.mark.parametrize(
        "link",
        [a_link(NOON + HOUR), a_link(NOON + SECOND), None],
        ids=["at a later fire", "a second later", "at its end"],
    )
    def test_a_change_that_saw_an_earlier_link_is_refused_and_changes_nothing(
        self, schedules: ScheduleStore, before: Link, link: Link | None
    ):
        stored, seen = created(schedules, link=before, fire_count=int(before.is_awaited))
        advance(schedules, a_plan(link=link), before=before)
        met = schedules.state(KEY)

        assert not schedules.change(a_stored_schedule(version=2, rule=every(days=9)), a_state(version=2), seen=seen)
        assert schedules.get(KEY) == (stored, met)

    def test_a_change_that_saw_a_fire_before_it_was_placed_is_refused(self, schedules: ScheduleStore):
        _, seen = created(schedules)
        advance(schedules, a_plan([a_link()], link=a_link(is_awaited=True)), before=a_link())

        assert not schedules.change(a_stored_schedule(version=2), a_state(version=2), seen=seen)

    def test_a_change_that_saw_no_link_is_refused_where_there_is_one(self, schedules: ScheduleStore):
        _, state = created(schedules)

        assert not schedules.change(a_stored_schedule(version=2), a_state(version=2), seen=replace(state, link=None))

    def test_a_finished_chain_can_be_changed(self, schedules: ScheduleStore):
        _, state = created(schedules, link=None)

        changed(schedules, state)

    def test_a_change_of_a_schedule_that_is_not_there_is_refused(self, schedules: ScheduleStore):
        assert not schedules.change(a_stored_schedule(version=2), a_state(version=2), seen=a_state())
        assert schedules.get(KEY) == (None, None)

    def test_a_repeated_change_is_refused_because_its_version_stands_already(self, schedules: ScheduleStore):
        stored, state = created(schedules)

        assert not schedules.change(stored, state, seen=None)
        assert schedules.get(KEY) == (stored, state)

    def test_a_change_leaves_the_slot_and_the_counters_to_those_who_write_them_meanwhile(
        self, schedules: ScheduleStore
    ):
        _, seen = created(schedules)
        assert schedules.take_slot(KEY, "holder", seen=seen, now=NOON)
        assert schedules.wait_for_slot(KEY, "waiter", seen=seen, now=NOON)
        schedules.note_skip(KEY, SkipReason.OVERLAP, fire_at=NOON)
        before = schedules.state(KEY)
        assert before is not None

        assert schedules.change(a_stored_schedule(version=2), a_state(version=2), seen=seen)

        after = schedules.state(KEY)
        assert after is not None
        assert (after.holder, after.holder_since) == ("holder", NOON)
        assert (after.waiting, after.waiting_since) == ("waiter", NOON)
        assert (after.skips, after.last_skip) == ({SkipReason.OVERLAP: 1}, (SkipReason.OVERLAP, NOON))

    def test_a_change_forgets_the_failures_of_the_version_before(self, schedules: ScheduleStore):
        _, state = created(schedules)
        schedules.note_failure(KEY, "a run")

        _, after = changed(schedules, state)
        assert after.failures == frozenset()
        assert schedules.note_failure(KEY, "another run") == 1

    def test_a_deleted_schedule_loses_its_definition_and_keeps_its_state(self, schedules: ScheduleStore):
        stored, state = created(schedules)
        deleted = a_state(version=2, status=Status.DELETED, link=None, note="")

        assert schedules.change(replace(stored, version=2, status=Status.DELETED), deleted, seen=state)

        assert schedules.get(KEY) == (None, deleted)
        assert schedules.definitions([KEY], consistent=True) == {}
        assert schedules.page("acme", after="", limit=10) == ([], False)

    def test_a_schedule_that_is_created_again_begins_anew_in_a_later_version(self, schedules: ScheduleStore):
        _, state = created(schedules, fire_count=5, recent=(NOON - HOUR,), link=a_link(index=5))
        assert schedules.take_slot(KEY, "holder", seen=state, now=NOON)
        assert schedules.wait_for_slot(KEY, "waiter", seen=state, now=NOON)
        schedules.note_skip(KEY, SkipReason.OVERLAP, fire_at=NOON)
        advance(schedules, a_plan(link=a_link(NOON + HOUR), misfire_count=2, skips={SkipReason.MISSED: 1}))
        state = schedules.state(KEY)
        deleted = a_state(version=2, status=Status.DELETED, link=None)
        assert schedules.change(a_stored_schedule(version=2, status=Status.DELETED), deleted, seen=state)
        seen = schedules.state(KEY)
        assert seen is not None
        begun = a_state(version=3, cuts=(*deleted.cuts, Cut(3, NOON)))

        assert schedules.change(a_stored_schedule(version=3), begun, seen=seen)

        assert schedules.get(KEY) == (a_stored_schedule(version=3), begun)

    @pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
    def test_only_the_state_of_a_deleted_schedule_goes_and_not_before_its_last_message(
        self, schedule_subject: ScheduleSubject
    ):
        schedules, expires_at = schedule_subject.schedules, schedule_subject.expires_at
        assert expires_at is not None
        stored, state = created(schedules)
        assert expires_at(KEY) is None

        deleted = a_state(version=2, status=Status.DELETED, link=None)
        assert schedules.change(replace(stored, version=2, status=Status.DELETED), deleted, seen=state)
        assert expires_at(KEY) == deleted.changed_at + DELETED_LIFE

        assert schedules.change(replace(stored, version=3), a_state(version=3), seen=deleted)
        assert expires_at(KEY) is None


class TestReads:
    def test_definitions_are_found_for_the_keys_that_have_one(self, schedules: ScheduleStore):
        found = {stored.key: stored for stored in (created(schedules, f"s{number}")[0] for number in range(103))}
        wanted = ["acme#nobody", *found, "acme#s7", "globex#s7"]

        assert schedules.definitions(wanted) == found
        assert schedules.definitions(wanted, consistent=True) == found
        assert schedules.definitions([]) == {}

    def test_a_definition_that_a_newer_tickwheel_wrote_holds_up_no_other(self, schedule_subject: ScheduleSubject):
        schedules = schedule_subject.schedules
        sound, _ = created(schedules, "sound")
        created(schedules, "newer")
        schedule_subject.spoil_definition("acme#newer")

        assert schedules.definitions(["acme#newer", "acme#sound"], consistent=True) == {"acme#sound": sound}
        with pytest.raises(Undecodable):
            schedules.get("acme#newer")

    @pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
    def test_a_status_that_only_a_newer_tickwheel_knows_holds_up_no_other_definition(
        self, schedule_subject: ScheduleSubject
    ):
        schedules = schedule_subject.schedules
        sound, _ = created(schedules, "sound")
        created(schedules, "newer")
        schedule_subject.spoil_definition("acme#newer", "s")

        assert schedules.definitions(["acme#newer", "acme#sound"], consistent=True) == {"acme#sound": sound}

    @pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
    def test_a_state_that_a_newer_tickwheel_wrote_holds_up_no_scan(self, schedule_subject: ScheduleSubject):
        assert schedule_subject.spoil_state is not None
        created(schedule_subject.schedules, "sound")
        created(schedule_subject.schedules, "newer")
        schedule_subject.spoil_state("acme#newer")

        assert list(schedule_subject.schedules.scan(after=None, limit=10).states) == ["acme#sound"]
        with pytest.raises(Undecodable):
            schedule_subject.schedules.state("acme#newer")

    def test_states_are_found_for_the_keys_that_have_one(self, schedules: ScheduleStore):
        for number in range(103):
            created(schedules, f"s{number}", note=str(number))

        found = schedules.states(["acme#nobody", *(f"acme#s{number}" for number in range(103)), "acme#s7"])

        assert {key: state.note for key, state in found.items()} == {
            f"acme#s{number}": str(number) for number in range(103)
        }
        assert schedules.states([]) == {}

    def test_a_tenant_s_schedules_are_paged_in_the_order_of_their_ids(self, schedules: ScheduleStore):
        for name in ("b", "a", "a.1", "B", "c"):
            created(schedules, name)
        for tenant in ("acme-2", "acm", "b"):
            assert schedules.change(a_stored_schedule(tenant=tenant), a_state(), seen=None)

        assert page(schedules, after="", limit=2) == (["B", "a"], True)
        assert page(schedules, after="a", limit=2) == (["a.1", "b"], True)
        assert page(schedules, after="b", limit=2) == (["c"], False)
        assert page(schedules, after="c", limit=2) == ([], False)

    def test_a_page_that_holds_the_last_schedule_says_that_there_are_no_more(self, schedules: ScheduleStore):
        for name in ("a", "b"):
            created(schedules, name)

        assert page(schedules, after="", limit=2) == (["a", "b"], False)

    def test_a_page_shows_definitions_as_they_were_stored(self, schedules: ScheduleStore):
        stored, _ = created(schedules)

        assert schedules.page("acme", after="", limit=1) == ([stored], False)

    @pytest.mark.parametrize("limit", [1, 2, 5, 6, 100])
    def test_a_scan_shows_every_state_once_page_by_page(self, schedules: ScheduleStore, limit: int):
        for tenant, name in [("acme", "a"), ("acme", "b"), ("globex", "a"), ("globex", "z"), ("initech", "c")]:
            stored = a_stored_schedule(tenant=tenant, schedule_id=name)
            assert schedules.change(stored, a_state(note=stored.key), seen=None)

        seen: list[tuple[str, str]] = []
        after: str | None = None
        while True:
            found = schedules.scan(after=after, limit=limit)
            assert len(found.states) <= limit
            seen += [(key, state.note) for key, state in found.states.items()]
            after = found.after
            if after is None:
                break

        assert sorted(seen) == [(key, key) for key in ("acme#a", "acme#b", "globex#a", "globex#z", "initech#c")]

    @pytest.mark.parametrize("after", [None, ""])
    def test_a_scan_of_nothing_is_one_empty_page(self, schedules: ScheduleStore, after: str | None):
        found = schedules.scan(after=after, limit=10)

        assert (found.states, found.after) == ({}, None)


class TestAdvances:
    def test_an_advance_records_what_was_placed_and_where_the_chain_goes_on(self, schedules: ScheduleStore):
        _, state = created(schedules, fire_count=4, link=a_link(index=4))
        kept = [a_link(NOON, index=4), a_link(NOON + SECOND, index=5, previous_at=NOON)]
        link = a_link(NOON + HOUR, nominal_at=NOON, index=6, previous_at=NOON + SECOND, merged_count=1)

        assert advance(schedules, a_plan(kept, link=link), alarm_at=NOON + HOUR) == Applied()

        assert schedules.state(KEY) == replace(
            state, link=link, alarm_at=NOON + HOUR, fire_count=6, recent=(NOON, NOON + SECOND)
        )

    def test_an_advance_that_placed_nothing_leaves_the_count_and_the_last_fires(self, schedules: ScheduleStore):
        _, state = created(schedules, fire_count=4, recent=(NOON - HOUR,), link=a_link(index=4))
        link = a_link(NOON + HOUR, index=4)

        assert advance(schedules, a_plan(link=link), alarm_at=NOON + HOUR) == Applied()
        assert schedules.state(KEY) == replace(state, link=link, alarm_at=NOON + HOUR)

    def test_skips_and_misfires_add_up_and_the_last_skip_is_kept(self, schedules: ScheduleStore):
        created(schedules)
        skips = {SkipReason.MISSED: 3, SkipReason.MERGED: 1}
        first = a_plan(link=a_link(NOON + HOUR), skips=skips, last_skip=(SkipReason.MISSED, NOON), misfire_count=3)
        advance(schedules, first)
        advance(schedules, a_plan(link=a_link(NOON + 2 * HOUR)), before=a_link(NOON + HOUR))
        second = a_plan(link=a_link(NOON + 3 * HOUR), skips={SkipReason.MISSED: 1}, misfire_count=2)
        advance(schedules, second, before=a_link(NOON + 2 * HOUR))

        state = schedules.state(KEY)

        assert state is not None
        assert state.skips == {SkipReason.MISSED: 4, SkipReason.MERGED: 1}
        assert (state.misfire_count, state.last_skip) == (5, (SkipReason.MISSED, NOON))

    def test_the_figures_of_advances_add_up(self, schedules: ScheduleStore):
        created(schedules)
        for number, figures in enumerate(
            [FireFigures({0: 1, 18: 2}, 1, SECOND), FireFigures({18: 5}), FireFigures({40: 1}, 2, HOUR)]
        ):
            at = NOON + number * HOUR
            plan = a_plan([a_link(at, index=number)], link=a_link(at + HOUR, index=number + 1), figures=figures)
            assert advance(schedules, plan, before=a_link(at)) == Applied()

        state = schedules.state(KEY)
        assert state is not None
        assert state.figures == FireFigures({0: 1, 18: 7, 40: 1}, 3, HOUR + SECOND)

    def test_of_two_that_record_the_same_step_one_counts(self, schedules: ScheduleStore):
        created(schedules)
        plan = a_plan([a_link()], link=a_link(NOON + HOUR, index=1), figures=FireFigures({18: 1}, 1, SECOND))

        answers = [advance(schedules, plan), advance(schedules, plan)]

        state = schedules.state(KEY)
        assert answers == [Applied(), Behind(state)]
        assert state is not None
        assert state.figures == plan.figures

    def test_a_change_begins_the_figures_anew(self, schedules: ScheduleStore):
        created(schedules)
        figures = FireFigures({0: 3, 18: 1, 40: 2}, 1, SECOND)
        advance(schedules, a_plan([a_link()], link=a_link(NOON + HOUR, index=1), figures=figures))
        seen = schedules.state(KEY)
        assert seen is not None
        assert seen.figures == figures

        _, second = changed(schedules, seen)
        assert second.figures is None

        link, few = a_link(NOON + HOUR, index=1), FireFigures({18: 1})
        plan = a_plan([link], link=a_link(NOON + 2 * HOUR, index=2), figures=few)
        assert advance(schedules, plan, before=link, version=2) == Applied()
        third = schedules.state(KEY)
        assert third is not None
        assert third.figures == few

    def test_a_change_that_did_not_see_the_last_figures_is_refused(self, schedules: ScheduleStore):
        _, seen = created(schedules)
        plan = a_plan([a_link()], link=a_link(NOON + HOUR, index=1), figures=FireFigures({18: 1}))
        advance(schedules, plan)

        assert not schedules.change(a_stored_schedule(version=2), a_state(version=2), seen=seen)
        state = schedules.state(KEY)
        assert state is not None
        assert state.figures == plan.figures

    def test_an_advance_to_the_end_leaves_nothing_to_come_due_for(self, schedules: ScheduleStore):
        _, state = created(
            schedules, link=a_link(nominal_at=NOON - SECOND, previous_at=NOON - HOUR, merged_count=1), alarm_at=NOON
        )

        assert advance(schedules, a_plan([a_link()], link=None)) == Applied()
        assert schedules.state(KEY) == replace(state, link=None, alarm_at=None, fire_count=1, recent=(NOON,))

    def test_a_chain_may_wait_for_the_end_of_a_run_and_go_on_after_it(self, schedules: ScheduleStore):
        _, state = created(schedules)
        awaited = a_link(NOON, is_awaited=True)
        following = a_link(NOON + HOUR, index=1, previous_at=NOON)

        assert advance(schedules, a_plan([a_link()], link=awaited), alarm_at=NOON + HOUR) == Applied()
        assert schedules.state(KEY) == replace(state, link=awaited, alarm_at=NOON + HOUR, fire_count=1, recent=(NOON,))
        assert advance(schedules, a_plan(link=following), before=awaited) == Applied()
        assert schedules.state(KEY) == replace(state, link=following, fire_count=1, recent=(NOON,))

    @pytest.mark.parametrize(
        "state",
        [
            a_state(link=a_link(NOON + SECOND)),
            a_state(link=a_link(NOON - SECOND)),
            a_state(link=a_link(is_awaited=True), fire_count=1),
            a_state(link=None),
            a_state(version=2),
            a_state(status=Status.PAUSED),
            a_state(status=Status.PAUSED, link=None),
            a_state(status=Status.DELETED, link=None),
        ],
        ids=["ahead", "behind", "awaiting", "at its end", "in a later version", "paused", "stopped", "deleted"],
    )
    def test_an_advance_from_a_link_where_its_version_does_not_stand_is_refused_with_the_state_that_it_found(
        self, schedules: ScheduleStore, state: ScheduleState
    ):
        assert schedules.change(a_stored_schedule(version=state.version, status=state.status), state, seen=None)

        assert advance(schedules, a_plan([a_link()], link=a_link(NOON + HOUR))) == Behind(state)
        assert schedules.state(KEY) == state

    def test_an_advance_from_the_fire_is_refused_while_its_run_is_awaited_and_the_other_way_round(
        self, schedules: ScheduleStore
    ):
        _, state = created(schedules)

        answer = advance(schedules, a_plan(link=a_link(NOON + HOUR)), before=a_link(is_awaited=True))

        assert answer == Behind(state)

    def test_an_advance_of_a_schedule_that_is_not_there_meets_nothing(self, schedules: ScheduleStore):
        assert advance(schedules, a_plan(link=a_link(NOON + HOUR))) == Behind(None)
        assert schedules.state(KEY) is None

    def test_a_repeated_advance_is_refused_and_counts_nothing_twice(self, schedules: ScheduleStore):
        created(schedules)
        decided = a_plan([a_link()], link=a_link(NOON + HOUR, index=1), skips={SkipReason.MERGED: 1}, misfire_count=1)
        advance(schedules, decided)
        after = schedules.state(KEY)

        assert advance(schedules, decided) == Behind(after)
        assert schedules.state(KEY) == after

    def test_an_advance_to_where_it_stands_holds_however_often(self, schedules: ScheduleStore):
        _, state = created(schedules)

        assert advance(schedules, a_plan(link=a_link()), alarm_at=NOON) == Applied()
        assert advance(schedules, a_plan(link=a_link()), alarm_at=NOON + SECOND) == Applied()
        assert schedules.state(KEY) == replace(state, alarm_at=NOON + SECOND)

    @pytest.mark.parametrize("steps", [[1, 1, 1, 1, 1], [2, 3], [5], [3, 2]])
    def test_as_many_of_the_last_fires_are_remembered_as_the_schedule_says(
        self, schedules: ScheduleStore, steps: list[int]
    ):
        created(schedules)
        fire_number = 0
        for step in steps:
            kept = [a_link(NOON + number * HOUR, index=number) for number in range(fire_number, fire_number + step)]
            before, fire_number = a_link(NOON + fire_number * HOUR), fire_number + step
            link = a_link(NOON + fire_number * HOUR, index=fire_number)
            assert advance(schedules, a_plan(kept, link=link), before=before, history=3) == Applied()

        state = schedules.state(KEY)
        assert state is not None
        assert state.recent == (NOON + 2 * HOUR, NOON + 3 * HOUR, NOON + 4 * HOUR)
        assert state.fire_count == 5

    def test_a_schedule_without_a_history_remembers_its_last_fire_all_the_same_and_counts_them(
        self, schedules: ScheduleStore
    ):
        assert schedules.change(a_stored_schedule(history=0), a_state(recent=(NOON - HOUR,)), seen=None)
        kept = [a_link(NOON + number * SECOND, index=number) for number in range(3)]

        assert advance(schedules, a_plan(kept, link=a_link(NOON + HOUR, index=3)), history=0) == Applied()

        state = schedules.state(KEY)
        assert state is not None
        assert (state.recent, state.fire_count) == ((NOON + 2 * SECOND,), 3)

    @pytest.mark.parametrize(("count", "history"), [(4, 3), (7, 3), (3, 10), (0, 3), (3, 1), (3, 0)])
    def test_the_next_fires_push_out_the_oldest_that_a_change_has_kept(
        self, schedules: ScheduleStore, count: int, history: int
    ):
        past = tuple(NOON - number * HOUR for number in range(count, 0, -1))
        state = a_state(fire_count=count, recent=past, link=a_link(index=count))
        assert schedules.change(a_stored_schedule(history=history), state, seen=None)
        kept = [a_link(NOON + number * SECOND, index=count + number) for number in range(2)]

        advance(schedules, a_plan(kept, link=a_link(NOON + HOUR, index=count + 2)), history=history)

        read = schedules.state(KEY)
        assert read is not None
        assert read.recent == (*past, NOON, NOON + SECOND)[-max(history, 1) :]


class TestSlots:
    def test_a_free_slot_is_taken(self, schedules: ScheduleStore):
        _, state = created(schedules)

        assert schedules.take_slot(KEY, "me", seen=state, now=NOON + SECOND)
        assert schedules.state(KEY) == replace(state, holder="me", holder_since=NOON + SECOND)

    def test_a_slot_is_taken_from_the_holder_that_was_seen(self, schedules: ScheduleStore):
        seen = held(schedules, holder="abandoned")

        assert schedules.take_slot(KEY, "me", seen=seen, now=NOON + SECOND)
        assert schedules.state(KEY) == replace(seen, holder="me", holder_since=NOON + SECOND)

    @pytest.mark.parametrize("holder", ["", "gone"])
    def test_a_slot_that_somebody_else_has_taken_since_it_was_seen_is_left_to_it(
        self, schedules: ScheduleStore, holder: str
    ):
        met = held(schedules, holder="quick")

        assert not schedules.take_slot(KEY, "me", seen=replace(met, holder=holder), now=NOON + SECOND)
        assert schedules.state(KEY) == met

    @pytest.mark.parametrize("holder", ["", "gone", "me"])
    def test_a_slot_that_was_taken_by_a_lost_answer_is_one_s_own(self, schedules: ScheduleStore, holder: str):
        met = held(schedules, holder="me")

        assert schedules.take_slot(KEY, "me", seen=replace(met, holder=holder), now=NOON)
        assert schedules.state(KEY) == met

    def test_who_takes_the_slot_waits_for_it_no_longer(self, schedules: ScheduleStore):
        seen = held(schedules, holder="gone", waiting="me")

        assert schedules.take_slot(KEY, "me", seen=seen, now=NOON)
        assert schedules.state(KEY) == replace(seen, holder="me", waiting="", waiting_since=None)

    def test_who_takes_the_slot_leaves_another_waiting(self, schedules: ScheduleStore):
        seen = held(schedules, holder="gone", waiting="another")

        assert schedules.take_slot(KEY, "me", seen=seen, now=NOON)
        assert schedules.state(KEY) == replace(seen, holder="me")

    def test_the_place_of_who_waits_is_taken_when_it_is_free_or_held_by_whom_was_seen(self, schedules: ScheduleStore):
        seen = held(schedules, holder="runs")

        assert schedules.wait_for_slot(KEY, "first", seen=seen, now=NOON)
        after = replace(seen, waiting="first", waiting_since=NOON)
        assert schedules.state(KEY) == after
        assert schedules.wait_for_slot(KEY, "second", seen=after, now=NOON + SECOND)
        assert schedules.state(KEY) == replace(seen, waiting="second", waiting_since=NOON + SECOND)

    @pytest.mark.parametrize("waiting", ["", "gone"])
    def test_the_place_of_who_waits_is_left_to_whom_has_taken_it_since_it_was_seen(
        self, schedules: ScheduleStore, waiting: str
    ):
        met = held(schedules, holder="runs", waiting="quick")

        assert not schedules.wait_for_slot(KEY, "me", seen=replace(met, waiting=waiting), now=NOON)
        assert schedules.state(KEY) == met

    def test_waiting_again_is_one_s_own_place_and_notes_the_instant(self, schedules: ScheduleStore):
        met = held(schedules, holder="runs", waiting="me")

        assert schedules.wait_for_slot(KEY, "me", seen=replace(met, waiting=""), now=NOON + SECOND)
        assert schedules.state(KEY) == replace(met, waiting_since=NOON + SECOND)

    def test_there_is_no_slot_where_there_is_no_schedule(self, schedules: ScheduleStore):
        assert not schedules.take_slot(KEY, "me", seen=a_state(), now=NOON)
        assert not schedules.wait_for_slot(KEY, "me", seen=a_state(), now=NOON)
        assert not schedules.take_slot(KEY, "me", seen=a_state(holder="gone"), now=NOON)
        assert schedules.state(KEY) is None


class TestNotes:
    def test_skipped_fires_are_counted_by_reason_with_the_last_of_them(self, schedules: ScheduleStore):
        _, state = created(schedules)

        for number, reason in enumerate([SkipReason.OVERLAP, SkipReason.PAUSED, SkipReason.OVERLAP]):
            schedules.note_skip(KEY, reason, fire_at=NOON + number * SECOND)

        assert schedules.state(KEY) == replace(
            state,
            skips={SkipReason.OVERLAP: 2, SkipReason.PAUSED: 1},
            last_skip=(SkipReason.OVERLAP, NOON + 2 * SECOND),
        )

    @pytest.mark.parametrize("reason", SkipReason)
    def test_every_reason_can_be_noted(self, schedules: ScheduleStore, reason: SkipReason):
        created(schedules)

        schedules.note_skip(KEY, reason, fire_at=NOON)

        state = schedules.state(KEY)
        assert state is not None
        assert (state.skips, state.last_skip) == ({reason: 1}, (reason, NOON))

    def test_runs_that_failed_are_counted_each_once_however_often_they_are_noted(self, schedules: ScheduleStore):
        created(schedules)

        assert [schedules.note_failure(KEY, run) for run in ("a", "b", "a", "c", "b")] == [1, 2, 2, 3, 3]
        state = schedules.state(KEY)
        assert state is not None
        assert state.failures == {"a", "b", "c"}

    def test_a_success_begins_the_count_of_failures_anew(self, schedules: ScheduleStore):
        _, state = created(schedules)
        schedules.note_failure(KEY, "a")

        schedules.forget_failures(KEY)
        schedules.forget_failures(KEY)

        assert schedules.state(KEY) == state
        assert schedules.note_failure(KEY, "b") == 1

    def test_runs_are_kept_if_those_that_were_seen_still_are(self, schedules: ScheduleStore):
        _, state = created(schedules)
        first, second = (a_kept_run(NOON + number * HOUR) for number in (0, 1))

        assert schedules.keep_runs(KEY, (first,), seen=state)
        assert not schedules.keep_runs(KEY, (second,), seen=state)
        seen = replace(state, kept_runs=(first,))
        assert schedules.state(KEY) == seen
        assert not schedules.keep_runs(KEY, (first, second), seen=replace(seen, born=seen.born + 1))
        assert schedules.keep_runs(KEY, (first, second), seen=seen)
        assert schedules.state(KEY) == replace(state, kept_runs=(first, second))
        assert schedules.keep_runs(KEY, (), seen=replace(state, kept_runs=(first, second)))
        assert schedules.state(KEY) == state

    def test_runs_that_were_asked_for_are_remembered_if_those_that_were_seen_still_are(self, schedules: ScheduleStore):
        _, state = created(schedules)

        assert schedules.remember_asked(KEY, (ASKED,), seen=state)
        assert not schedules.remember_asked(KEY, (BACKFILLED,), seen=state)
        seen = replace(state, asked_runs=(ASKED,))
        assert schedules.state(KEY) == seen
        assert not schedules.remember_asked(KEY, (ASKED, BACKFILLED), seen=replace(seen, born=seen.born + 1))
        assert schedules.remember_asked(KEY, (ASKED, BACKFILLED), seen=seen)
        _, after = changed(schedules, replace(state, asked_runs=(ASKED, BACKFILLED)))
        assert after.asked_runs == (ASKED, BACKFILLED)

    def test_runs_outlive_a_change_but_not_a_deletion(self, schedules: ScheduleStore):
        stored, state = created(schedules)
        schedules.keep_runs(KEY, (a_kept_run(NOON),), seen=state)
        schedules.remember_asked(KEY, (ASKED,), seen=state)

        _, after = changed(schedules, state)
        assert [run.ended_at for run in after.kept_runs] == [NOON]
        deleted = a_state(version=3, status=Status.DELETED, link=None, note="")
        assert schedules.change(replace(stored, version=3, status=Status.DELETED), deleted, seen=after)
        gone = schedules.state(KEY)
        assert gone is not None
        assert schedules.change(replace(stored, version=4), a_state(version=4), seen=gone)
        anew = schedules.state(KEY)
        assert anew is not None
        assert (anew.kept_runs, anew.asked_runs) == ((), ())

    def test_no_run_is_kept_of_a_schedule_that_there_is_not(self, schedules: ScheduleStore):
        assert not schedules.keep_runs(KEY, (a_kept_run(NOON),), seen=a_state())
        assert not schedules.remember_asked(KEY, (ASKED,), seen=a_state())
        assert schedules.state(KEY) is None

    def test_a_chain_that_is_set_aside_is_counted_once_an_instant(self, schedules: ScheduleStore):
        created(schedules)

        times = [NOON, NOON, NOON + HOUR, NOON + HOUR, NOON + 2 * HOUR]

        assert [schedules.note_aside(KEY, version=1, now=now) for now in times] == [1, 1, 2, 2, 3]
        state = schedules.state(KEY)
        assert state is not None
        assert (state.asides, state.aside_at) == (3, NOON + 2 * HOUR)

    def test_what_was_set_aside_long_ago_does_not_count(self, schedules: ScheduleStore):
        created(schedules)
        schedules.note_aside(KEY, version=1, now=NOON)
        schedules.note_aside(KEY, version=1, now=NOON + HOUR)

        assert schedules.note_aside(KEY, version=1, now=NOON + HOUR + ASIDES_COUNT_FOR - MILLISECOND) == 3
        assert schedules.note_aside(KEY, version=1, now=NOON + HOUR + 3 * ASIDES_COUNT_FOR) == 1

    def test_a_chain_of_another_version_is_not_counted(self, schedules: ScheduleStore):
        created(schedules)

        assert schedules.note_aside(KEY, version=2, now=NOON) == 0
        state = schedules.state(KEY)
        assert state is not None
        assert (state.asides, state.aside_at) == (0, None)

    @pytest.mark.parametrize("asides", [0, 2])
    def test_a_change_says_how_often_a_chain_was_set_aside(self, schedules: ScheduleStore, asides: int):
        created(schedules)
        schedules.note_aside(KEY, version=1, now=NOON)
        seen = schedules.state(KEY)
        changed = a_state(version=2, asides=asides, aside_at=NOON if asides else None)

        assert schedules.change(a_stored_schedule(version=2), changed, seen=seen)

        state = schedules.state(KEY)
        assert state is not None
        assert (state.asides, state.aside_at) == (asides, changed.aside_at)

    def test_nothing_is_noted_of_a_schedule_that_is_not_there(self, schedules: ScheduleStore):
        schedules.note_skip(KEY, SkipReason.PAUSED, fire_at=NOON)
        schedules.forget_failures(KEY)

        assert schedules.note_failure(KEY, "a") == 0
        assert schedules.note_aside(KEY, version=1, now=NOON) == 0
        assert schedules.get(KEY) == (None, None)


def created(
    schedules: ScheduleStore, schedule_id: str = "nightly", **state: Any
) -> tuple[StoredSchedule, ScheduleState]:
    """A schedule in its first version."""
    stored, begun = a_stored_schedule(schedule_id=schedule_id), a_state(**state)
    assert schedules.change(stored, begun, seen=None)
    return stored, begun


def changed(schedules: ScheduleStore, seen: ScheduleState) -> tuple[StoredSchedule, ScheduleState]:
    """The schedule in the version after the one that was seen."""
    version = seen.version + 1
    stored = a_stored_schedule(version=version, rule=every(days=1))
    assert schedules.change(stored, a_state(version=version, link=a_link(NOON + HOUR)), seen=seen)
    state = schedules.state(KEY)
    assert state is not None
    return stored, state


def held(schedules: ScheduleStore, *, holder: str = "", waiting: str = "") -> ScheduleState:
    """The state of a schedule whose slot is taken."""
    _, state = created(schedules)
    if holder:
        assert schedules.take_slot(KEY, holder, seen=state, now=NOON)
    if waiting:
        assert schedules.wait_for_slot(KEY, waiting, seen=state, now=NOON)
    met = schedules.state(KEY)
    assert met is not None
    return met


def a_plan(
    kept: list[Link] | None = None,
    *,
    link: Link | None,
    skips: dict[SkipReason, int] | None = None,
    last_skip: tuple[SkipReason, datetime] | None = None,
    misfire_count: int = 0,
    figures: FireFigures = NO_FIGURES,
) -> DueFires:
    return DueFires(
        kept=kept or [],
        link=link,
        skips=skips or {},
        last_skip=last_skip,
        misfire_count=misfire_count,
        figures=figures,
    )


def advance(
    schedules: ScheduleStore,
    decided: DueFires,
    *,
    before: Link | None = None,
    version: int = 1,
    alarm_at: datetime | None = None,
    history: int = 10,
) -> Applied | Behind:
    return schedules.advance(
        KEY, decided, version=version, before=before or a_link(), alarm_at=alarm_at, history=history
    )


def page(schedules: ScheduleStore, *, after: str, limit: int) -> tuple[list[str], bool]:
    found, has_more = schedules.page("acme", after=after, limit=limit)
    return [stored.schedule.schedule_id for stored in found], has_more
