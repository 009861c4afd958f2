"""What the API answers about schedules: the shapes of its bodies, and these from what the rules found."""

import json
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.answers import without_empty
from functions.api.schedules import backfill, batch, standing
from functions.api.schedules.requests import MOST_SCHEDULES
from functions.domain.instants import format_duration, format_instant, to_the_millisecond
from functions.domain.jobs.claims import ABSENT_IS_OVER
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import UNTRACKED, State
from functions.domain.schedules import schedule as rules
from functions.domain.schedules.asked_runs import Origin, origin_of
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.preview import Page, Preview
from functions.domain.schedules.record import POINTER, encode_schedule
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.schedules.state import SkipReason, Status
from functions.ports.schedules import MOST_TOGETHER

Reason = Annotated[str, shapes.one_of(SkipReason)]


class NextFire(TypedDict):
    """The next fire of a schedule."""

    at: shapes.Instant
    nominal_at: shapes.Instant


class LastSkip(TypedDict):
    """The last fire that did not become a run."""

    reason: Reason
    at: shapes.Instant


class Run(TypedDict):
    """A run of a schedule."""

    origin: Annotated[str, shapes.one_of(Origin)]
    """Whether the rule of the schedule decided it, or it was triggered or backfilled."""
    fire_at: shapes.Instant
    job_id: shapes.JobId
    state: shapes.JobState
    attempt: shapes.Count
    error: NotRequired[str]
    settled_at: NotRequired[shapes.Instant]


DefaultSpread = TypedDict(
    "DefaultSpread",
    {
        "spread": shapes.Duration,
        "from": Annotated[str, shapes.one_of(each for each in SpreadFrom if each is not SpreadFrom.SCHEDULE)],
    },
)
DefaultSpread.__doc__ = "A spread that is a default: of the tenant itself, of its plan, or of the stage."


class Standing(TypedDict):
    """The state of a schedule."""

    id: shapes.ScheduleId
    tenant: shapes.TenantId
    version: int
    """Increases with every change."""
    status: Annotated[str, shapes.one_of(Status)]
    note: str
    """Why the schedule was paused or resumed."""
    created_at: shapes.Instant
    changed_at: shapes.Instant
    next_fire: NotRequired[NextFire]
    last_fire: NotRequired[shapes.Instant]
    last_outcome: NotRequired[shapes.JobState]
    fires: shapes.Count
    """The number of fires that became runs."""
    misfires: shapes.Count
    """The number of fires that were found more than a minute late."""
    skips: dict[Reason, shapes.Count]
    """The number of fires that did not become runs, by reason."""
    last_skip: NotRequired[LastSkip]
    default_spread: NotRequired[DefaultSpread]
    """The spread in effect, if the definition has none and took a default."""
    failures_in_a_row: shapes.Count
    """Counted if `pause_after_failures` is set."""
    runs: list[Run]
    """The last runs, newest first: the last `history` fires, and the last runs that were triggered or backfilled, as many
    but at most 10. Empty in a list of schedules."""
    last_successes: NotRequired[list[Run]]
    """With `success_history`: the last successful runs, newest first. Omitted in a list of schedules."""
    last_failures: NotRequired[list[Run]]
    """With `failure_history`: the last failed runs, newest first. Omitted in a list of schedules."""


class Schedule(Standing):
    """A schedule: its definition and its state. Fields that have their default value are omitted."""

    # The schemas of its definition, a ScheduleBody, are added where the description is made.
    job: Annotated[dict[str, Any], Field(examples=[{"target": "https://example.com/hook"}])]


class Schedules(TypedDict):
    """A page of schedules."""

    schedules: list[Schedule]
    next: str | None
    """The `after` of the next page, or `null` on the last page."""


class PutSchedule(Standing):
    """The state of a schedule that was put, without its definition."""


class ScheduleResult(TypedDict):
    """The result for one schedule of a batch: what was done and its state, or the problem."""

    status: int
    change: NotRequired[Annotated[str, shapes.one_of(standing.PutKind)]]
    schedule: NotRequired[PutSchedule]
    problem: NotRequired[shapes.Problem]


class ScheduleResults(TypedDict):
    """The results of a batch."""

    results: Annotated[list[ScheduleResult], Field(max_length=MOST_TOGETHER)]
    """One result for each schedule, in the order of the request."""


class Mark(TypedDict):
    """By how much a fire was shifted, and why."""

    by: Annotated[str, shapes.one_of(rules.Shifter)]
    reason: Annotated[str, Field(examples=["spread"])]


class Fire(TypedDict):
    """A future fire."""

    at: shapes.Instant
    local: shapes.Instant
    """The same instant in the time zone of the schedule."""
    offset: Annotated[str, Field(examples=["+01:00"])]
    marks: list[Mark]
    """How the fire differs from its rule, and why."""


class Fires(TypedDict):
    """A page of fires."""

    fires: list[Fire]
    next: str | None
    """The `after` of the next page."""


class Difference(TypedDict):
    """What a change would do: the next fires before and after it. The change was not made."""

    change: Annotated[str, shapes.one_of(standing.PutKind)]
    """`unchanged` if the definition is the one that the schedule has."""
    before: list[Fire]
    after: list[Fire]


class Deleted(TypedDict):
    """A deleted schedule."""

    id: shapes.ScheduleId
    tenant: shapes.TenantId
    status: Annotated[str, shapes.one_of([Status.DELETED])]


class Triggered(TypedDict):
    """A triggered run."""

    job: shapes.JobId


class Backfill(TypedDict):
    """The runs of a backfill."""

    backfill: Annotated[str, Field(examples=["k-5f0c9a1be27d3586"])]
    """The name of the backfill. The same Idempotency-Key always results in the same name."""
    count: shapes.Count
    first: NotRequired[shapes.Instant]
    last: NotRequired[shapes.Instant]
    ends_at: NotRequired[shapes.Instant]
    """When the last run is due."""
    jobs: list[shapes.JobId]
    next: NotRequired[str]
    """The `after` of the next request, if the tenant's `submission_rate` or `max_pending` did not allow all runs."""


class FireCount(TypedDict):
    """The fires of one schedule or definition."""

    tenant: NotRequired[str]
    id: NotRequired[str]
    minutes: NotRequired[dict[str, shapes.Count]]
    """The number of fires in each minute, counted from `start`. Minutes without fires are omitted."""
    problem: NotRequired[shapes.Problem]


class FireCounts(TypedDict):
    """The fires of schedules in each minute."""

    start: shapes.Instant
    results: Annotated[list[FireCount], Field(max_length=MOST_SCHEDULES)]
    """For definitions: one result each, in their order. For a tenant: one result for each active schedule."""
    next: str | None
    """The `after` of the next page, which must be requested with the same definitions."""


def schedule_body(found: standing.Standing, *, now: datetime, stored_payload: str | None = None) -> Schedule:
    """A schedule as it stands: its definition, and what it has done. What there is not is left out.

    stored_payload: JSON text of a payload that is in the payload store; without it, the pointer to it is answered.
    """
    return cast("Schedule", {**_definition(found.stored.schedule, stored_payload), **_standing_body(found, now=now)})


def put_body(put: batch.Put, *, now: datetime) -> ScheduleResult:
    """A schedule of a batch that is stored."""
    status = HTTPStatus.CREATED if put.kind is standing.PutKind.CREATED else HTTPStatus.OK
    standing_body = cast("PutSchedule", _standing_body(put.standing, now=now))
    return {"status": int(status), "change": put.kind.value, "schedule": standing_body}


def refused_body(problem: shapes.Problem) -> ScheduleResult:
    """A schedule of a batch that is refused."""
    return {"status": problem["status"], "problem": problem}


def results_body(results: Sequence[ScheduleResult]) -> ScheduleResults:
    """What became of each schedule of a batch, in the order of the request."""
    return {"results": list(results)}


def _standing_body(found: standing.Standing, *, now: datetime) -> Standing:
    stored, state = found.stored, found.state
    schedule = stored.schedule
    runs = [run_body(run, schedule, now=now) for run in found.runs]
    of_fires = [run for run in runs if run["origin"] == Origin.SCHEDULED]
    fired = [fire_at for fire_at in state.recent if fire_at <= now]
    standing_body: Standing = {
        "id": schedule.schedule_id,
        "tenant": schedule.tenant,
        "version": stored.version,
        "status": state.status.value,
        "note": state.note,
        # As they are kept, so that the answer to a change says the same as the next question does.
        "created_at": format_instant(to_the_millisecond(stored.created_at)),
        "changed_at": format_instant(to_the_millisecond(stored.changed_at)),
        "last_fire": format_instant(fired[-1]) if fired else "",
        "last_outcome": of_fires[0]["state"] if of_fires else "",
        "fires": found.fire_count,
        "misfires": state.misfire_count,
        "skips": {reason.value: count for reason, count in sorted(state.skips.items())},
        "failures_in_a_row": len(state.failures),
        "runs": runs,
    }
    if found.next_fire:
        at, nominal_at = found.next_fire.at, found.next_fire.nominal_at
        standing_body["next_fire"] = {"at": format_instant(at), "nominal_at": format_instant(nominal_at)}
    if state.last_skip:
        reason, at = state.last_skip
        standing_body["last_skip"] = {"reason": reason.value, "at": format_instant(at)}
    if schedule.spread_from is not None and not schedule.says_spread:
        taken: DefaultSpread = {"spread": format_duration(schedule.spread), "from": schedule.spread_from.value}
        standing_body["default_spread"] = taken
    for name, has_succeeded in (("last_successes", True), ("last_failures", False)):
        ended = [_kept_body(run) for run in reversed(found.kept_runs) if run.has_succeeded is has_succeeded]
        if ended:
            standing_body[name] = ended
    return without_empty(Standing, standing_body)


def schedules_body(found: Sequence[standing.Standing], *, now: datetime, after: str | None) -> Schedules:
    """A page of a list."""
    return {"schedules": [schedule_body(each, now=now) for each in found], "next": after}


def deleted_body(tenant: str, schedule_id: str) -> Deleted:
    """A schedule that is removed."""
    return {"id": schedule_id, "tenant": tenant, "status": Status.DELETED.value}


def triggered_body(job_id: str) -> Triggered:
    """A run that was asked for."""
    return {"job": job_id}


def fire_counts_body(results: Sequence[FireCount], *, start: datetime, after: str | None) -> FireCounts:
    """The fires of schedules by the minute, from start on."""
    return {"start": format_instant(start), "results": list(results), "next": after}


def fires_body(page: Page) -> Fires:
    """A page of fires that are to come; next: the `after` of the page behind it."""
    return {"fires": previews_body(page.previews), "next": None if page.goes_on is None else str(page.goes_on)}


def previews_body(previews: Sequence[Preview]) -> list[Fire]:
    """Fires that are to come, in UTC and on the clock of their zone; marks: what shifted them, and why."""
    return [
        {
            "at": format_instant(preview.fire.at),
            "local": preview.local.isoformat(timespec="milliseconds" if preview.local.microsecond else "seconds"),
            "offset": preview.local.isoformat()[-len("+00:00") :],
            "marks": [{"by": shifter.value, "reason": reason} for shifter, reason in preview.marks],
        }
        for preview in previews
    ]


def difference_body(difference: standing.Difference) -> Difference:
    """What a change would do. The change was not made."""
    fires = difference.before, difference.after
    before, after = map(previews_body, fires)
    return {"change": difference.kind.value, "before": before, "after": after}


def backfill_body(run: backfill.Backfill) -> Backfill:
    """The runs of a time range. What there is not, as for an empty range, is left out."""
    body: Backfill = {
        "backfill": run.backfill_id,
        "count": run.count,
        "first": _optional(run.first),
        "last": _optional(run.last),
        "ends_at": _optional(run.ends_at),
        "jobs": list(run.job_ids),
        "next": str(run.goes_on) if run.goes_on is not None else "",
    }
    return without_empty(Backfill, body)


def _optional(instant: datetime | None) -> str:
    return format_instant(instant) if instant is not None else ""


def _definition(schedule: rules.Schedule, stored_payload: str | None) -> dict[str, Any]:
    written = encode_schedule(schedule, REQUESTED)
    if stored_payload is not None:
        written["job"].pop(POINTER, None)
        written["job"]["payload"] = json.loads(stored_payload)
    return written


def _kept_body(run: KeptRun) -> Run:
    body: Run = {
        "origin": origin_of(run.job_id.identity).value,
        "fire_at": format_instant(run.fire_at),
        "job_id": str(run.job_id),
        "state": (State.SUCCEEDED if run.has_succeeded else State.FAILED).value,
        "attempt": run.attempt,
        "settled_at": format_instant(run.ended_at),
    }
    if run.error:
        body["error"] = run.error
    return body


def run_body(run: standing.Run, schedule: rules.Schedule, *, now: datetime) -> Run:
    """A run of a schedule, as far as something is known of it."""
    row = run.row
    body: Run = {
        "origin": run.origin.value,
        "fire_at": format_instant(run.fire_at),
        "job_id": run.job_id,
        "state": UNTRACKED,
        "attempt": 0,
    }
    has_row = schedule.job.delivery is not Delivery.AT_LEAST_ONCE
    if row is None:
        # Until it is claimed a fire has no row; an at_least_once run never has one, and no row is kept for ever.
        if has_row and run.origin is Origin.SCHEDULED and run.fire_at + ABSENT_IS_OVER > now:
            body["state"] = State.SCHEDULED.value
        return body
    if row.state is State.SCHEDULED and not has_row:
        return body  # that of its request: it says nothing of what came of it
    body["state"], body["attempt"] = row.state.value, row.attempt
    if row.error:
        body["error"] = row.error
    if row.is_settled and row.updated_at is not None:
        body["settled_at"] = format_instant(row.updated_at)
    return body
