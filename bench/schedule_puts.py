"""What putting a schedule uses, alone and with others, by DynamoDB Local's own count, and how many a second the local stack takes."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from rich.console import Console

from bench import stage
from bench.boundary import hearing
from bench.budgets import Units, over_budget
from bench.clock import SettableClock
from bench.meter import Meter
from bench.processor_time import ProcessorTime, processor_time
from bench.queues import HeldQueues
from bench.results import print_table, write_result
from functions.adapters import clients
from functions.adapters.dynamodb.tables import ALL_TABLES, SHARDS
from functions.api.http.requests import Rules
from functions.api.schedules.batch import Put, ScheduleBatch
from functions.api.schedules.manager import ScheduleManager
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets
from functions.ports.schedules import MOST_TOGETHER
from testkit.dynamodb_local import DynamoDBLocal
from testkit.world.tables import create_table
from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, NotStored
from tickwheel.local import local_stack

SCHEDULES = 10_000
"""That the local stack takes."""

ALONE = 250
"""That it takes one by one, for comparison."""

CONNECTIONS = 4

_BATCHES = 4
_TENANTS = ("single", "many")
_LIMIT = timedelta(minutes=1)
_TABLES = tuple(table.name for table in ALL_TABLES if table is not SHARDS)

_NEW, _SAME = "new", "as it is"
_ALONE, _TOGETHER = "alone", f"with {MOST_TOGETHER - 1} others"

BUDGETS: Mapping[str, Units] = {
    # Definition, state and sum, twice each; the alarm, and that it is placed. Two looks of four.
    f"{_NEW}, {_ALONE}": Units(8, 8, 0),
    # The same but the sum, which is written once for all. One look.
    f"{_NEW}, {_TOGETHER}": Units(6.1, 4.1, 0),
    # The alarm, and that it is placed: it may be that nobody has come so far.
    f"{_SAME}, {_ALONE}": Units(2, 8, 0),
    f"{_SAME}, {_TOGETHER}": Units(0, 4.1, 0),
}


def run(console: Console) -> list[str]:
    """Count, print, write schedule_puts.json; a sentence for each figure above its budget."""
    with DynamoDBLocal() as engine:
        measured = measure(engine.endpoint_url)
    rows = {name: f"{used.writes:.2f} and {used.reads:.2f}" for name, used in measured.items()}
    print_table(console, "What putting a schedule uses", of="a schedule", figure="write and read units", rows=rows)
    found = {
        name: {"writes": round(used.writes, 3), "reads": round(used.reads, 3), "budget": asdict(BUDGETS[name])}
        for name, used in measured.items()
    }
    write_result("schedule_puts.json", found)
    return [sentence for name, used in measured.items() for sentence in over_budget(name, used, BUDGETS[name])]


def run_local(console: Console) -> list[str]:
    """Put schedules on a local stack, print, write schedule_rate.json. A slow one is told, and breaks nothing."""
    load = os.getloadavg()[0]
    alone, together, used = put_on_a_stack()
    shares = {name: 1_000 * seconds / SCHEDULES for name, seconds in asdict(used).items()}
    rows = {
        "schedules a second, 25 a request": f"{SCHEDULES / together:,.0f}",
        "seconds": f"{together:,.1f}",
        "schedules a second, one a request": f"{ALONE / alone:,.0f}",
        **{f"processor time of the {name}, ms a schedule": f"{share:.1f}" for name, share in shares.items()},
        "load average before": f"{load:.1f}",
    }
    title = f"{SCHEDULES:,} schedules of one tenant on the local stack, over {CONNECTIONS} connections"
    print_table(console, title, of="figure", figure="value", rows=rows)
    write_result(
        "schedule_rate.json",
        {
            "schedules": SCHEDULES,
            "connections": CONNECTIONS,
            "seconds": round(together, 1),
            "schedules_a_second": round(SCHEDULES / together),
            "alone_a_second": round(ALONE / alone),
            "processor_ms_a_schedule": {name: round(share, 2) for name, share in shares.items()},
            "load_before": round(load, 1),
        },
    )
    return []


def measure(endpoint_url: str) -> dict[str, Units]:
    """Units of one of each, against the engine at that address."""
    clock, meter = SettableClock(), Meter()
    queues = HeldQueues(clock)
    with hearing({**meter.handlers, **queues.handlers}, endpoints={"dynamodb": endpoint_url}):
        wiring = stage.wiring(clock)
        for schema in ALL_TABLES:
            create_table(clients.dynamodb(clock, patience=30), schema)
        wiring.confirm()
        manager = wiring.build(ScheduleManager)
        batch = wiring.build(ScheduleBatch, manager=manager)
        allowed = AllowedTargets(DEFAULT_TARGETS)
        rules = Rules(now=clock.now(), allow_plain_http=False, allowed=allowed, max_timeout=_LIMIT)

        def put(bodies: Sequence[Any]) -> None:
            answers = batch.put(bodies, rules)
            assert all(isinstance(answer, Put) for answer in answers), answers

        def alone(bodies: Sequence[Any]) -> None:
            for body in bodies:
                manager.put(batch.read(body, rules))

        def units(act: Callable[[Sequence[Any]], None], bodies: Sequence[Any]) -> Units:
            for tenant in _TENANTS:
                wiring.plans.of(tenant)
            meter.take(*_TABLES)
            for first in range(0, len(bodies), MOST_TOGETHER):
                act(bodies[first : first + MOST_TOGETHER])
            return Units(*meter.take(*_TABLES), 0) / len(bodies)

        count = _BATCHES * MOST_TOGETHER
        singles, many = ([_body(f"{kind}-{number}") for number in range(count)] for kind in _TENANTS)
        return {
            f"{_NEW}, {_ALONE}": units(alone, singles),
            f"{_NEW}, {_TOGETHER}": units(put, many),
            f"{_SAME}, {_ALONE}": units(alone, singles),
            f"{_SAME}, {_TOGETHER}": units(put, many),
        }


def put_on_a_stack() -> tuple[float, float, ProcessorTime]:
    """Seconds that a local stack of its own takes for ALONE schedules one a request, and for SCHEDULES in batches; what those used."""
    with local_stack() as stack, Client(stack.api_endpoint) as client:

        def seconds(asked: Iterator[NewSchedule], *, batch_size: int = MOST_TOGETHER) -> float:
            began = time.monotonic()
            results = client.schedules.put_many(asked, threads=CONNECTIONS, batch_size=batch_size)
            failed = [result for result in results if isinstance(result, NotStored)]
            assert not failed, failed[0].error
            return time.monotonic() - began

        seconds(_schedules("warm-up", 2 * MOST_TOGETHER))
        alone = seconds(_schedules("alone", ALONE), batch_size=1)
        before = processor_time()
        together = seconds(_schedules("many", SCHEDULES))
        return alone, together, processor_time().since(before)


def _schedules(kind: str, count: int) -> Iterator[NewSchedule]:
    for number in range(count):
        yield NewSchedule.from_json(_body(f"{kind}-{number}"))


def _body(schedule_id: str) -> dict[str, Any]:
    """A report at a minute of its own each night, with a small payload. Of a tenant for each kind: one may have ten thousand."""
    tenant, _, last = schedule_id.rpartition("-")
    number = int(last)
    return {
        "tenant": tenant,
        "id": schedule_id,
        "cron": f"{number % 60} {number // 60 % 24} * * *",
        "timezone": "Europe/Berlin",
        "job": {"target": "https://example.com/hook", "payload": {"report": number}},
    }
