from datetime import timedelta

import pytest

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.rules import CronRule as Cron
from functions.domain.schedules.rules import Fold, Gap, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Calendar, Roll, Shifter
from functions.domain.schedules.zones import first_local, instants_of, local_of, steady_spans, zone_names, zone_of
from testkit.builders import a_schedule, every
from tests.wall_clock import fires_between, local, shown, utc

BERLIN = "Europe/Berlin"  # 2027-03-28 02:00 -> 03:00, 2027-10-31 03:00 -> 02:00
LORD_HOWE = "Australia/Lord_Howe"  # 2027-04-04 02:00 -> 01:30, 2027-10-03 02:00 -> 02:30
CAIRO = "Africa/Cairo"  # 2027-04-30 00:00 -> 01:00, 2027-10-29 00:00 -> 2027-10-28 23:00
BEIRUT = "Asia/Beirut"  # 2027-03-28 00:00 -> 01:00
HAVANA = "America/Havana"  # 2027-11-07 01:00 -> 00:00
NUUK = "America/Nuuk"  # 2027-03-27 23:00 -> 2027-03-28 00:00
APIA = "Pacific/Apia"  # 2011-12-30 00:00 -> 2011-12-31 00:00


def daily(starts_at: str) -> RecurrenceRule:
    return RecurrenceRule("FREQ=DAILY", local(starts_at))


def hourly(starts_at: str) -> RecurrenceRule:
    return RecurrenceRule("FREQ=HOURLY", local(starts_at))


@pytest.mark.parametrize(
    ("rule", "zone", "gap", "fold", "between", "expected"),
    [
        # A gap, and a time of day in it.
        (Cron("30 2 * * *"), BERLIN, None, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00"]),
        (Cron("30 2 * * *"), BERLIN, Gap.NEXT_VALID, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00"]),
        (Cron("30 2 * * *"), BERLIN, Gap.SKIP, None, "03-27 00 03-29 12", ["2027-03-27 02:30+01:00", "2027-03-29 02:30+02:00"]),
        (Cron("15,45 2 * * *"), BERLIN, None, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00"]),
        (Cron("0,30 2-3 * * *"), BERLIN, None, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00", "2027-03-28 03:30+02:00"]),
        (Cron("0,30 2-3 * * *"), BERLIN, Gap.SKIP, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00", "2027-03-28 03:30+02:00"]),
        # A gap, and elapsed time.
        (Cron("*/30 * * * *"), BERLIN, None, None, "03-28 00 03-28 01:30", ["2027-03-28 01:30+01:00", "2027-03-28 03:00+02:00", "2027-03-28 03:30+02:00"]),
        (Cron("*/30 2 * * *"), BERLIN, None, None, "03-28 00 03-28 12", []),
        (Cron("*/30 2 * * *"), BERLIN, Gap.NEXT_VALID, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00"]),
        (Cron("45 * * * *"), BERLIN, Gap.NEXT_VALID, None, "03-28 00 03-28 02", ["2027-03-28 01:45+01:00", "2027-03-28 03:00+02:00", "2027-03-28 03:45+02:00"]),
        # A fold, and a time of day in it.
        (Cron("30 2 * * *"), BERLIN, None, None, "10-30 20 10-31 12", ["2027-10-31 02:30+02:00"]),
        (Cron("30 2 * * *"), BERLIN, None, Fold.FIRST, "10-30 20 10-31 12", ["2027-10-31 02:30+02:00"]),
        (Cron("30 2 * * *"), BERLIN, None, Fold.SECOND, "10-30 20 10-31 12", ["2027-10-31 02:30+01:00"]),
        (Cron("30 2 * * *"), BERLIN, None, Fold.BOTH, "10-30 20 10-31 12", ["2027-10-31 02:30+02:00", "2027-10-31 02:30+01:00"]),
        (
            Cron("15,45 2 * * *"), BERLIN, None, Fold.BOTH, "10-30 20 10-31 12",
            ["2027-10-31 02:15+02:00", "2027-10-31 02:45+02:00", "2027-10-31 02:15+01:00", "2027-10-31 02:45+01:00"],
        ),
        (Cron("0 2,3 * * *"), BERLIN, None, Fold.SECOND, "10-30 20 10-31 12", ["2027-10-31 02:00+01:00", "2027-10-31 03:00+01:00"]),
        # A fold, and elapsed time.
        (Cron("0 * * * *"), BERLIN, None, None, "10-30 22 10-31 02", ["2027-10-31 01:00+02:00", "2027-10-31 02:00+02:00", "2027-10-31 02:00+01:00", "2027-10-31 03:00+01:00"]),
        (Cron("0 * * * *"), BERLIN, None, Fold.FIRST, "10-30 22 10-31 02", ["2027-10-31 01:00+02:00", "2027-10-31 02:00+02:00", "2027-10-31 03:00+01:00"]),
        (Cron("0 * * * *"), BERLIN, None, Fold.SECOND, "10-30 22 10-31 02", ["2027-10-31 01:00+02:00", "2027-10-31 02:00+01:00", "2027-10-31 03:00+01:00"]),
        # Half an hour.
        (Cron("15 2 * * *"), LORD_HOWE, None, None, "10-02 12 10-03 12", ["2027-10-03 02:30+11:00"]),
        (Cron("15 2 * * *"), LORD_HOWE, Gap.SKIP, None, "10-02 12 10-03 12", []),
        (Cron("45 1 * * *"), LORD_HOWE, None, None, "04-03 12 04-04 12", ["2027-04-04 01:45+11:00"]),
        (Cron("45 1 * * *"), LORD_HOWE, None, Fold.SECOND, "04-03 12 04-04 12", ["2027-04-04 01:45+10:30"]),
        (Cron("45 1 * * *"), LORD_HOWE, None, Fold.BOTH, "04-03 12 04-04 12", ["2027-04-04 01:45+11:00", "2027-04-04 01:45+10:30"]),
        (Cron("15 1 * * *"), LORD_HOWE, None, Fold.BOTH, "04-03 12 04-04 12", ["2027-04-04 01:15+11:00"]),
        (Cron("*/15 1 * * *"), LORD_HOWE, None, None, "04-03 14:10 04-03 16", ["2027-04-04 01:15+11:00", "2027-04-04 01:30+11:00", "2027-04-04 01:45+11:00", "2027-04-04 01:30+10:30", "2027-04-04 01:45+10:30"]),
        # Midnight.
        (Cron("0 0 * * *"), CAIRO, None, None, "04-29 00 04-30 12", ["2027-04-30 01:00+03:00"]),
        (Cron("30 0 * * 5"), CAIRO, None, None, "04-29 00 04-30 12", ["2027-04-30 01:00+03:00"]),
        (Cron("30 0 * * 4"), CAIRO, None, None, "04-29 12 04-30 12", []),
        (Cron("0 0 30 4 *"), CAIRO, Gap.SKIP, None, "04-29 00 04-30 12", []),
        (Cron("30 23 * * *"), CAIRO, None, None, "10-28 12 10-29 12", ["2027-10-28 23:30+03:00"]),
        (Cron("30 23 * * *"), CAIRO, None, Fold.SECOND, "10-28 12 10-29 12", ["2027-10-28 23:30+02:00"]),
        (Cron("30 0 * * *"), BEIRUT, None, None, "03-27 12 03-28 12", ["2027-03-28 01:00+03:00"]),
        (Cron("30 0 * * 0"), HAVANA, None, Fold.BOTH, "11-07 00 11-07 12", ["2027-11-07 00:30-04:00", "2027-11-07 00:30-05:00"]),
        (Cron("30 23 * * 6"), NUUK, None, None, "03-27 12 03-28 12", ["2027-03-28 00:00-01:00"]),
        # Recurrences name times of day, whatever their frequency.
        (daily("2027-03-01 02:30"), BERLIN, None, None, "03-28 00 03-28 12", ["2027-03-28 03:00+02:00"]),
        (daily("2027-03-01 02:30"), BERLIN, Gap.SKIP, None, "03-28 00 03-28 12", []),
        (daily("2027-03-01 02:30"), BERLIN, None, None, "10-30 20 10-31 12", ["2027-10-31 02:30+02:00"]),
        (daily("2027-03-01 02:30"), BERLIN, None, Fold.BOTH, "10-30 20 10-31 12", ["2027-10-31 02:30+02:00", "2027-10-31 02:30+01:00"]),
        (hourly("2027-03-01 00:30"), BERLIN, None, None, "03-28 00 03-28 02", ["2027-03-28 01:30+01:00", "2027-03-28 03:00+02:00", "2027-03-28 03:30+02:00"]),
        (hourly("2027-03-01 00:30"), BERLIN, None, None, "10-30 23 10-31 02", ["2027-10-31 01:30+02:00", "2027-10-31 02:30+02:00"]),
        (hourly("2027-03-01 00:30"), BERLIN, Gap.SKIP, Fold.BOTH, "10-30 23 10-31 02", ["2027-10-31 01:30+02:00", "2027-10-31 02:30+02:00", "2027-10-31 02:30+01:00"]),
        # Intervals do not know of clocks.
        (every(hours=1), BERLIN, Gap.SKIP, Fold.SECOND, "10-30 23 10-31 02", ["2027-10-31 02:00+02:00", "2027-10-31 02:00+01:00", "2027-10-31 03:00+01:00"]),
    ],
)  # fmt: skip
def test_a_clock_change_does_what_the_policy_says(
    rule: Rule, zone: str, gap: Gap | None, fold: Fold | None, between: str, expected: list[str]
):
    start_day, start, end_day, end = between.split()
    schedule = a_schedule(rule=rule, timezone=zone, gap=gap, fold=fold)

    assert shown(schedule, f"2027-{start_day} {start}", f"2027-{end_day} {end}") == expected


def test_a_whole_day_that_a_zone_skipped_is_a_gap_too():
    schedule = a_schedule(rule=Cron("0 12 * * *"), timezone=APIA)

    found = shown(schedule, "2011-12-29 12:00", "2011-12-31 12:00")

    assert found == ["2011-12-29 12:00-10:00", "2011-12-31 00:00+14:00", "2011-12-31 12:00+14:00"]


def test_times_that_a_gap_moves_to_one_instant_are_one_fire_that_counts_the_others():
    schedule = a_schedule(rule=Cron("15,45 2 * * *"), timezone=BERLIN)

    (fire,) = fires_between(schedule, "2027-03-28 00:00", "2027-03-28 12:00")

    assert (fire.at, fire.nominal_at) == (utc("2027-03-28 01:00"), utc("2027-03-28 01:00"))
    assert (fire.shifted_by, fire.merged_count) == ((Shifter.GAP,), 1)


def test_a_time_that_exists_is_not_called_moved_by_the_ones_that_a_gap_brings_to_it():
    schedule = a_schedule(rule=Cron("0,30 2-3 * * *"), timezone=BERLIN)

    first, second = fires_between(schedule, "2027-03-28 00:00", "2027-03-28 12:00")

    assert (first.shifted_by, first.merged_count) == ((), 2)
    assert (second.shifted_by, second.merged_count) == ((), 0)


@pytest.mark.parametrize("after", ["2027-03-27 12:00", "2027-03-28 00:59", "2027-03-28 00:59:59.999999"])
def test_what_a_gap_merges_does_not_depend_on_where_one_starts(after: str):
    schedule = a_schedule(rule=Cron("0,20,40 2-3 * * *"), timezone=BERLIN)

    first = fires_between(schedule, after, "2027-03-28 12:00")[-3]

    assert (first.at, first.merged_count) == (utc("2027-03-28 01:00"), 3)


def test_the_fires_of_a_fold_say_so():
    schedule = a_schedule(rule=Cron("30 1-3 * * *"), timezone=BERLIN, fold=Fold.BOTH)

    found = fires_between(schedule, "2027-10-30 12:00", "2027-10-31 12:00")

    assert [fire.shifted_by for fire in found] == [(), (Shifter.FOLD,), (Shifter.FOLD,), ()]


def test_a_fire_that_is_rolled_onto_a_repeated_hour_stays_one_fire():
    schedule = a_schedule(
        rule=Cron("30 2 * * 6"),
        timezone=BERLIN,
        fold=Fold.BOTH,
        calendar=Calendar(excluded=frozenset({local("2027-10-30").date()}), roll=Roll.AFTER),
    )

    found = shown(schedule, "2027-10-29 22:00", "2027-10-31 22:00")

    assert found == ["2027-10-31 02:30+02:00"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("Berlin", "did you mean Europe/Berlin"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("../etc/passwd", "is not an IANA time zone"),
        ("/usr/share/zoneinfo/Europe/Berlin", "is not an IANA time zone"),
        ("Europe", "is not an IANA time zone"),
        ("", "is not an IANA time zone"),
        ("Factory", "is not an IANA time zone"),
        ("Europe/Berlin\n", "did you mean Europe/Berlin"),
        ("x" * 10_000, "is not an IANA time zone"),
        ("+02:00", "is an offset"),
        ("UTC+2", "is an offset"),
        ("Etc/GMT-2", "is an offset"),
    ],
)
def test_what_is_not_the_name_of_a_zone_is_refused_with_the_names_that_are_like_it(name: str, hint: str):
    with pytest.raises(InvalidSchedule, match=hint) as refused:
        zone_of(name)

    assert (refused.value.field, refused.value.value) == ("timezone", name)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "name", ["UTC", "Etc/UTC", "GMT", "Europe/Berlin", "America/Argentina/Ushuaia", "Asia/Kolkata"]
)
def test_a_zone_has_the_name_it_was_asked_for_by(name: str):
    assert zone_of(name).key == name
    assert zone_of(name) is zone_of(name)


def test_every_zone_that_is_named_can_be_read():
    assert len(zone_names()) > 500
    assert all(local_of(utc("2027-06-01"), zone_of(name)) for name in zone_names())


def test_the_parts_of_a_day_between_clock_changes_are_reported_with_their_offsets():
    spans = list(steady_spans(zone_of(BERLIN), utc("2027-03-27 12:00"), utc("2027-03-28 12:00")))

    assert spans == [
        (utc("2027-03-27 12:00"), utc("2027-03-28 01:00"), timedelta(hours=1)),
        (utc("2027-03-28 01:00"), utc("2027-03-28 12:00"), timedelta(hours=2)),
    ]


def test_the_pass_that_a_local_time_remembers_has_no_say():
    second = local("2027-10-31 02:30").replace(fold=1)

    assert instants_of(second, zone_of(BERLIN), gap=Gap.SKIP, fold=Fold.FIRST)[0].at == utc("2027-10-31 00:30")


def test_the_first_local_time_is_early_enough_for_a_second_pass_and_no_earlier():
    zone = zone_of(BERLIN)

    found = [first_local(utc(f"2027-10-31 {hour}"), zone) for hour in ("00:59:59", "01:00", "01:30")]
    assert found == [local("2027-10-31 01:59:59"), local("2027-10-31 02:00"), local("2027-10-31 02:30")]
    assert first_local(utc("2027-10-30 12:00"), zone) == local("2027-10-30 14:00")
    assert first_local(utc("2027-03-28 01:00"), zone) == local("2027-03-28 02:00")
