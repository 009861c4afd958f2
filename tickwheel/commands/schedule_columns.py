"""Schedules as rows of a CSV file: a column for each field, and those of the job beside those of the schedule."""

from collections.abc import Mapping
from typing import Any

from tickwheel.client.fields import names_of
from tickwheel.client.jobs import JobFields

TEXTS = frozenset(
    (
        *("name", "id", "tenant", "cron", "at", "timezone", "gap", "fold", "window_mode", "start", "end"),
        *("misfire", "overlap", "target", "job.target", "rrule.rule", "rrule.starts_at"),
        *("priority", "delivery", "precision", "timeout", "expires_after", "run_deadline"),
        *("on_success", "on_failure", "on_end"),
    )
)
"""Columns whose cells are texts, whatever they look like."""

_OF_JOB = frozenset(("target", *names_of(JobFields)))
_LISTS = ("windows",)


def with_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The definition that a row means: `name` is its id, `target` its job's, and windows have semicolons between them."""
    body = {name: value for name, value in row.items() if name not in _OF_JOB and name != "name"}
    if "name" in row:
        body.setdefault("id", row["name"])
    job = {name: value for name, value in row.items() if name in _OF_JOB}
    if job and isinstance(body.get("job", {}), dict):
        body["job"] = {**body.get("job", {}), **job}
    for name in _LISTS:
        if isinstance(body.get(name), str):
            body[name] = [part.strip() for part in body[name].split(";") if part.strip()]
    return body
