"""What each call of a store costs in units, and the stores behind the network that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulation.network import Line, Tables
from simulation.partitions import SpreadTable


@dataclass(frozen=True, slots=True)
class Price:
    """What a call of a store takes. each: units of each of the keys that it is given, beside those of the call. rows: that it brings, to be decoded."""

    table: SpreadTable
    units: float
    is_read: bool = False
    each: float = 0.0
    rows: int = 0


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
            units = price.units + (price.each * len(arguments[0]) if price.each else 0.0)
            line.insist(lambda: price.table.take(at=line.clock.at, units=units, is_read=price.is_read), rows=price.rows)
            return method(*arguments, **options)

        setattr(self, name, call)
        return call


def ledger_prices(tables: Tables) -> dict[str, Price]:
    """As docs/data-model.md says; a transaction costs twice its writes."""
    ledger = tables.ledger
    single = dict.fromkeys(("claim", "rescue", "settle", "attempt", "park", "skip", "hold"), Price(ledger, 1))
    return {
        **single,
        "fail": Price(ledger, 4),
        "bury": Price(ledger, 4),
        "get": Price(ledger, 1, is_read=True),
        "get_many": Price(ledger, 0, is_read=True, each=0.5),
    }


def shard_prices(tables: Tables) -> dict[str, Price]:
    """Leases, cursors and budgets."""
    shards = tables.shards
    return {
        "acquire": Price(shards, 1),
        "checkpoint": Price(shards, 1),
        "conditions": Price(shards, 0.5, is_read=True),
        "cursors": Price(shards, 0, is_read=True, each=0.5),
        "publish": Price(shards, 1),
        "swept": Price(shards, 1, is_read=True),
        "advance_sweep": Price(shards, 1),
    }


def schedule_prices(tables: Tables) -> dict[str, Price]:
    """Definitions and states."""
    definitions, states = tables.schedules, tables.schedule_state
    return {
        "definitions": Price(definitions, 0, is_read=True, each=0.5),
        "get": Price(definitions, 4, is_read=True),
        "states": Price(states, 0, is_read=True, each=0.5),
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
