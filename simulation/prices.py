"""What each call of a store costs in units, and the stores behind the network that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulation.network import Line, Tables
from simulation.partitions import SpreadTable


@dataclass(frozen=True, slots=True)
class Price:
    """What a call of a store takes. each: keys of the stage for each that it is given, whose rows are read beside the units of the call.

    rows: that it brings, to be decoded. beside: what it takes of a second table.
    """

    table: SpreadTable
    units: float
    is_read: bool = False
    each: float = 0.0
    rows: int = 0
    beside: Price | None = None

    def take(self, line: Line, *, keys: float = 0.0) -> bool:
        """Whether its tables grant it now, with so many keys."""
        units, at = self.units + EVENTUAL * keys, line.clock.at
        is_taken = self.table.take(at=at, units=units, is_read=self.is_read, is_ticked=line.is_ticked)
        return is_taken and (self.beside is None or self.beside.take(line))


EVENTUAL = 0.5
"""Read units of a row of a batch, which is eventually consistent."""

KEYS_OF_A_CALL = 100
"""https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html"""


class Remote:
    """A store behind the network: what it does is the store's, and each call is paid for.

    A call that has no price is not modelled, and fails.
    """

    def __init__(self, store: object, line: Line, prices: Mapping[str, Price]) -> None:
        self._store = store
        self._line = line
        self._prices = prices

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method, price, line = getattr(self._store, name), self._prices[name], self._line

        def call(*arguments: Any, **options: Any) -> Any:
            keys = price.each * len(arguments[0]) if price.each else 0.0
            # One call after another, of which the last is not full.
            while keys > KEYS_OF_A_CALL:
                keys -= KEYS_OF_A_CALL
                line.insist(lambda: price.take(line, keys=KEYS_OF_A_CALL), rows=KEYS_OF_A_CALL)
            left = keys
            line.insist(lambda: price.take(line, keys=left), rows=price.rows + round(left))
            return method(*arguments, **options)

        setattr(self, name, call)
        return call


def ledger_prices(tables: Tables) -> dict[str, Price]:
    """As docs/data-model.md says; a transaction costs twice its writes."""
    ledger = tables.ledger
    single = dict.fromkeys(
        ("claim", "rescue", "settle", "attempt", "park", "skip", "hold", "extend", "end_collected"), Price(ledger, 1)
    )
    return {
        **single,
        "fail": Price(ledger, 4),
        "bury": Price(ledger, 4),
        "get": Price(ledger, 1, is_read=True),
        "get_many": Price(ledger, 0, is_read=True, each=1),
    }


def shard_prices(tables: Tables, *, stands_for: float = 1.0) -> dict[str, Price]:
    """Leases, cursors and budgets. stands_for: shards of the stage whose cursors are read for each that is asked for."""
    shards = tables.shards
    return {
        "acquire": Price(shards, 1),
        "checkpoint": Price(shards, 1),
        "conditions": Price(shards, 0.5, is_read=True),
        "cursors": Price(shards, 0, is_read=True, each=stands_for),
        "publish": Price(shards, 1),
        "swept": Price(shards, 1, is_read=True),
        "advance_sweep": Price(shards, 1),
        "audited": Price(shards, 1, is_read=True),
        "advance_audit": Price(shards, 1),
    }


def schedule_prices(tables: Tables) -> dict[str, Price]:
    """Definitions and states."""
    definitions, states = tables.schedules, tables.schedule_state
    return {
        "definitions": Price(definitions, 0, is_read=True, each=1),
        # A transaction over both.
        "get": Price(definitions, 2, is_read=True, beside=Price(states, 2, is_read=True)),
        # With the row of the tenant's sum.
        "change": Price(states, 4, beside=Price(definitions, 2)),
        "states": Price(states, 0, is_read=True, each=1),
        "state": Price(states, 1, is_read=True),
        # A page of the sweep: 500 states of 600 bytes.
        "scan": Price(states, 37.5, is_read=True, rows=500),
        "advance": Price(states, 1),
        "take_slot": Price(states, 1),
        "wait_for_slot": Price(states, 1),
        "note_skip": Price(states, 1),
        "note_failure": Price(states, 1),
        "forget_failures": Price(states, 1),
    }


def breaker_prices(tables: Tables) -> dict[str, Price]:
    """Breakers, rows of the tenants table."""
    tenants = tables.tenants
    return {
        "get": Price(tenants, 0.5, is_read=True),
        "put": Price(tenants, 1),
        "close": Price(tenants, 1),
    }


def rate_prices(tables: Tables) -> dict[str, Price]:
    """Timetables, rows of the tenants table."""
    return {"book": Price(tables.tenants, 1)}


def flow_prices(tables: Tables) -> dict[str, Price]:
    """Flows and their rooms, rows of the tenants table."""
    tenants = tables.tenants
    writes = ("spend", "refund", "wait", "note_entry", "note_turn", "leave", "remove", "close")
    return {
        "limits": Price(tenants, 0.5, is_read=True),
        "state": Price(tenants, 1, is_read=True),
        "is_waited_for": Price(tenants, 0.5, is_read=True),
        "waiting": Price(tenants, 1, is_read=True),
        **{name: Price(tenants, 1) for name in writes},
    }


def permit_prices(tables: Tables) -> dict[str, Price]:
    """Permits, rows of the tenants table."""
    tenants = tables.tenants
    return {
        "take": Price(tenants, 1),
        "leases": Price(tenants, 0.5, is_read=True),
        "give_back": Price(tenants, 1),
    }
