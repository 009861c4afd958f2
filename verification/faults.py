"""What goes wrong in a run on the fakes: which faults strike which process, drawn from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from math import inf

from testkit.world.process import Fate


class Fault(StrEnum):
    """What can go wrong, by the name that `--faults` takes."""

    KILLED_BEFORE = "killed_before"
    """A worker dies when it is about to call the target."""
    KILLED_AFTER = "killed_after"
    """A worker dies when the target has done its work."""
    KILLED_SETTLED = "killed_settled"
    """A worker dies when it has settled, and its message comes again."""
    SCANNER_KILLED = "scanner_killed"
    """A scanner dies between two of its calls."""
    DUPLICATES = "duplicates"
    """A message is delivered twice: at once, later, or after 13 days."""
    STORE_ERRORS = "store_errors"
    """A store throttles, or answers with 500: it has written or not, or does so later."""
    PARTIAL_BATCHES = "partial_batches"
    """A queue takes some messages of a batch and not the others."""
    SLOW_TARGETS = "slow_targets"
    """A target, or the way to it, takes longer than the lease of its attempt."""
    STALLS = "stalls"
    """Any process stands still between two of its calls, while the others go on."""
    SKEW = "skew"
    """The clocks of two processes differ by up to SKEW."""
    MISSED_TICKS = "missed_ticks"
    """EventBridge leaves out three ticks."""
    DOUBLE_TICKS = "double_ticks"
    """EventBridge fires twice: two scanners are at one shard at once."""
    THROTTLED = "throttled"
    """Lambda is throttled: a message comes and goes without being run, until it is in the dead-letter queue."""
    LATE_WRITES = "late_writes"
    """Whoever writes a row into the far ring stands still before that, and the scanner may be there first."""
    LOST_ANSWERS = "lost_answers"
    """A request to the API dies, or its answer does not arrive; the client asks again."""
    KILLED_WITHIN = "killed_within"
    """A process dies between two writes of one call of an adapter: the fakes have no such calls."""


IN_MEMORY = tuple(fault for fault in Fault if fault is not Fault.KILLED_WITHIN)
"""What can be done to an episode on the fakes."""

FROM_OUTSIDE = (
    Fault.KILLED_AFTER,
    Fault.DUPLICATES,
    Fault.SLOW_TARGETS,
    Fault.MISSED_TICKS,
    Fault.DOUBLE_TICKS,
)
"""What can be done to stacks that are deployed, by whoever may call the services below them."""


@dataclass(slots=True)
class Strike:
    """A fault that waits for one process: at the nth of these calls, of all calls where none is named."""

    fault: Fault
    fate: Fate
    calls: Collection[str] = ()
    at: int = 1
    stall: timedelta = timedelta(0)

    def is_due(self, call: str) -> bool:
        """Whether it strikes at this call, which is counted."""
        if self.calls and call not in self.calls:
            return False
        self.at -= 1
        return self.at == 0


_REQUESTS = ("cancel", "put", "pause", "resume", "move", "run", "ask", "replay", "heartbeat", "complete", "fail")
"""The first words of the names of requests, beside those that submit."""
_WRITERS = ("submit", "move", "work", "put", "resume", "replay")
_WRITES = ("timers.put", "timers.put_alarms", "timers.put_registered", "ledger.move", "ledger.replay")
_SETTLES = ("ledger.settle", "ledger.fail", "ledger.attempt", "ledger.end_collected")
_STORE_FATES = (Fate.FAILS, Fate.FAILS, Fate.LATE, Fate.TWICE, Fate.ECHOES)
_STALLS = (3, 12, 25, 50)
_STALLS_OF_WRITES = {"work": (12, 50)}
_STALLS_OF_REQUESTS = (12, 28, 28)
"""Within the time that a request has."""


@dataclass
class Chaos:
    """Draws what goes wrong. struck: how often each fault did. is_over: nothing goes wrong any more. rate: how much of the usual
    goes wrong. most: strikes of each fault. within: what KILLED_WITHIN is drawn by, so that all else is the same in memory.
    """

    faults: Collection[Fault]
    random: random.Random
    skew: timedelta
    struck: Counter[Fault] = field(default_factory=Counter)
    is_over: bool = False
    rate: float = 1
    most: float = inf
    within: random.Random = field(default_factory=lambda: random.Random(0))
    _refusals: int = 0

    def strikes(self, fault: Fault, chance: float) -> bool:
        """Whether a fault strikes now, which is counted."""
        if not self.draws(fault, chance):
            return False
        self.struck[fault] += 1
        return True

    def draws(self, fault: Fault, chance: float) -> bool:
        """Whether a fault is going to strike; whoever lets it strike counts it."""
        may_strike = not self.is_over and fault in self.faults and self.struck[fault] < self.most
        return may_strike and self.random.random() < chance * self.rate

    def ahead(self) -> timedelta:
        """How far the clock of a new process is off."""
        if not self.strikes(Fault.SKEW, 0.7):
            return timedelta(0)
        return self.skew / 2 * self.random.choice([-1, 1, self.random.uniform(-1, 1)])

    def kills_within(self) -> bool:
        """Whether a new process dies between two writes of a call, if it comes to that: few calls have two."""
        is_open = not self.is_over and self.struck[Fault.KILLED_WITHIN] < self.most
        return is_open and Fault.KILLED_WITHIN in self.faults and self.within.random() < 0.3 * self.rate

    def refuses(self) -> bool:
        """Whether a queue refuses a message: at times several in a row, so that no repetition of a batch helps."""
        if self.is_over:
            return False
        if self._refusals:
            self._refusals -= 1
            self.struck[Fault.PARTIAL_BATCHES] += 1
            return True
        if self.strikes(Fault.PARTIAL_BATCHES, 0.04):
            self._refusals = self.random.choice([0, 0, 1, 4])
            return True
        return False

    def for_process(self, kind: str) -> list[Strike]:
        """What is going to strike a new process. kind: the first word of its name."""
        of_kind = {"work": self._for_worker, "scan": self._for_scanner, "submit": self._for_request}
        of_kind |= dict.fromkeys(_REQUESTS, self._for_request)
        found = of_kind[kind]() if kind in of_kind else []
        if kind in _WRITERS and self.draws(Fault.LATE_WRITES, 0.5):
            stall = timedelta(seconds=self.random.choice(_STALLS_OF_WRITES.get(kind, _STALLS_OF_REQUESTS)))
            found.append(Strike(Fault.LATE_WRITES, Fate.STALLS, _WRITES, stall=stall))
        if self.draws(Fault.STORE_ERRORS, 0.15):
            found.append(Strike(Fault.STORE_ERRORS, self.random.choice(_STORE_FATES), at=self._call()))
        if self.draws(Fault.STALLS, 0.08):
            found.append(Strike(Fault.STALLS, Fate.STALLS, at=self._call(), stall=self._stall()))
        return found

    def _for_worker(self) -> list[Strike]:
        found: list[Strike] = []
        if self.draws(Fault.KILLED_BEFORE, 0.05):
            found.append(Strike(Fault.KILLED_BEFORE, Fate.DIES_BEFORE, ("target.begin",), self._job()))
        if self.draws(Fault.KILLED_AFTER, 0.05):
            found.append(Strike(Fault.KILLED_AFTER, Fate.DIES_AFTER, ("target.end",), self._job()))
        if self.draws(Fault.KILLED_SETTLED, 0.05):
            found.append(Strike(Fault.KILLED_SETTLED, Fate.DIES_AFTER, _SETTLES, self._job()))
        if self.draws(Fault.SLOW_TARGETS, 0.06):
            call = self.random.choice(["target.begin", "target.end"])
            found.append(Strike(Fault.SLOW_TARGETS, Fate.STALLS, (call,), self._job(), self._stall()))
        return found

    def _for_scanner(self) -> list[Strike]:
        found: list[Strike] = []
        if self.draws(Fault.SCANNER_KILLED, 0.25):
            fate = self.random.choice([Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.DIES_LATE])
            found.append(Strike(Fault.SCANNER_KILLED, fate, at=self._call(12)))
        if self.draws(Fault.DOUBLE_TICKS, 0.25):
            found.append(Strike(Fault.DOUBLE_TICKS, Fate.STALLS, at=self._call(12)))
        return found

    def _for_request(self) -> list[Strike]:
        if not self.draws(Fault.LOST_ANSWERS, 0.1):
            return []
        fate = self.random.choice([Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.DIES_LATE])
        return [Strike(Fault.LOST_ANSWERS, fate, at=self._call(4))]

    def _job(self) -> int:
        """Which of the jobs of a batch: most batches are small."""
        return self.random.choice([1, 1, 1, 2, 4])

    def _call(self, most: int = 10) -> int:
        return self.random.randint(1, most)

    def _stall(self) -> timedelta:
        return timedelta(seconds=self.random.choice(_STALLS))
