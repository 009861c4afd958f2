import json
from dataclasses import MISSING, fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.errors import Undecodable
from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.job import Delivery, Payload, Precision, Priority
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.schedules.defaults import STORED
from functions.domain.schedules.record import decode_schedule, encode_schedule, encode_stored
from functions.domain.schedules.rules import At, CronRule, Every, Fold, Gap, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import (
    Calendar,
    JobTemplate,
    Misfire,
    Roll,
    Schedule,
    Weekday,
    Window,
    WindowMode,
)
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.targets.flows import FlowLimits, FlowScope, NamedFlow, Rate
from functions.domain.targets.options import USUAL, Method, TargetOptions
from testkit.builders import NOON, a_schedule, a_template, a_window, every

EVERYTHING = Schedule(
    tenant="acme",
    schedule_id="nightly",
    rule=Every(interval=timedelta(days=1, hours=2, milliseconds=5), phase=timedelta(minutes=3)),
    job=JobTemplate(
        target="handler:report",
        payload=Payload(text='{"für":["{{tickwheel.index}}",null,1.5]}'),
        priority=Priority.CRITICAL,
        delivery=Delivery.EXACTLY_ONCE,
        precision=Precision.EXACT,
        retry=RetryPolicy(strategy=Strategy.LINEAR, attempts=7, base=3 * SECOND, cap=HOUR, max_age=6 * HOUR),
        timeout=timedelta(minutes=2),
        expires_after=2 * HOUR,
        options=TargetOptions(
            method=Method.PUT,
            headers=(("X-Key", "hush"),),
            success_codes=(200, 409),
            retry_codes=(404,),
            is_async=True,
        ),
        tags=("team:billing", "eu"),
        flows=(
            NamedFlow(key="stripe", limits=FlowLimits(rate=Rate(60, "min"), burst=10, concurrency=5)),
            NamedFlow(key="smtp", scope=FlowScope.STAGE),
            NamedFlow(key="books", limits=FlowLimits(is_ordered=True)),
        ),
    ),
    timezone="Europe/Berlin",
    gap=Gap.SKIP,
    fold=Fold.BOTH,
    windows=(
        a_window("09:00", "17:30", "mon fri"),
        a_window("22:00", "02:00"),
    ),
    window_mode=WindowMode.DEFER,
    calendar=Calendar(
        excluded=frozenset({date(2027, 12, 24), date(2027, 5, 1)}),
        holidays=("DE-BY", "NYSE"),
        weekends=True,
        roll=Roll.AFTER,
    ),
    spread=timedelta(minutes=15),
    spread_from=SpreadFrom.PLAN,
    jitter=timedelta(seconds=1, milliseconds=500),
    start=NOON + MILLISECOND,
    end=NOON + timedelta(days=400),
    max_runs=12,
    misfire=Misfire.COALESCE,
    max_lateness=timedelta(minutes=90),
    overlap=Overlap.BUFFER_ONE,
    pause_after_failures=3,
    history=50,
    success_history=3,
    failure_history=10,
)


def test_what_is_written_for_other_defaults_leaves_out_what_equals_those():
    schedule = a_schedule(misfire=Misfire.SKIP, job=a_template(timeout=timedelta(seconds=31)))
    others = replace(STORED, misfire=Misfire.SKIP, timeout=timedelta(seconds=31), history=3, priority=Priority.LOW)

    written = encode_schedule(schedule, others)

    assert "misfire" not in written
    assert "timeout" not in written["job"]
    assert (written["history"], written["job"]["priority"]) == (10, "normal")


def test_a_schedule_with_everything_is_written_as_people_write_it():
    assert encode_stored(EVERYTHING) == {
        "every": {"interval": "P1DT2H0.005S", "phase": "PT3M"},
        "timezone": "Europe/Berlin",
        "gap": "skip",
        "fold": "both",
        "windows": [
            {"days": ["mon", "fri"], "start": "09:00", "end": "17:30"},
            {"start": "22:00", "end": "02:00"},
        ],
        "window_mode": "defer",
        "calendar": {
            "exclude": ["2027-05-01", "2027-12-24"],
            "holidays": ["DE-BY", "NYSE"],
            "weekends": True,
            "roll": "after",
        },
        "spread": "PT15M",
        "spread_from": "plan",
        "jitter": "PT1.5S",
        "start": "2027-03-01T12:00:00.001Z",
        "end": "2028-04-04T12:00:00.000Z",
        "max_runs": 12,
        "misfire": "coalesce",
        "max_lateness": "PT1H30M",
        "overlap": "buffer_one",
        "pause_after_failures": 3,
        "history": 50,
        "success_history": 3,
        "failure_history": 10,
        "job": {
            "target": "handler:report",
            "payload": {"für": ["{{tickwheel.index}}", None, 1.5]},
            "priority": "critical",
            "precision": "exact",
            "retry": {"strategy": "linear", "attempts": 7, "base": "PT3S", "cap": "PT1H", "max_age": "PT6H"},
            "timeout": "PT2M",
            "expires_after": "PT2H",
            "http": {"method": "PUT", "headers": {"X-Key": "hush"}, "success": [200, 409], "retry_on": [404]},
            "asynchronous": True,
            "tags": ["team:billing", "eu"],
            "flow": [
                {"key": "stripe", "rate": "60/min", "burst": 10, "concurrency": 5},
                {"key": "smtp", "scope": "stage"},
                {"key": "books", "ordered": True},
            ],
        },
    }


def test_a_schedule_with_everything_is_read_as_it_was_written():
    for part in fields(Schedule):
        assert getattr(EVERYTHING, part.name) != part.default or part.default is MISSING, part.name

    assert round_trip(EVERYTHING) == EVERYTHING


def test_what_is_usual_is_left_out():
    job = JobTemplate(target="handler:report", retry=STORED.retry)
    schedule = Schedule(tenant="acme", schedule_id="nightly", rule=CronRule("0 2 * * *"), job=job)

    assert encode_schedule(schedule) == {"cron": "0 2 * * *", "job": {"target": "handler:report"}}
    assert round_trip(schedule) == schedule


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        (At(NOON), {"at": "2027-03-01T12:00:00.000Z"}),
        (CronRule("@daily"), {"cron": "@daily"}),
        (every(minutes=5), {"every": {"interval": "PT5M"}}),
        (every(minutes=5, from_end=True), {"every": {"interval": "PT5M", "from": "end"}}),
        (every(minutes=5, phase=SECOND), {"every": {"interval": "PT5M", "phase": "PT1S"}}),
        (
            RecurrenceRule("FREQ=WEEKLY;BYDAY=MO", datetime(2027, 3, 1, 9, 30)),  # noqa: DTZ001  local to the schedule
            {"rrule": {"rule": "FREQ=WEEKLY;BYDAY=MO", "starts_at": "2027-03-01T09:30:00"}},
        ),
        (Poisson(12.5), {"poisson": {"per_day": 12.5}}),
    ],
    ids=["at", "cron", "every", "from end", "phase", "rrule", "poisson"],
)
def test_every_kind_of_rule_is_written_under_its_name(rule: Rule, written: dict[str, Any]):
    schedule = a_schedule(rule=rule)

    assert {name: value for name, value in encode_schedule(schedule).items() if name != "job"} == written
    assert round_trip(schedule) == schedule


def test_tenant_and_id_are_those_of_the_row_and_not_part_of_the_definition():
    text = json.dumps(encode_schedule(a_schedule(tenant="acme", schedule_id="a")))

    assert decode_schedule(text, tenant="globex", schedule_id="b") == a_schedule(tenant="globex", schedule_id="b")


def test_a_definition_from_before_there_were_options_has_the_usual_ones():
    written = {"cron": "@daily", "job": {"target": "handler:x", "retry": {"attempts": 3}}}

    job = decode_schedule(json.dumps(written), tenant="acme", schedule_id="nightly").job

    assert (job.options, job.tags, job.retry.max_age) == (USUAL, (), None)


def test_what_the_headers_of_a_spoiled_definition_hold_is_not_repeated():
    written = {"cron": "@daily", "job": {"target": "https://x", "http": {"headers": {"X-Key": "hush\n"}}}}

    with pytest.raises(Undecodable) as refused:
        decode_schedule(json.dumps(written), tenant="acme", schedule_id="nightly")

    assert "hush" not in str(refused.value)


def test_a_payload_in_the_store_is_written_as_its_pointer():
    schedule = a_schedule(job=a_template(payload=Payload(pointer="schedules/acme/nightly/1")))

    assert encode_schedule(schedule)["job"]["payload_pointer"] == "schedules/acme/nightly/1"
    assert round_trip(schedule) == schedule


@pytest.mark.parametrize("text", ["0", "false", '""', "[]", "{}"])
def test_an_empty_payload_is_a_payload(text: str):
    schedule = a_schedule(job=a_template(payload=Payload(text=text)))

    assert round_trip(schedule).job.payload == Payload(text=text)


@pytest.mark.parametrize("delivery", Delivery)
def test_every_delivery_is_kept(delivery: Delivery):
    assert round_trip(a_schedule(job=a_template(delivery=delivery))).job.delivery is delivery


@pytest.mark.parametrize("text", ["", "hello", "null", "[]", "7", "{}", '"cron"', '{"cron":"@daily"}'])
def test_a_text_that_is_no_definition_is_undecodable(text: str):
    with pytest.raises(Undecodable):
        decode_schedule(text, tenant="acme", schedule_id="nightly")


@pytest.mark.parametrize(
    "changed",
    [
        {"every": {}},
        {"every": {"interval": "soon"}},
        {"every": {"interval": "PT0.5S"}},
        {"every": 7},
        {"at": "today"},
        {"at": None},
        {"rrule": {"rule": "FREQ=DAILY"}},
        {"rrule": {"rule": "FREQ=DAILY", "starts_at": "today"}},
        {"gap": "jump"},
        {"fold": 1},
        {"misfire": "panic"},
        {"overlap": "queue"},
        {"window_mode": "skip"},
        {"windows": [{"start": "9", "end": "17:00"}]},
        {"windows": [{"start": "09:00"}]},
        {"windows": [{"start": "09:00", "end": "17:00", "days": ["someday"]}]},
        {"windows": [{"start": "09:00", "end": "17:00", "days": []}]},
        {"calendar": {"exclude": ["tomorrow"]}},
        {"calendar": {"roll": "over"}},
        {"calendar": []},
        {"start": "2027-03-01T12:00:00"},
        {"end": 7},
        {"spread": "PT0.5S"},
        {"jitter": -1},
        {"max_runs": 0},
        {"max_runs": "many"},
        {"history": 51},
        {"job": {}},
        {"job": None},
        {"job": {"target": "handler:x", "priority": "urgent"}},
        {"job": {"target": "handler:x", "delivery": "maybe"}},
        {"job": {"target": "handler:x", "retry": {"attempts": 0}}},
        {"job": {"target": "handler:x", "timeout": "PT"}},
        {"job": {"target": "handler:x", "retry": {"max_age": "PT0S"}}},
        {"job": {"target": "handler:x", "http": []}},
        {"job": {"target": "handler:x", "http": {"method": "HEAD"}}},
        {"job": {"target": "handler:x", "http": {"headers": {"Host": "x"}}}},
        {"job": {"target": "handler:x", "http": {"headers": {"X-Key": 7}}}},
        {"job": {"target": "handler:x", "http": {"success": [199]}}},
        {"job": {"target": "handler:x", "tags": ["a b"]}},
        {"job": {"target": "handler:x", "flow": [{"key": "a", "rate": "often"}]}},
    ],
    ids=str,
)
def test_a_definition_with_a_part_that_tickwheel_did_not_write_is_undecodable(changed: dict[str, Any]):
    rule_names = {"at", "cron", "every", "rrule", "poisson"}
    written = encode_schedule(a_schedule())
    kept = {name: value for name, value in written.items() if not (name in rule_names and rule_names & set(changed))}

    with pytest.raises(Undecodable):
        decode_schedule(json.dumps(kept | changed), tenant="acme", schedule_id="nightly")


@pytest.mark.parametrize(
    ("tenant", "schedule_id"), [("a#b", "nightly"), ("acme", "a#b"), ("", "nightly"), ("acme", "")]
)
def test_a_definition_under_a_key_that_tickwheel_did_not_write_is_undecodable(tenant: str, schedule_id: str):
    with pytest.raises(Undecodable):
        decode_schedule(json.dumps(encode_schedule(a_schedule())), tenant=tenant, schedule_id=schedule_id)


def of(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these parts."""
    return st.fixed_dictionaries({}, optional=parts)


def durations(low: timedelta, high: timedelta, *, step: timedelta = MILLISECOND) -> st.SearchStrategy[timedelta]:
    return st.integers(-(-low // step), high // step).map(lambda number: number * step)


INSTANTS = st.integers(0, 4_000_000_000_000).map(lambda ms: datetime(1990, 1, 1, tzinfo=UTC) + ms * MILLISECOND)
LOCAL_TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2190, 1, 1)).map(lambda at: at.replace(microsecond=0))  # noqa: DTZ001
MINUTES = st.times().map(lambda at: at.replace(second=0, microsecond=0))
INTERVALS = durations(SECOND, timedelta(days=3_660))
RULES: st.SearchStrategy[Rule] = st.one_of(
    INSTANTS.map(At),
    st.text(max_size=40).map(CronRule),
    st.builds(
        lambda interval, share: Every(interval=interval, phase=interval * share // (1_000 * MILLISECOND) * MILLISECOND),
        INTERVALS,
        st.integers(0, 999),
    ),
    INTERVALS.map(lambda interval: Every(interval=interval, from_end=True)),
    st.builds(RecurrenceRule, st.text(max_size=40), LOCAL_TIMES),
    st.floats(0.001, 86_400).map(Poisson),
)
WINDOWS = st.builds(Window, start=MINUTES, end=MINUTES, days=st.frozensets(st.sampled_from(Weekday), min_size=1))
CALENDARS = of(
    excluded=st.frozensets(st.dates(date(1990, 1, 1)), max_size=5),
    holidays=st.lists(st.text(max_size=8), max_size=3).map(tuple),
    weekends=st.booleans(),
    roll=st.sampled_from(Roll),
).map(lambda parts: Calendar(**parts))
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda parts: st.lists(parts | st.none(), max_size=3) | st.dictionaries(st.text(max_size=5), parts, max_size=3),
    max_leaves=8,
)
PAYLOADS = JSON.map(lambda value: Payload(text=json.dumps(value, separators=(",", ":"), ensure_ascii=False))) | st.text(
    min_size=1, max_size=20
).map(lambda pointer: Payload(pointer=pointer))
RETRIES = st.builds(
    lambda base, more, **parts: RetryPolicy(base=base, cap=base + more, **parts),
    durations(SECOND, HOUR),
    durations(timedelta(0), HOUR),
    attempts=st.integers(1, 100),
    strategy=st.sampled_from(Strategy),
    max_age=st.none() | durations(SECOND, timedelta(days=30)),
)
RATES = st.builds(Rate, st.integers(1, 1_000), st.sampled_from(["s", "min", "h", "d"]))
FLOWS = st.builds(
    NamedFlow,
    key=st.text("ab:-", min_size=1, max_size=4),
    limits=st.none()
    | st.builds(FlowLimits, rate=RATES, burst=st.integers(0, 10_000), concurrency=st.none() | st.integers(1, 1_000))
    | st.builds(FlowLimits, concurrency=st.integers(1, 1_000)),
) | st.builds(NamedFlow, key=st.text("ab:-", min_size=1, max_size=4), scope=st.just(FlowScope.STAGE))
TEMPLATES = of(
    payload=PAYLOADS,
    priority=st.sampled_from(Priority),
    precision=st.sampled_from(Precision),
    retry=RETRIES,
    timeout=durations(SECOND, HOUR),
    expires_after=durations(SECOND, timedelta(days=9)),
    options=st.builds(
        TargetOptions,
        method=st.sampled_from(Method),
        headers=st.lists(st.tuples(st.sampled_from(["A", "X-Key"]), st.just("hush")), max_size=1).map(tuple),
        success_codes=st.lists(st.integers(200, 299), max_size=3).map(tuple),
        retry_codes=st.lists(st.integers(400, 599), max_size=3).map(tuple),
        is_async=st.booleans(),
    ),
    tags=st.lists(st.text("abc:", min_size=1, max_size=4), max_size=3, unique=True).map(tuple),
    flows=st.lists(FLOWS, max_size=3, unique_by=lambda flow: flow.key).map(tuple),
)
SCHEDULES = of(
    timezone=st.text(max_size=20),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    windows=st.lists(WINDOWS, min_size=1, max_size=3).map(tuple),
    calendar=CALENDARS,
    spread=durations(timedelta(0), timedelta(days=1), step=SECOND),
    jitter=durations(timedelta(0), timedelta(days=1)),
    max_runs=st.integers(1, 10**9),
    misfire=st.sampled_from(Misfire),
    max_lateness=durations(SECOND, timedelta(days=14)),
    overlap=st.sampled_from(Overlap),
    pause_after_failures=st.integers(1, 100),
    history=st.integers(0, 50),
    success_history=st.integers(0, 10),
    failure_history=st.integers(0, 10),
)


@given(
    rule=RULES,
    job=TEMPLATES,
    parts=SCHEDULES,
    bounds=st.lists(INSTANTS, min_size=2, max_size=2, unique=True).map(sorted),
    target=st.text(min_size=1, max_size=40),
    mode=st.sampled_from([WindowMode.SKIP, WindowMode.DEFER]),
)
def test_every_schedule_is_read_as_it_was_written(
    rule: Rule,
    job: dict[str, Any],
    parts: dict[str, Any],
    bounds: list[datetime],
    target: str,
    mode: WindowMode,
):
    schedule = Schedule(
        tenant="acme",
        schedule_id="nightly",
        rule=rule,
        job=JobTemplate(target=target, **job),
        start=bounds[0],
        end=bounds[1],
        window_mode=mode if "windows" in parts else None,
        **parts,
    )

    assert round_trip(schedule) == schedule
    without_bounds = replace(schedule, start=None, end=None, window_mode=None)
    assert round_trip(without_bounds) == without_bounds


def round_trip(schedule: Schedule) -> Schedule:
    text = json.dumps(encode_stored(schedule))
    return decode_schedule(text, tenant=schedule.tenant, schedule_id=schedule.schedule_id)


def test_where_a_count_ends_is_stored_and_no_part_of_what_is_reported():
    schedule = a_schedule(rule=RecurrenceRule("FREQ=DAILY;COUNT=3", datetime(2027, 3, 1, 9)))  # noqa: DTZ001  local

    written = encode_stored(schedule)

    assert written["rrule"]["last"] == "2027-03-03T09:00:00"
    assert "last" not in encode_schedule(schedule)["rrule"]
    read = decode_schedule(json.dumps(written), tenant=schedule.tenant, schedule_id=schedule.schedule_id)
    assert isinstance(read.rule, RecurrenceRule)
    assert read.rule.last == datetime(2027, 3, 3, 9)  # noqa: DTZ001  local
    assert read == schedule
    assert encode_stored(read) == written


@pytest.mark.parametrize("text", ["FREQ=DAILY", "FREQ=DAILY;UNTIL=20280101T000000", "FREQ=NEVER;COUNT=3"])
def test_of_a_rule_that_is_not_counted_nothing_more_is_stored(text: str):
    schedule = a_schedule(rule=RecurrenceRule(text, datetime(2027, 3, 1, 9)))  # noqa: DTZ001  local to the schedule

    assert encode_stored(schedule) == encode_schedule(schedule)
