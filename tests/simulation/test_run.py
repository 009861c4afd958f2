"""Runs of a small scenario: the same seed is the same run, and what goes wrong is reported."""

from collections.abc import Sequence

from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import JobTemplate, Schedule
from infra.stage_parts import FunctionSize
from simulation.orders import flow, tenants_of
from simulation.outcome import Result
from simulation.run import simulate
from simulation.scenario import Work
from simulation.size import PROD
from simulation.stage import SimulatedStage
from tests.simulation.small import a_scenario


def _keep(message_ids: Sequence[str]) -> None:
    """A queue that forgets what was acknowledged."""


BUCKET = 1


def missed(result: Result) -> set[str]:
    return {verdict.goal.fact for verdict in result.verdicts if not verdict.holds}


def repeatable(result: Result) -> dict[str, object]:
    return {**result.as_json(), "seconds": 0.0}


def test_a_small_load_is_served_in_time_and_once() -> None:
    result = simulate(a_scenario(), seed=1)

    assert result.is_held
    assert result.jobs == result.calls > 1_000
    assert 0.3 < result.lag.p50 < 0.8
    assert result.lag.p50 < result.lag.p99 < 1.5
    assert result.facts["lost"] == result.facts["early"] == 0
    assert set(result.by_class) == {"critical", "high", "normal", "low"}


def test_the_same_seed_is_the_same_run() -> None:
    assert repeatable(simulate(a_scenario(), seed=7)) == repeatable(simulate(a_scenario(), seed=7))


def test_another_seed_is_another_run() -> None:
    first, second = simulate(a_scenario(), seed=7), simulate(a_scenario(), seed=8)

    assert first.jobs != second.jobs or first.lag != second.lag


def test_a_far_job_costs_what_the_budgets_say() -> None:
    """Three write units for a far job, two for a near one, as the benchmark measures them on DynamoDB's own engine."""
    result = simulate(a_scenario(rate=40.0), seed=1)

    # Four in five are far. The leases and cursors of a few shards count little among so many jobs.
    writes = result.cost["dynamodb_write_unit"] / 0.625
    assert 2.75 < writes < 2.9


def test_too_few_workers_miss_the_target() -> None:
    result = simulate(
        a_scenario(
            rate=80.0,
            stage={"max_concurrency": (2, 2, 2, 2), "worker": FunctionSize(memory_mb=128, timeout=PROD.worker.timeout)},
        ),
        seed=1,
    )

    assert missed(result) == {"lag_p99_s"}
    assert result.facts["visible_peak"] > 0


def test_rows_that_vanish_are_reported_as_lost() -> None:
    def vanish(stage: SimulatedStage) -> None:
        stage.world.at(150.0, stage.kept.rows.rows.clear)

    result = simulate(a_scenario(happens=vanish), seed=1)

    assert missed(result) == {"lost"}
    assert result.facts["lost"] > 500


def test_an_effect_that_happens_twice_is_reported() -> None:
    """Without its ledger row, a message that comes again has its effect again."""

    def deliver_again(stage: SimulatedStage) -> None:
        def again() -> None:
            stage.kept.ledger.rows.clear()
            for queue in stage.queues.values():
                queue.delete = _keep

        stage.world.at(310.0, again)
        stage.world.at(500.0, stage.kept.ledger.rows.clear)

    result = simulate(a_scenario(happens=deliver_again, until=620.0), seed=1)

    assert "doubled" in missed(result)


def test_a_full_partition_is_reported() -> None:
    result = simulate(a_scenario(rate=500.0, seconds=2.0), seed=1)

    assert result.facts["timers_write_peak"] <= 1_000
    assert result.facts["timers_throttled"] == 0

    def burst(stage: SimulatedStage) -> None:
        table = stage.tables.timers

        def write() -> None:
            for _ in range(1_100):
                table.take(BUCKET, 0, at=20.0, units=1, is_ticked=False)

        stage.world.at(20.0, write)

    throttled = simulate(a_scenario(happens=burst), seed=1)

    assert throttled.facts["timers_throttled"] >= 100
    assert throttled.facts["timers_write_peak"] == 1_000


def test_jobs_of_the_time_in_which_the_scheduler_is_away_are_late() -> None:
    result = simulate(a_scenario(down=(100.0, 400.0), until=620.0), seed=1)

    assert result.facts["lost"] == 0
    assert missed(result) == {"lag_p99_s"}
    assert 40 < result.lag.p99 < 200
    assert result.facts["caught_up_after_s"] >= 0


def test_alarms_that_a_full_partition_refused_ring_by_a_later_tick() -> None:
    def herd(stage: SimulatedStage) -> Work:
        for second in range(180, 300):
            stage.world.at(float(second), lambda at=second: fill_up(stage, at=at))
        rule, job = CronRule("5 * * * *"), JobTemplate(target="https://t.example.com/normal")
        return Work(
            orders=[],
            schedules=[
                Schedule(tenant="t", schedule_id=f"hourly-{number}", rule=rule, job=job) for number in range(200)
            ],
        )

    def fill_up(stage: SimulatedStage, *, at: float) -> None:
        for bucket in range(16):  # keys on all of its partitions
            for _ in range(1_000):
                stage.tables.timers.take(bucket, 0, at=at, units=1, is_ticked=False)

    result = simulate(a_scenario(fill=herd, until=620.0), seed=1)

    assert result.facts["timers_throttled"] > 0
    assert (result.jobs, result.calls, result.facts["lost"]) == (200, 200, 0)


def test_all_textbook_designs_run_beside_it() -> None:
    result = simulate(a_scenario(), seed=1)

    assert [baseline.name for baseline in result.baselines] == ["fifo", "cursor", "round_robin", "sorted_set"]
    assert all(baseline.finished == 1.0 for baseline in result.baselines)
    fifo, cursor, _, sorted_set = result.baselines
    assert fifo.lag.p99 < sorted_set.lag.p99 < cursor.lag.p99
    assert cursor.lag.p50 > 20


def test_a_sweep_over_a_sample_takes_the_time_that_it_takes_over_the_whole() -> None:
    def daily(stage: SimulatedStage) -> Work:
        stage.sweeps = True
        rule, job = CronRule("0 6 * * *"), JobTemplate(target="https://t.example.com/normal")
        schedules = [Schedule(tenant="t", schedule_id=f"daily-{number}", rule=rule, job=job) for number in range(5_000)]
        tenants = tenants_of(stage.sample, stage.wheel, each=2).names
        return Work(orders=flow(stage.dice, tenants, start=300.0, end=310.0, rate=lambda _: 5.0), schedules=schedules)

    whole = simulate(a_scenario(fill=daily, goals=(), until=620.0), seed=1)

    # Ten pages of 5 ms and the CPU of 500 rows each.
    assert 0.1 < whole.facts["sweep_pass_s"] < 1
    assert whole.facts["healed"] == 0
