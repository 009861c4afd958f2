"""What the targets saw: every call, in columns, so that hundreds of thousands of them are held."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from functions.domain.jobs.job import Priority
from functions.ports.targets import Invocation, Outcome, Succeeded
from simulation.collections import Given, given_by
from simulation.virtual_time import seconds_of

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTable:
    """Calls, a column each: instants and lags in seconds; tenants and hosts by their number in `names`."""

    at: Column
    lag: Column
    priority: Column
    tenant: Column
    host: Column
    is_first: Column
    names: Sequence[str]

    def where(self, chosen: NDArray[np.bool_]) -> CallTable:
        """Some of them."""
        return CallTable(
            at=self.at[chosen],
            lag=self.lag[chosen],
            priority=self.priority[chosen],
            tenant=self.tenant[chosen],
            host=self.host[chosen],
            is_first=self.is_first[chosen],
            names=self.names,
        )

    def number_of(self, name: str) -> int:
        """The number of a tenant or host; -1 where it was never seen."""
        return self.names.index(name) if name in self.names else -1


_ROUNDING = 2e-6
"""Seconds: an instant is whole microseconds, a number is not."""


class CallColumns:
    """Calls as they come in, in columns."""

    def __init__(self) -> None:
        self._at = array("d")
        self._lag = array("d")
        self._priority = array("d")
        self._tenant = array("d")
        self._host = array("d")
        self._is_first = array("d")
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._at)

    def add(self, tenant: str, host: str, priority: Priority, *, at: float, lag: float, is_first: bool) -> None:
        """One call."""
        self._at.append(at)
        self._lag.append(max(0.0, lag))
        self._priority.append(priority.value)
        self._tenant.append(self._numbers.setdefault(tenant, len(self._numbers)))
        self._host.append(self._numbers.setdefault(host, len(self._numbers)))
        self._is_first.append(is_first)

    def table(self) -> CallTable:
        """All of them so far."""
        return CallTable(
            at=_column(self._at),
            lag=_column(self._lag),
            priority=_column(self._priority),
            tenant=_column(self._tenant),
            host=_column(self._host),
            is_first=_column(self._is_first),
            names=list(self._numbers),
        )


class Calls:
    """Notes calls. effects: how often each execution succeeded. early: calls before the instant that was asked for.

    given: those that gave jobs together.
    """

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.early = 0
        self.given: list[Given] = []
        self._columns = CallColumns()

    def note(
        self,
        invocation: Invocation,
        payload: str | None,
        *,
        host: str,
        priority: Priority,
        at: float,
        outcome: Outcome,
    ) -> None:
        """One call. Its lag is that behind the instant that was asked for, whatever the attempt."""
        lag = at - seconds_of(invocation.scheduled_at)
        self._columns.add(invocation.tenant, host, priority, at=at, lag=lag, is_first=invocation.attempt == 1)
        self.early += lag < -_ROUNDING
        given = given_by(invocation, payload, host=host, at=at)
        keys: Sequence[str] = [invocation.idempotency_key]
        if given is not None:
            call, keys = given
            self.given.append(call)
            self.early += sum(at - due < -_ROUNDING for due in call.due)
        if isinstance(outcome, Succeeded):
            self.effects.update(keys)

    def table(self) -> CallTable:
        """All of them so far."""
        return self._columns.table()


def _column(values: array[float]) -> Column:
    return np.array(values, dtype=np.float64)
