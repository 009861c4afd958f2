"""What the rules need from the world, by role. The adapters say how; the fakes of the tests say it in memory.

Every write here is safe to repeat, and a refused conditional write is a result, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

from functions.domain.audit import Entry, Record
from functions.domain.dead_letters.letter_id import LetterId
from functions.domain.far_ring.alarm import Alarm
from functions.domain.far_ring.cursor import AuditPosition, Cursors, Position, ShardStanding, SweepPosition
from functions.domain.instants import EPOCH, MILLISECOND, from_ms
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Priority, Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import Event, State
from functions.domain.operations.operation import Operation, OwnedDay
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits, Share
from functions.domain.schedules.planning import Plan
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Link, ScheduleState, SkipReason, Status
from functions.domain.stage.conditions import Conditions, Depth
from functions.domain.stage.pulse import Figure, Pulse
from functions.domain.targets.breaker import Breaker
from functions.domain.targets.concurrency import Seat
from functions.domain.targets.options import TargetOptions
from functions.domain.targets.webhooks import WebhookKey
from functions.domain.tenants.deletion import Deletion, Part
from functions.domain.tenants.plan import Tenant, TenantPlan
from functions.domain.tenants.rate_bookings import Timetable
from functions.domain.tenants.usage import Days, Usage
from functions.domain.wheel import Wheel


class Clock(Protocol):
    """Wall time for instants, monotonic time for durations in a process."""

    def now(self) -> datetime:
        """The wall clock: aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never set back."""
        ...

    def sleep(self, duration: timedelta) -> None:
        """Wait."""
        ...

    def offset(self) -> timedelta:
        """How far this clock is ahead of the stores' clocks, as far as their answers have told; 0 until then."""
        ...

    def limited(self, share: timedelta, /) -> AbstractContextManager[None]:
        """Let what runs inside use so much of the processor. Raises TooCostly, in it or behind it, where it takes more.

        Only for what computes: it may end anywhere.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredTimer:
    """A far row as it was read: a timer, or the alarm of a schedule. Neither: raw and fault say what it holds.

    written_at: by its writer's clock; None where a read leaves it out.
    """

    key: str
    timer: Timer | None
    raw: str = ""
    fault: str = ""
    written_at: datetime | None = None
    alarm: Alarm | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in key order. is_last: nothing lies behind them in the bucket."""

    rows: Sequence[StoredTimer]
    is_last: bool


class TimerStore(Protocol):
    """The far ring: rows by bucket and shard."""

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        """Write each timer once, without retries, and return those that are not known to be written."""
        ...

    def put_alarms(self, alarms: Sequence[Alarm]) -> list[Alarm]:
        """Write each alarm once, without retries, and return those that are not known to be written."""
        ...

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        """Rows of a bucket and shard behind a sort key, in order: critical first."""
        ...

    def days(self, tenant: str) -> list[OwnedDay]:
        """The days on which a tenant may have rows of jobs, as of all writes before: marked before its first row is put."""
        ...

    def read_owned(self, tenant: str, owned: OwnedDay, *, bucket: int, after: str = "", limit: int) -> Page:
        """A tenant's rows of a class in a bucket and shard, behind a sort key, as of all writes before."""
        ...

    def put_registered(self, timer: Timer) -> bool | None:
        """Write a timer once, if its ledger row still waits and no cancel is requested; None when that is not known."""
        ...

    def get(self, job_id: JobId) -> Timer | None:
        """The first timer of a job, while it is in the far ring."""
        ...

    def stored(self, job_id: JobId) -> StoredTimer | None:
        """The row of the first timer of a job, with the instant at which it was written."""
        ...

    def delete(self, job_id: JobId) -> StoredTimer | None:
        """Remove the first timer of a job; what this very call removed."""
        ...


@dataclass(frozen=True, slots=True)
class Rejected:
    """A timer that a ready queue did not take. is_permanent: it will not take it in this form, ever."""

    timer: Timer
    reason: str
    is_permanent: bool


class ReadyQueue(Protocol):
    """The near ring: four queues, one a priority, that deliver a message when its delay is over."""

    def send(self, timers: Sequence[Timer]) -> list[Rejected]:
        """Send each timer with the delay it needs at the moment its batch goes out. Returns those not taken."""
        ...

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        """Hide a received message until then, without acknowledging it."""
        ...


class ReadyDepths(Protocol):
    """How full the ready queues are."""

    def depths(self) -> dict[Priority, Depth]:
        """Messages of each class, about."""
        ...


@dataclass(frozen=True, slots=True)
class Receipt:
    """What identifies one receive of one message: its queue and its handle."""

    queue_arn: str
    handle: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The attempt is this worker's, with this fence."""

    fence: int
    rescue_count: int = 0
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A conditional write lost; row is what it met, None where there is none (any more)."""

    row: LedgerRow | None


@dataclass(frozen=True, slots=True)
class Applied:
    """A conditional write holds, now or from an earlier try of the same owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Applied):
    """A tombstone is there. is_repeated: somebody else had written it before.

    asked_for: when it counted as due among those that wait, where somebody had asked for another time than its own.
    """

    is_repeated: bool = False
    asked_for: datetime | None = None

    @classmethod
    def over(cls, before: LedgerRow | None, *, owner: str) -> Cancelled:
        """What a tombstone of this owner means that was written over a row."""
        if before is None:
            return cls()
        is_repeated = before.state is State.CANCELLED and before.owner != owner
        return cls(is_repeated=is_repeated, asked_for=before.counted_from if before.spent else None)


class Ledger(Protocol):
    """The conditional-write table that makes an effect happen once."""

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        """Write the first row of a keyed submission, if there is none."""
        ...

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        """Take an attempt that nobody has: no row, scheduled, or retrying after a lower attempt."""
        ...

    def rescue(
        self, timer: Timer, *, row: LedgerRow, owner: str, lease_until: datetime, now: datetime
    ) -> Claimed | Refused:
        """Take an attempt from a worker whose lease is over, if the row is still the one that was seen."""
        ...

    def attempt(self, timer: Timer, event: Event, *, owner: str, now: datetime) -> Applied | Refused:
        """End an at_most_once job by its start (ATTEMPT) or without one (LAPSE), if it has never been started."""
        ...

    def settle(
        self,
        job: Job,
        event: Event,
        *,
        fence: int,
        owner: str,
        due_at: datetime,
        now: datetime,
        result: str = "",
        error: str = "",
    ) -> Applied | Refused:
        """End an attempt under its fence; one whose target goes on by itself with any token.

        RETRY loses against a requested cancel.
        """
        ...

    def hold(self, timer: Timer, *, fence: int, owner: str, lease_until: datetime, now: datetime) -> Applied | Refused:
        """Renew the lease of an attempt whose target goes on by itself, and keep the record of its timer."""
        ...

    def extend(
        self,
        key: str,
        *,
        fence: int,
        lease_until: datetime,
        now: datetime,
        scheduled_at: datetime | None = None,
        job_id: JobId | None = None,
    ) -> LedgerRow | Refused:
        """Prolong the lease of a running attempt with this fence; its row, with the longer of both leases.

        scheduled_at: when its job was to run, where that may be later. job_id: only if the row has this id; None for whichever.
        """
        ...

    def complete(self, job_id: JobId, *, fence: int, result: str, now: datetime) -> Applied | Refused:
        """End a running attempt with this fence as succeeded, while the row has no record of its timer."""
        ...

    def hasten(self, timer: Timer, *, row: LedgerRow, owner: str, now: datetime) -> Applied | Refused:
        """Let a retry come due with this timer, if the row is still the one that was seen."""
        ...

    def move(
        self, job_id: JobId, timer: Timer, *, owner: str, now: datetime, first: JobId | None = None
    ) -> Applied | Refused:
        """Let a job that nobody has claimed go on as the job of this timer, and put its far row: both or neither.

        first: the job that was submitted, where that is another. Its row says by the same write under which id it goes on.
        """
        ...

    def park(self, timer: Timer, *, until: datetime, now: datetime) -> Applied | Refused:
        """Note until when an attempt that nobody has claimed waits on in the wheel. Nothing but that changes."""
        ...

    def renew_first(self, timer: Timer, *, now: datetime) -> None:
        """Let the row of the job that was submitted live on, which says that it goes on as this timer's job.

        Nothing happens when it says something else, or lives longer.
        """
        ...

    def replay(
        self, timer: Timer, *, far: Timer, job_id: str, fence: int, owner: str, now: datetime, needs_row: bool = False
    ) -> Applied | Refused:
        """Let the job with this id go on, with this timer, that has failed before its attempt, and put a far row of it.

        Or whose replay has not come yet, when this timer is not due later than that: the one that was placed for it
        would be dropped. The row keeps the budget of this timer from then on, for an attempt that loses its message.
        Both or neither. far: the same attempt, due then or later: by this it goes on when nobody places it.
        fence: the last one that its target may have been told, where its row has expired.
        needs_row: it may have gone on before, and ended, and its row have expired since: nothing without a row.
        """
        ...

    def fail(self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime) -> Applied | Refused:
        """End the last attempt under its fence and keep its dead letter: both or neither."""
        ...

    def cancel(self, job_id: JobId, *, owner: str, now: datetime, row: LedgerRow | None = None) -> Cancelled | Refused:
        """Write the tombstone, if the job is not running and not settled.

        row: only if it is still the one that was seen; None for whatever it is.
        """
        ...

    def give_up(self, job_id: JobId, *, row: LedgerRow, owner: str, now: datetime) -> Cancelled | Refused:
        """Write the tombstone of what nobody carries on, running or not, if no transition has touched it since it was seen."""
        ...

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        """Ask that nothing follows what the row says, if it is still the one that was seen."""
        ...

    def skip(self, timer: Timer, *, reason: str, owner: str, now: datetime) -> Applied | Refused:
        """End an occurrence without a run, if it has never been claimed."""
        ...

    def bury(
        self, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime
    ) -> Applied | Refused:
        """Settle as failed what no worker has, if the row is still the one that was seen, and keep its dead letter.

        The row has the attempt of the letter from then on, also where that was never claimed.
        """
        ...

    def get(self, key: str) -> LedgerRow | None:
        """The row of a job, as of all writes before."""
        ...

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        """The rows that exist among these keys, each as of some moment before."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule:
    """A definition as it is stored; its state is used only with the same version."""

    schedule: Schedule
    version: int
    status: Status
    created_at: datetime
    changed_at: datetime

    @property
    def key(self) -> str:
        """The key of its state row."""
        return self.schedule.uid


@dataclass(frozen=True, slots=True)
class Behind:
    """An advance lost; state is what it met, None where there is none."""

    state: ScheduleState | None


@dataclass(frozen=True, slots=True)
class StatePage:
    """State rows by their keys; after: where the next page begins, None behind the last."""

    states: dict[str, ScheduleState]
    after: str | None


class ScheduleStore(Protocol):
    """Definitions and states of schedules. A key is `{tenant}#{schedule_id}`."""

    def get(self, key: str) -> tuple[StoredSchedule | None, ScheduleState | None]:
        """Definition and state of one version, as of all writes before; no definition of a deleted schedule."""
        ...

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        """The definitions that exist among these keys, each as of some moment before, or as of all writes before."""
        ...

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[StoredSchedule], bool]:
        """A tenant's definitions behind a schedule id, in the order of their ids; whether there are more."""
        ...

    def state(self, key: str) -> ScheduleState | None:
        """The state row, as of all writes before."""
        ...

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        """The states that exist among these keys, each as of some moment before."""
        ...

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        """State rows of all tenants, in an order of the store's."""
        ...

    def change(
        self,
        stored: StoredSchedule,
        state: ScheduleState,
        *,
        seen: ScheduleState | None,
        limits: LoadLimits = NO_LIMITS,
    ) -> bool:
        """Write definition and state of a new version, both or neither, if the state is still the one that was seen.

        A deleted schedule loses its definition. What its share has changed by is added to its tenant's sum, in the same write.
        limits: of the sum. Raises SchedulesExceeded, FiresExceeded where it grows beyond them, and ScheduleBusy where others of its
        tenant are changed all the time; nothing is written.
        """
        ...

    def load(self, tenant: str) -> Load:
        """The sum of the shares of a tenant's schedules, as of all writes before."""
        ...

    def recount(self, key: str, share: Share | None, *, seen: ScheduleState) -> bool:
        """Give a schedule another share, and its tenant's sum the difference, if version and share are those that were seen."""
        ...

    def advance(
        self, key: str, planned: Plan, *, version: int, before: Link, rings_at: datetime | None, history: int
    ) -> Applied | Behind:
        """Record a plan that has been placed, if this version still stands at that link."""
        ...

    def take_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """Make a run the holder of the slot, if the holder is still the one that was seen."""
        ...

    def wait_for_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """Make a fire the one that waits for the slot, if the one that waits is still the one that was seen."""
        ...

    def note_skip(self, key: str, reason: SkipReason, *, fire_at: datetime) -> None:
        """Count a fire that does not run."""
        ...

    def note_failure(self, key: str, identity: str) -> int:
        """Note that a run failed for good; how many have since the last success."""
        ...

    def forget_failures(self, key: str) -> None:
        """A run has succeeded."""
        ...

    def note_aside(self, key: str, *, version: int, now: datetime) -> int:
        """Note that its chain was set aside; how often lately, 0 where another version counts."""
        ...


@dataclass(frozen=True, slots=True)
class ShardLease:
    """A shard that this scanner may scan. epoch: the fence of its checkpoints. cursors: None on the first tick ever.

    taken_at: when the tick began. sequence: of its checkpoints, so that a repeated write that lands late takes nothing back.
    has_died: whoever had it before did not give it back. died_at: the alarm that it was ringing then, as far as it has said.
    """

    shard: int
    owner: str
    epoch: int
    cursors: Cursors | None
    taken_at: datetime
    sequence: int = 0
    has_died: bool = False
    died_at: Position | None = None


class TenantPlans(Protocol):
    """The plans of tenants, as of at most half a minute before."""

    def of(self, tenant: str) -> TenantPlan:
        """The plan of a tenant: the stage's default where it has no row."""
        ...

    def of_everybody(self) -> TenantPlan:
        """The plan of a tenant that has no row. Paused: everybody is."""
        ...


EVERYBODY = "~everybody"
"""Whose row pauses all tenants: none can be called so."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Of all tenants: the number of changes so far; and the secret of the stage's job ids, empty while there is none."""

    changes: int = 0
    id_secret: bytes = field(default=b"", repr=False)


class TenantStore(Protocol):
    """The tenants that have a row, and the secret of job ids. Every change of any of them is a new revision."""

    def revision(self) -> Revision:
        """The last one, as of some moment before."""
        ...

    def keep_id_secret(self, secret: bytes) -> bytes:
        """Keep the secret of job ids, where there is none yet; the one that is kept."""
        ...

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        """Every row by its tenant, EVERYBODY's too, as of all writes before, and a revision at least as old."""
        ...

    def get(self, tenant: str) -> Tenant | None:
        """A tenant's row, or EVERYBODY's, as of all writes before."""
        ...

    def page(self, *, after: str, limit: int) -> tuple[dict[str, Tenant], bool]:
        """Tenants behind one, in the order of their names; whether there are more. Without EVERYBODY."""
        ...

    def change(self, name: str, tenant: Tenant, *, seen: int) -> bool:
        """Write a tenant, if the version that is there is still the one that was seen: 0 for none."""
        ...


@dataclass(frozen=True, slots=True)
class Ahead:
    """No room for submissions; next_at: the theoretical arrival time that was met, None where it kept changing."""

    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Booked:
    """Somebody else has reserved; timetable is what was met, None where there is none."""

    timetable: Timetable | None


class RateStore(Protocol):
    """What is used up of the rates of tenants.

    A reservation whose answer is lost is lost with it: a rate is never exceeded for that.
    """

    def book(self, tenant: str, timetable: Timetable, *, seen: Timetable | None) -> Applied | Booked:
        """Reserve executions: write a timetable, if the one that is there is still the one that was seen."""
        ...

    def spend(
        self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime, most: datetime | None = None
    ) -> Applied | Ahead:
        """Reserve submissions: add a cost to the theoretical arrival time, or to now, unless it is past `latest`.

        most: what is past that was reserved at another rate, and counts for nothing.
        """
        ...


class ShardStore(Protocol):
    """Who scans a shard, and how far it has come; how far the sweeper has; the recorded constants."""

    def acquire(
        self, shard: int, *, owner: str, now: datetime, lease_until: datetime, skew: timedelta
    ) -> ShardLease | None:
        """Take the lease of a shard; None while another scanner has it."""
        ...

    def checkpoint(
        self, lease: ShardLease, cursors: Cursors, *, lease_until: datetime | None, ringing: Position | None = None
    ) -> bool:
        """Record cursors and prolong the lease, or give it back (None). ringing: the alarm that rings next.

        False when a newer epoch has begun, or when a later checkpoint has been recorded.
        """
        ...

    def cursors(self, shards: Sequence[int]) -> dict[int, Cursors]:
        """The recorded cursors of those shards that have any."""
        ...

    def standings(self, shards: Sequence[int]) -> dict[int, ShardStanding]:
        """How those shards stand that have recorded cursors."""
        ...

    def conditions(self) -> Conditions | None:
        """The conditions of the stage as last published; None before the first."""
        ...

    def publish(self, conditions: Conditions) -> None:
        """Let everybody know them: the next tick of each shard has their budgets."""
        ...

    def audited(self) -> AuditPosition | None:
        """How far the audit has come; None before the first."""
        ...

    def swept(self) -> SweepPosition | None:
        """How far the sweep of the schedules has come; None before the first."""
        ...

    def advance_sweep(self, *, before: SweepPosition | None, to: SweepPosition) -> bool:
        """Record how far the sweep of the schedules has come, if it still stands at `before`."""
        ...

    def advance_audit(self, *, before: AuditPosition | None, to: AuditPosition) -> bool:
        """Record how far the audit has come, if it still stands at `before`."""
        ...

    def confirm(self, wheel: Wheel) -> None:
        """Record the constants of the stage, or compare them with the recorded ones. Raises WheelChanged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What failed for good. timer is None when the body was not written by Tickwheel; raw is what it was.

    fence: the last one that its target may have been told, 0 where that is not known. replayed_at: when its replay was
    begun for the first time; the letter stays until that is done.
    """

    tenant: str
    identity: str
    dead_at: datetime
    error: str
    error_class: str = "error"
    attempt: int = 0
    job_id: str = ""
    timer: Timer | None = None
    raw: str = ""
    fence: int = 0
    replayed_at: datetime | None = None

    @property
    def letter_id(self) -> LetterId:
        """Where it is kept: whole milliseconds, rounded down."""
        dead_at = from_ms((self.dead_at - EPOCH) // MILLISECOND)
        return LetterId(tenant=self.tenant, dead_at=dead_at, identity=self.identity)


class DeadLetters(Protocol):
    """What failed for good, with its error, its attempts and the job."""

    def put(self, letter: DeadLetter) -> None:
        """Keep a dead letter."""
        ...

    def get(self, letter_id: LetterId) -> DeadLetter | None:
        """The letter, as of all writes before."""
        ...

    def hours(self, tenant: str, *, since: datetime, until: datetime, limit: int) -> tuple[list[datetime], bool]:
        """Hours from `since` to `until`, both included, in which letters were kept, newest first; whether there may be more.

        A mark of an hour stands before its first letter does, and stays when that is gone. Letters of a release before
        have none.
        """
        ...

    def page(self, hour: datetime, *, before: LetterId, limit: int) -> tuple[list[DeadLetter], bool]:
        """A tenant's letters of an hour that lie behind a place, newest first; whether there may be more."""
        ...

    def mark(self, letter_id: LetterId, *, now: datetime) -> bool:
        """Note that its replay begins, unless one has before; False when the letter is gone."""
        ...

    def delete(self, letter_id: LetterId) -> None:
        """Forget a letter; nothing happens when it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Changed:
    """A conditional write of a breaker lost; breaker is what it met, None where it is closed."""

    breaker: Breaker | None


class BreakerStore(Protocol):
    """The breakers that are not closed, by tenant and destination. A closed one has no row.

    Every breaker that is written carries a fresh owner token, which names it from then on.
    """

    def get(self, tenant: str, destination: str) -> Breaker | None:
        """The breaker, as of some moment before."""
        ...

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Breaker], bool]:
        """A tenant's breakers behind a destination, in the order of their destinations; whether there are more."""
        ...

    def everywhere(self, *, limit: int) -> tuple[list[Breaker], int]:
        """The first breakers of all tenants, by tenant and destination; how many there are, about, up to 1,000."""
        ...

    def put(self, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        """Write a breaker, if the row is still the one that was seen: None for a closed one."""
        ...

    def close(self, seen: Breaker) -> Applied | Changed:
        """Remove the row, if it is still the one that was seen, or gone already."""
        ...

    def reset(self, tenant: str, destination: str) -> bool:
        """Remove the row, whatever it says; whether this very call did."""
        ...


class SeatStore(Protocol):
    """The seats of tenants whose concurrency is capped. A free one has no row, or one whose lease is over."""

    def take(self, seat: Seat, *, now: datetime, skew: timedelta) -> bool:
        """Take a seat that is free, or its owner's already; False when somebody else has it."""
        ...

    def leases(self, tenant: str, *, limit: int) -> dict[int, datetime]:
        """Until when the seats below that number were taken, as of some moment before; none of one without a row."""
        ...

    def give_back(self, seat: Seat) -> None:
        """Let a seat be free, if it is still its owner's."""
        ...


class OperationStore(Protocol):
    """Operations, and which of them are open, oldest first."""

    def create(self, operation: Operation) -> Operation | None:
        """Keep a new operation as an open one; the one that has its id already, where there is one."""
        ...

    def get(self, tenant: str, operation_id: str) -> Operation | None:
        """The operation, as of all writes before."""
        ...

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Operation], bool]:
        """A tenant's operations behind an id, in the order of their ids; whether there are more."""
        ...

    def open(self, *, limit: int) -> list[tuple[str, str]]:
        """Tenants and ids of operations that are not over, oldest first."""
        ...

    def take(
        self, tenant: str, operation_id: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Operation | None:
        """Take the lease of an open operation; None while another has it, or when it is over."""
        ...

    def save(self, operation: Operation, *, lease_until: datetime | None) -> Operation | None:
        """Record progress and prolong the lease, or give it back (None); what is recorded then.

        None when somebody else has taken it.
        """
        ...

    def finish(self, operation: Operation) -> bool:
        """Record how it ended; False when somebody else has taken it."""
        ...

    def stop(self, tenant: str, operation_id: str) -> Operation | None:
        """Ask that it ends at its next step; None when there is none such. Nothing happens when it is over."""
        ...


class DeletionStore(Protocol):
    """The deletions of tenants that are not over."""

    def begin(self, deletion: Deletion) -> Deletion:
        """Keep a new deletion; the one that there is, unless that is of an earlier life of the tenant."""
        ...

    def get(self, tenant: str) -> Deletion | None:
        """How far it has come, as of all writes before."""
        ...

    def open(self, *, limit: int) -> list[str]:
        """Tenants with a deletion."""
        ...

    def take(
        self, tenant: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Deletion | None:
        """Take the lease; None while another has it, or when there is no deletion."""
        ...

    def save(self, deletion: Deletion, *, lease_until: datetime | None) -> Deletion | None:
        """Record progress and prolong the lease, or give it back (None). None when somebody else has taken it."""
        ...

    def forget(self, deletion: Deletion) -> None:
        """It is over; nothing happens when it is gone, or another of the tenant has begun."""
        ...


@dataclass(frozen=True, slots=True)
class Swept:
    """A page of what there was of a tenant. after: where the next begins, None behind the last."""

    deleted: int
    after: str | None


class Remains(Protocol):
    """All that is stored of tenants."""

    def sweep(self, tenant: str, part: Part, *, after: str) -> Swept:
        """Delete a page of a part. Repeating it, or a later one, changes nothing."""
        ...


class Waker(Protocol):
    """Wakes whoever carries operations on, between its ticks."""

    def wake(self) -> None:
        """Ask for a turn now; the next tick comes anyway."""
        ...


class ExportStore(Protocol):
    """The files of exports."""

    def put(self, tenant: str, operation_id: str, part: int, lines: Sequence[str]) -> None:
        """Keep a part, numbered from 1: putting it again replaces it."""
        ...

    def urls(self, tenant: str, operation_id: str, parts: int) -> list[str]:
        """Where each part may be downloaded for the next minutes."""
        ...


class PayloadStore(Protocol):
    """Payloads that are too large for a row."""

    def put(self, job: Job, text: str) -> str:
        """Keep a payload; the pointer to it."""
        ...

    def put_for_schedule(self, key: str, text: str) -> str:
        """Keep the payload of a schedule; the pointer to it, which depends on the text."""
        ...

    def get(self, pointer: str) -> str | None:
        """The payload; None when it is gone."""
        ...

    def delete(self, pointer: str) -> None:
        """Forget a payload; nothing happens when it is gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a target is told about the attempt that calls it. traceparent: of W3C, with the attempt as the parent."""

    job_id: str
    tenant: str
    idempotency_key: str
    attempt: int
    fence: int
    scheduled_at: datetime
    deadline: datetime
    traceparent: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The target took the job; result is what it said, as a short JSON text."""

    result: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """The target goes on by itself: it tells the API how it ended, under the fence that it was given."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The target did not take the job. error_class: what went wrong, in a word, to count and to filter by.

    is_permanent: another attempt cannot help. retry_after: no attempt before this is of any use, says the target.
    is_its_own: the target was reached and refused just this job, so it says nothing about the next.
    """

    error: str
    error_class: str = "error"
    is_permanent: bool = False
    retry_after: timedelta | None = None
    is_its_own: bool = False


Outcome = Succeeded | Pending | Failed


class Targets(Protocol):
    """Whatever a job calls."""

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call a target once, for no longer than the timeout. A failure is a result."""
        ...


class WebhookKeys(Protocol):
    """The master keys of the stage's signatures, the current one first."""

    def masters(self) -> Sequence[WebhookKey]:
        """As of the last few minutes."""
        ...

    def read(self) -> Sequence[WebhookKey]:
        """As of now."""
        ...


class UsageCounter(Protocol):
    """Counts what tenants use."""

    def add(self, tenant: str, used: Usage) -> None:
        """Count it for a tenant, on the day that it is."""
        ...


class PendingCounter(Protocol):
    """Counts jobs that wait no more, of tenants that have a limit."""

    def leave(self, job_id: JobId, *, asked_for: datetime | None = None) -> None:
        """It waits no more. asked_for: when it was due, where somebody has asked for another time than its own."""
        ...

    def hasten(self, job_id: JobId, *, to: datetime) -> None:
        """It waits for another time than its own from now on."""
        ...

    def move(self, job: Job, *, to: Job) -> None:
        """It waits as another job from now on."""
        ...


class PendingStore(Protocol):
    """How many jobs of tenants wait, by the UTC day on which they are due."""

    def add(self, tenant: str, day: date, count: int) -> None:
        """Add to what is known of a day; a negative count takes away."""
        ...

    def counts(self, tenant: str, *, since: date) -> Mapping[date, int]:
        """The jobs of a day and of each day after it, as of some moment before. None is below zero."""
        ...


class UsageStore(Protocol):
    """What tenants have used, by UTC days."""

    def add(self, tenant: str, day: date, used: Usage) -> None:
        """Add to what is known of a day."""
        ...

    def days(self, tenant: str, days: Days) -> dict[date, Usage]:
        """The days on which there was anything, in order, as of some moment before."""
        ...


class PulseCounter(Protocol):
    """Counts what goes on in the stage."""

    def count(self, figure: Figure, tenant: str = "", *, amount: int = 1) -> None:
        """Count it now. tenant: whose it is, where it is somebody's."""
        ...

    def began(self, job: Job, lag: timedelta) -> None:
        """An attempt has begun, so late."""
        ...


class PulseStore(Protocol):
    """What went on in the stage, by the minute. It is kept for an hour."""

    def add(self, minute: datetime, pulse: Pulse) -> None:
        """Add to what is known of a minute."""
        ...

    def name(self, minute: datetime, tenant: str, counts: Mapping[Figure, int]) -> None:
        """Add to what is known of a tenant that stands out in a minute."""
        ...

    def pulses(self, first: datetime, last: datetime) -> dict[datetime, Pulse]:
        """The minutes in which anything went on, in order, both ends included, as of some moment before."""
        ...

    def named(self, minute: datetime) -> dict[str, Mapping[Figure, int]]:
        """The tenants that stood out in a minute, as of some moment before: at least so much was theirs."""
        ...


class Journal(Protocol):
    """What happened, for people and for metrics: fixed event names with keys."""

    def event(self, name: str, /, **keys: object) -> None:
        """One line of the log."""
        ...

    def count(self, metric: str, amount: int = 1) -> None:
        """Add to a counter."""
        ...

    def observe(self, metric: str, value: float, /, **dimensions: str) -> None:
        """One value of a distribution. dimensions: those that the metric has, each with what it is for this value."""
        ...


class Audit(Protocol):
    """How executions ended and what was done by hand, kept for long: each at least once."""

    def note(self, entry: Entry) -> None:
        """Keep it with the others of this invocation."""
        ...

    def flush(self) -> None:
        """Send what has come together, before anything that it tells is acknowledged. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Untaken:
    """Records that are not known to be taken, and why."""

    records: Sequence[Record]
    reason: str = ""


class AuditStream(Protocol):
    """Where lines of the audit trail go."""

    def put(self, records: Sequence[Record]) -> Untaken:
        """Send records. It gives up early: whoever sends them waits."""
        ...
