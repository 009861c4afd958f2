"""The 1,335 periodic jobs of a large project's CI, judged by an independent cron library."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from functions.domain.errors import InvalidSchedule
from functions.domain.jobs.job import Payload
from functions.domain.jobs.occurrence import identity_of
from functions.domain.schedules.due_fires import MISFIRE_GRACE
from functions.domain.schedules.rules import CronRule, Every
from functions.domain.schedules.schedule import JobTemplate, Misfire, Schedule
from functions.domain.schedules.state import SkipReason
from testkit.builders import DEPLOYED_WHEEL, a_wheel
from tests.virtual.stage import VirtualStage

PERIODICS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "examples" / "kubernetes-periodics.jsonl").read_text().splitlines()
]
WHEEL = a_wheel(
    lookahead=DEPLOYED_WHEEL.lookahead,
    skew=DEPLOYED_WHEEL.skew,
    guard=DEPLOYED_WHEEL.guard,
    write_shards=1,
    scan_shards=1,
)
"""A stage's on AWS, in one shard."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"h": 3600, "m": 60, "s": 1}


def seconds_of(duration: str) -> timedelta:
    """A Go duration such as `1h30m`."""
    total, digits = 0, ""
    for letter in duration:
        if letter.isdigit():
            digits += letter
        else:
            total, digits = total + int(digits) * _UNITS[letter], ""
    return timedelta(seconds=total)


def schedule_of(row: dict[str, Any], *, timezone: str = "UTC", **overrides: Any) -> Schedule:
    if "cron" in row:
        rule = CronRule(row["cron"])
    elif "interval" in row:
        rule = Every(interval=seconds_of(row["interval"]))
    else:
        rule = Every(interval=seconds_of(row["minimum_interval"]), from_end=True)
    return Schedule(
        tenant=row["tenant"],
        schedule_id=row["name"],
        rule=rule,
        timezone=timezone,
        job=JobTemplate(target="https://example.com/run", payload=Payload(text="{}")),
        **overrides,
    )


def expected_of(row: dict[str, Any], *, since: datetime, until: datetime, timezone: str = "UTC") -> list[datetime]:
    """What fires after `since` and before `until`, by cronsim, or by counting from the epoch."""
    return list(itertools.takewhile(lambda at: at < until, _endless(row, since, timezone)))


def _endless(row: dict[str, Any], since: datetime, timezone: str) -> Iterator[datetime]:
    if "cron" in row:
        for local in CronSim(row["cron"], since.astimezone(ZoneInfo(timezone))):
            yield local.astimezone(UTC)
    interval = seconds_of(row["interval"])
    at = EPOCH + ((since - EPOCH) // interval + 1) * interval
    while True:
        yield at
        at += interval


def key_of(row: dict[str, Any], at: datetime) -> str:
    return f"{row['tenant']}#{identity_of(row['name'], at)}"


def is_end_to_start(row: dict[str, Any]) -> bool:
    return "minimum_interval" in row


NEVER = [row for row in PERIODICS if row.get("cron") in ("0 0 30 2 *", "0 0 31 2 *")]
"""Two that the project has switched off in this way."""

REAL = [row for row in PERIODICS if row not in NEVER]
PREDICTABLE = [row for row in REAL if not is_end_to_start(row)]
END_TO_START = [row for row in REAL if is_end_to_start(row)]


def a_stage(now: datetime, **overrides: Any) -> VirtualStage:
    stage = VirtualStage(wheel=WHEEL, now=now)
    stage.put([schedule_of(row, **overrides) for row in REAL])
    return stage


def check_end_to_start(stage: VirtualStage, *, since: datetime, until: datetime) -> None:
    """Each run follows the end of the one before it by the interval, to the millisecond, and none is missing."""
    for row in END_TO_START:
        interval, prefix = seconds_of(row["minimum_interval"]), key_of(row, since)[: -len("2027-01-01T00:00:00.000Z")]
        runs = sorted(calls for key, (*_, calls) in stage.targets.calls.items() if key.startswith(prefix))
        due = since + interval
        for ran_at in runs:
            assert ran_at >= due, f"{row['name']} ran before its time"
            assert ran_at - due <= timedelta(seconds=1), f"{row['name']} ran late: {ran_at - due}"
            due = ran_at + interval
        assert due >= until, f"{row['name']} stopped"


def judge(stage: VirtualStage, expected: Counter[str]) -> None:
    """Every expected fire once, none extra, none early, none by the sweep, none by the audit."""
    predictable = {f"{row['tenant']}#{row['name']}:" for row in PREDICTABLE}
    ran = Counter({key: len(calls) for key, calls in stage.targets.calls.items()})
    ran = Counter(
        {key: count for key, count in ran.items() if f"{key[: -len('2027-01-01T00:00:00.000Z')]}" in predictable}
    )
    assert ran - expected == Counter(), "extra"
    assert expected - ran == Counter(), "missing"
    assert stage.targets.early == []
    assert stage.journal.counts.get("stragglers", 0) == 0
    assert stage.journal.counts.get("schedules_healed", 0) == 0


def test_all_but_those_that_never_fire_are_taken() -> None:
    stage = VirtualStage(wheel=WHEEL, now=datetime(2027, 3, 1, tzinfo=UTC))
    assert len(REAL) == 1_333
    for row in NEVER:
        with pytest.raises(InvalidSchedule, match="never fires"):
            stage.put([schedule_of(row)])


@pytest.mark.long
@pytest.mark.parametrize(
    ("timezone", "start", "days"),
    [
        ("UTC", datetime(2027, 3, 1, 10, 20, 30, tzinfo=UTC), 1),
        pytest.param("Europe/Berlin", datetime(2027, 3, 25, 10, 20, 30, tzinfo=UTC), 7, marks=pytest.mark.long),
        pytest.param("America/New_York", datetime(2027, 11, 6, 10, 20, 30, tzinfo=UTC), 2, marks=pytest.mark.long),
    ],
    ids=["a plain day", "the week in which Berlin's clocks go forward", "the days on which New York's go back"],
)
def test_every_fire_happens_once_and_no_other_on(timezone: str, start: datetime, days: int) -> None:
    stage = a_stage(start, timezone=timezone)
    until = start + timedelta(days=days)
    stage.run_until(until)
    expected = Counter(
        key_of(row, at)
        for row in PREDICTABLE
        # What is due in the last second may still be on its way.
        for at in expected_of(row, since=start, until=until, timezone=timezone)
    )
    assert sum(expected.values()) > 5_000 * days
    judge(stage, expected)
    check_end_to_start(stage, since=start, until=until)


@pytest.mark.long
@pytest.mark.parametrize("misfire", Misfire)
def test_an_outage_of_three_hours_is_made_up_for_as_the_misfire_policy_says(misfire: Misfire) -> None:
    start = datetime(2027, 3, 1, 0, 20, 30, tzinfo=UTC)
    stage = a_stage(start, misfire=misfire)
    down_at, up_at, until = (start + timedelta(hours=hours) for hours in (10, 13, 24))
    stage.run_until(down_at)
    # What was promoted before the outage waits in its queue, and is no misfire.
    promoted = stage.waiting()
    stage.be_down_until(up_at)
    stage.run_until(until)
    expected: Counter[str] = Counter()
    dropped = 0
    for row in PREDICTABLE:
        fires = expected_of(row, since=start, until=until)
        missed = [at for at in fires if down_at <= at < up_at - MISFIRE_GRACE and key_of(row, at) not in promoted]
        kept = {Misfire.FIRE_ALL: missed, Misfire.COALESCE: missed[-1:], Misfire.SKIP: []}[misfire]
        expected.update(key_of(row, at) for at in fires if at not in missed or at in kept)
        dropped += len(missed) - len(kept)
    judge(stage, expected)
    states = [stage.schedules.state(f"{row['tenant']}#{row['name']}") for row in PREDICTABLE]
    reasons = Counter[SkipReason]()
    for state in states:
        assert state is not None
        reasons.update(state.skips)
    assert sum(reasons.values()) == dropped
    assert dropped == 0 if misfire is Misfire.FIRE_ALL else dropped > 300


def test_what_was_missed_comes_back_oldest_first_and_at_a_bounded_rate() -> None:
    start = datetime(2027, 3, 1, 0, 0, 30, tzinfo=UTC)
    stage = VirtualStage(wheel=WHEEL, now=start)
    row = {"tenant": "acme", "name": "each-minute", "cron": "* * * * *"}
    stage.put([schedule_of(row)])
    stage.run_until(start + timedelta(minutes=10))
    stage.be_down_until(start + timedelta(hours=5))
    back_at = stage.clock.instant
    stage.run_until(start + timedelta(hours=6))
    fires = expected_of(row, since=start, until=start + timedelta(hours=6))
    missed = [
        calls[0] for at in fires if at < back_at - MISFIRE_GRACE for calls in [stage.targets.calls[key_of(row, at)]]
    ]
    made_up = [ran_at for ran_at in missed if ran_at >= back_at]
    assert len(made_up) > 250
    assert made_up == sorted(made_up)
    per_minute = Counter((ran_at - back_at) // timedelta(minutes=1) for ran_at in made_up)
    # Some that were promoted before wait for nothing.
    assert max(per_minute.values()) <= 64
    assert set(stage.targets.calls) == {key_of(row, at) for at in fires}
