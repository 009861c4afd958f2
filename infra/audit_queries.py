"""Saved queries of the audit trail, in the part of SQL that Athena and DuckDB share: tests run them.

A line may be there twice: a worker that dies is followed by one that writes it again, and a request without an answer may have
been taken. `line_id` names what is recorded. A day is where a line arrived, which may be the day after it happened, or, as objects
are named after their oldest line, the day before: so a query of a day reads its neighbours, too.
"""

# ruff: noqa: S608  made of constants of this file alone

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.domain.instants import MILLISECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQuery:
    """name: of its construct. title, description: as they are shown in the console. `?` is asked for when it is run."""

    name: str
    title: str
    description: str
    sql: str


TABLE = "audit"


def queries(late: timedelta) -> tuple[SavedQuery, ...]:
    """The queries of a stage. late: the lag from which on an execution is late."""
    return (
        SavedQuery(
            name="LateYesterday",
            title="What ran late yesterday",
            description="Executions that began later than the stage promises, the latest first",
            sql=f"""\
WITH lines AS ({_lines(days=2)})
SELECT tenant, job_id, schedule_id, priority, attempt, due_at, began_at, lag_ms, outcome
FROM lines
WHERE copy = 1
  AND kind = 'execution'
  AND substr(CAST(happened_at AS varchar), 1, 10) = {_day(ago=1)}
  AND lag_ms > {late // MILLISECOND}
ORDER BY lag_ms DESC, job_id
LIMIT 1000
""",
        ),
        SavedQuery(
            name="TenantHistory",
            title="One tenant's history",
            description="What was done for a tenant and how its executions ended in the last seven days, newest first. Asks for the tenant",
            sql=f"""\
WITH lines AS ({_lines(days=7)})
SELECT happened_at, kind, COALESCE(job_id, subject) AS subject, COALESCE(outcome, action) AS what, schedule_id, attempt,
  lag_ms, duration_ms, error_class, reason, caller, "before", "after"
FROM lines
WHERE copy = 1
  AND tenant = ?
ORDER BY happened_at DESC, line_id
LIMIT 10000
""",
        ),
        SavedQuery(
            name="LettersByError",
            title="Dead letters by error",
            description="Jobs that failed for good in the last seven days, by tenant, destination and class of error",
            sql=f"""\
WITH lines AS ({_lines(days=7)})
SELECT tenant, target, COALESCE(error_class, 'unknown') AS error, COUNT(*) AS jobs,
  MIN(CAST(happened_at AS varchar)) AS first_at, MAX(CAST(happened_at AS varchar)) AS last_at
FROM lines
WHERE copy = 1
  AND kind = 'execution'
  AND outcome = 'failed'
  AND delivery <> 'at_most_once'
GROUP BY tenant, target, COALESCE(error_class, 'unknown')
ORDER BY jobs DESC, tenant, target, error
LIMIT 1000
""",
        ),
        SavedQuery(
            name="DoneByHand",
            title="What was done by hand",
            description="Actions of people and of targets in the last seven days, with what stood before and after, newest first",
            sql=f"""\
WITH lines AS ({_lines(days=7)})
SELECT happened_at, caller, action, tenant, subject, "before", "after", cut
FROM lines
WHERE copy = 1
  AND kind = 'action'
ORDER BY happened_at DESC, line_id
LIMIT 10000
""",
        ),
    )


def _lines(*, days: int) -> str:
    """The lines that arrived since so many days ago, each numbered among its copies: the first-hand one is the first."""
    return f"""
  SELECT *, row_number() OVER (PARTITION BY line_id ORDER BY CASE WHEN again THEN 1 ELSE 0 END, happened_at) AS copy
  FROM {TABLE}
  WHERE day >= {_day(ago=days)}
"""


def _day(*, ago: int) -> str:
    """The day so many days ago, as the trail writes days."""
    return f"CAST(CAST(current_date - INTERVAL '{ago}' DAY AS date) AS varchar)"
