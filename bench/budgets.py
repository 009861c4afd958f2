"""What a job may cost, how many a core promotes, how late they fire: the numbers that `make bench` holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import NamedTuple

from functions.domain.jobs.job import Delivery, Precision
from functions.domain.jobs.overlap import Overlap
from functions.domain.targets.flows import FlowLimits, NamedFlow, parse_rate
from functions.domain.wheel import Ring


@dataclass(frozen=True, slots=True)
class Units:
    """What one job, or one tick, uses of what AWS bills by the request."""

    writes: float
    reads: float
    sqs_requests: float

    def __add__(self, other: "Units") -> "Units":
        return Units(self.writes + other.writes, self.reads + other.reads, self.sqs_requests + other.sqs_requests)

    def __truediv__(self, count: int) -> "Units":
        return Units(self.writes / count, self.reads / count, self.sqs_requests / count)


def a_flow(
    key: str, rate: str = "", *, burst: int = 0, concurrency: int | None = None, is_ordered: bool = False
) -> NamedFlow:
    """A flow with these limits."""
    rated = parse_rate(rate) if rate else None
    limits = FlowLimits(rate=rated, burst=burst, concurrency=concurrency, is_ordered=is_ordered)
    return NamedFlow(key=key, limits=limits)


class Path(NamedTuple):
    """One way through the system. keyed: submitted with an idempotency key."""

    ring: Ring
    delivery: Delivery
    keyed: bool

    @property
    def name(self) -> str:
        """As tables and files have it."""
        return f"{self.ring}, {self.delivery}{', keyed' if self.keyed else ''}"


_UNKEYED = {
    (Ring.NEAR, Delivery.AT_LEAST_ONCE): Units(0, 0, 0.3),
    (Ring.NEAR, Delivery.AT_MOST_ONCE): Units(1, 0, 0.3),
    (Ring.NEAR, Delivery.EXACTLY_ONCE): Units(2, 0, 0.3),
    (Ring.FAR, Delivery.AT_LEAST_ONCE): Units(1, 0.3, 0.3),
    (Ring.FAR, Delivery.AT_MOST_ONCE): Units(2, 0.3, 0.3),
    (Ring.FAR, Delivery.EXACTLY_ONCE): Units(3, 0.3, 0.3),
}
_KEY = Units(1, 0, 0)

UNITS: Mapping[Path, Units] = {
    Path(ring, delivery, keyed): units + _KEY if keyed else units
    for (ring, delivery), units in _UNKEYED.items()
    for keyed in (False, True)
}
"""A job with a payload of up to 512 bytes, in full batches."""

OCCURRENCES: Mapping[Overlap, Units] = {
    Overlap.ALLOW: Units(4, 1.8, 0.3),
    # The slot: a write, and a look at how the run that has it stands.
    Overlap.FORBID: Units(5, 2.8, 0.3),
}
"""One fire of a schedule, exactly_once, by its overlap policy."""

OF_A_FILE = UNITS[Path(Ring.NEAR, Delivery.EXACTLY_ONCE, keyed=True)]
"""A job of a file, near: what any job with a key may use."""

WAITS = "a rate that it waits for"
IN_TURN = "an order, in its turn"
OUT_OF_TURN = "an order, behind others"
FLOWS: Mapping[str, tuple[NamedFlow, Units]] = {
    # Its token.
    "a rate with tokens left": (a_flow("free", "1000/s", burst=10_000), Units(3.1, 0.1, 0.3)),
    # Its permit, taken and given back; whether somebody waits, before and after.
    "a bound with permits left": (a_flow("bound", concurrency=1_000), Units(4.1, 1.1, 0.3)),
    # The token that there is not, the notes of its parking and of its entry, its row, in and out; then its token. And its share of turns.
    WAITS: (a_flow("used-up", "1000/s", burst=10_000), Units(8.2, 0.6, 0.7)),
    # Its place, that it is the one that runs, both taken away; who is first, how it ended, and whether somebody waits. Each is submitted,
    # received and deleted alone, when the one before it has ended.
    IN_TURN: (a_flow("turns", is_ordered=True), Units(6, 2.6, 3)),
    # As above; the looks of its first start and of whoever lets it out; the notes of its parking and of its entry, its row, in and out, and
    # that it is let out. All are submitted at once, and leave the room one by one:
    # how many look at the same time differs from run to run.
    OUT_OF_TURN: (a_flow("order", is_ordered=True), Units(12.5, 12.5, 4)),
}
"""A job that names a flow: near, exactly_once."""

COLLECTED: Mapping[str, tuple[tuple[int, bool], Units]] = {
    # Its part of a row, in and out, and its end; its row of the ledger. And its share of a release.
    "collected, 500 a request": ((500, False), Units(2.4, 1.5, 0.1)),
    "collected, 500 a request, small": ((500, True), Units(1.5, 1.3, 0.1)),
    # A row of its own, the state of its collection, and each eighth of a hundred looks how many wait.
    "collected, alone": ((1, False), Units(3.2, 2.6, 0.1)),
}
"""A job that is given to its target with 99 others: near, exactly_once; how many are submitted at once, and whether their payloads are short
JSON objects that are alike, in place of texts that nothing can make smaller."""

SPARSE_CRONS = (
    "0 9 15W * *",
    "0 0 L * *",
    "0 0 LW * *",
    "0 0 L-3 * *",
    "0 9 1W,15W * *",
    "0 9 * * friL",
    "0 9 * * mon-fri#1",
    "0 0 29 2 *",
    "0 0 */2 2 mon#5",
    "0 0 13 * 5",
    "30 2 31 1 *",
)
"""Crons on the last days, on weekdays, and on days that are years apart."""

NEXT_FIRES_A_SECOND = {"cron": 10_000, **{f"cron {expression}": 2_000 for expression in SPARSE_CRONS}}
"""By one core, with what is parsed in the cache; of the other kinds it is only printed."""

SPARSE_FIRES_A_SECOND = 2_000
"""The same, of rules that name few days."""

COLD_FIRE = timedelta(milliseconds=50)
WARM_FIRE = timedelta(milliseconds=5)
REQUEST = timedelta(milliseconds=200)
"""CPU of the next fire of any definition that is taken, with caches cold and warm, and of any request of 10 KB."""

TOGETHER = Units(3, 0.3, 0.3)
"""Of a far job that is submitted with a few like it, for the same minute."""

TICK = Units(2, 0.5, 0)
"""A tick of a shard in which nothing comes due: its lease, its checkpoint, and one look into the bucket that opens."""

MARK = Units(1, 0.5, 0)
"""What the first far job of a tenant pays, on a day, in a class and shard, for all that follow: its mark."""

KNOWLEDGE = Units(0, 1, 0)
"""What a process reads in half a minute in which it has jobs, however many: whether plans have changed, and conditions."""

PROMOTED_A_SECOND = 3_000
"""By one core."""

LAG_P99 = {Precision.DEFAULT: timedelta(seconds=2.5), Precision.EXACT: timedelta(milliseconds=50)}
"""On the local stack. Told, not enforced: how late a shared machine is says little about the code. Never early is
enforced."""

RECOVERY = timedelta(seconds=90)
"""From the death of a worker until its job runs again, for timeouts of up to a minute."""

ROUNDING = 1e-9


def over_budget(name: str, used: Units, budget: Units) -> Iterator[str]:
    """A sentence for each figure that is above its budget."""
    for figure in fields(Units):
        value, limit = getattr(used, figure.name), getattr(budget, figure.name)
        if value > limit + ROUNDING:
            yield f"{name}: {figure.name} are {value:g} a job, above the budget of {limit:g}"


COLD_START_OF_BOTO3 = 4.4
"""How many times as much CPU as importing boto3 in the same run importing a handler may take, bytecode included: 0.6 s on a machine
where boto3 takes 137 ms. So a slower machine breaks nothing, and a faster one hides nothing."""
