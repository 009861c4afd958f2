"""The scenarios of steady and of heavy load. Each is a function of whether it runs at full or at reduced size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from functions.domain.jobs.job import Payload, Priority
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import JobTemplate, Schedule
from infra.capacity import SIMULATED_INVOCATIONS
from simulation.orders import LONGEST_LEAD, RETRY, TIMEOUT, flow, tenants_of, usual_class
from simulation.scenario import SLA, STEADY_LAG, WRITES, Goal, Scenario, Work, lag_goal
from simulation.size import HERD, SCALE, WAITING, StageSize
from simulation.stage import SimulatedStage

START_OF_LOAD = 300.0
"""Seconds: from here on jobs come due. Before, the first rows are promoted."""

AFTER = 60.0
"""Seconds in which what is left comes to its end."""

WARM_UP = 120.0
"""Seconds of load before anything is measured: event sources begin with 5 invocations."""

FULL_HOUR = 3_600.0


class Make(Protocol):
    """Makes a scenario, at full or at reduced size."""

    def __call__(self, *, is_full: bool) -> Scenario:
        """The scenario."""
        ...


def spaced(shards: int, count: int) -> tuple[int, ...]:
    """So many of the shards, evenly spaced."""
    return tuple(range(0, shards, shards // count))


def steady(*, is_full: bool) -> Scenario:
    """10,000 executions a second."""
    seconds, ahead = (600.0, LONGEST_LEAD) if is_full else (60.0, 600.0)
    end = START_OF_LOAD + WARM_UP + seconds

    def fill(stage: SimulatedStage) -> Work:
        tenants = tenants_of(stage.sample, stage.wheel, each=10).names
        rate = 10_000 * stage.sample.share
        orders = flow(stage.dice, tenants, start=START_OF_LOAD, end=end, rate=lambda _: rate)
        # What comes due after the run is written in it all the same.
        later = flow(stage.dice, tenants, start=end + AFTER, end=end + ahead, rate=lambda _: rate)
        return Work(orders=[*orders, *(order for order in later if 0 <= order.submitted_at < end)])

    return Scenario(
        name="steady",
        title="Steady 10,000 jobs a second",
        story="10,000 jobs a second are submitted and come due; one in five within four minutes, the others up to an hour ahead.",
        size=StageSize(past=WAITING),
        sampled=spaced(512, 8),
        until=end + AFTER,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(
            lag_goal(),
            WRITES,
            *(
                Goal(f"lag_p99_s_{name}", f"lag of {name} at the 99th percentile, in seconds", at_most=STEADY_LAG)
                for name in ("critical", "high", "normal", "low")
            ),
        ),
    )


def burst(*, is_full: bool) -> Scenario:
    """50,000 submissions a second into one bucket."""
    burst_at, due_at = START_OF_LOAD + 60, START_OF_LOAD + 660
    end = due_at + 420

    def fill(stage: SimulatedStage) -> Work:
        tenants, share = tenants_of(stage.sample, stage.wheel, each=10).names, stage.sample.share
        base = flow(stage.dice, tenants, start=START_OF_LOAD, end=end, rate=lambda _: 5_000 * share)
        herd = flow(stage.dice, tenants, start=due_at, end=due_at + 60, rate=lambda _: 50_000 * share)
        # Submitted within one minute too, in an order of its own.
        herd = [order._replace(submitted_at=burst_at + 60 * stage.dice.random.random()) for order in herd]
        return Work(orders=[*base, *herd])

    return Scenario(
        name="burst",
        title="Burst of 50,000 submissions a second",
        story=(
            "5,000 jobs a second all the time; for one minute 50,000 more a second are submitted, "
            "and all of these come due within one minute: one bucket."
        ),
        size=StageSize(past=WAITING),
        sampled=spaced(512, 4 if is_full else 1),
        until=end + 60,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(lag_goal(SLA), WRITES),
    )


def _herd(
    name: str,
    title: str,
    story: str,
    *,
    is_full: bool,
    spread: timedelta = timedelta(0),
    jitter: timedelta = timedelta(0),
) -> Scenario:
    until = FULL_HOUR + 420

    def fill(stage: SimulatedStage) -> Work:
        each = (5_000_000 if is_full else 1_000_000) // stage.sample.shards
        tenants = tenants_of(stage.sample, stage.wheel, each=10).by_shard
        schedules = [
            _schedule(tenants[shard][number % 10], number, spread=spread, jitter=jitter)
            for shard in stage.sample.sampled
            for number in range(each)
        ]
        others = tenants_of(stage.sample, stage.wheel, each=4, prefix="other").names
        rate = 2_000 * stage.sample.share
        orders = flow(
            stage.dice, others, start=FULL_HOUR - 240, end=until - 60, rate=lambda _: rate, priority_of=usual_class
        )
        return Work(orders=orders, schedules=schedules)

    return Scenario(
        name=name,
        title=title,
        story=story,
        size=StageSize(stage=SCALE if spread or jitter else HERD, past=WAITING),
        sampled=spaced(512, 4 if is_full else 1),
        until=until,
        window=(FULL_HOUR, FULL_HOUR + 241),
        fill=fill,
        goals=(
            lag_goal(SLA),
            Goal("last_measured_s", "seconds after the hour at which the last of them has run", at_most=SLA),
        ),
        notes=("the schedules are hourly: the alarms of the next hour are written into one bucket meanwhile",),
    )


def _schedule(tenant: str, number: int, *, spread: timedelta, jitter: timedelta) -> Schedule:
    return Schedule(
        tenant=tenant,
        schedule_id=f"hourly-{number}",
        rule=CronRule("0 * * * *"),
        job=JobTemplate(
            target=f"https://{tenant}.example.com/{Priority.NORMAL.name.lower()}",
            payload=Payload(text='{"order":1}'),
            retry=RETRY,
            timeout=TIMEOUT,
        ),
        spread=spread,
        jitter=jitter,
    )


def herd(*, is_full: bool) -> Scenario:
    """5 million schedules at one instant."""
    return _herd(
        "herd",
        "5 million schedules at :00",
        "5 million hourly schedules fire on the hour, all at the same instant, beside 2,000 jobs a second.",
        is_full=is_full,
    )


def herd_spread(*, is_full: bool) -> Scenario:
    """The same with `spread`."""
    return _herd(
        "herd_spread",
        "5 million schedules at :00, spread over 4 minutes",
        "The same schedules with `spread: 4m`: each has its own constant offset.",
        is_full=is_full,
        spread=timedelta(minutes=4),
    )


def herd_smear(*, is_full: bool) -> Scenario:
    """The same with `jitter`."""
    return _herd(
        "herd_smear",
        "5 million schedules at :00, smeared over 4 minutes",
        "The same schedules with `jitter: 4m`: each occurrence has an offset of its own.",
        is_full=is_full,
        jitter=timedelta(minutes=4),
    )


def executions(*, is_full: bool, ramp: float | None = None) -> Scenario:
    """100,000 executions a second. ramp: seconds within which there are so many."""
    ramp, hold = ramp or (600.0 if is_full else 540.0), 120.0 if is_full else 30.0
    top_at = START_OF_LOAD + ramp
    end = top_at + 30 + hold

    def fill(stage: SimulatedStage) -> Work:
        tenants, share = tenants_of(stage.sample, stage.wheel, each=10).names, stage.sample.share

        def rate(at: float) -> float:
            return share * min(100_000.0, 10_000 + 90_000 * (at - START_OF_LOAD) / ramp)

        return Work(orders=flow(stage.dice, tenants, start=START_OF_LOAD, end=end, rate=rate))

    return Scenario(
        name="executions",
        title="100,000 executions a second",
        story=f"The load grows from 10,000 to 100,000 jobs a second within {ramp:g} s and stays there.",
        size=StageSize(past=WAITING),
        sampled=spaced(512, 2 if is_full else 1),
        until=end + 60,
        window=(top_at + 30, end),
        fill=fill,
        goals=(
            lag_goal(),
            WRITES,
            Goal("called_a_second", "jobs called a second, at the top", at_least=97_000),
            Goal("ledger_write_peak", "write units a second of the fullest partition of the ledger", at_most=1_000),
            Goal("in_flight_peak", "messages in flight, of all four queues", at_most=4 * 120_000),
            Goal("concurrency_peak", "workers at once, as `tickwheel doctor` asks for", at_most=SIMULATED_INVOCATIONS),
        ),
        notes=("a ready_capacity of 20 million: three minutes of jobs wait in the queues",),
    )


def front_door(*, is_full: bool) -> Scenario:
    """10,000 submissions a second, by way of the API."""
    seconds = 120.0 if is_full else 40.0
    return _front_door(
        "front_door",
        "The front door: 10,000 submissions a second",
        "10,000 jobs a second come in through the API, two in each request: half the requests that an account may make.",
        submitted=(60.0, 60.0 + seconds),
        rate=10_000,
        jobs=2,
    )


def front_door_burst(*, is_full: bool) -> Scenario:
    """50,000 submissions a second, by way of the API."""
    seconds = 60.0 if is_full else 15.0
    return _front_door(
        "front_door_burst",
        "The front door: a burst of 50,000 submissions a second",
        f"50,000 jobs a second come in through the API for {seconds:g} s, 25 in each request, from one second to the next.",
        submitted=(60.0, 60.0 + seconds),
        rate=50_000,
        jobs=25,
    )


def _front_door(
    name: str, title: str, story: str, *, submitted: tuple[float, float], rate: float, jobs: int
) -> Scenario:
    start, end = submitted
    due_at, until = start + 300, end + 700

    def fill(stage: SimulatedStage) -> Work:
        tenants, share = tenants_of(stage.sample, stage.wheel, each=10).names, stage.sample.share
        orders = flow(stage.dice, tenants, start=start, end=end, rate=lambda _: rate * share, lead=lambda _: 0.0)
        # They come due later, over so long a time that the workers are no matter here.
        return Work(orders=[order._replace(due_at=stage.dice.random.uniform(due_at, until - 60)) for order in orders])

    return Scenario(
        name=name,
        title=title,
        story=story,
        size=StageSize(past=WAITING),
        sampled=spaced(512, 4),
        until=until,
        window=(due_at + WARM_UP, until),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("answer_p99_s", "seconds until a request is answered, at the 99th percentile", at_most=ANSWER),
            Goal("requests_throttled", "requests that the gateway refused", at_most=0),
        ),
        requests_of=lambda _: jobs,
        notes=("a request takes 20 ms of CPU, and 2 ms for each of its jobs, as the cost page assumes",),
    )


ANSWER = 2.0
"""Seconds at the 99th percentile, cold starts included."""


def slow_scanners(*, is_full: bool) -> Scenario:
    """Half of the scanners are slow."""
    end = START_OF_LOAD + WARM_UP + (300.0 if is_full else 90.0)

    def fill(stage: SimulatedStage) -> Work:
        tenants, rate = tenants_of(stage.sample, stage.wheel, each=10).names, 10_000 * stage.sample.share
        return Work(orders=flow(stage.dice, tenants, start=START_OF_LOAD, end=end, rate=lambda _: rate))

    sampled = spaced(512, 4)
    return Scenario(
        name="slow_scanners",
        title="Half of the scanners are slow",
        story="10,000 jobs a second, while every call of every second scanner takes 10 times as long as usual.",
        size=StageSize(past=WAITING),
        sampled=sampled,
        until=end + 60,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(lag_goal(), WRITES),
        slowness=slow_half(sampled),
    )


def slow_half(sampled: Sequence[int]) -> Callable[[int], float]:
    """10 for every second shard."""
    slow = set(sampled[::2])
    return lambda shard: 10.0 if shard in slow else 1.0


def resharding(*, is_full: bool) -> Scenario:
    """Twice as many shards, under load."""
    end = START_OF_LOAD + WARM_UP + (480.0 if is_full else 330.0)
    count = 2 if is_full else 1
    low = spaced(256, count)

    def fill(stage: SimulatedStage) -> Work:
        tenants, rate = tenants_of(stage.sample, stage.wheel, each=10).names, 10_000 * stage.sample.share
        return Work(orders=flow(stage.dice, tenants, start=START_OF_LOAD, end=end, rate=lambda _: rate))

    return Scenario(
        name="resharding",
        title="From 256 to 512 shards under load",
        story="10,000 jobs a second; in the middle of it write_shards goes from 256 to 512, after scan_shards has.",
        size=StageSize(past=WAITING, old_shards=256, resharded_at=START_OF_LOAD + WARM_UP),
        # A tenant of shard s of 256 is on s or s + 256 of 512: these are closed under the change.
        sampled=(*low, *(shard + 256 for shard in low)),
        until=end + 60,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(lag_goal(), WRITES, Goal("both_sides", "jobs on shards that were written before and after", at_least=1)),
    )
