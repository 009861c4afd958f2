"""Dead letters on DynamoDB: by tenant and hour, so that a tenant's recent ones are one query; and which hours have any."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.dynamodb.table import Item, Table, instant_of
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE, DeadLetterId
from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import format_instant, parse_instant, to_seconds
from functions.ports.dead_letters import DeadLetter

_HOUR = len("2027-03-01T12")
MARKS = "hours"
"""In the place of an hour, where the marks of a tenant are."""

_MARK_OUTLIVES = timedelta(days=1)
_MOST_KNOWN = 10_000
RAW_LIMIT = 65_536
_ERROR_LIMIT = 2_000


@dataclass
class DynamoDBDeadLetters:
    """The dead letters of a tenant and hour stand together.

    Rows {p: tenant#hour, s: dead at#identity, e: error, c: error class, a: attempt, f: fence, i: job id, j: record,
    w: raw body, r: replayed at, x: ttl}; `r` in ms, the ttl in s. And marks {p: tenant#hours, s: hour, x: ttl}.
    Safe for threads.
    """

    table: Table
    _known: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None], init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def put(self, letter: DeadLetter) -> None:
        """Repeating it with the same instant changes nothing."""
        self.mark_hour(letter)
        self.table.put(_written(letter))

    def mark_hour(self, letter: DeadLetter) -> None:
        """What comes before `put_request`: a write unit for the first letter of a tenant and hour that a process keeps."""
        hour = format_instant(letter.dead_at)[:_HOUR]
        mark = letter.tenant, hour
        if mark in self._known:
            return
        expires_at = letter.dead_at + DEAD_LETTER_LIFE + _MARK_OUTLIVES
        self.table.put({"p": _partition(letter.tenant, MARKS), "s": hour, "x": to_seconds(expires_at)})
        with self._lock:
            self._known[mark] = None
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def hours(self, tenant: str, *, since: datetime, until: datetime, limit: int) -> tuple[list[datetime], bool]:
        """One Query: a read unit for some 80 hours."""
        found = self.table.query(
            "p = :p AND s BETWEEN :since AND :until",
            limit=limit,
            newest_first=True,
            is_consistent=True,
            p=_partition(tenant, MARKS),
            since=format_instant(since)[:_HOUR],
            until=format_instant(until)[:_HOUR],
        )
        return [parse_instant(f"{item['s']}:00:00Z") for item in found.items], bool(found.last)

    def put_request(self, letter: DeadLetter) -> Any:
        """The dead letter as a part of a transaction; see `mark_hour`."""
        return self.table.put_request(_written(letter))

    def get(self, letter_id: DeadLetterId) -> DeadLetter | None:
        """One read unit for each 4 KB."""
        item = self.table.get(_key(letter_id))
        return _read(item) if item else None

    def page(self, hour: datetime, *, before: DeadLetterId, limit: int) -> tuple[list[DeadLetter], bool]:
        """One Query: a read unit for each 4 KB, and one where there is nothing."""
        found = self.table.query(
            "p = :p AND s < :before",
            limit=limit,
            newest_first=True,
            # A dead letter that was just replayed must not be read again: not all jobs have a ledger row that would show it.
            is_consistent=True,
            p=_partition(before.tenant, format_instant(hour)),
            before=_key(before)["s"],
        )
        return [_read(item) for item in found.items], bool(found.last)

    def mark(self, letter_id: DeadLetterId, *, now: datetime) -> bool:
        """One write unit for each KB. The first mark stays: it shows how long the letter's ledger row has lived."""
        first = "SET r = if_not_exists(r, :now)"
        return self.table.update(_key(letter_id), update=first, condition="attribute_exists(p)", now=now).is_done

    def delete(self, letter_id: DeadLetterId) -> None:
        """One write unit for each KB."""
        self.table.delete(_key(letter_id))


def _key(letter_id: DeadLetterId) -> Item:
    dead_at = format_instant(letter_id.dead_at)
    return {"p": _partition(letter_id.tenant, dead_at), "s": f"{dead_at}#{letter_id.identity}"}


def _partition(tenant: str, instant: str) -> str:
    return f"{tenant}#{instant[:_HOUR]}"


def _written(letter: DeadLetter) -> Item:
    where_there_is_any = {
        "f": letter.fence,
        "i": letter.job_id,
        "j": encode_timer(letter.timer) if letter.timer is not None else "",
        "w": letter.raw[:RAW_LIMIT],
    }
    return {
        **_key(letter.letter_id),
        "e": letter.error[:_ERROR_LIMIT],
        "c": letter.error_class,
        "a": letter.attempt,
        "x": to_seconds(letter.dead_at + DEAD_LETTER_LIFE),
        **{name: value for name, value in where_there_is_any.items() if value},
    }


def _read(item: Item) -> DeadLetter:
    tenant = item["p"].rpartition("#")[0]
    dead_at, _, identity = item["s"].partition("#")
    timer, raw = None, item.get("w", "")
    if "j" in item:
        try:
            timer = decode_timer(item["j"], tenant=tenant)
        except Undecodable:
            # Written by a newer version: it can be looked at and purged, and must not hide the others.
            raw = item["j"]
    return DeadLetter(
        tenant=tenant,
        identity=identity,
        dead_at=parse_instant(dead_at),
        error=item["e"],
        error_class=item.get("c", "error"),
        attempt=item["a"],
        job_id=item.get("i", ""),
        timer=timer,
        raw=raw,
        fence=item.get("f", 0),
        replayed_at=instant_of(item, "r"),
    )
