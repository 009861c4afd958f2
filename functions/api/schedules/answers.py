"""What the API answers about schedules: bodies from what the rules found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from functions.api.http.answers import without_empty
from functions.api.schedules.backfill import Backfill
from functions.api.schedules.standing import Difference, Run, Standing
from functions.domain.instants import format_instant, from_ms, to_ms
from functions.domain.jobs.claims import ABSENT_IS_OVER
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import UNTRACKED, State
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.schedules.preview import Page, Preview
from functions.domain.schedules.record import POINTER, encode_schedule
from functions.domain.schedules.schedule import Schedule

if TYPE_CHECKING:
    from functions.api.schedules import shapes


def schedule_body(standing: Standing, *, now: datetime, stored_payload: str | None = None) -> shapes.Schedule:
    """A schedule as it stands: its definition, and what it has done. What there is not is left out.

    stored_payload: JSON text of a payload that is in the payload store; without it, the pointer to it is told.
    """
    stored, state = standing.stored, standing.state
    schedule = stored.schedule
    runs = [_run_body(run, schedule, now=now) for run in standing.runs]
    fired = [fire_at for fire_at in state.recent if fire_at <= now]
    standing_body: shapes.Standing = {
        "id": schedule.schedule_id,
        "tenant": schedule.tenant,
        "version": stored.version,
        "status": state.status.value,
        "note": state.note,
        "created_at": _kept(stored.created_at),
        "changed_at": _kept(stored.changed_at),
        "last_fire": format_instant(fired[-1]) if fired else "",
        "last_outcome": runs[0]["state"] if runs else "",
        "fires": standing.fire_count,
        "misfires": state.misfire_count,
        "skips": {reason.value: count for reason, count in sorted(state.skips.items())},
        "failures_in_a_row": len(state.failures),
        "runs": runs,
    }
    if standing.next_fire:
        at, nominal_at = standing.next_fire.at, standing.next_fire.nominal_at
        standing_body["next_fire"] = {"at": format_instant(at), "nominal_at": format_instant(nominal_at)}
    if state.last_skip:
        reason, at = state.last_skip
        standing_body["last_skip"] = {"reason": reason.value, "at": format_instant(at)}
    body = without_empty(standing_body, "last_fire", "last_outcome")
    return cast("shapes.Schedule", {**_definition(schedule, stored_payload), **body})


def fires_body(page: Page) -> shapes.Fires:
    """A page of fires that are to come; next: the `after` of the page behind it."""
    return {"fires": previews_body(page.previews), "next": None if page.goes_on is None else str(page.goes_on)}


def previews_body(previews: Sequence[Preview]) -> list[shapes.Fire]:
    """Fires that are to come, in UTC and on the clock of their zone; marks: what moved them, and why."""
    return [
        {
            "at": format_instant(preview.fire.at),
            "local": preview.local.isoformat(timespec="milliseconds" if preview.local.microsecond else "seconds"),
            "offset": preview.local.isoformat()[-len("+00:00") :],
            "marks": [{"by": mover.value, "reason": reason} for mover, reason in preview.marks],
        }
        for preview in previews
    ]


def difference_body(difference: Difference) -> shapes.Difference:
    """The next fires before and after a change that was not made."""
    return {"before": previews_body(difference.before), "after": previews_body(difference.after)}


def backfill_body(backfill: Backfill) -> shapes.Backfill:
    """The runs of a time range. What there is not, as for an empty range, is left out."""
    body: shapes.Backfill = {
        "backfill": backfill.backfill_id,
        "count": backfill.count,
        "first": _optional(backfill.first),
        "last": _optional(backfill.last),
        "ends_at": _optional(backfill.ends_at),
        "jobs": list(backfill.job_ids),
        "next": str(backfill.goes_on) if backfill.goes_on is not None else "",
    }
    return without_empty(body, "first", "last", "ends_at", "next")


def _optional(instant: datetime | None) -> str:
    return format_instant(instant) if instant is not None else ""


def _kept(instant: datetime) -> str:
    """As the store keeps it, so that the answer to a change says the same as the next question does."""
    return format_instant(from_ms(to_ms(instant)))


def _definition(schedule: Schedule, stored_payload: str | None) -> dict[str, Any]:
    written = encode_schedule(schedule, REQUESTED)
    if stored_payload is not None:
        written["job"].pop(POINTER, None)
        written["job"]["payload"] = json.loads(stored_payload)
    return written


def _run_body(run: Run, schedule: Schedule, *, now: datetime) -> shapes.Run:
    row = run.row
    body: shapes.Run = {"fire_at": format_instant(run.fire_at), "job_id": run.job_id, "state": UNTRACKED, "attempt": 0}
    if row is None:
        # Until it is claimed it has no row; an at_least_once run never has one, and no row is kept for ever.
        if schedule.job.delivery is not Delivery.AT_LEAST_ONCE and run.fire_at + ABSENT_IS_OVER > now:
            body["state"] = State.SCHEDULED.value
        return body
    body["state"], body["attempt"] = row.state.value, row.attempt
    if row.error:
        body["error"] = row.error
    if row.is_settled and row.updated_at is not None:
        body["settled_at"] = format_instant(row.updated_at)
    return body
