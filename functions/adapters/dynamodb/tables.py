"""The key schemas of every table as data: the adapters read and write by them, the infrastructure creates by them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: its keys, all strings, and the attribute (epoch seconds) that DynamoDB deletes expired rows by."""

    name: str
    partition_key: str
    sort_key: str | None = None
    ttl_attribute: str | None = None


TIMERS = TableSchema("timers", partition_key="p", sort_key="s", ttl_attribute="x")
"""Far ring. p = `{bucket}#{shard:04d}`, s = `{class}#{tenant}#{due_ms:013d}#{identity}`."""

LEDGER = TableSchema("ledger", partition_key="k", ttl_attribute="x")
"""The conditional-write table. k = `{tenant}#{identity}`."""

SCHEDULES = TableSchema("schedules", partition_key="t", sort_key="i")
"""Definitions and their versions. t = tenant, i = schedule id."""

SCHEDULE_STATE = TableSchema("schedule_state", partition_key="k", ttl_attribute="x")
"""k = `{tenant}#{schedule_id}`: apart from the definition, so that a fire costs one unit however large that is."""

TENANTS = TableSchema("tenants", partition_key="t", sort_key="i", ttl_attribute="x")
"""t = tenant, i = `breaker#{destination}`, `day#{yyyymmdd}#{class}#{shard:04d}`, `operation#{id}`, `seat#{number:04d}`,
`usage#{yyyymmdd}`, `pending#{yyyymmdd}`.

And t = `~operations`, which no tenant can be called: i = `{created_ms:013d}#{tenant}#{id}` of each open operation;
t = `~breakers`: i = `{tenant}#{destination}` of each breaker that is not closed;
t = `~deletions`: i = tenant, while it is being deleted;
t = `~pulse#{slot}`: i = `{minute:010d}`, and t = `~busy#{minute:010d}`: i = tenant, of the minutes of the last hour.
"""

SHARDS = TableSchema("shards", partition_key="k")
"""k = `{shard:04d}` (lease, epoch, cursors), `audit` and `schedules` (how far the sweeper has read), `wheel` (recorded constants)."""

DEAD_LETTERS = TableSchema("dead_letters", partition_key="p", sort_key="s", ttl_attribute="x")
"""p = `{tenant}#{hour}`, s = `{dead_at}#{identity}`; and p = `{tenant}#hours`, s = `{hour}`: the hours that have any."""

ALL_TABLES = (TIMERS, LEDGER, SCHEDULES, SCHEDULE_STATE, TENANTS, SHARDS, DEAD_LETTERS)
