"""Run a schedule beside its rule: once now, or over a time range that has passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from functions.api.admission.gate import Gate
from functions.api.schedules import standing
from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.audit import changed
from functions.api.schedules.backfill import Backfill, Bookmark, extra_job, parse_bookmark, range_of
from functions.api.schedules.requests import BackfillBody
from functions.domain.audit import ActionName
from functions.domain.instants import format_instant, to_the_millisecond
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules.asked_runs import BACKFILL, TRIGGER
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.schedules import ScheduleStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraRuns:
    """Runs that somebody asks for. asked: takes in their jobs. caller: who asks, for the audit trail. gate: of what makes work."""

    wheel: Wheel
    clock: Clock
    schedules: ScheduleStore
    asked: AskedFires
    journal: Journal
    gate: Gate
    audit: AuditTrail

    def trigger(
        self, tenant: str, schedule_id: str, *, token: str, overlap: Overlap | None = None, caller: str = ""
    ) -> str:
        """Run it once, now, without touching its next fire, also while it is paused; the id of the job.

        The same token again is the same run. Raises what the gate does.
        """
        stored, _ = standing.existing(*self.schedules.get(f"{tenant}#{schedule_id}"), tenant, schedule_id)
        now = to_the_millisecond(self.clock.now())
        job = extra_job(stored, wheel=self.wheel, fire_at=now, due_at=now, index=0, suffix=TRIGGER, overlap=overlap)
        # Its name has no time: a repeat of the request must be the same run.
        job = replace(job, identity=f"{schedule_id}:{TRIGGER}:{token}")
        self.gate.admit(tenant, [now])
        taken = self.asked.take_in([job])[0]
        if taken.is_new:
            self.gate.note(tenant, [now])
        self.journal.count("triggered")
        job_id = str(job_id_of(taken.job))
        self.audit.note(changed(ActionName.SCHEDULE_TRIGGER, stored.key, caller=caller, after={"job": job_id}))
        return job_id

    def backfill(self, tenant: str, schedule_id: str, body: BackfillBody, *, token: str, caller: str = "") -> Backfill:
        """Run the fires of a time range, so many a minute from now on, oldest first: as many as may come in.

        The same token again is the same backfill. Raises InvalidSchedule for a range that is not in the past, or holds more
        than MOST_BACKFILLED fires; InvalidInput; and what the gate does.
        """
        stored, _ = standing.existing(*self.schedules.get(f"{tenant}#{schedule_id}"), tenant, schedule_id)
        now = to_the_millisecond(self.clock.now())
        start, first_at, first_index = body.start, now, 0
        if body.after:
            left_off = parse_bookmark(body.after)
            start, token, first_at = max(start, left_off.start), left_off.token, left_off.first_at(now=now)
            first_index = left_off.index
        found = range_of(stored.schedule, start=start, end=body.end, now=now)
        gap = timedelta(minutes=1) / body.per_minute
        jobs = [
            extra_job(
                stored,
                fire_at=fire.at,
                due_at=first_at + gap * number,
                index=first_index + number,
                suffix=BACKFILL + token,
                overlap=body.overlap,
                wheel=self.wheel,
                nominal_at=fire.nominal_at,
            )
            for number, fire in enumerate(found)
        ]
        goes_on = None
        if not body.dry_run:
            count = self.gate.admit(tenant, [job.scheduled_at for job in jobs])
            if count < len(jobs):
                goes_on = Bookmark(
                    start=found[count].at, due_at=first_at + gap * count, token=token, index=first_index + count
                )
            found, jobs = found[:count], jobs[:count]
            taken = self.asked.take_in(jobs)
            jobs = [each.job for each in taken]
            self.gate.note(tenant, [each.job.scheduled_at for each in taken if each.is_new])
            self.journal.count("backfilled", len(jobs))
            made = {
                "start": format_instant(start),
                "end": format_instant(body.end),
                "backfill": token,
                "count": len(jobs),
            }
            self.audit.note(changed(ActionName.SCHEDULE_BACKFILL, stored.key, caller=caller, after=made))
        return Backfill(
            backfill_id=token,
            count=len(jobs),
            first=found[0].at if found else None,
            last=found[-1].at if found else None,
            ends_at=jobs[-1].scheduled_at if jobs else None,
            job_ids=() if body.dry_run else [str(job_id_of(job)) for job in jobs],
            goes_on=goes_on,
        )
