"""What an importer says of times: here as the scheduler fires, there as independent programs do."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.zones import instants_of
from tickwheel.imports.clock import Clock, clock_changes, fires
from tickwheel.imports.cron import as_tickwheel, parse
from tickwheel.imports.dialects import CELERY, CRONTAB, EVENTBRIDGE, KUBERNETES, QUARTZ, SPRING, TICKWHEEL, Dialect
from tickwheel.imports.fields import Unreadable

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2027, 3, 1, tzinfo=UTC)

minutes = st.sampled_from(["0", "*", "*/15", "5,35", "30", "10-50/20", "45"])
hours = st.sampled_from(["*", "2", "*/2", "1-3", "0,12", "22-23"])
dates = st.sampled_from(["*", "1", "15,28", "*/2", "1-7", "29-31", "L", "L-3", "15W", "LW"])
months = st.sampled_from(["*", "3", "mar-oct", "*/5", "2"])
weekdays = st.sampled_from(["*", "mon", "1-5", "0", "7", "*/2", "fri#2", "friL", "sat,sun", "5-7"])


def scheduler_fires(cron: str, *, gap: str, fold: str, after: datetime, end: datetime) -> list[datetime]:
    found: set[datetime] = set()
    for local in parse_cron(cron).matches(since=(after - timedelta(days=2)).replace(tzinfo=None)):
        if local > end.replace(tzinfo=None) + timedelta(days=2):
            break
        found |= {each.at for each in instants_of(local, BERLIN, gap=Gap(gap), fold=Fold(fold))}
    return sorted(each for each in found if after < each < end)


@settings(max_examples=40, deadline=None)
@given(
    fields=st.tuples(minutes, hours, dates, months, weekdays),
    gap=st.sampled_from(["skip", "next_valid"]),
    fold=st.sampled_from(["first", "second", "both"]),
    month=st.sampled_from([2, 3, 10]),
)
def test_the_plan_fires_when_the_scheduler_does(fields: tuple[str, ...], gap: str, fold: str, month: int) -> None:
    after = datetime(2027, month, 20, tzinfo=UTC)
    end = after + timedelta(days=14)
    expression = parse(" ".join(fields), TICKWHEEL)
    clock = Clock(zone=BERLIN, gap=gap, fold=fold)

    ours = list(fires(expression, clock, after=after, end=end))

    assert ours == scheduler_fires(" ".join(fields), gap=gap, fold=fold, after=after, end=end)
    assert as_tickwheel(expression).cron == expression.cron


@settings(max_examples=40, deadline=None)
@example(("0", "1", "29-31", "2", "*"))
@given(
    st.tuples(
        minutes,
        hours,
        st.sampled_from(["*", "1", "15,28", "*/2", "1-7", "29-31"]),
        months,
        st.sampled_from(["*", "mon", "1-5", "0", "7", "sat,sun", "*/2"]),
    )
)
def test_a_line_of_a_crontab_fires_as_in_debians_cron(fields: tuple[str, ...]) -> None:
    expression = as_tickwheel(parse(" ".join(fields), CRONTAB))
    is_elapsed = expression.follows_elapsed_time
    clock = Clock(zone=BERLIN, gap="skip" if is_elapsed else "next_valid", fold="both" if is_elapsed else "first")
    start = datetime(2027, 3, 26, tzinfo=UTC)
    end = start.replace(year=start.year + 20)  # `fires` looks thirty years ahead: 25 fires of a leap day take a century

    found = (each.astimezone(UTC) for each in CronSim(" ".join(fields), start.astimezone(BERLIN)))
    theirs = list(islice(takewhile(lambda each: each < end, found), 25))

    assert list(islice(fires(expression, clock, after=start, end=end), 25)) == theirs


@pytest.mark.parametrize(
    ("dialect", "text", "cron"),
    [
        (EVENTBRIDGE, "0 18 ? * 2-6", "0 18 * * mon-fri"),
        (EVENTBRIDGE, "0/15 8 ? * 6L", "0-59/15 8 * * friL"),
        (EVENTBRIDGE, "0 9 ? * 2#1", "0 9 * * mon#1"),
        (QUARTZ, "0 12 ? * 1", "0 12 * * sun"),
        (QUARTZ, "0 12 ? * L", "0 12 * * sat"),
        (QUARTZ, "0 12 L-3 * ?", "0 12 L-3 * *"),
        (SPRING, "0 12 * * 1", "0 12 * * mon"),
        (KUBERNETES, "0 0 */2 * mon", "0 0 1-31/2 * mon"),
        (KUBERNETES, "0 0 1 * */2", "0 0 1 * sun,tue,thu,sat"),
        (CRONTAB, "0 0 */2 * mon", "0 0 */2 * mon"),
        (CELERY, "0 0 1-7 * mon", "0 0 * * mon#1"),
        (CELERY, "0 0 15-21 * 1,5", "0 0 * * mon#3,fri#3"),
        (CRONTAB, "*/90 * * * *", "0 * * * *"),
        (CRONTAB, "09,39 * * * 4-7", "9,39 * * * thu-sun"),
    ],
)
def test_the_cron_that_means_the_same_here(dialect: Dialect, text: str, cron: str) -> None:
    expression = parse(text, dialect)

    assert expression.cron == cron
    clock = Clock(zone=BERLIN, gap="skip", fold="both")
    there, here = (list(islice(fires(each, clock, after=NOW), 40)) for each in (expression, as_tickwheel(expression)))
    assert there == here
    assert parse_cron(cron)


@pytest.mark.parametrize(
    ("dialect", "text", "reason"),
    [
        (KUBERNETES, "0 0 * * 7", "not from 0 to 6"),
        (KUBERNETES, "0 22-4 * * *", "runs backwards"),
        (CRONTAB, "0 20 0 * *", "not from 1 to 31"),
        (CELERY, "0 0 13 * fri", "the date and the weekday to match"),
        (CRONTAB, "0 0 L * *", "is no day of month"),
        (EVENTBRIDGE, "0 0 ? * L", "no meaning"),
        (CRONTAB, "*/0 * * * *", "a step of 0"),
        (CRONTAB, "0 0 * *", "has 4 fields"),
        (CRONTAB, ",".join(["1"] * 300) + " * * * *", "more than 200"),
    ],
)
def test_what_is_no_cron_there_or_cannot_be_said_here(dialect: Dialect, text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        parse(text, dialect)


def test_the_days_on_which_a_clock_is_changed() -> None:
    days = clock_changes(BERLIN, after=datetime(2027, 1, 1, tzinfo=UTC), days=366)

    assert [day.isoformat() for day in days] == ["2027-03-28", "2027-10-31"]
