"""The benchmarks' own rules: budgets that break the run, prices with sources, percentiles, the meter's corrections."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from types import SimpleNamespace
from typing import Any, get_args

import boto3
import pytest
from rich.console import Console

from bench import __main__ as command
from bench import budgets, lag, promotion, recovery, results, schedules, units
from bench.boundary import answer, hearing
from bench.budgets import (
    COLLECTED,
    FLOWS,
    KNOWLEDGE,
    MARK,
    OCCURRENCES,
    PROMOTED_A_SECOND,
    TICK,
    TOGETHER,
    UNITS,
    Path,
    Units,
)
from bench.clock import SettableClock
from bench.lag import Lag
from bench.measured import Measured
from bench.meter import Meter
from bench.prices import price_of_a_million, read_prices
from bench.queues import QUEUE_URLS, HeldQueues
from functions.adapters import clients
from functions.adapters.system_clock import SystemClock
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery, Precision
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules.rules import At, Rule
from functions.domain.wheel import Ring
from testkit.builders import LOCAL_WHEEL, NOON
from tickwheel.demo.sink import Arrival

FAR_EXACTLY_ONCE = Path(Ring.FAR, Delivery.EXACTLY_ONCE, keyed=False)
ON_BUDGET = Measured(
    paths=UNITS,
    occurrences=OCCURRENCES,
    flows={name: units for name, (_, units) in FLOWS.items()},
    collected={name: units for name, (_, units) in COLLECTED.items()},
    together=TOGETHER,
    tick=TICK,
    mark=MARK,
    knowledge=KNOWLEDGE,
)


@pytest.fixture(autouse=True)
def folders(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> dict[str, FilePath]:
    """Where figures go: nothing here is to touch those of the repository."""
    found = {"FOLDER": tmp_path / "kept", "NEWEST": tmp_path / "newest"}
    for name, folder in found.items():
        folder.mkdir()
        monkeypatch.setattr(results, name, folder)
    return found


def an_arrival(name: str, *, late: timedelta) -> Arrival:
    return Arrival(name=name, attempt=1, scheduled_at=NOON, arrived_at=NOON + late, accepted=True)


def a_lag(**overrides: Any) -> Lag:
    late: dict[str, Any] = dict.fromkeys(("p50", "p95", "p99", "worst"), SECOND)
    return Lag(**{**late, "jobs": 10, "early": 0, "missing": 0, "again": 0, **overrides})


def test_every_path_has_a_budget_and_a_key_costs_one_write_more() -> None:
    for path, budget in UNITS.items():
        if path.keyed:
            assert budget == UNITS[path._replace(keyed=False)] + Units(1, 0, 0)
    assert len(UNITS) == len(Ring) * len(Delivery) * 2


def test_what_is_on_budget_passes() -> None:
    assert units.above_budget(ON_BUDGET) == []


def test_a_doctored_budget_fails_and_names_the_path_the_figure_and_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "UNITS", {**UNITS, FAR_EXACTLY_ONCE: replace(UNITS[FAR_EXACTLY_ONCE], writes=2.9)})

    assert units.above_budget(ON_BUDGET) == ["far, exactly_once: writes are 3 a job, above the budget of 2.9"]


def test_an_occurrence_has_a_budget_too() -> None:
    used = {**OCCURRENCES, Overlap.FORBID: Units(6, 2.8, 0.3)}
    assert units.above_budget(replace(ON_BUDGET, occurrences=used)) == [
        "an occurrence, forbid: writes are 6 a job, above the budget of 5"
    ]


def test_every_kind_of_rule_is_measured() -> None:
    measured = {type(schedule.rule) for schedule in schedules.SCHEDULES.values()}
    assert measured == set(get_args(Rule)) - {At}  # it has no next fire to be found


def test_a_kind_below_its_budget_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "MEASURED_SECONDS", 0.01)
    monkeypatch.setattr(schedules, "NEXT_FIRES_A_SECOND", {"cron": 10**9})

    (sentence,) = schedules.run(Console(quiet=True))

    assert sentence.startswith("cron: ")
    assert sentence.endswith("below the budget of 1,000,000,000")


def test_a_tick_has_a_budget_too() -> None:
    measured = replace(ON_BUDGET, tick=Units(2, 1, 0))

    assert units.above_budget(measured) == ["an idle tick of a shard: reads are 1 a job, above the budget of 0.5"]


def test_a_mark_has_a_budget_too() -> None:
    measured = replace(ON_BUDGET, mark=Units(2, 0.5, 0))

    assert units.above_budget(measured) == ["the mark of a tenant's day: writes are 2 a job, above the budget of 1"]


def test_a_rounding_error_is_no_cost() -> None:
    assert units.above_budget(replace(ON_BUDGET, tick=Units(2, 0.5 + 1e-12, 0))) == []


def test_a_slow_core_is_named_with_its_figure() -> None:
    assert promotion.below_target(PROMOTED_A_SECOND) == []
    assert promotion.below_target(2_999) == [
        "promotion: one core promotes 2,999 jobs a second, below the target of 3,000"
    ]


@pytest.mark.parametrize(("broken", "code"), [([], 0), (["far: writes are 4 a job"], 1)])
def test_the_command_exits_with_1_when_a_part_breaks_its_budget(
    broken: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts: dict[str, Callable[[Console], list[str]]] = {"units": lambda _: broken, "lag": lambda _: []}
    monkeypatch.setattr(command, "PARTS", parts)

    assert command.main([]) == code
    assert all(sentence in capsys.readouterr().out for sentence in broken)


def test_the_command_runs_the_parts_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(
        command, "PARTS", {name: lambda _, name=name: ran.append(name) or [] for name in ("units", "promotion", "lag")}
    )

    command.main(["lag"])

    assert ran == ["lag"]


def test_a_part_of_the_units_is_measured_by_name_and_leaves_no_figures(
    folders: dict[str, FilePath], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(units, "run_only", lambda _, only: asked.append(only) or ["an order: writes are 9 a job"])

    assert command.main(["units", "--only", "order"]) == 1

    assert asked == ["order"]
    assert not list(folders["NEWEST"].glob("*.json"))


@pytest.mark.parametrize("named", [[], ["runs"], ["units", "runs"]])
def test_only_the_units_have_parts_that_are_measured_by_name(
    named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([*named, "--only", "order"])

    assert ended.value.code == 2
    assert "--only is for units alone" in capsys.readouterr().err


def test_a_flow_has_a_budget_too() -> None:
    used = {**ON_BUDGET.flows, budgets.OUT_OF_TURN: Units(10**3, 0, 0)}

    (sentence,) = units.above_budget(replace(ON_BUDGET, flows=used))

    assert sentence.startswith("an order, behind others: writes are 1000 a job, above the budget of ")


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_run_leaves_the_figures_of_the_repository_unless_it_is_reported_to_keep_its_own(
    is_kept: bool, folders: dict[str, FilePath], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, name in ((folders["FOLDER"], "units.json"), (folders["NEWEST"], "of-a-run-before.json")):
        (folder / name).write_text('"before"')

    def measure(_: Console) -> list[str]:
        results.write_result("units.json", {"writes": 3})
        return []

    monkeypatch.setattr(command, "PARTS", {"units": measure})

    command.main(["--keep"] if is_kept else [])

    kept = {file.name: json.loads(file.read_text()) for file in folders["FOLDER"].iterdir()}
    assert set(kept) == {"units.json"}
    assert (kept["units.json"] == "before") is not is_kept


def test_a_million_far_exactly_once_jobs_cost_about_two_dollars() -> None:
    assert price_of_a_million(Units(3, 0.2, 0.3), read_prices()) == pytest.approx(3 * 0.625 + 0.2 * 0.125 + 0.3 * 0.5)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    seen = [number * SECOND for number in range(1, 101)]

    assert [lag.percentile(seen, percent) for percent in (50, 99, 100)] == [50 * SECOND, 99 * SECOND, 100 * SECOND]
    assert lag.percentile([SECOND], 50) == SECOND
    assert lag.percentile([], 99) == timedelta(0)


def placed(ring: Ring, *rings: Ring, took: timedelta = SECOND) -> lag.Placed:
    jobs = [lag.Planned(f"{number}", lag.Group(ring, Precision.DEFAULT), SECOND) for number in range(len(rings))]
    return lag.Placed(lag.as_placed(jobs, rings), submitted_in=took, last_due_at=NOON)


def test_a_far_job_that_was_placed_too_late_counts_as_near() -> None:
    found = placed(Ring.FAR, Ring.FAR, Ring.NEAR)

    assert [job.group.ring for job in found.jobs] == [Ring.FAR, Ring.NEAR]


def test_a_machine_that_is_fast_enough_is_measured() -> None:
    measured = lag.Measured(placed(Ring.FAR, Ring.FAR), placed(Ring.NEAR, Ring.NEAR), [])

    assert lag.too_slow(measured) == ""


def test_a_busy_machine_is_told_what_went_wrong_and_what_to_do() -> None:
    far = placed(Ring.FAR, Ring.FAR, Ring.NEAR, took=17 * SECOND)
    near = placed(Ring.NEAR, Ring.NEAR)

    moved = lag.too_slow(lag.Measured(far, near, []))
    late = lag.too_slow(lag.Measured(far, replace(near, submitted_in=21 * SECOND), []))

    assert moved == (
        "lag: 1 of 2 far jobs were near when they were submitted, and count as near: submitting took 17 s, and 15 s are allowed for it. "
        "Something else keeps this machine busy: end it, and measure again. lag.json is as it was"
    )
    assert "near jobs were due when they were submitted: submitting took 21 s, and 20 s are allowed" in late


def test_lag_counts_early_missing_and_repeated_jobs_apart() -> None:
    arrivals = [
        an_arrival("on-time", late=SECOND),
        an_arrival("on-time", late=9 * SECOND),
        an_arrival("early", late=-SECOND),
        an_arrival("of-another-group", late=5 * SECOND),
    ]

    found = lag.lag_of(["on-time", "early", "lost"], arrivals)

    assert (found.jobs, found.early, found.missing, found.again) == (3, 1, 1, 1)
    assert (found.p50, found.worst) == (timedelta(0), SECOND)


def test_early_and_missing_jobs_break_the_run_and_late_ones_do_not() -> None:
    group = lag.Group(Ring.NEAR, Precision.EXACT)

    assert lag.broken_promises({group: a_lag(p99=60 * SECOND)}) == []
    assert lag.broken_promises({group: a_lag(early=1)}) == [
        "lag, near-exact: 1 of 10 jobs fired early, the budget is 0"
    ]
    assert len(lag.broken_promises({group: a_lag(missing=2)})) == 1


def test_the_plan_has_far_jobs_that_are_far_when_they_are_submitted() -> None:
    planned = lag.plan(guard=LOCAL_WHEEL.guard)

    for job in planned:
        for submitted_after in (timedelta(0), 2 * SECOND):
            now = datetime.now(UTC)
            assert LOCAL_WHEEL.place(now + job.delay - submitted_after, now=now) is job.group.ring
    assert len({job.name for job in planned}) == len(planned) == 2 * (lag.NEAR_JOBS + lag.FAR_JOBS)


def test_the_meter_counts_what_dynamodb_local_does_not_report() -> None:
    meter = Meter()

    _consume(meter, "UpdateItem", {"Error": {"Code": "ConditionalCheckFailedException"}})
    _consume(meter, "Query", {"ConsumedCapacity": {"TableName": "timers", "CapacityUnits": 0.0}})
    _consume(meter, "BatchWriteItem", {"ConsumedCapacity": [{"TableName": "timers", "CapacityUnits": 25.0}]})

    assert meter.take("timers") == (26.0, 0.5)
    assert meter.take("timers") == (0.0, 0.0)


@pytest.mark.parametrize(("consistent", "units_of_two"), [(False, 1.0), (True, 2.0)])
def test_the_meter_counts_the_keys_of_a_batch_that_are_not_there(*, consistent: bool, units_of_two: float) -> None:
    meter = Meter()
    batch = {"Keys": [{"k": {"S": key}} for key in "abcd"], "ConsistentRead": consistent}
    answered = {"Responses": {"ledger": [{}]}, "UnprocessedKeys": {"ledger": {"Keys": [{}]}}}

    _consume(meter, "BatchGetItem", answered, RequestItems={"ledger": batch})

    assert meter.take("ledger") == (0.0, units_of_two)


def test_the_meter_refuses_what_it_has_no_price_for() -> None:
    with pytest.raises(NotImplementedError, match="ExecuteStatement"):
        _consume(Meter(), "ExecuteStatement", {})


def test_clients_made_inside_reach_nothing_but_the_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    clients.sqs()  # what was made before is not what is made inside
    monkeypatch.setenv("AWS_PROFILE", "production")
    session = boto3.DEFAULT_SESSION

    with hearing({"before-send.dynamodb": lambda request, **_: answer(request, b'{"TableNames": ["stubbed"]}')}):
        assert "AWS_PROFILE" not in os.environ
        assert boto3.client("dynamodb").list_tables()["TableNames"] == ["stubbed"]
        assert clients.dynamodb(SystemClock()).list_tables()["TableNames"] == ["stubbed"]

    assert os.environ["AWS_PROFILE"] == "production"
    assert boto3.DEFAULT_SESSION is session


def test_held_queues_bill_by_64_kb_and_deliver_when_the_last_message_is_visible() -> None:
    clock = SettableClock()
    queues = HeldQueues(clock)
    with hearing(queues.handlers):
        entries: Any = [
            {"Id": str(seconds), "MessageBody": "x" * 40_000, "DelaySeconds": seconds} for seconds in (3, 7)
        ]
        boto3.client("sqs").send_message_batch(QueueUrl=QUEUE_URLS[0], Entries=entries)
    assert queues.take_requests() == 2  # two chunks of 64 KB

    start = clock.now()
    batches = list(queues.deliver())

    assert [len(batch) for batch in batches] == [2]
    assert clock.now() - start == 7 * SECOND
    assert queues.take_requests() == 2  # a receive and a delete


def _consume(meter: Meter, operation: str, parsed: dict[str, Any], **params: Any) -> None:
    model: Any = SimpleNamespace(name=operation)
    context: dict[str, Any] = {}
    for event, handler in meter.handlers.items():
        if event.startswith("before-parameter-build"):
            handler(params={"TableName": "timers", **params}, model=model, context=context)
        else:
            handler(model=model, parsed=parsed, context=context)


def test_a_job_that_ran_again_too_late_breaks_the_run_unless_its_worker_died_before_it_could_hide_it():
    late, soon = recovery.RECOVERY + SECOND, recovery.RECOVERY
    (tracked, *_), (early,) = recovery.ROUNDS

    assert recovery.broken_promises([recovery.Recovery(tracked, soon), recovery.Recovery(early, late)]) == []
    (sentence,) = recovery.broken_promises([recovery.Recovery(tracked, late)])
    assert sentence == "recovery, timeout of 30 s, the default: 91 s, the budget is 90 s"


def test_a_job_that_ran_again_before_its_worker_died_tells_nothing():
    (tracked, *_), _ = recovery.ROUNDS

    (sentence,) = recovery.broken_promises([recovery.Recovery(tracked, -23 * SECOND)])

    assert "before its worker was killed" in sentence


def test_what_is_expected_of_a_recovery_is_what_the_page_says_of_the_local_stage():
    expected = {case.name: case.expected // SECOND for cases in recovery.ROUNDS for case in cases}

    assert expected == {
        "timeout of 30 s, the default": 45,
        "timeout of 50 s, the longest": 59,
        "at_least_once": 45,
        "killed in its first second": 85,
    }
