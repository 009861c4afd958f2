"""Attempts in the ledger: whose they are, until when, and how they end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.adapters.dynamodb.ledger_row import STARTS, read_row, ttl_of
from functions.adapters.dynamodb.ledger_writes import LedgerWrites
from functions.domain.far_ring.asked_record import encode_asked, room_for_attempts
from functions.domain.far_ring.timer_record import encode_timer
from functions.domain.jobs.claims import LedgerRow, deaths_of, is_own, taken_over
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.past_attempts import with_attempt
from functions.domain.lifecycle import Event, State, target
from functions.domain.targets.http_answers import RESULT_LIMIT
from functions.ports.ledger import Applied, Claimed, Refused

_NOBODY_HAS_IT = (
    "attribute_not_exists(k) OR (s = :scheduled AND (attribute_not_exists(a) OR a <= :attempt)) OR "
    "(s = :retrying AND a < :attempt"
)
"""To be continued by what a retry must not be due after."""


@dataclass
class LedgerAttempts(LedgerWrites):
    """What workers write, and targets that complete their jobs by themselves."""

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        """One write unit, refused or not."""
        # A message that is due before the retry is not its message: it looks after an attempt that has ended since.
        nobody_has_it = f"{_NOBODY_HAS_IT} AND d <= :due)"
        return self._take(
            timer,
            owner=owner,
            lease_until=lease_until,
            now=now,
            condition=nobody_has_it,
            assignments="r = :none",
            additions="f :one",
            scheduled=State.SCHEDULED,
            retrying=State.RETRYING,
            none=0,
            one=1,
        )

    def rescue(
        self, timer: Timer, *, row: LedgerRow, owner: str, lease_until: datetime, now: datetime
    ) -> Claimed | Refused:
        """A second write after a refused claim, for a worker that died."""
        lease_is_over = "(s = :state AND f = :fence AND l < :over AND a <= :attempt)"
        return self._take(
            timer,
            owner=owner,
            lease_until=lease_until,
            now=now,
            condition=lease_is_over,
            assignments="f = :next_fence, r = :rescues, t = :tried",
            removals="j",
            tried=with_attempt(row.tried, taken_over(row, now=now), room=room_for_attempts(timer.job)),
            fence=row.fence,
            next_fence=row.fence + 1,
            rescues=deaths_of(row, attempt=timer.attempt),
            over=now - self.skew,
        )

    def note_start(self, timer: Timer, *, now: datetime, is_taken_back: bool = False) -> None:
        """One write unit. One whose answer was lost may count twice."""
        ttl, count = ttl_of(now=now, due_at=timer.due_at), -1 if is_taken_back else 1
        self._apply(_starts_key(timer), update="SET x = :ttl ADD n :count", ttl=ttl, count=count)

    def starts_of(self, timer: Timer) -> int:
        """One read unit."""
        return self.table.get({"k": _starts_key(timer)}).get("n", 0)

    def note_requeue(self, timer: Timer, *, now: datetime) -> int:
        """One write unit."""
        ttl = ttl_of(now=now, due_at=timer.due_at)
        update = "SET x = :ttl ADD q :one"
        return self._change_freely(_starts_key(timer), update=update, ttl=ttl, one=1)["q"]

    def attempt(self, timer: Timer, event: Event, *, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, and the only one of an at_most_once job."""
        return self._end_unstarted(
            timer,
            event,
            assignments="a = :attempt, g = :asked",
            owner=owner,
            now=now,
            attempt=timer.attempt,
            asked=encode_asked(timer.job),
        )

    def skip(self, timer: Timer, *, reason: str, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, refused or not."""
        return self._end_unstarted(
            timer, Event.SKIP, assignments="e = :reason", owner=owner, now=now, reason=reason[:RESULT_LIMIT]
        )

    def settle(
        self,
        timer: Timer,
        event: Event,
        *,
        fence: int,
        owner: str,
        now: datetime,
        result: str = "",
        whole: str = "",
        error: str = "",
        tried: str = "",
    ) -> Applied | Refused:
        """One write unit. A zombie, whose attempt was rescued, is refused by the fence."""
        # Whoever ends a held attempt has a token of its own, and its fence.
        running_under_my_fence = "f = :fence AND s = :running AND (o = :owner OR attribute_exists(j))"
        if event is Event.RETRY:
            running_under_my_fence += " AND attribute_not_exists(c)"
        mine = "f = :fence AND o = :owner AND s = :state"
        return self._write(
            timer,
            condition=f"({running_under_my_fence}) OR ({mine})",
            assignments="d = :due, z = :result, e = :error"
            + (", y = :whole" if whole else "")
            + (", t = :tried" if tried else ""),
            removals="j",
            state=target(event),
            owner=owner,
            now=now,
            fence=fence,
            running=State.RUNNING,
            result=result[:RESULT_LIMIT],
            error=error[:RESULT_LIMIT],
            **_said(whole=whole, tried=tried),
        )

    def end_collected(
        self,
        timer: Timer,
        event: Event,
        *,
        owner: str,
        now: datetime,
        following: Timer | None = None,
        result: str = "",
        error: str = "",
        tried: str = "",
    ) -> Applied | Refused:
        """One write unit, and the only one of such an attempt, refused or not."""
        nobody_has_it = f"{_NOBODY_HAS_IT} AND d <= :mine)"
        return self._write(
            following or timer,
            condition=f"{nobody_has_it} OR (s = :state AND o = :owner AND a = :attempt)",
            assignments="d = :due, a = :attempt, i = :id, g = :asked, z = :result, e = :error"
            + (", t = :tried" if tried else ""),
            state=target(event),
            owner=owner,
            now=now,
            scheduled=State.SCHEDULED,
            retrying=State.RETRYING,
            mine=timer.due_at,
            attempt=timer.attempt,
            id=str(job_id_of(timer.job)),
            asked=encode_asked(timer.job),
            result=result[:RESULT_LIMIT],
            error=error[:RESULT_LIMIT],
            **_said(tried=tried),
        )

    def hold(self, timer: Timer, *, fence: int, owner: str, lease_until: datetime, now: datetime) -> Applied | Refused:
        """One write unit and one more for each 1,024 bytes of the record, which the API needs for a retry."""
        answer = self._write(
            timer,
            condition="f = :fence AND o = :owner AND s = :state AND l <= :lease",
            assignments="d = :due, l = :lease, j = :record",
            state=target(Event.HOLD),
            owner=owner,
            lease_until=lease_until,
            now=now,
            fence=fence,
            lease=lease_until,
            record=encode_timer(timer),
        )
        found = answer.row if isinstance(answer, Refused) else None
        if found is None or found.lease_until is None:
            return answer
        if (found.state, found.fence, found.owner) != (State.RUNNING, fence, owner):
            return answer
        # A heartbeat came first, and its target relies on the longer lease that it was given.
        return self.hold(timer, fence=fence, owner=owner, lease_until=found.lease_until, now=now)

    def extend(
        self, job_id: JobId, *, fence: int, lease_until: datetime, now: datetime, needs_id: bool = True
    ) -> LedgerRow | Refused:
        """One write unit, and one more for each 1,024 bytes of the record. A lease only grows."""
        its_id = {"id": str(job_id)} if needs_id else {}
        answer = self._change(
            job_id.key,
            returns="ALL_NEW",
            update="SET l = :lease, u = :now, x = :ttl",
            condition="f = :fence AND s = :running AND l <= :lease" + (" AND i = :id" if its_id else ""),
            **its_id,
            fence=fence,
            running=State.RUNNING,
            lease=lease_until,
            now=now,
            ttl=ttl_of(now=now, due_at=job_id.due_at, lease_until=lease_until),
        )
        if not isinstance(answer, Refused):
            return read_row(answer)
        row = answer.row
        if row is None or (row.state, row.fence) != (State.RUNNING, fence):
            return answer
        return answer if needs_id and row.job_id != str(job_id) else row

    def complete(self, job_id: JobId, *, fence: int, result: str, now: datetime, whole: str = "") -> Applied | Refused:
        """One write unit. The owner stays, so that its worker knows the row for its own when it comes to note the rest."""
        return self._apply(
            job_id.key,
            update="SET s = :state, z = :result, e = :none, u = :now, x = :ttl" + (", y = :whole" if whole else ""),
            condition="f = :fence AND s = :running AND attribute_not_exists(j)",
            fence=fence,
            running=State.RUNNING,
            state=target(Event.SUCCEED),
            result=result[:RESULT_LIMIT],
            none="",
            now=now,
            ttl=ttl_of(now=now, due_at=job_id.due_at),
            **_said(whole=whole),
        )

    def park(self, timer: Timer, *, until: datetime, now: datetime, flow: str = "") -> Applied | Refused:
        """One write unit, refused or not."""
        return self._apply(
            timer.job.key,
            update=(
                "SET w = :until, u = :now, x = :ttl, s = if_not_exists(s, :scheduled), "
                "d = if_not_exists(d, :due), i = if_not_exists(i, :id)" + (", b = :flow" if flow else " REMOVE b")
            ),
            condition=(
                "attribute_not_exists(k) OR (s = :retrying AND a < :attempt AND d <= :due) OR "
                "(s IN (:scheduled, :running) AND (attribute_not_exists(a) OR a <= :attempt))"
            ),
            until=until,
            now=now,
            ttl=ttl_of(now=now, due_at=max(until, timer.job.scheduled_at)),
            scheduled=State.SCHEDULED,
            retrying=State.RETRYING,
            running=State.RUNNING,
            attempt=timer.attempt,
            due=timer.due_at,
            id=str(job_id_of(timer.job)),
            **({"flow": flow} if flow else {}),
        )

    def _end_unstarted(self, timer: Timer, event: Event, *, assignments: str, **asked: Any) -> Applied | Refused:
        """End what nobody has ever claimed."""
        return self._write(
            timer,
            condition="attribute_not_exists(k) OR s = :scheduled OR (s = :state AND o = :owner)",
            assignments=f"d = :due, i = :id, {assignments}",
            state=target(event),
            scheduled=State.SCHEDULED,
            id=str(job_id_of(timer.job)),
            **asked,
        )

    def _take(
        self, timer: Timer, *, owner: str, lease_until: datetime, assignments: str, **asked: Any
    ) -> Claimed | Refused:
        answer = self._update(
            timer.job.key,
            due_at=timer.due_at,
            scheduled_at=timer.job.scheduled_at,
            assignments=f"d = :due, a = :attempt, l = :lease, i = :id, g = :asked, {assignments}",
            returns="ALL_NEW",
            state=target(Event.CLAIM),
            owner=owner,
            lease_until=lease_until,
            attempt=timer.attempt,
            lease=lease_until,
            id=str(job_id_of(timer.job)),
            asked=encode_asked(timer.job),
            **asked,
        )
        row = answer.row if isinstance(answer, Refused) else read_row(answer)
        if isinstance(answer, Refused) and not is_own(row, attempt=timer.attempt, owner=owner):
            return answer
        assert row is not None
        # Its own row needs no second write: that would move the fence that its target was given.
        return Claimed(row.fence, row.rescue_count, row.cancel_requested, tried=row.tried)


def _said(**texts: str) -> dict[str, Any]:
    """Those values that there are."""
    return {name: text for name, text in texts.items() if text}


def _starts_key(timer: Timer) -> str:
    return f"{timer.job.key}{STARTS}{timer.attempt}"
