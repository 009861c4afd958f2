"""What is asked of a stage: jobs and schedules of tenants that live on the sampled shards.

A shard is chosen by the tenant, so a sample of the shards is a sample of the tenants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.collection import member_identity
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.jobs.occurrence import identity_of
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.jobs.submission import Submission
from functions.domain.schedules.due_fires import shard_of
from functions.domain.schedules.fire_rates import share_of
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Cut, Link, ScheduleState, Share, Status
from functions.domain.targets.flows import NamedFlow
from functions.domain.wheel import Wheel
from functions.ports.schedules import StoredSchedule
from simulation.partitions import Sample
from simulation.stage import SimulatedStage
from simulation.virtual_time import START, Dice, instant_of, seconds_of

CLASSES = ((Priority.CRITICAL, 0.05), (Priority.HIGH, 0.15), (Priority.NORMAL, 0.70), (Priority.LOW, 0.10))
"""How a usual load is divided."""

RETRY = RetryPolicy()
TIMEOUT = timedelta(seconds=30)


class Order(NamedTuple):
    """A job that is asked for. submitted_at, due_at: seconds; below 0, it was submitted before the run."""

    submitted_at: float
    due_at: float
    tenant: str
    priority: Priority
    host: str
    retry: RetryPolicy = RETRY
    flows: tuple[NamedFlow, ...] = ()
    collect: Collect | None = None


@dataclass(frozen=True, slots=True)
class Tenants:
    """Tenants of the sampled shards, by shard."""

    by_shard: dict[int, list[str]]

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [name for names in self.by_shard.values() for name in names]


def tenants_of(sample: Sample, wheel: Wheel, *, each: int, prefix: str = "tenant", subshards: int = 1) -> Tenants:
    """So many tenants on each sampled shard: names are tried until enough of them hash there."""
    found: dict[int, list[str]] = {shard: [] for shard in sample.sampled}
    number, missing = 0, each * len(found)
    while missing:
        name, number = f"{prefix}-{number}", number + 1
        place = found.get(wheel.shard_of(name, "", subshards=subshards))
        if place is not None and len(place) < each:
            place.append(name)
            missing -= 1
    return Tenants(found)


def usual_lead(dice: Dice) -> float:
    """How long before its time a job is submitted: one in five within GUARD, the others up to an hour."""
    if dice.random.random() < _NEAR_SHARE:
        return dice.random.uniform(1.0, 240.0)
    return dice.random.uniform(240.0, LONGEST_LEAD)


LONGEST_LEAD = 3_600.0
_NEAR_SHARE = 0.2


def usual_class(dice: Dice) -> Priority:
    """A class, as often as `CLASSES` says."""
    drawn = dice.random.random()
    for priority, share in CLASSES:
        drawn -= share
        if drawn < 0:
            return priority
    return Priority.LOW


def flow(
    dice: Dice,
    tenants: Sequence[str],
    *,
    start: float,
    end: float,
    rate: Callable[[float], float],
    lead: Callable[[Dice], float] = usual_lead,
    host_of: Callable[[Dice, str], str] = lambda _, tenant: f"{tenant}.example.com",
    priority_of: Callable[[Dice], Priority] = usual_class,
    retry: RetryPolicy = RETRY,
) -> list[Order]:
    """Jobs that come due in a time, independently of each other. rate: of the sample, jobs that come due a second."""
    orders: list[Order] = []
    second = start
    while second < end:
        for _ in range(dice.poisson(rate(second))):
            due_at = second + dice.random.random()
            tenant = dice.random.choice(tenants)
            orders.append(Order(due_at - lead(dice), due_at, tenant, priority_of(dice), host_of(dice, tenant), retry))
        second += 1
    return orders


class Submissions:
    """Brings orders to a stage at their instants: to its placer, or in requests of so many jobs to its front door.

    keys: of the executions that were accepted, with when they are due. refused: orders that the placer could not place.
    earlier: rows that were written before the run.
    """

    def __init__(self, stage: SimulatedStage, requests_of: Callable[[float], int] | None = None) -> None:
        self._stage = stage
        self._requests_of = requests_of
        self._numbers = 0
        self.keys: dict[str, float] = {}
        self.refused = 0
        self.earlier = 0

    def plan(self, orders: Sequence[Order]) -> None:
        """Let them be submitted. What was submitted before the run is in the far ring already, or comes at once."""
        by_second: dict[int, list[Order]] = {}
        for order in orders:
            if order.submitted_at < 0 and order.due_at >= self._stage.wheel.guard.total_seconds():
                self._stage.kept.rows.keep(self._timer(order, at=0.0))
                self.earlier += 1
            else:
                by_second.setdefault(int(max(0.0, order.submitted_at)), []).append(order)
        if self._requests_of is not None:
            self._plan_requests(by_second, self._requests_of)
            return
        for second, some in by_second.items():
            self._stage.world.at(second, lambda some=some: self._submit(some))

    def collect(self) -> None:
        """What the front door has let in, and what it has not."""
        door = self._stage.front_door
        self.keys |= {key: seconds_of(submission.due_at) for key, submission in door.accepted}
        self.refused += door.refused

    def _plan_requests(self, by_second: Mapping[int, Sequence[Order]], jobs_of: Callable[[float], int]) -> None:
        """One request for each so many jobs of a second, when the last of them is known."""
        for second, some in by_second.items():
            ordered, count = sorted(some, key=lambda order: order.submitted_at), jobs_of(second)
            for start in range(0, len(ordered), count):
                request = ordered[start : start + count]
                at = max(0.0, request[-1].submitted_at)
                self._stage.world.at(at, lambda request=request: self._stage.front_door.ask(list(map(_asked, request))))

    def _submit(self, orders: Sequence[Order]) -> None:
        for order in orders:
            at = max(order.submitted_at, 0.0)
            timer = self._timer(order, at=at)
            placement = self._stage.submit(timer, at=at)
            if placement.ring is None:
                self.refused += 1
                del self.keys[timer.job.key]

    def _timer(self, order: Order, *, at: float) -> Timer:
        self._numbers += 1
        wheel, identity = self._stage.writing_wheel(at), f"{self._numbers:08x}"
        due_at = from_ms(to_ms(instant_of(order.due_at)))
        subshards = self._stage.plans.of(order.tenant).subshards
        job = Job(
            tenant=order.tenant,
            identity=identity,
            bucket=wheel.bucket_of(due_at),
            shard=wheel.shard_of(order.tenant, identity, subshards=subshards),
            target=f"https://{order.host}/{order.priority.name.lower()}",
            payload=Payload(text='{"order":1}'),
            scheduled_at=due_at,
            priority=order.priority,
            delivery=Delivery.EXACTLY_ONCE,
            precision=Precision.DEFAULT,
            retry=order.retry,
            timeout=TIMEOUT,
            flows=order.flows,
            collect=order.collect,
        )
        if order.collect is not None:
            job = replace(job, identity=member_identity(job, unique=identity))
        self.keys[job.key] = order.due_at
        return Timer(job=job, due_at=due_at)


def _asked(order: Order) -> Submission:
    """As the API reads it."""
    return Submission(
        tenant=order.tenant,
        target=f"https://{order.host}/{order.priority.name.lower()}",
        payload='{"order":1}',
        due_at=from_ms(to_ms(instant_of(order.due_at))),
        idempotency_key=None,
        priority=order.priority,
        delivery=Delivery.EXACTLY_ONCE,
        precision=Precision.DEFAULT,
        retry=order.retry,
        timeout=TIMEOUT,
        expires_after=None,
        flows=order.flows,
        collect=order.collect,
    )


def put_schedules(stage: SimulatedStage, schedules: Sequence[Schedule], *, after: float) -> dict[str, Order]:
    """Schedules that exist since before the run, each with the alarm of its first fire after an instant in the far ring.

    These fires, by key.
    """
    fires: dict[str, Order] = {}
    share: Share | None = None
    for schedule in schedules:
        fire = next_fire(schedule, after=instant_of(after))
        assert fire is not None
        link = Link(at=fire.at, nominal_at=fire.nominal_at)
        stored = StoredSchedule(schedule=schedule, version=1, status=Status.ACTIVE, created_at=START, changed_at=START)
        state = ScheduleState(
            version=1,
            status=Status.ACTIVE,
            changed_at=START,
            born=1,
            cuts=(Cut(1, START - MILLISECOND),),
            link=link,
            alarm_at=link.at,
        )
        if stage.sweeps:
            # What it counts for is known, and the same for all of them: they have one rule.
            share = share or share_of(schedule, state)
            state = replace(state, share=share)
        is_written = stage.kept.schedules.change(stored, state, seen=None)
        assert is_written
        stage.kept.rows.keep(
            ScheduleAlarm(
                tenant=schedule.tenant,
                schedule_id=schedule.schedule_id,
                version=1,
                shard=shard_of(schedule, stage.wheel),
                priority=schedule.job.priority,
                alarm_at=link.at,
                link=link,
            )
        )
        host = schedule.job.target.removeprefix("https://").partition("/")[0]
        order = Order(-1.0, seconds_of(fire.at), schedule.tenant, schedule.job.priority, host)
        fires[f"{schedule.tenant}#{identity_of(schedule.schedule_id, fire.at)}"] = order
    return fires
