"""One episode: a hundred jobs and a few schedules, for half an hour or for months, all of it drawn from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.instants import SECOND
from testkit.world.stores import MakeStores, in_memory
from verification.acts import Act
from verification.checker import Judgement, judge
from verification.clients import Clients
from verification.days import StageOfDays
from verification.faults import IN_MEMORY, Chaos, Fault
from verification.owners import Owners
from verification.pace import DAYS, MINUTES
from verification.stage import Stage

JOBS = 100
SCHEDULES = 3

ONE_IN = 16
"""Of so many seeds one has an episode of months."""

_MOST_STORIES = 3
_WITH = {Act.FLOWS: 0.3, Act.ORDERS: 0.3, Act.CALLBACKS: 0.25, Act.DEADLINES: 0.6, Act.COLLECTIONS: 0.3}
"""How many episodes have jobs of these kinds. Each is drawn by itself, so that the others are the same with and without."""

_MOVE_AGE = frozenset({Act.TENANT_PAUSES, Act.STAGE_PAUSES})
"""What stops the clock by which a run's deadline counts: a history does not say for how long."""


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """What became of an episode. is_long: it lasted for months. fires: of schedules, that were owed.

    doubts: promises that the world that it ran in, which knows how the scheduler works, found broken.
    stories: of the first violations and doubts, call by call. acts: how often each was done.
    """

    seed: int
    jobs: int
    fires: int
    calls: int
    struck: Counter[Fault]
    judgement: Judgement
    doubts: Sequence[str] = ()
    stories: Sequence[str] = ()
    acts: Counter[Act] = field(default_factory=Counter)
    is_long: bool = False


def run_episode(
    seed: int,
    faults: Collection[Fault] = IN_MEMORY,
    *,
    stores: MakeStores = in_memory,
    lambdas: Mapping[type, type] | None = None,
) -> EpisodeResult:
    """The same seed and faults give the same episode. lambdas: classes that stand in for the real ones.

    Raises what the code under test did not expect, with a note of the seed.
    """
    try:
        return _live(random.Random(seed), seed, faults, stores, lambdas or {})
    except Exception as error:
        error.add_note(f"in the episode with seed {seed}: tickwheel verify --episode {seed}")
        raise


def _live(
    chance: random.Random, seed: int, faults: Collection[Fault], stores: MakeStores, lambdas: Mapping[type, type]
) -> EpisodeResult:
    within = random.Random(f"{seed} within")
    drawn_by = {fault: within if fault is Fault.KILLED_WITHIN else chance for fault in Fault}
    struck = [fault for fault in Fault if fault in faults and drawn_by[fault].random() < 0.4]
    make, pace = (StageOfDays, DAYS) if seed % ONE_IN == 0 else (Stage, MINUTES)
    stage = make(
        wheel=pace.wheel,
        audits=chance.random() < 0.5,
        lambdas=dict(lambdas),
        make_stores=stores,
        chaos=Chaos(tuple(struck), chance, pace.wheel.skew, rate=pace.fault_rate, most=pace.most_faults, within=within),
        pace=pace,
    )
    acts = [act for act in Act if act not in _WITH and chance.random() < pace.acts]
    acts += [act for act, share in _WITH.items() if random.Random(f"{seed} {act}").random() < share]
    if pace is DAYS:
        # A job that waits for weeks for its next attempt would hold those behind it in their order for as long; and windows take minutes.
        acts = [act for act in acts if act not in (Act.ORDERS, Act.COLLECTIONS)]
    if _MOVE_AGE & set(acts):
        acts = [act for act in acts if act is not Act.DEADLINES]
    stage.clock.tick(chance.randrange(60_000) * SECOND / 1000)
    stage.begin_ticking()
    begin = stage.clock.instant
    Clients(stage, chance, acts).begin(jobs=JOBS, schedules=SCHEDULES)
    Owners(stage, chance, acts).begin()
    stage.live_until(begin + timedelta(seconds=pace.asked_within + pace.beyond))
    return judged(stage, seed)


def judged(stage: Stage, seed: int = 0) -> EpisodeResult:
    """Bring a stage to its end, and judge its history."""
    try:
        stage.finish()
        history = stage.whole_history()
    finally:
        stage.end()
    judgement = judge(history)
    doubts = tuple(dict.fromkeys(stage.promises.broken))
    wanted = [*(violation.key for violation in judgement.violations), *doubts]
    return EpisodeResult(
        seed=seed,
        jobs=len(history.jobs) - stage.record.moved,
        fires=sum(len(fires.due) for fires in history.fires),
        calls=len(history.calls),
        struck=stage.chaos.struck,
        acts=stage.acts,
        is_long=isinstance(stage, StageOfDays),
        judgement=judgement,
        doubts=doubts,
        stories=tuple(stage.history.tell(about) for about in wanted[:_MOST_STORIES]),
    )
