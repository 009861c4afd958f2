"""What a run was asked to do, and what became of it: all that the checker looks at, wherever it was recorded.

Instants are by the clock of whoever recorded it, the target's; `Call.ahead` says how far a caller's clock was off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from functions.domain.instants import require_aware
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State
from functions.domain.targets.flows import NamedFlow


class Answer(StrEnum):
    """What a target made of a call.

    effect: it did what it was asked to. known: it had done so before, and said so. stale: it has seen a larger fence, or
    its caller had hung up, so that nothing was done. failed: it said no. none: its caller died before it received it.
    pending: it answered 202, and has not completed the job yet.
    """

    EFFECT = "effect"
    KNOWN = "known"
    STALE = "stale"
    FAILED = "failed"
    NONE = "none"
    PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job that was submitted, or as which one goes on that was moved.

    key: of its ledger row. is_accepted: a client received that it will run. hastened_at: when somebody asked first to let
    it run at once. flow: that it names. known_at: when a client received that it will run; None where none did.
    callbacks: names of those that are to be told of its end. ends_by: when its run has taken as long as it may. collect: on which
    terms it is given to its target together with others. target: of such a job, an address. is_prompt: nothing but faults keeps its
    target from being called.
    """

    key: str
    tenant: str
    delivery: Delivery
    due_at: datetime
    payload: str | None
    expires_at: datetime | None = None
    is_accepted: bool = True
    hastened_at: datetime | None = None
    flow: NamedFlow | None = None
    known_at: datetime | None = None
    callbacks: frozenset[str] = frozenset()
    ends_by: datetime | None = None
    collect: Collect | None = None
    target: str = ""
    is_prompt: bool = False

    def __post_init__(self) -> None:
        require_aware(self.due_at)

    @property
    def is_ordered(self) -> bool:
        """Whether it runs in the order of its flow."""
        return self.flow is not None and self.flow.is_ordered and self.delivery is Delivery.EXACTLY_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Fires:
    """What a schedule owes. key: tenant and id of the schedule.

    due: fires that must have come to an end. possible: fires that may run besides, because it was being created or
    stopped then.
    """

    key: str
    tenant: str
    delivery: Delivery
    payload: str | None
    due: frozenset[datetime]
    possible: frozenset[datetime] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a target, as it saw it.

    until: until when the caller may have been at it; its end, or that of its lease. ahead: of the caller's clock. is_held: it
    was answered by 202, whatever its target has reported since.
    """

    key: str
    tenant: str
    attempt: int
    fence: int
    scheduled_at: datetime
    called_at: datetime
    until: datetime
    payload: str | None
    answer: Answer
    ahead: timedelta = timedelta(0)
    is_held: bool = False

    @property
    def is_taken(self) -> bool:
        """Whether the target let it in."""
        return self.answer is not Answer.STALE

    @property
    def is_success(self) -> bool:
        """Whether the target has done, by then, what it was asked to."""
        return self.answer in (Answer.EFFECT, Answer.KNOWN)


@dataclass(frozen=True, slots=True)
class Member:
    """A job as a release gave it, and what the target's answer says of it. key: of its ledger row."""

    key: str
    attempt: int
    scheduled_at: datetime
    payload: str | None
    answer: Answer

    @property
    def is_success(self) -> bool:
        """Whether the target has done what this job asked for."""
        return self.answer in (Answer.EFFECT, Answer.KNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One call that gave jobs together, as its target saw it. key: its idempotency key. until, ahead: as of a `Call`.

    is_taken: the target let it in; it has seen no larger fence.
    """

    key: str
    tenant: str
    target: str
    fence: int
    called_at: datetime
    until: datetime
    members: Sequence[Member]
    ahead: timedelta = timedelta(0)
    is_taken: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A ledger row at the end.

    settled_at: when it came to its end, after its last replay; None while it has not. over: from when to when it was over
    before, until a replay let it go on.
    """

    key: str
    state: State
    attempt: int
    fence: int
    settled_at: datetime | None
    reason: str = ""
    over: Sequence[tuple[datetime, datetime]] = ()


@dataclass(frozen=True, slots=True)
class DeadLetterSeen:
    """A dead letter."""

    key: str
    error_class: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancel that took hold. is_final: the job will not run; else only what was running may go on.

    answered_at: None when its client received no answer, and so was promised nothing.
    """

    key: str
    answered_at: datetime | None
    is_final: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """An operator asked for another budget of attempts."""

    key: str
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A callback was told of the end of a job.

    key: of the callback's own job. about: of the job that has ended. at: when its target was called; None where the callback became a
    dead letter, which says what it would have told.
    """

    key: str
    name: str
    about: str
    state: str
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A whole run. calls: in the order in which the target saw them.

    disturbed: keys whose workers died, stalled or met a failing store: their effects may be repeated before they are
    settled, and they may end without a call. ended_at: when nothing was left to do. slack: how much later than another a call may
    come that was let through before it: clocks differ, and a call takes a moment to begin. tellings: what callbacks were told, whose calls
    are not among `calls`. releases: calls that gave jobs together, neither among `calls`. lateness: within what time after its window has closed a
    job must have been given whose target may be called; None where nothing is promised, because tenants were paused or capped.
    """

    jobs: Sequence[Job]
    fires: Sequence[Fires]
    calls: Sequence[Call]
    rows: Mapping[str, Row]
    letters: Sequence[DeadLetterSeen]
    cancels: Sequence[Cancel]
    ended_at: datetime
    disturbed: frozenset[str] = field(default=frozenset())
    replays: Sequence[Replay] = ()
    slack: timedelta = timedelta(0)
    tellings: Sequence[Telling] = ()
    releases: Sequence[Release] = ()
    lateness: timedelta | None = None
