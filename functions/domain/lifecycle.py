"""The life of one logical execution: its states, and the one table by which they change.

The ledger's conditions and docs/job-lifecycle.md are made from this table.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an execution stands. `absent` is a row that does not exist."""

    ABSENT = "absent"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTEMPTED = "attempted"
    SKIPPED = "skipped"
    MOVED = "moved"


class Event(StrEnum):
    """What changes a state."""

    REGISTER = "register"
    """A keyed submission writes its row first."""
    PARK = "park"
    """The attempt waits on in the wheel, as its destination is not to be called now.

    A retry stays one, and so does an attempt that a parked watchdog looks after.
    """
    CLAIM = "claim"
    """A worker takes the attempt, with a lease and a new fence."""
    RESCUE = "rescue"
    """A worker takes an attempt whose lease is over."""
    ATTEMPT = "attempt"
    """A worker starts an at_most_once job; there is no second start."""
    RELEASE = "release"
    """Something failed around the target: the attempt is given back as if it had not been taken."""
    HOLD = "hold"
    """The target answered 202: its lease is renewed, and the row keeps what a retry needs."""
    SUCCEED = "succeed"
    RETRY = "retry"
    """The attempt failed and the next one is placed."""
    FAIL = "fail"
    """The last attempt failed and the dead letter is written."""
    EXPIRE = "expire"
    """The attempt is claimed too late to run."""
    LAPSE = "lapse"
    """An at_most_once job comes too late to be started."""
    CANCEL = "cancel"
    WITHDRAW = "withdraw"
    """A running job that was asked to cancel fails: it is not tried again."""
    ABANDON = "abandon"
    """Nobody carries a run on any more: its schedule waits for it no longer."""
    SKIP = "skip"
    """An occurrence does not run: its schedule is paused, or another of its runs is in the way."""
    MOVE = "move"
    """The job continues under another id, at another time or with another content."""
    REPLAY = "replay"
    """An operator gives a job that has failed for good another budget of attempts."""
    DELIVER = "deliver"
    """A release gave the job to its target together with others: one write is its claim and its end."""
    RETURN = "return"
    """The job failed in a release, and its next attempt is placed."""
    BURY = "bury"
    """The message reached a dead-letter queue: its worker died too often, or it never got a lease."""


_STARTABLE = (State.ABSENT, State.SCHEDULED, State.RETRYING)

TRANSITIONS: dict[Event, tuple[tuple[State, ...], State]] = {
    Event.REGISTER: ((State.ABSENT,), State.SCHEDULED),
    Event.PARK: ((State.ABSENT, State.SCHEDULED), State.SCHEDULED),
    Event.CLAIM: (_STARTABLE, State.RUNNING),
    Event.RESCUE: ((State.RUNNING,), State.RUNNING),
    Event.ATTEMPT: ((State.ABSENT, State.SCHEDULED), State.ATTEMPTED),
    Event.LAPSE: ((State.ABSENT, State.SCHEDULED), State.EXPIRED),
    Event.RELEASE: ((State.RUNNING,), State.SCHEDULED),
    Event.HOLD: ((State.RUNNING,), State.RUNNING),
    Event.SUCCEED: ((State.RUNNING,), State.SUCCEEDED),
    Event.RETRY: ((State.RUNNING,), State.RETRYING),
    Event.FAIL: ((State.RUNNING,), State.FAILED),
    Event.EXPIRE: ((State.RUNNING,), State.EXPIRED),
    Event.CANCEL: (_STARTABLE, State.CANCELLED),
    Event.WITHDRAW: ((State.RUNNING,), State.CANCELLED),
    Event.ABANDON: ((State.SCHEDULED, State.RETRYING, State.RUNNING), State.CANCELLED),
    Event.SKIP: ((State.ABSENT, State.SCHEDULED), State.SKIPPED),
    Event.MOVE: ((State.ABSENT, State.SCHEDULED), State.MOVED),
    Event.REPLAY: ((State.ABSENT, State.FAILED, State.RETRYING), State.RETRYING),
    Event.DELIVER: (_STARTABLE, State.SUCCEEDED),
    Event.RETURN: (_STARTABLE, State.RETRYING),
    Event.BURY: ((*_STARTABLE, State.RUNNING), State.FAILED),
}
"""Each event: the states that it may happen in, and the state that it leads to."""


def sources(event: Event) -> frozenset[State]:
    """The states that an event may happen in."""
    return frozenset(TRANSITIONS[event][0])


def target(event: Event) -> State:
    """The state that an event leads to."""
    return TRANSITIONS[event][1]


TERMINAL = frozenset(State) - {
    source for event, (states, _) in TRANSITIONS.items() if event is not Event.REPLAY for source in states
}
"""States that nothing leaves, but for a replay of what has failed: the execution is settled."""


UNTRACKED = "untracked"
"""In place of the state of a job without a row to read it from: an at_least_once job that has left the far ring, and, under its
idempotency key, a job that was moved and has ended long ago."""
