"""What the demo submits: a job for each periodic job of the Kubernetes project's CI, the same in every run.

Everything that differs between jobs is drawn from their names, so two runs differ in nothing but time.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tickwheel.client.jobs import NewJob, Precision, PriorityText, RetryPolicy

NEAR_DELAYS = (timedelta(seconds=2), timedelta(seconds=75))
FAR_DELAYS = (timedelta(seconds=159), timedelta(seconds=168))
"""Past the GUARD of the local stage (155 s), so that these jobs wait in the far ring; meanwhile the demo does the rest."""

DOOMED_COUNT = 3
"""How many jobs fail each time they are tried, and must end as dead letters."""

DOOMED_ATTEMPTS = 3

_FAR_SHARE = 0.09
_HANDLER_SHARE = 0.1
_STUMBLING_SHARE = 0.1
_EXACT_SHARE = 0.1
_PRIORITY_SHARES: tuple[tuple[PriorityText, float], ...] = (
    ("critical", 0.05),
    ("high", 0.15),
    ("normal", 0.6),
    ("low", 0.2),
)

_TIMEOUT = timedelta(seconds=10)
# Short, so that the last retry of the last job is seconds away; a fixed gap would make the retries of a burst meet.
_PATIENT = RetryPolicy(strategy="decorrelated_jitter", attempts=6, base=timedelta(seconds=1), cap=timedelta(seconds=5))
_SOON_SPENT = RetryPolicy(strategy="exponential", attempts=DOOMED_ATTEMPTS, base=timedelta(seconds=1))


class Fate(Enum):
    """How the target of a job answers."""

    SUCCEEDS = "succeeds"
    STUMBLES = "fails once, then succeeds"
    DOOMED = "fails always"


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """One job of the demo. name: unique, and its idempotency key. facts: the row it stands for, its payload.

    calls_sink: whether its target is the sink; otherwise it is the Python handler `echo`.
    """

    name: str
    tenant: str
    facts: Mapping[str, Any]
    calls_sink: bool
    fate: Fate
    delay: timedelta
    priority: PriorityText
    precision: Precision

    @property
    def is_far(self) -> bool:
        """Whether it is to wait in the far ring."""
        return self.delay >= FAR_DELAYS[0]

    def new_job(self, *, sink: str) -> NewJob:
        """The job to submit; `sink` is the address of the sink, without a trailing slash."""
        return NewJob(
            f"{sink}/{quote(self.tenant, safe='')}/{quote(self.name, safe='')}" if self.calls_sink else "handler:echo",
            tenant=self.tenant,
            payload=dict(self.facts),
            delay=self.delay,
            idempotency_key=self.name,
            priority=self.priority,
            precision=self.precision,
            # The one mode that can be judged without exceptions: of the others, one may lose a job and one may double it.
            delivery="exactly_once",
            retry=_SOON_SPENT if self.fate is Fate.DOOMED else _PATIENT,
            timeout=_TIMEOUT,
        )


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of the example; each has a `tenant` and a unique `name`."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def plan(rows: Iterable[Mapping[str, Any]]) -> list[PlannedJob]:
    """A job for each row, in their order."""
    by_name = {row["name"]: row for row in rows}
    for_handler = _drawn(by_name, round(_HANDLER_SHARE * len(by_name)), what="handler")
    for_sink = [name for name in by_name if name not in for_handler]
    doomed = _drawn(for_sink, DOOMED_COUNT, what="doomed")
    stumbling = _drawn(
        [name for name in for_sink if name not in doomed], round(_STUMBLING_SHARE * len(for_sink)), what="stumbling"
    )
    fates = dict.fromkeys(doomed, Fate.DOOMED) | dict.fromkeys(stumbling, Fate.STUMBLES)
    return [
        PlannedJob(
            name=name,
            tenant=row["tenant"],
            facts=row,
            calls_sink=name not in for_handler,
            fate=fates.get(name, Fate.SUCCEEDS),
            delay=_delay(name),
            priority=_priority(name),
            precision="exact" if _lot(name, what="precision") < _EXACT_SHARE else "default",
        )
        for name, row in by_name.items()
    ]


def _delay(name: str) -> timedelta:
    lot = _lot(name, what="delay")
    is_far = lot >= 1 - _FAR_SHARE
    shortest, longest = FAR_DELAYS if is_far else NEAR_DELAYS
    share = (lot - (1 - _FAR_SHARE)) / _FAR_SHARE if is_far else lot / (1 - _FAR_SHARE)
    return timedelta(milliseconds=(shortest + (longest - shortest) * share) // timedelta(milliseconds=1))


def _priority(name: str) -> PriorityText:
    lot = _lot(name, what="priority")
    for priority, share in _PRIORITY_SHARES:
        if lot < share:
            return priority
        lot -= share
    return _PRIORITY_SHARES[-1][0]


def _drawn(names: Collection[str], count: int, *, what: str) -> frozenset[str]:
    """That many of the names, which ones decided by lot."""
    ranked: Sequence[str] = sorted(names, key=lambda name: _lot(name, what=what))
    return frozenset(ranked[:count])


def _lot(name: str, *, what: str) -> float:
    """A number from 0 up to 1 that the name draws, another one for each purpose."""
    digest = hashlib.blake2b(f"{what}:{name}".encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 2**48
