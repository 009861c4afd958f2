"""How an execution environment reaches the stores: each call takes its time and its units, and may be throttled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass

from simulation.limits import Latency, Limits
from simulation.partitions import Sample, ShardedTable, SpreadTable
from simulation.size import Room
from simulation.virtual_time import Dice, InvocationClock


class Throttled(Exception):
    """A table refused a call on every try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of a stage, by the words of the data model."""

    timers: ShardedTable
    ledger: SpreadTable
    schedules: SpreadTable
    schedule_state: SpreadTable
    tenants: SpreadTable
    shards: SpreadTable
    dead_letters: SpreadTable

    @staticmethod
    def of(limits: Limits, sample: Sample, room_of: Callable[[str], Room]) -> Tables:
        """Unused. room_of: what a table takes, by its name."""
        spread = {name: SpreadTable(limits, sample, room_of(name)) for name in TABLES if name != "timers"}
        return Tables(timers=ShardedTable(limits, sample, room_of("timers")), **spread)

    def by_name(self) -> Mapping[str, ShardedTable | SpreadTable]:
        """Each table by its name."""
        return {name: getattr(self, name) for name in self.__slots__}


TABLES: tuple[str, ...] = tuple(Tables.__slots__)
"""Their names."""


@dataclass(eq=False)
class Line:
    """The network of one environment. slowness: how many times longer than usual its calls take. is_ticked: a scanner's."""

    clock: InvocationClock
    dice: Dice
    limits: Limits
    _: KW_ONLY
    slowness: float = 1.0
    is_ticked: bool = False

    def __post_init__(self) -> None:
        self._store = Latency(self.limits.store_p50, self.limits.store_p99)
        self._send = Latency(self.limits.send_p50, self.limits.send_p99)

    def store_call(self, *, rows: int = 0) -> None:
        """A call of DynamoDB takes its time. rows: that it brings, to be decoded."""
        limits = self.limits
        cpu = limits.store_call_cpu + rows * limits.page_row_cpu
        self.clock.spend(self.dice.duration(self._store) * self.slowness, cpu=cpu)

    def send_call(self) -> None:
        """A call of SQS takes its time."""
        self.clock.spend(self.dice.duration(self._send) * self.slowness, cpu=self.limits.send_call_cpu)

    def insist(self, take: Callable[[], bool], *, rows: int = 0, calls: int = 1) -> None:
        """Call until the table grants the units. calls: whose time one takes. Raises Throttled."""
        for attempt in range(int(self.limits.store_tries)):
            if attempt:
                pause = self.limits.store_pause * 2 ** (attempt - 1)
                self.clock.spend(pause * self.dice.random.random())
            for _ in range(calls):
                self.store_call(rows=rows)
            if take():
                return
        raise Throttled
