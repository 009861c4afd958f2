"""Whether a run of a schedule may start.

Before its first claim the state row says whether its version still counts, whether the schedule is paused, and which run
has the slot. The slot is decided by conditional writes that name the holder that was seen; a fire that does not run is
settled as skipped in the ledger, so that a second message of it does not decide otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto

from functions.domain.errors import InvalidInput, NotPlaced
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.occurrence import UNBOUND, Occurrence
from functions.domain.jobs.overlap import Overlap
from functions.domain.lifecycle import State
from functions.domain.schedules.asked_runs import asked_run_of, with_asked
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.slots import SAID_AGAIN, Turn, is_abandoned, turn_of, wait_of
from functions.domain.schedules.state import ScheduleState, SkipReason, Status
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Applied, Cancelled, Ledger, Refused
from functions.ports.recorder import Journal
from functions.ports.schedules import ScheduleStore
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.schedules.run_ends import schedule_key
from functions.services.schedules.stops import Stops

_TRIES = 5
_TRIES_TO_REMEMBER = 8
"""Of runs that begin at the same moment, each is written in its turn."""
_WHY_SKIPPED = {
    SkipReason.BUFFER_FULL: "{waiting} waits already",
    SkipReason.OVERLAP: "{holder} has not come to its end",
    SkipReason.REPLACED: "{holder} is later",
}
"""By what the slot says."""


class FireDecision(Enum):
    """What becomes of an occurrence before its first claim."""

    MAY_RUN = auto()
    IS_OVER = auto()
    """It is settled as skipped, or placed again for later: its message has nothing left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrences:
    """Admits occurrences. token: a fresh owner token."""

    wheel: Wheel
    clock: Clock
    schedules: ScheduleStore
    ledger: Ledger
    placer: Placer
    ends: Ends
    stops: Stops
    journal: Journal
    token: Callable[[], str]

    def decide(self, timer: Timer, occurrence: Occurrence, *, is_closed: bool = False) -> FireDecision:
        """Whether an occurrence may be claimed for the first time, at its time or after.

        is_closed: its tenant was closed before its fire time.
        """
        key = schedule_key(timer, occurrence)
        state = self.schedules.state(key)
        if state is not None and not state.may_run(occurrence):
            return self._leave_to_later_version(timer, occurrence, key, state)
        if state is None or state.status is Status.DELETED:
            return self._skip(timer, SkipReason.PAUSED, "its schedule is deleted")
        if state.status is Status.PAUSED and occurrence.version > UNBOUND:
            return self._skip(timer, SkipReason.PAUSED, "its schedule is paused")
        if occurrence.version <= UNBOUND:
            self._remember(timer, key, state)
        if is_closed:
            return self._skip(timer, SkipReason.DRAINING, "its tenant is being closed")
        if occurrence.overlap is Overlap.ALLOW:
            return FireDecision.MAY_RUN
        return self._take_slot(timer, occurrence, key, state)

    def _remember(self, timer: Timer, key: str, state: ScheduleState) -> None:
        """A run that was asked for begins: its schedule shows it among its runs. One that loses to others too often is not shown."""
        job, seen = timer.job, state
        run = asked_run_of(job.identity, due_at=job.scheduled_at)
        for _ in range(_TRIES_TO_REMEMBER if run is not None else 0):
            assert run is not None
            asked = with_asked(seen.asked_runs, run)
            if asked == seen.asked_runs or self.schedules.remember_asked(key, asked, seen=seen):
                return
            seen = self.schedules.state(key)
            if seen is None or seen.born != state.born:
                return

    def _leave_to_later_version(
        self, timer: Timer, occurrence: Occurrence, key: str, state: ScheduleState
    ) -> FireDecision:
        """Dropped without a trace: a later version may decide the same fire, and under the same name it must run."""
        if occurrence.version <= UNBOUND:
            # None decides it: it was asked of a schedule that has been deleted. A schedule of its name that there may be
            # by now is not to count it.
            return self._skip(timer, None, "its schedule was deleted")
        row = self.ledger.get(timer.job.key) if timer.job.is_ledgered else None
        has_begun = row is not None and not row.is_settled and row.state is not State.SCHEDULED
        has_place = _is_same(state.holder, timer) or _is_same(state.waiting, timer)
        is_forgotten = all(cut.version != occurrence.version + 1 for cut in state.cuts)
        if (has_begun or has_place) and (is_forgotten or not self._may_be_decided_again(key, occurrence.fire_at)):
            # Admitted before the change. Nobody else comes to its end, and a slot would wait for that.
            return self._skip(timer, SkipReason.REPLACED, "its schedule has changed")
        self.journal.event("stale_fire_dropped", job_id=str(job_id_of(timer.job)))
        return FireDecision.IS_OVER

    def _may_be_decided_again(self, key: str, fire_at: datetime) -> bool:
        stored, state = self.schedules.get(key)
        if stored is None or state is None or state.status is not Status.ACTIVE:
            return False
        if fire_at <= state.changed_at:
            return True  # by a version in between, of which nothing is known any more
        if stored.schedule.is_end_to_start:
            return state.link is not None and state.link.at == fire_at
        try:
            fire = next_fire(stored.schedule, after=fire_at - MILLISECOND)
        except InvalidInput:
            return False  # it cannot be worked out, as its chain cannot: a message would come back for nothing
        return fire is not None and fire.at == fire_at

    def _skip(self, timer: Timer, reason: SkipReason | None, text: str) -> FireDecision:
        """End a fire without a run; one that has begun continues. reason: None where its schedule is not to count it."""
        if timer.job.is_ledgered:
            written = f"{reason}: {text}" if reason else text
            answer = self.ledger.skip(timer, reason=written, owner=self.token(), now=self.clock.now())
            if isinstance(answer, Refused):
                return FireDecision.MAY_RUN  # its claim finds out
        self.ends.skipped(timer, reason or text)
        return FireDecision.IS_OVER

    def _take_slot(self, timer: Timer, occurrence: Occurrence, key: str, state: ScheduleState) -> FireDecision:
        me = str(job_id_of(timer.job))
        seen = self._said_again(key, timer, state)
        for _ in range(_TRIES):
            if seen is None:
                return self._skip(timer, SkipReason.PAUSED, "its schedule is deleted")
            if _is_same(seen.holder, timer):
                return FireDecision.MAY_RUN
            now = self.clock.now()
            turn = self._turn(timer, occurrence, seen, now=now)
            if isinstance(turn, SkipReason):
                return self._skip(timer, turn, _WHY_SKIPPED[turn].format(holder=seen.holder, waiting=seen.waiting))
            if turn is Turn.WAIT:
                if timer.job.expires_at is not None and now >= timer.job.expires_at:
                    return FireDecision.MAY_RUN  # its claim lets it expire: its target is not called
                if self._is_waiting(key, me, seen, now=now):
                    return self._wait(timer, now=now)
            else:
                if turn is Turn.REPLACE:
                    self._evict(seen.holder, key)
                if self._takes_slot(key, timer, seen, now=now):
                    return FireDecision.MAY_RUN
            seen = self.schedules.state(key)
        raise NotPlaced([f"the slot of {key} kept changing hands"])

    def _turn(self, timer: Timer, occurrence: Occurrence, seen: ScheduleState, *, now: datetime) -> Turn | SkipReason:
        is_free = self._is_over(timer, seen.holder, seen.holder_since, now=now)
        has_rival = occurrence.overlap.waits and self._is_another_waiting(timer, seen, now=now)
        return turn_of(
            occurrence.overlap,
            timer.job.scheduled_at,
            running=None if is_free else parse_job_id(seen.holder).due_at,
            waiting=parse_job_id(seen.waiting).due_at if has_rival else None,
        )

    def _said_again(self, key: str, timer: Timer, state: ScheduleState) -> ScheduleState | None:
        """The state; of a holder that has not begun for long, said anew: its message is old, and no later fire must overtake it."""
        now = self.clock.now()
        if not _is_same(state.holder, timer) or _is_fresh(state.holder_since, now=now):
            return state
        self._takes_slot(key, timer, state, now=now)
        return self.schedules.state(key)

    def _takes_slot(self, key: str, timer: Timer, seen: ScheduleState, *, now: datetime) -> bool:
        me = str(job_id_of(timer.job))
        # By whatever id it waited, it does so no longer.
        seen = replace(seen, waiting=me) if _is_same(seen.waiting, timer) else seen
        return self.schedules.take_slot(key, me, seen=seen, now=now)

    def _is_another_waiting(self, timer: Timer, seen: ScheduleState, *, now: datetime) -> bool:
        if not seen.waiting or _is_same(seen.waiting, timer):
            return False
        return not self._is_over(timer, seen.waiting, seen.waiting_since, now=now)

    def _is_waiting(self, key: str, me: str, seen: ScheduleState, *, now: datetime) -> bool:
        is_noted = seen.waiting == me and _is_fresh(seen.waiting_since, now=now)
        return is_noted or self.schedules.wait_for_slot(key, me, seen=seen, now=now)

    def _is_over(self, timer: Timer, job_id: str, since: datetime | None, *, now: datetime) -> bool:
        """Whether a run has come to its end. One that nobody carries on is brought to it. timer: of a later run of its schedule."""
        if not job_id:
            return True
        row = self.ledger.get(parse_job_id(job_id).key)
        if row is not None and row.is_settled:
            self.stops.report_again(row, like=lambda: timer.job)
            return True
        if not is_abandoned(row, since=since, now=now, skew=self.wheel.skew):
            return False
        if row is None:
            # It has come to its end so long ago that its row has expired, or it has never begun. A tombstone would report
            # what has ended otherwise.
            return True
        return self.stops.give_up(parse_job_id(row.job_id or job_id), row, like=lambda: timer.job) is not None

    def _evict(self, job_id: str, key: str) -> None:
        """Stop a run: it is not tried again, and if it has not begun it does not."""
        parsed = parse_job_id(job_id)
        if self._cancel(parsed):
            self.schedules.note_skip(key, SkipReason.REPLACED, fire_at=parsed.due_at)
        self.journal.event("run_replaced", job_id=job_id)

    def _cancel(self, job_id: JobId) -> bool:
        """True when it has not begun, and will not."""
        now = self.clock.now()
        for _ in range(_TRIES):
            answer = self.ledger.cancel(job_id, owner=self.token(), now=now)
            if isinstance(answer, Cancelled):
                # Its schedule is who stops it.
                self.ends.cancelled(job_id, answer, reason=SkipReason.REPLACED.value, spares_schedule=True)
                return True
            row = answer.row
            if row is None:
                continue
            if row.is_settled or isinstance(self.ledger.request_cancel(job_id, row=row, now=now), Applied):
                return False
        raise NotPlaced([f"the row of {job_id} kept changing"])

    def _wait(self, timer: Timer, *, now: datetime) -> FireDecision:
        """Placed again before this message is acknowledged; the same attempt, its ledger row untouched."""
        wait = wait_of(waited=now - timer.job.scheduled_at)
        self.placer.place_one(replace(timer, due_at=now + wait))
        self.journal.event("fire_waits", job_id=str(job_id_of(timer.job)), seconds=wait.total_seconds())
        return FireDecision.IS_OVER


def _is_fresh(since: datetime | None, *, now: datetime) -> bool:
    """Whether it is no time yet to say again that one has the slot, or waits for it."""
    return since is not None and now < since + SAID_AGAIN


def _is_same(job_id: str, timer: Timer) -> bool:
    """Whether an id is that of the same execution: a request that is repeated has another due time, and so another id."""
    return bool(job_id) and parse_job_id(job_id).key == timer.job.key
