"""What is used up of rates, on DynamoDB: an item a tenant and rate, for tenants whose rate is limited."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.dynamodb.table import Item, Table
from functions.domain.instants import EPOCH, from_seconds, to_seconds
from functions.domain.tenants.rate_bookings import Timetable, pack, unpack
from functions.ports.ledger import Applied
from functions.ports.tenants import Ahead, Booked

EXECUTION = "rate#execution"
SUBMISSION = "rate#submission"

_MICROSECOND = timedelta(microseconds=1)
_LIFE = timedelta(days=2)
"""After its instant an item says nothing any more: what it held back has long been let go."""

_TRIES = 3


@dataclass
class DynamoDBRateStore:
    """{t: tenant, i: `rate#execution`, n: version, w: width of a cell (s), f: first cell, c: counts, x: ttl (s)}.

    And {t: tenant, i: `rate#submission`, n: theoretical arrival time (µs), x: ttl (s)}.
    """

    table: Table

    def book(self, tenant: str, timetable: Timetable, *, seen: Timetable | None) -> Applied | Booked:
        """One write unit, lost or not."""
        found = self._write(
            tenant,
            EXECUTION,
            update="SET n = :version, w = :width, f = :first, c = :counts, x = :ttl",
            condition="attribute_not_exists(n)" if seen is None else "n = :seen",
            version=timetable.version,
            width=timetable.width,
            first=timetable.first,
            counts=pack(timetable.taken),
            ttl=_ttl(from_seconds((timetable.first + len(timetable.taken)) * timetable.width)),
            **({"seen": seen.version} if seen is not None else {}),
        )
        return Applied() if found is None else Booked(_timetable(found))

    def spend(
        self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime, most: datetime | None = None
    ) -> Applied | Ahead:
        """One write unit while a tenant submits all the time, two after a while of none or when it finds no room."""
        ttl = _ttl(latest + cost)
        for _ in range(_TRIES):
            found = self._write(
                tenant,
                SUBMISSION,
                update="SET n = n + :cost, x = :ttl",
                condition="n BETWEEN :now AND :latest",
                cost=cost // _MICROSECOND,
                now=_us(now),
                latest=_us(latest),
                ttl=ttl,
            )
            if found is None:
                return Applied()
            next_at = _next_at(found)
            if next_at is not None and latest < next_at <= (most or next_at):
                return Ahead(next_at)
            found = self._write(
                tenant,
                SUBMISSION,
                update="SET n = :to, x = :ttl",
                condition="attribute_not_exists(n) OR n < :now" + (" OR n > :most" if most is not None else ""),
                to=_us(now + cost),
                now=_us(now),
                ttl=ttl,
                **({"most": _us(most)} if most is not None else {}),
            )
            if found is None:
                return Applied()
        return Ahead(None)

    def _write(self, tenant: str, item: str, **asked: Any) -> Item | None:
        """None when it was written; what it found, when its condition was not."""
        write = self.table.update({"t": tenant, "i": item}, **asked)
        return None if write.is_done else write.item


def _timetable(item: Item) -> Timetable | None:
    return Timetable(item["w"], item["f"], unpack(item["c"]), item["n"]) if "n" in item else None


def _next_at(item: Item) -> datetime | None:
    return EPOCH + item["n"] * _MICROSECOND if "n" in item else None


def _us(instant: datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def _ttl(instant: datetime) -> int:
    return to_seconds(instant + _LIFE)
