"""Many episodes, on as many processes as there are processors, and their sum."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context

from testkit.world.stores import MakeStores, in_memory
from verification.acts import Act
from verification.checker import Invariant, Violation
from verification.episode import JOBS, EpisodeResult, run_episode
from verification.faults import Fault

_WORTH_A_PROCESS = 10
"""Episodes in memory: fewer are done before another process has started."""


@dataclass(slots=True)
class UsageTally:
    """Episodes of one kind. struck: how often their fault did. doubts: how many their worlds had."""

    episodes: int = 0
    struck: int = 0
    checks: Counter[Invariant] = field(default_factory=Counter)
    violations: Counter[Invariant] = field(default_factory=Counter)
    doubts: int = 0

    def add(self, outcome: EpisodeResult) -> None:
        """One more."""
        self.episodes += 1
        self.checks += outcome.judgement.checks
        self.violations += Counter(violation.invariant for violation in outcome.judgement.violations)
        self.doubts += len(outcome.doubts)


@dataclass(slots=True)
class Total:
    """All episodes, and by fault those in which it struck; None: those in which none did.

    violations, doubts: each with the seed of its episode.
    """

    outcomes: Sequence[EpisodeResult]
    everything: UsageTally = field(default_factory=UsageTally)
    by_fault: dict[Fault | None, UsageTally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for outcome in self.outcomes:
            self.everything.add(outcome)
            struck = {fault: count for fault, count in outcome.struck.items() if count}
            self.everything.struck += sum(struck.values())
            for fault in struck or {None: 0}:
                tally = self.by_fault.setdefault(fault, UsageTally())
                tally.add(outcome)
                tally.struck += struck.get(fault, 0) if fault else 0

    @property
    def jobs(self) -> int:
        """That were submitted."""
        return sum(outcome.jobs for outcome in self.outcomes)

    @property
    def fires(self) -> int:
        """That schedules owed."""
        return sum(outcome.fires for outcome in self.outcomes)

    @property
    def calls(self) -> int:
        """That the targets saw."""
        return sum(outcome.calls for outcome in self.outcomes)

    @property
    def acts(self) -> Counter[Act]:
        """How often each was done."""
        return sum((outcome.acts for outcome in self.outcomes), Counter[Act]())

    @property
    def long_ones(self) -> int:
        """Episodes that lasted for months."""
        return sum(outcome.is_long for outcome in self.outcomes)

    @property
    def violations(self) -> list[tuple[int, Violation]]:
        """In the order of the episodes."""
        return [(outcome.seed, violation) for outcome in self.outcomes for violation in outcome.judgement.violations]

    @property
    def doubts(self) -> list[tuple[int, str]]:
        """In the order of the episodes."""
        return [(outcome.seed, doubt) for outcome in self.outcomes for doubt in outcome.doubts]

    @property
    def is_kept(self) -> bool:
        """Whether every promise was: nobody has found one broken, neither the checker nor a world."""
        return not self.violations and not self.doubts


def seeds_of(seed: int, *, jobs: int) -> list[int]:
    """The seeds of as many episodes as it takes for so many jobs: neighbours have nothing in common."""
    count = -(-jobs // JOBS)
    return [
        int.from_bytes(hashlib.blake2b(f"{seed}:{number}".encode(), digest_size=4).digest(), "big")
        for number in range(count)
    ]


def run_all(
    seeds: Sequence[int],
    faults: Collection[Fault],
    *,
    stores: MakeStores = in_memory,
    advance: Callable[[int], None] = lambda _: None,
) -> Total:
    """Run an episode for each seed. stores: can be pickled. advance: called with how many jobs have been judged since."""
    worth_a_process = _WORTH_A_PROCESS if stores is in_memory else 1
    processes = min(os.cpu_count() or 1, len(seeds) // worth_a_process)
    if processes <= 1:
        return Total([_one(seed, faults, stores, advance) for seed in seeds])
    # Forked, a process would inherit whatever threads and locks its parent has.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_episode, seed, tuple(faults), stores=stores) for seed in seeds]
        try:
            for future in as_completed(futures):
                advance(future.result().jobs)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return Total([future.result() for future in futures])


def _one(seed: int, faults: Collection[Fault], stores: MakeStores, advance: Callable[[int], None]) -> EpisodeResult:
    outcome = run_episode(seed, faults, stores=stores)
    advance(outcome.jobs)
    return outcome
