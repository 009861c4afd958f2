"""What five schedules did while the other tests ran: see tests/e2e/schedules.py."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from functions.domain.jobs.job_id import parse_job_id
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.schedules import (
    BACKFILLED,
    FROM_ITS_END,
    MINUTE,
    NAMES,
    OVERLAPPING,
    PHASE,
    RHYTHM,
    EachMinute,
    FarAway,
    FromItsEnd,
    Lives,
    OnHold,
    Overlapping,
    fires_of,
)
from tests.e2e.sink import Target
from tickwheel.client import Client
from tickwheel.client.fires import Fire
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import ApiProblem

# The first of them waits for all.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(900)]

A_MOMENT = timedelta(seconds=15)
"""How long a run that began before something was acknowledged may take to reach its target, on a busy machine."""

ZERO = timedelta(0)


@pytest.fixture(scope="module")
def each_minute(lives: Lives) -> EachMinute:
    return lives.each_minute()


@pytest.fixture(scope="module")
def overlapping(lives: Lives) -> Overlapping:
    return lives.overlapping()


@pytest.fixture(scope="module")
def from_its_end(lives: Lives) -> FromItsEnd:
    return lives.from_its_end()


@pytest.fixture(scope="module")
def on_hold(lives: Lives) -> OnHold:
    return lives.on_hold()


@pytest.fixture(scope="module")
def far_away(lives: Lives) -> FarAway:
    return lives.far_away()


def fires_at(target: Target, *, after: datetime, until: datetime) -> list[datetime]:
    """The fires of a range that have arrived, in their order: one that arrived twice is there twice."""
    return sorted(arrival.scheduled_at for arrival in target.arrivals if after < arrival.scheduled_at <= until)


def instants(fires: tuple[Fire, ...]) -> list[datetime]:
    return [fire.at for fire in fires]


def test_a_schedule_fires_at_each_minute_once_for_minutes_on_end(each_minute: EachMinute) -> None:
    since, until = each_minute.created.acked_at, each_minute.edited.asked_at

    fired = fires_at(each_minute.target, after=since, until=until)

    assert fired == fires_of(MINUTE, ZERO, after=since, until=until)
    assert len(fired) >= 3


def test_each_of_its_fires_arrives_in_its_minute_and_not_early(each_minute: EachMinute) -> None:
    for arrival in each_minute.target.arrivals:
        assert arrival.scheduled_at <= arrival.at < arrival.scheduled_at + MINUTE


def test_none_of_its_fires_is_done_twice_and_their_count_goes_on_through_every_change(each_minute: EachMinute) -> None:
    arrivals = each_minute.target.arrivals

    assert len({arrival.headers["idempotency-key"] for arrival in arrivals}) == len(arrivals)
    assert [arrival.json["index"] for arrival in arrivals] == list(range(len(arrivals)))


def test_what_its_payload_refers_to_is_filled_in(each_minute: EachMinute) -> None:
    for number, arrival in enumerate(each_minute.target.arrivals):
        assert arrival.json == {
            "index": number,
            "nominal_time": arrival.headers["tickwheel-scheduled-at"],
            "words": f"run {number} of each-minute",
        }


def test_a_dry_run_and_a_preview_say_the_fires_that_then_happen(each_minute: EachMinute) -> None:
    fired = [arrival.scheduled_at for arrival in each_minute.target.arrivals][:3]

    assert each_minute.compared.before == ()
    assert instants(each_minute.compared.after) == instants(tuple(each_minute.previewed)) == fired


def test_an_edited_schedule_fires_in_its_new_rhythm_and_not_once_more_in_the_old_one(each_minute: EachMinute) -> None:
    since, until = each_minute.edited.acked_at, each_minute.paused.asked_at

    fired = fires_at(each_minute.target, after=since, until=each_minute.paused.acked_at)

    assert fired == fires_of(RHYTHM, PHASE, after=since, until=until)
    assert len(fired) >= 2
    assert each_minute.edited.answer.version > each_minute.created.answer.version


def test_a_dry_run_of_the_edit_says_the_fires_before_and_after_it(each_minute: EachMinute) -> None:
    since = each_minute.edited.acked_at

    assert (
        instants(each_minute.compared_edit.after) == fires_at(each_minute.target, after=since, until=since + MINUTE)[:2]
    )
    assert instants(each_minute.compared_edit.before) == fires_of(MINUTE, ZERO, after=since, until=since + 2 * MINUTE)


def test_a_paused_schedule_fires_nothing_and_says_why(each_minute: EachMinute) -> None:
    paused, resumed, target = each_minute.paused, each_minute.resumed, each_minute.target

    assert fires_of(RHYTHM, PHASE, after=paused.acked_at, until=resumed.asked_at) != []
    assert fires_at(target, after=paused.acked_at, until=resumed.asked_at) == []
    assert not [each for each in target.arrivals if paused.acked_at + A_MOMENT < each.at < resumed.asked_at]
    found = each_minute.found_paused
    assert (found.status, found.note, found.next_fire) == ("paused", "the target moves", None)


def test_a_resumed_schedule_goes_on_from_then_and_makes_nothing_up(each_minute: EachMinute) -> None:
    resumed, deleted = each_minute.resumed, each_minute.deleted

    fired = fires_at(each_minute.target, after=resumed.asked_at, until=deleted.acked_at)

    assert fired == fires_of(RHYTHM, PHASE, after=resumed.acked_at, until=deleted.asked_at)
    assert len(fired) >= 1
    assert resumed.answer.next_fire == fired[0]
    assert (resumed.answer.status, resumed.answer.note) == ("active", "it has moved")


def test_a_schedule_says_what_it_has_done(each_minute: EachMinute) -> None:
    found, arrivals = each_minute.found_last, each_minute.target.arrivals

    assert [run.fire_at for run in reversed(found.runs)] == [arrival.scheduled_at for arrival in arrivals]
    assert [run.job_id for run in reversed(found.runs)] == [each.headers["tickwheel-job-id"] for each in arrivals]
    assert {run.state for run in found.runs} == {"succeeded"}
    assert (found.fires, found.misfires, found.skips) == (len(arrivals), 0, {})


def test_after_it_was_deleted_nothing_fires_any_more(each_minute: EachMinute) -> None:
    deleted, target = each_minute.deleted, each_minute.target

    assert len(fires_of(RHYTHM, PHASE, after=deleted.acked_at, until=each_minute.watched_until)) >= 3
    assert [each for each in target.arrivals if each.scheduled_at > deleted.acked_at] == []
    assert [each for each in target.arrivals if each.at > deleted.acked_at + A_MOMENT] == []
    assert each_minute.found_deleted is not None
    assert each_minute.found_deleted.status == 404


def test_forbid_skips_the_fires_that_meet_a_run_that_goes_on(overlapping: Overlapping) -> None:
    first, *later = overlapping.target.arrivals
    skipped = {run.fire_at for run in overlapping.found.runs if run.state == "skipped"}
    held = next(run for run in overlapping.found.runs if run.fire_at == first.scheduled_at)

    assert overlapping.arrivals_while_held == [first]
    assert all(arrival.at >= overlapping.released_at for arrival in later)
    assert len(skipped) >= 2
    assert held.settled_at is not None
    # Messages of fires that are due close together may come in any order: an earlier one may meet the run, too.
    placed_before = first.scheduled_at - 3 * OVERLAPPING
    assert skipped <= set(fires_of(OVERLAPPING, ZERO, after=placed_before, until=held.settled_at))
    assert not skipped & {arrival.scheduled_at for arrival in overlapping.target.arrivals}


def test_a_schedule_says_what_it_has_skipped_and_why(overlapping: Overlapping) -> None:
    found = overlapping.found
    skipped = [run for run in found.runs if run.state == "skipped"]

    assert found.skips == {"overlap": len(skipped)}
    assert found.last_skip in [("overlap", run.fire_at) for run in skipped]
    assert all("has not come to its end" in (run.error or "") for run in skipped)


def test_from_end_to_start_a_fire_comes_an_interval_after_the_end_of_the_run_before(from_its_end: FromItsEnd) -> None:
    runs = [run for run in reversed(from_its_end.found.runs) if run.settled_at is not None]

    assert runs[0].fire_at == from_its_end.created.changed_at + FROM_ITS_END
    # It was held: an interval after its start would have been sooner.
    assert runs[0].settled_at is not None
    assert runs[0].settled_at >= from_its_end.released_at
    for earlier, later in pairwise(runs):
        assert earlier.settled_at is not None
        assert later.fire_at == earlier.settled_at + FROM_ITS_END
    for run, arrival in zip(runs, from_its_end.target.arrivals, strict=False):
        assert run.fire_at == arrival.scheduled_at <= arrival.at


def test_a_paused_schedule_is_triggered_once_for_each_key(client: Client, on_hold: OnHold) -> None:
    first, again, other = on_hold.triggered
    runs = Counter(arrival.headers["idempotency-key"] for arrival in on_hold.target.arrivals)

    assert parse_job_id(first).key == parse_job_id(again).key != parse_job_id(other).key
    assert (runs[parse_job_id(first).key], runs[parse_job_id(other).key]) == (1, 1)
    assert {client.get(job).state for job in on_hold.triggered} == {"succeeded"}
    # Whatever was run by hand, it is paused.
    assert (on_hold.found.status, on_hold.found.fires, on_hold.found.next_fire) == ("paused", 0, None)


def test_a_backfill_runs_each_fire_of_its_range_once_one_after_the_other(on_hold: OnHold) -> None:
    runs = [each for each in on_hold.target.arrivals if each.headers["tickwheel-job-id"] in on_hold.backfill.jobs]
    runs.sort(key=lambda run: run.scheduled_at)

    assert [datetime.fromisoformat(run.json["fire_time"]) for run in runs] == on_hold.backfilled
    assert all(run.at >= run.scheduled_at for run in runs)
    gap = MINUTE / on_hold.per_minute
    assert all(later.scheduled_at - earlier.scheduled_at == gap for earlier, later in pairwise(runs))
    assert on_hold.backfill.ends_at == runs[-1].scheduled_at
    assert (on_hold.backfill.first, on_hold.backfill.last) == (on_hold.backfilled[0], on_hold.backfilled[-1])


def test_a_backfill_with_the_same_key_is_the_same_backfill_and_a_dry_one_is_none(on_hold: OnHold) -> None:
    first, again = ([parse_job_id(job).key for job in each.jobs] for each in (on_hold.backfill, on_hold.repeated))

    assert first == again
    assert (on_hold.dry.count, on_hold.dry.jobs) == (BACKFILLED, ())
    # Two that were triggered, and each of the ten once.
    assert len(on_hold.target.arrivals) == 2 + BACKFILLED


def test_a_far_fire_waits_as_an_alarm_row_and_happens_once_and_not_early(far_away: FarAway) -> None:
    assert far_away.at - far_away.found.created_at >= LOCAL_WHEEL.guard, "the request took so long that it was near"
    assert far_away.alarm is not None
    [arrival] = far_away.target.arrivals
    assert arrival.scheduled_at == far_away.at <= arrival.at < far_away.at + MINUTE
    assert (far_away.found.fires, far_away.found.next_fire) == (1, None)


def test_a_dry_run_changes_nothing(client: Client) -> None:
    schedule = NewSchedule("dry", tenant="dry", cron="0 3 * * *", target="handler:echo")
    assert len(client.schedules.compare(schedule, count=4).after) == 4
    with pytest.raises(ApiProblem) as unknown:
        client.schedules.get("dry", tenant="dry")
    assert unknown.value.status == 404

    before = client.schedules.put(schedule)
    difference = client.schedules.compare_patch("dry", tenant="dry", changes={"cron": "0 4 * * *"}, count=1)

    # By the clock: at half past three the next three o'clock is tomorrow's, and the next four o'clock is not.
    assert ([fire.at.hour for fire in difference.before], [fire.at.hour for fire in difference.after]) == ([3], [4])
    assert client.schedules.get("dry", tenant="dry") == before
    client.schedules.delete("dry", tenant="dry")


def test_the_sweep_looked_at_the_schedules_and_had_nothing_to_heal(
    deployment: Deployment, each_minute: EachMinute
) -> None:
    # A pass over all schedules begins every five minutes.
    passes = eventually(
        lambda: deployment.events("Sweeper", "schedules_swept"),
        lambda passes: any(one["seen"] >= len(NAMES) for one in passes),
        within=400,
        what=f"a sweep sees {len(NAMES)} schedules",
    )

    assert {(one["healed"], one["refused"]) for one in passes} == {(0, 0)}
    assert sum(sum(metrics.get("schedules_healed", [])) for metrics in deployment.metrics("Sweeper")) == 0


@pytest.mark.parametrize("name", NAMES)
def test_no_schedule_left_a_dead_letter(deployment: Deployment, lives: Lives, name: str) -> None:
    assert deployment.dead_letters(name) == []
