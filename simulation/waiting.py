"""What waits, beside 500 million rows: the audit of those that have been promoted, five million schedules as they are created, and the sweep."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import JobTemplate, Schedule
from functions.sweeper.sweep import SETTLING
from simulation.orders import LONGEST_LEAD, flow, tenants_of
from simulation.scenario import Goal, Scenario, Work, lag_goal
from simulation.scenarios import AFTER, ANSWER, START_OF_LOAD, WARM_UP, spaced
from simulation.schedule_requests import Put
from simulation.size import SCALE, WAITING, StageSize
from simulation.stage import SimulatedStage
from simulation.virtual_time import Dice

LONGEST_PASS = 1_200.0
"""Seconds in which the sweep has seen every schedule: a chain that broke goes on after twice as long, at most."""


def sweep(*, is_full: bool) -> Scenario:
    """The sweep over 5 million schedules."""
    end = START_OF_LOAD + WARM_UP + (1_500.0 if is_full else 420.0)

    def fill(stage: SimulatedStage) -> Work:
        each = (5_000_000 if is_full else 1_000_000) // stage.sample.shards
        tenants = tenants_of(stage.sample, stage.wheel, each=10).by_shard
        schedules = [
            Schedule(
                tenant=tenants[shard][number % 10],
                schedule_id=f"daily-{number}",
                rule=CronRule("0 6 * * *"),
                job=JobTemplate(target="https://t.example.com/normal", timeout=timedelta(seconds=30)),
            )
            for shard in stage.sample.sampled
            for number in range(each)
        ]
        stage.sweeps = True
        rate = 2_000 * stage.sample.share
        others = tenants_of(stage.sample, stage.wheel, each=4, prefix="other").names
        return Work(
            orders=flow(stage.dice, others, start=START_OF_LOAD, end=end, rate=lambda _: rate), schedules=schedules
        )

    return Scenario(
        name="sweep",
        title="The sweep over 5 million schedules",
        story="5 million daily schedules wait beside 500 million rows, none of them due; the sweep looks at each, beside 2,000 jobs a second.",
        size=StageSize(past=WAITING),
        sampled=spaced(512, 4 if is_full else 1),
        until=end + 60,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("sweep_pass_s", "seconds in which the sweep has seen every schedule", at_most=LONGEST_PASS),
            Goal("healed", "schedules that it took for broken", at_most=0),
        ),
        notes=(
            "a sweep is one process: over a sample of the states it has the same sample of its time",
            "rows that wait cost storage and partitions; no process walks over them",
        ),
    )


def audit(*, is_full: bool) -> Scenario:
    """The bucket audit, beside 10,000 jobs a second."""
    rate = 10_000.0 if is_full else 1_000.0
    # The first bucket that has rows is audited so long after its end, and then one each minute.
    end = START_OF_LOAD + SETTLING.total_seconds() + (480.0 if is_full else 240.0)

    def fill(stage: SimulatedStage) -> Work:
        stage.audits = True
        tenants = tenants_of(stage.sample, stage.wheel, each=10).names
        far = stage.wheel.guard.total_seconds() + 60
        share = stage.sample.share

        def lead(dice: Dice) -> float:
            return dice.random.uniform(far, LONGEST_LEAD)

        return Work(
            orders=flow(stage.dice, tenants, start=START_OF_LOAD, end=end, rate=lambda _: rate * share, lead=lead)
        )

    return Scenario(
        name="audit",
        title="The bucket audit",
        story=(
            f"{rate:,g} jobs a second come due, all of which have waited in the far ring: so 500 million do in 14 hours. "
            "The audit reads a share of them once more, five minutes after their minute."
        ),
        size=StageSize(past=WAITING),
        # Neighbours, because it counts them from 0: it chooses among these, and reads as many as of all shards.
        sampled=tuple(range(8)),
        until=end + AFTER,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("audit_s", "seconds that the audit of a minute takes, of 24 that it has", at_most=24),
            Goal("audit_behind_s", "seconds that it is behind, buckets of a minute each", at_most=120),
            Goal(
                "audited_a_bucket",
                "jobs of a minute that it has read again",
                at_least=0.5 * rate * 60 * SCALE.audit_sample,
            ),
            Goal("stragglers", "jobs that it took for lost", at_most=0),
        ),
        notes=(
            "of all shards it chooses 1 %, of the simulated ones as many: its reads, its time and its units are those of the whole stage",
            "its units are counted by themselves, without those of the scanners and workers on the same partitions",
        ),
    )


def creation(*, is_full: bool) -> Scenario:
    """5 million schedules are created."""
    count = 5_000_000 if is_full else 200_000
    seconds = count / PUTS
    end = START_OF_LOAD + seconds

    def fill(stage: SimulatedStage) -> Work:
        share, dice = stage.sample.share, stage.dice
        each = count // stage.sample.shards
        tenants = tenants_of(stage.sample, stage.wheel, each=10).by_shard
        # One tenant of the sample after the other creates its own.
        wanted = [
            (tenants[shard][place], number)
            for place in range(10)
            for shard in stage.sample.sampled
            for number in range(each // 10)
        ]
        rate = len(wanted) / seconds
        puts = [
            (START_OF_LOAD + (place + dice.random.random()) / rate, Put(tenant, f"daily-{number}", DEFINITION))
            for place, (tenant, number) in enumerate(wanted)
        ]
        others = tenants_of(stage.sample, stage.wheel, each=4, prefix="other").names
        orders = flow(dice, others, start=START_OF_LOAD, end=end, rate=lambda _: 2_000 * share)
        return Work(orders=orders, puts=puts)

    sampled = spaced(512, 4 if is_full else 1)
    planned = count // 512 // 10 * 10 * 512
    return Scenario(
        name="creation",
        title=f"{count / 1e6:g} million schedules are created",
        story=(
            f"{PUTS:,g} requests a second put a schedule each, until there are {count / 1e6:g} million, beside 2,000 jobs a second. "
            "All of them fire at one instant: their alarms are written into one bucket."
        ),
        size=StageSize(past=WAITING),
        sampled=sampled,
        until=end + AFTER,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("created", "schedules that exist at the end", at_least=planned),
            Goal("created_until_s", "seconds until the last one was created", at_most=end + ANSWER),
            Goal("put_refused", "requests that were refused", at_most=0),
            Goal("without_alarm", "schedules without the alarm of their first fire", at_most=0),
            Goal("answer_p99_s", "seconds until a request is answered, at the 99th percentile", at_most=ANSWER),
        ),
        notes=(
            f"one tenant of the sample after the other puts {count // 5_120:,}, {PUTS * len(sampled) / 512:g} a second",
            "a request takes 20 ms of CPU, as the cost page assumes",
        ),
    )


PUTS = 1_000.0
"""Schedules that are put a second: a tenth of the requests that an account may make, half of those of its audit trail."""

DEFINITION = {
    "cron": "0 6 * * *",
    "job": {"target": "https://t.example.com/normal", "payload": {"order": 1}, "timeout": 30},
}
"""As a caller writes it."""
