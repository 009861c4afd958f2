"""How many jobs a second one core promotes: pages read and decoded, chosen, encoded, batched, signed and sent.

Everything above the socket is what is deployed. Below it stands a table of rows that the timer store itself wrote, and
queues that take every batch.
"""

import json
import statistics
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from rich.box import SIMPLE
from rich.console import Console
from rich.padding import Padding
from rich.progress import track
from rich.table import Table

from bench import stage
from bench.boundary import Handler, answer, body_of, hearing
from bench.budgets import PROMOTED_A_SECOND
from bench.clock import SettableClock
from bench.prices import read_prices
from bench.results import write_result
from functions.adapters.dynamodb.tenants import PLANS
from functions.domain.far_ring.cursor import encode_cursors, first_cursors
from functions.domain.instants import MILLISECOND, from_seconds
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.wheel import Wheel
from functions.runtime.wiring import identity
from functions.scanner.pages import PAGE
from functions.scanner.scan import Scanner

JOBS = 10_000
ROUNDS = 5

_TENANTS = 50
_SHARD = 0
_LINES = 35
"""Order lines of a payload: they make a row of about 1 KB."""
_CORE_GB = 1.769
"""Memory that comes with one vCPU of Lambda."""


@dataclass(frozen=True, slots=True)
class Round:
    """One tick that promoted JOBS jobs. cpu_seconds: of all threads, so that other processes do not count."""

    cpu_seconds: float
    wall_seconds: float


def run(console: Console) -> list[str]:
    """Measure, print, write promotion.json; a sentence when a core promotes less than the target."""
    store = _Store()
    with hearing(store.handlers):
        wiring = stage.wiring(SettableClock())
        bucket = wiring.wheel.horizon(now=wiring.clock.now())
        wiring.timers.put([_timer(number, bucket=bucket, wheel=wiring.wheel) for number in range(JOBS)])
        store.close(first_bucket=bucket)
        scanner = wiring.build(Scanner)
        _promote(scanner, store)  # connections, models and caches of botocore
        progress = track(range(ROUNDS), description="promotion", console=console, transient=True)
        rounds = [_promote(scanner, store) for _ in progress]
    a_second = JOBS / statistics.median(done.cpu_seconds for done in rounds)
    _print(console, rounds, a_second, store)
    write_result("promotion.json", _as_json(rounds, a_second, store))
    return below_target(a_second)


def below_target(a_second: float) -> list[str]:
    """A sentence when a core promotes less than the target."""
    if a_second >= PROMOTED_A_SECOND:
        return []
    return [f"promotion: one core promotes {a_second:,.0f} jobs a second, below the target of {PROMOTED_A_SECOND:,}"]


def _promote(scanner: Scanner, store: "_Store") -> Round:
    store.sent = 0
    wall, cpu = time.perf_counter(), time.process_time()
    report = scanner.scan(_SHARD, time_limit=timedelta(minutes=1))
    done = Round(cpu_seconds=time.process_time() - cpu, wall_seconds=time.perf_counter() - wall)
    assert report.sent == store.sent == JOBS, f"{report.sent} of {JOBS} jobs were promoted: {report.stopped_by}"
    return done


def _timer(number: int, *, bucket: int, wheel: Wheel) -> Timer:
    """A job like others': an order with its lines, which is packed, in a row of about a thousand bytes."""
    random = Random(number)
    lines = [
        {"sku": f"{random.getrandbits(48):012x}", "quantity": random.randint(1, 9), "cents": random.randint(99, 99_999)}
        for _ in range(_LINES)
    ]
    order = {"order": str(uuid.UUID(int=random.getrandbits(128))), "customer": random.getrandbits(40), "lines": lines}
    due_at = from_seconds(bucket) + random.randrange(wheel.bucket // MILLISECOND) * MILLISECOND
    job = Job(
        tenant=f"tenant-{number % _TENANTS}",
        identity=identity(),
        bucket=bucket,
        shard=_SHARD,
        target="https://shop.example.com/hooks/orders/expire",
        payload=Payload(text=json.dumps(order, separators=(",", ":"))),
        scheduled_at=due_at,
        priority=Priority.NORMAL,
        delivery=Delivery.EXACTLY_ONCE,
        precision=Precision.DEFAULT,
        retry=RetryPolicy(),
        timeout=timedelta(seconds=30),
    )
    return Timer(job=job, due_at=due_at)


class _Store:
    """DynamoDB and SQS below the socket, with every answer made beforehand: what is timed is not this class."""

    def __init__(self) -> None:
        self.handlers: Mapping[str, Handler] = {
            "before-send.dynamodb": self._answer_dynamodb,
            "before-send.sqs": self._answer_sqs,
        }
        self.sent = 0
        self.row_bytes = 0.0
        self._rows: dict[str, dict[str, Any]] = {}
        self._pages: dict[str, bytes] = {}
        self._shard_row = b""
        self._lock = threading.Lock()

    def close(self, *, first_bucket: int) -> None:
        """From here on the rows are read: in pages, behind cursors that stand at that bucket."""
        keys = sorted(self._rows)
        self.row_bytes = statistics.mean(_size(row) for row in self._rows.values())
        starts = ["", *(f"{priority.value}#" for priority in Priority), *keys[PAGE - 1 :: PAGE]]
        self._pages = {after: self._page([key for key in keys if key > after]) for after in starts}
        cursors = encode_cursors(first_cursors(first_bucket))
        self._shard_row = json.dumps({"Attributes": {"e": {"N": "1"}, "c": {"S": cursors}}}).encode()

    def _page(self, keys: list[str]) -> bytes:
        items = [{name: self._rows[key][name] for name in ("s", "j")} for key in keys[:PAGE]]
        page: dict[str, Any] = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
        if len(keys) > PAGE:
            last = self._rows[keys[PAGE - 1]]
            page["LastEvaluatedKey"] = {name: last[name] for name in ("p", "s")}
        return json.dumps(page, separators=(",", ":")).encode()

    def _answer_dynamodb(self, request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse:
        match event_name.rsplit(".", 1)[-1]:
            case "Query":
                values = json.loads(body_of(request))["ExpressionAttributeValues"]
                if values.get(":t") == {"S": PLANS}:
                    return answer(request, b'{"Items":[],"Count":0,"ScannedCount":0}')
                return answer(request, self._pages[values.get(":after_s", {"S": ""})["S"]])
            case "UpdateItem":
                return answer(request, self._shard_row)
            case "GetItem":
                # Neither budgets nor plans: every tenant has a turn by the usual weight.
                return answer(request, b"{}")
            case "BatchGetItem":
                # No day of any tenant is marked yet.
                return answer(request, b'{"Responses":{},"UnprocessedKeys":{}}')
            case "BatchWriteItem":
                for written in json.loads(body_of(request))["RequestItems"].get("timers", []):
                    item = written["PutRequest"]["Item"]
                    self._rows[item["s"]["S"]] = item
                return answer(request, b"{}")
            case operation:
                raise NotImplementedError(f"this table has no answer to {operation}")

    def _answer_sqs(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        count = body_of(request).count(b'"MessageBody":')
        with self._lock:
            self.sent += count
        return answer(request, _TAKEN[count])


_TAKEN = [
    json.dumps(
        {
            "Successful": [
                {"Id": str(index), "MessageId": str(uuid.UUID(int=index)), "MD5OfMessageBody": "0" * 32}
                for index in range(count)
            ]
        }
    ).encode()
    for count in range(11)
]


def _size(row: Mapping[str, Mapping[str, str]]) -> int:
    """Bytes that DynamoDB counts, a number's as if it were written out."""
    return sum(len(name) + len(next(iter(value.values())).encode()) for name, value in row.items())


def _print(console: Console, rounds: list[Round], a_second: float, store: _Store) -> None:
    table = Table(
        title=f"Promotion ({JOBS:,} rows of {store.row_bytes:,.0f} bytes, median of {ROUNDS} ticks)", box=SIMPLE
    )
    for heading in (
        "jobs a CPU second",
        "target",
        "slowest",
        "fastest",
        "wall",
        "USD/M",
    ):
        table.add_column(heading, justify="right")
    cpu = sorted(JOBS / done.cpu_seconds for done in rounds)
    wall = JOBS / statistics.median(done.wall_seconds for done in rounds)
    colour = "green" if a_second >= PROMOTED_A_SECOND else "red"
    table.add_row(
        f"[{colour}]{a_second:,.0f}[/{colour}]",
        f">= {PROMOTED_A_SECOND:,}",
        *(f"{rate:,.0f}" for rate in (cpu[0], cpu[-1], wall)),
        f"{_usd_a_million(a_second):.3f}",
    )
    console.print(table)
    console.print(Padding(_NOTE, (0, 0, 1, 2)), highlight=False)


_NOTE = (
    "CPU seconds of all threads of the process. Not included: TLS and the network. "
    "USD/M: Lambda's price of a million jobs, in a scanner of 1,769 MB on arm64, if its vCPU were as fast as this core."
)


def _usd_a_million(a_second: float) -> float:
    # A million jobs take 1e6 / a_second seconds; the price is for a million GB-seconds.
    return _CORE_GB / a_second * read_prices()["lambda_gb_second"]


def _as_json(rounds: list[Round], a_second: float, store: _Store) -> dict[str, Any]:
    return {
        "jobs": JOBS,
        "row_bytes": round(store.row_bytes),
        "jobs_a_cpu_second": round(a_second),
        "target": PROMOTED_A_SECOND,
        "rounds": [{"cpu_s": round(done.cpu_seconds, 3), "wall_s": round(done.wall_seconds, 3)} for done in rounds],
        "usd_a_million": round(_usd_a_million(a_second), 4),
        "note": _NOTE,
    }
