"""How long everything takes in an episode: most are over within the hour, and some take months."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf

from functions.domain.instants import SECOND
from functions.domain.schedules.rules import CronRule, Rule
from functions.domain.wheel import Wheel
from testkit.builders import LOCAL_WHEEL, every

_HOUR = 3_600
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """All of it in seconds, but for what is of a type of its own.

    fault_rate, most_faults: how much of what goes wrong in minutes does, and how often each fault strikes. acts: how
    probable each kind of act is. asked_within: while somebody asks for something. beyond: how long the episode
    goes on after that. far: how far beyond GUARD a job is due. targets: their kinds. attempts, retries, longest_retry: of
    policies, with their bases and the cap of these. often: rules that no broken target may have; seldom: those that any
    may. expires_after: of some jobs. later, again_within: for when, and how long after its first use, a key is used again.
    copied: how much later a copy of a message comes. fires_for, rests_for: while a schedule is active, and paused. move:
    how far a job is moved. reach, shifts: of operations. rates: jobs a second. leases, took: of targets that go on by
    themselves. tenant_pause, stage_pause: the longest. lateness: a fire that has come due no longer than this before its
    schedule is paused may not have run by then: ticks were missed, and the scanners after them died.
    """

    wheel: Wheel
    fault_rate: float
    most_faults: float
    acts: float
    asked_within: float
    beyond: float
    far: float
    targets: tuple[str, ...]
    attempts: tuple[int, ...]
    retries: tuple[int, ...]
    longest_retry: int
    often: tuple[Rule, ...]
    seldom: tuple[Rule, ...]
    expires_after: float
    later: tuple[int, ...]
    again_within: float
    copied: tuple[float, ...]
    fires_for: tuple[float, float]
    rests_for: float
    move: float
    reach: float
    shifts: tuple[int, ...]
    rates: tuple[float, ...]
    leases: tuple[int, ...]
    took: tuple[int, ...]
    tenant_pause: float
    stage_pause: float
    lateness: timedelta


MINUTES = Pace(
    wheel=LOCAL_WHEEL,
    fault_rate=1,
    most_faults=inf,
    acts=0.3,
    asked_within=600,
    beyond=300,
    far=600,
    targets=(*["fine"] * 36, *["flaky"] * 6, *["stubborn"] * 4, *["broken"] * 3, "poison"),
    attempts=(1, 2, 2, 3, 4),
    retries=(1, 1, 5, 30, 160),
    longest_retry=160,
    often=(
        *(CronRule(expression) for expression in ("* * * * *", "*/2 * * * *")),
        *(every(seconds=seconds) for seconds in (20, 60, 100, 155, 156)),
        every(seconds=60, phase=7 * SECOND),
    ),
    seldom=(CronRule("*/5 * * * *"), every(seconds=300)),
    expires_after=30,
    later=(20, 100, 160, 300),
    again_within=200,
    copied=(0, 0.5, 20, 120),
    fires_for=(500, 400),
    rests_for=100,
    move=400,
    reach=900,
    shifts=(0, 30, 200, 400),
    rates=(0.02, 0.1, 0.5),
    leases=(20, 60, 200),
    took=(1, 5, 14, 40, 150),
    tenant_pause=300,
    stage_pause=200,
    lateness=timedelta(minutes=10),
)

DAYS = Pace(
    # A scanner reads every bucket that time has passed over, and months have fewer of these.
    wheel=replace(LOCAL_WHEEL, bucket=timedelta(seconds=400), guard=timedelta(seconds=495)),
    # Whatever copies messages would fill the queue behind a breaker that stays open for days.
    fault_rate=0.25,
    most_faults=60,
    acts=0.75,
    asked_within=30 * _DAY,
    beyond=45 * _DAY,
    far=25 * _DAY,
    # Many go on for days.
    targets=(*["fine"] * 14, *["flaky"] * 8, *["stubborn"] * 10, *["broken"] * 14, "poison"),
    attempts=(1, 4, 8, 12, 12),
    retries=(600, 6 * _HOUR, 12 * _HOUR, 12 * _HOUR),
    longest_retry=12 * _HOUR,
    often=(CronRule("0 0,12 * * *"), CronRule("30 9 * * *"), every(hours=8), every(days=2)),
    seldom=(CronRule("0 6 * * MON"), CronRule("0 3 1 * *"), every(days=16)),
    expires_after=_DAY,
    later=(600, _HOUR, 3 * _DAY, 20 * _DAY),
    # The key is kept for 15 days after the end of its job.
    again_within=10 * _DAY,
    copied=(0, 120, 5 * _DAY, 13.9 * _DAY),
    fires_for=(30 * _DAY, _DAY),
    rests_for=20 * _DAY,
    move=15 * _DAY,
    reach=15 * _DAY,
    shifts=(0, 200, _HOUR, 8 * _DAY),
    rates=(0.01, 0.01, 0.05),
    leases=(60, _HOUR, 6 * _HOUR),
    took=(5, 600, _HOUR, 10 * _HOUR),
    tenant_pause=120 * _DAY,
    stage_pause=60 * _DAY,
    lateness=timedelta(hours=2),
)
