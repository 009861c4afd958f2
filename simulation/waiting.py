"""What waits: five million schedules, over whose states the sweep goes, beside 500 million rows."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import JobTemplate, Schedule
from simulation.orders import flow, tenants_of
from simulation.scenario import Goal, Scenario, Work, lag_goal
from simulation.scenarios import START_OF_LOAD, WARM_UP, spaced
from simulation.size import HERD, WAITING, StageSize
from simulation.stage import SimulatedStage

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
        size=StageSize(stage=HERD, past=WAITING),
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
