"""`tickwheel verify --on dynamodb`: the same episodes with the real adapters on DynamoDB's own engine.

A seed is the same history there as on the fakes, call by call: that is as much a test of the fakes. And what only the
adapters' conditions keep is seen to be kept: each is taken away, and its episode fails.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import inf
from typing import Any

import pytest
from typer.testing import CliRunner

from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.tenants.plan import TenantPlan
from functions.domain.tenants.usage import Usage
from testkit.builders import LOCAL_WHEEL
from testkit.dynamodb_local import DynamoDBLocal, client_at
from testkit.world import dynamodb
from testkit.world.dynamodb import OnDynamoDB
from testkit.world.stores import MakeStores, in_memory
from tests.properties import histories
from tests.properties.histories import LEASE_IS_OVER, hold_a_worker, only_id, scan_all, submit
from tickwheel.cli import app
from verification import episode
from verification.checker import Invariant
from verification.episode import EpisodeResult, judged, run_episode
from verification.faults import IN_MEMORY, Chaos, Fault
from verification.history import History
from verification.pace import DAYS
from verification.stage import Stage

pytestmark = pytest.mark.dynamodb_local

SEEDS = (22, 39, *range(1, 20))
"""They are gone through until every fault has struck: the first two are enough while nothing else is drawn."""


SMOOTH = 15
"""Of an episode in which no job kills its worker, and no key is used again."""


WEEKS = 64
"""Of an episode of months, here of weeks: with every act but a pause of the stage, and rows that expire."""

DAY_S = 86_400

DIES_WITHIN = (2, 4)
"""Of episodes in which processes do."""


@pytest.fixture
def on_dynamodb(dynamodb_local: DynamoDBLocal) -> OnDynamoDB:
    return OnDynamoDB(dynamodb_local.endpoint_url)


@dataclass
class Lived:
    """What has happened in an episode, call by call, and what was counted of its tenants."""

    history: History
    events: list[str]
    usage: dict[tuple[str, date], Usage]
    pending: dict[tuple[str, date], int]


def keep_what_lived(monkeypatch: pytest.MonkeyPatch) -> list[Lived]:
    """Of each episode from now on."""
    lived: list[Lived] = []
    whole_history = Stage.whole_history

    def keep(stage: Stage) -> History:
        history, events = whole_history(stage), [str(event) for event in stage.history.events]
        lived.append(Lived(history, events, {**stage.usage.rows}, {**stage.pending.rows}))
        return history

    monkeypatch.setattr(Stage, "whole_history", keep)
    return lived


def count_what_expires(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of rows of the ledger that are gone, in every episode from now on."""
    expired: list[str] = []
    expire = Stage.expire

    def count(stage: Stage) -> dict[str, LedgerRow]:
        gone = expire(stage)
        expired.extend(gone)
        return gone

    monkeypatch.setattr(Stage, "expire", count)
    return expired


@dataclass
class Weakened:
    """Makes every request that has a condition have another one in its place."""

    condition: str
    instead: str
    changed: int = 0

    def __call__(self, params: Any, **_: Any) -> None:
        writes = [write for item in params.get("TransactItems", ()) for write in item.values()]
        for request in (params, *writes):
            if self.condition not in request.get("ConditionExpression", ""):
                continue
            self.changed += 1
            request["ConditionExpression"] = request["ConditionExpression"].replace(self.condition, self.instead)
            # The engine refuses values that no expression names.
            text = request["ConditionExpression"] + request.get("UpdateExpression", "")
            values = request["ExpressionAttributeValues"]
            request["ExpressionAttributeValues"] = {
                name: value for name, value in values.items() if re.search(rf"{name}\b", text)
            }


@pytest.fixture
def weaken(on_dynamodb: OnDynamoDB) -> Iterator[Callable[[str, str], Weakened]]:
    events, event = dynamodb._client(on_dynamodb.endpoint_url).meta.events, "before-parameter-build.dynamodb"
    made: list[Weakened] = []

    def weaken_by(condition: str, instead: str) -> Weakened:
        made.append(Weakened(condition, instead))
        events.register(event, made[-1], unique_id="weakened")
        return made[-1]

    yield weaken_by
    for each in made:
        events.unregister(event, each, unique_id="weakened")


def live(history: Callable[[Stage], None], stores: MakeStores) -> EpisodeResult:
    stage = Stage(audits=False, make_stores=stores)
    history(stage)
    return judged(stage)


def found_in(outcome: EpisodeResult) -> set[str]:
    violations = {str(violation.invariant) for violation in outcome.judgement.violations}
    return violations | {doubt.partition(":")[0] for doubt in outcome.doubts}


def a_target_is_heard_before_its_job_is_rescued(stage: Stage) -> None:
    """Its worker has died, its lease was over, and it asks for a longer one before another worker has the job."""
    submit(stage)
    dies = hold_a_worker(stage)
    dies.go_to("target.end")
    dies.kill()
    ((run,),) = stage.promises.runs.values()
    stage.clock.tick(LEASE_IS_OVER)
    stage.redeliver()
    rescuer = hold_a_worker(stage)
    rescuer.go_to("ledger.rescue")
    stage.heartbeat(run, timedelta(minutes=5))
    rescuer.finish()


@pytest.mark.long
def test_episodes_with_every_fault_are_the_same_histories_on_the_fakes_and_on_dynamodb(
    on_dynamodb: OnDynamoDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived = keep_what_lived(monkeypatch)
    left = set(IN_MEMORY)
    for seed in SEEDS:
        expected = run_episode(seed)
        if not left & {*+expected.struck}:
            continue
        left -= {*+expected.struck}

        found = run_episode(seed, stores=on_dynamodb)

        here, there = lived[-2:]
        assert there.events == here.events, f"seed {seed}"
        assert there == here, f"seed {seed}"
        assert found == expected, f"seed {seed}"
        assert found_in(found) == set(), f"seed {seed}"
        if not left:
            break
    assert not left, "choose seeds that are struck by these, too"


@pytest.mark.long
def test_an_episode_of_weeks_in_which_rows_expire_is_the_same_history_on_dynamodb(
    on_dynamodb: OnDynamoDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode, "DAYS", replace(DAYS, asked_within=10 * DAY_S, beyond=15 * DAY_S))
    monkeypatch.setattr(episode, "JOBS", 30)
    monkeypatch.setattr(episode, "SCHEDULES", 1)
    lived, expired = keep_what_lived(monkeypatch), count_what_expires(monkeypatch)

    expected = run_episode(WEEKS)
    expired_here = expired.copy()
    found = run_episode(WEEKS, stores=on_dynamodb)

    here, there = lived
    assert there.events == here.events
    assert there.history == here.history
    assert found == expected
    assert found.is_long
    assert found_in(found) == set()
    assert expired_here
    assert expired == expired_here * 2


@pytest.mark.long
def test_what_is_counted_of_tenants_is_exact_while_nothing_goes_wrong(
    on_dynamodb: OnDynamoDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived = keep_what_lived(monkeypatch)

    outcomes = [run_episode(SMOOTH, (), stores=stores) for stores in (in_memory, on_dynamodb)]

    here, there = lived
    assert there == here
    assert here.pending
    assert set(here.pending.values()) == {0}
    assert {outcome.jobs for outcome in outcomes} == {sum(used.submitted for used in here.usage.values())}


@pytest.mark.parametrize("stores", ["in_memory", "on_dynamodb"])
def test_a_tenant_has_no_more_jobs_waiting_than_its_plan_says(stores: str, on_dynamodb: OnDynamoDB) -> None:
    stage = Stage(audits=False, make_stores=in_memory if stores == "in_memory" else on_dynamodb)
    stage.plans.put("acme", TenantPlan(max_pending=2), now=stage.clock.instant)

    for _ in range(4):
        submit(stage, 60)
    accepted = len(stage.promises.jobs)
    stage.clock.tick(timedelta(seconds=60))
    stage.work()
    submit(stage, 60)
    accepted_again = len(stage.promises.jobs)
    stage.end()

    assert (accepted, accepted_again) == (2, 3)


def test_processes_go_by_the_plans_that_are_in_the_table(on_dynamodb: OnDynamoDB) -> None:
    stage = Stage(audits=False, make_stores=on_dynamodb)
    stage.pause_tenant("acme")
    submit(stage)
    stage.work()
    called_in_a_pause = len(stage.promises.runs)
    stage.resume_tenant("acme")
    stage.live_on(timedelta(minutes=10))
    called = len(stage.promises.runs)
    stage.end()

    assert (called_in_a_pause, called) == (0, 1)


def test_a_process_dies_between_two_writes_of_one_call(on_dynamodb: OnDynamoDB) -> None:
    chaos = Chaos((Fault.KILLED_WITHIN,), random.Random(), LOCAL_WHEEL.skew, rate=inf, most=1)
    stage = Stage(audits=False, make_stores=on_dynamodb, chaos=chaos)

    submit(stage, 600)
    marked = stage.timers.days("acme")
    rows = [*filter(None, stage.timers.rows.values())]
    accepted = [*stage.promises.jobs]
    submit(stage, 600)
    outcome = judged(stage)

    assert (len(marked), rows, accepted) == (1, [], [])
    assert outcome.struck == {Fault.KILLED_WITHIN: 1}
    assert (outcome.calls, found_in(outcome)) == (1, set())


@pytest.mark.long
def test_episodes_whose_processes_die_within_calls_keep_every_promise(on_dynamodb: OnDynamoDB) -> None:
    outcomes = [run_episode(seed, (Fault.KILLED_WITHIN,), stores=on_dynamodb) for seed in DIES_WITHIN]

    assert all(outcome.struck[Fault.KILLED_WITHIN] for outcome in outcomes)
    assert [found_in(outcome) for outcome in outcomes] == [set() for _ in outcomes]


CONDITIONS = [
    (
        histories.a_zombie_settles,
        "f = :fence AND s = :running AND (o = :owner OR attribute_exists(j))",
        "s = :running",
        "two live runs",
    ),
    (
        a_target_is_heard_before_its_job_is_rescued,
        "s = :state AND f = :fence AND l < :over AND a <= :attempt",
        "s = :state AND f = :fence AND a <= :attempt",
        "two live runs",
    ),
    (histories.two_workers_rescue_one_job, "s = :state AND f = :fence AND l < :over", "s = :state", "two live runs"),
    (
        histories.a_started_job_comes_back,
        "attribute_not_exists(k) OR s = :scheduled OR (s = :state AND o = :owner)",
        "attribute_not_exists(k) OR attribute_exists(k)",
        Invariant.ONE_EFFECT,
    ),
    (
        histories.a_late_scanner_comes_back,
        "e = :epoch AND (attribute_not_exists(n) OR n <= :n)",
        "attribute_exists(k)",
        "a cursor went back",
    ),
]
"""A history, the condition of a write that is needed there, what is left of it, and what must be reported then."""


@pytest.mark.parametrize(
    ("history", "condition", "instead", "named"), CONDITIONS, ids=lambda given: getattr(given, "__name__", "")
)
def test_a_condition_of_an_adapter_is_missed_when(history, condition, instead, named, on_dynamodb, weaken) -> None:
    kept = live(history, on_dynamodb)
    weakened = weaken(condition, instead)

    missed, on_fakes = live(history, on_dynamodb), live(history, in_memory)

    assert weakened.changed, "no request has this condition any more"
    assert found_in(kept) == found_in(on_fakes) == set()
    assert named in found_in(missed)


@pytest.mark.parametrize("stores", ["in_memory", "on_dynamodb"])
def test_rows_past_their_ttl_are_gone_when_days_have_passed(stores: str, on_dynamodb: OnDynamoDB) -> None:
    stage = Stage(audits=False, make_stores=in_memory if stores == "in_memory" else on_dynamodb)
    submit(stage, 600)
    stage.clock.tick(timedelta(minutes=9))
    scan_all(stage)
    stage.clock.tick(timedelta(minutes=1))
    stage.work()
    (key,) = stage.ledger.rows
    job_id = parse_job_id(only_id(stage))

    def is_there() -> tuple[bool, bool, bool]:
        return stage.ledger.get(key) is not None, stage.timers.get(job_id) is not None, any(stage.timers.rows.values())

    stage.forget(timedelta(days=14) - timedelta(minutes=1))
    after_less_than_14_days = is_there()
    stage.forget(timedelta(minutes=2))
    after_14_days = is_there()
    expired = [*stage.expire()]
    stage.time_passes(timedelta(days=8))
    expired_after_22_days = [*stage.expire()]
    after_22_days = is_there()
    stage.end()

    assert after_less_than_14_days == (True, True, True)
    assert after_14_days == (True, False, False)
    assert after_22_days == (False, False, False)
    assert (expired, expired_after_22_days) == ([], [key])


def test_a_row_that_was_written_behind_its_back_is_reported_at_the_end(on_dynamodb: OnDynamoDB) -> None:
    stage = Stage(audits=False, make_stores=on_dynamodb)
    shards: Any = stage.shards
    # By the same key: the tables are there for it, too.
    stranger = client_at(on_dynamodb.endpoint_url, key=f"process{os.getpid()}")
    stranger.put_item(TableName=shards._looked.stored.name, Item={"k": {"S": "0007"}})

    with pytest.raises(AssertionError, match="that no request has named"):
        stage.end()


@pytest.mark.long
def test_the_command_runs_on_dynamodb_and_repeats_there() -> None:
    command = ["verify", "--episode", "10", "--faults", ",".join(IN_MEMORY), "--json"]

    result = CliRunner().invoke(app, [*command, "--on", "dynamodb"], catch_exceptions=False)
    in_memory_there = CliRunner().invoke(app, command, catch_exceptions=False)

    found, expected = json.loads(result.stdout), json.loads(in_memory_there.stdout)
    assert result.exit_code == 0
    assert {**found, "on": "fakes"} == expected
    assert found["on"] == "dynamodb"
