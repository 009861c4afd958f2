"""How many bytes of log an execution writes, its metrics included: what CloudWatch bills by the GB.

The services run on stores in memory, with the journal, the logger and the metrics that are deployed; each batch, tick and
request is an invocation. What Lambda writes of its own (START, END, REPORT) is not in it.
"""

import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from aws_lambda_powertools import Logger
from rich.console import Console

from bench.printed import printed_by
from bench.results import print_table, write_result
from functions.runtime.observability import PowertoolsJournal, logger
from testkit.builders import NOON, a_submission
from testkit.events import Context
from testkit.scheduler import World

BATCHES = 20
BATCH = 10
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
"""That a stage may have; metrics are written at each."""

BUDGETS = {"near": 270, "far": 275, "tick": 0, "request": 220}
"""Bytes at INFO, at most."""

_FUNCTION = "Tickwheel-prod-Scheduler-WorkerFunctionF9ECBA95-0123456789ab"


def run(console: Console) -> list[str]:
    """Measure, print, write logs.json; a sentence for each that is above its budget."""
    levels = {level: measure(level) for level in LEVELS}
    powertools = measure_powertools()
    sizes = {f"{what}, {level}": f"{count:,.0f}" for level, found in levels.items() for what, count in found.items()}
    sizes["an execution by a worker with Powertools"] = f"{powertools:,.0f}"
    print_table(console, "Bytes of log", of="of", figure="bytes", rows=sizes)
    write_result(
        "logs.json",
        {
            "jobs": BATCHES * BATCH,
            "batch": BATCH,
            "budget": BUDGETS,
            "levels": {level: {k: round(v) for k, v in found.items()} for level, found in levels.items()},
            "powertools": round(powertools),
        },
    )
    return [
        f"the log of a {what} has {count:,.0f} bytes, and may have {BUDGETS[what]:,}"
        for what, count in levels["INFO"].items()
        if count > BUDGETS[what]
    ]


def measure_powertools() -> float:
    """Bytes of an execution by a worker as its manual has it: a line at its end, with the context of the invocation.

    That is what a worker behind another scheduler writes, which is compared with this one.
    """
    text = io.StringIO()
    theirs = Logger(service="worker", stream=text)

    @theirs.inject_lambda_context
    def handler(_: Any, __: Any) -> None:
        for number in range(BATCH):
            theirs.info("succeeded", extra={"job_id": str(UUID(int=number)), "attempt": 1, "duration_ms": 100 + number})

    handler({}, cast("Any", _context(1)))
    return len(text.getvalue().encode()) / BATCH


def measure(level: str = "INFO") -> Mapping[str, float]:
    """Bytes, at that level of the logger: of a near and of a far execution, of a tick that promotes nothing, and of a request."""
    with _capturing() as taken, _at(level):
        return {
            "near": _execution(taken, delay=timedelta(seconds=30)),
            "far": _execution(taken, delay=timedelta(minutes=10)),
            "tick": _tick(taken),
            "request": _request(taken),
        }


def _execution(taken: Callable[[], int], *, delay: timedelta) -> float:
    """Of one of many in full batches: its share of the tick that promotes it, less an idle one, and of its batch."""
    idle = _tick(taken)
    world, invoke = _world()
    for _ in range(BATCHES * BATCH):
        world.submit(a_submission(due_at=NOON + delay))
    taken()
    if delay >= world.wheel.guard:
        world.clock.tick(delay - world.wheel.lookahead)
        for shard in range(world.wheel.scan_shards):
            invoke(lambda shard=shard: world.scan(shard))
        count = taken() - world.wheel.scan_shards * idle
    else:
        count = 0
    world.clock.tick(NOON + delay + timedelta(seconds=1) - world.clock.now())
    for _ in range(BATCHES):
        invoke(world.receive_and_work)
    assert len(world.calls) == BATCHES * BATCH
    return (count + taken()) / (BATCHES * BATCH)


def _tick(taken: Callable[[], int]) -> float:
    world, invoke = _world()
    world.scan()
    world.clock.tick(timedelta(minutes=1))
    taken()
    invoke(world.scan)
    return taken()


def _request(taken: Callable[[], int]) -> float:
    """Of a submission, whatever it holds."""
    world, invoke = _world()
    taken()
    invoke(lambda: world.submit(a_submission(due_at=NOON + timedelta(hours=1))))
    return taken()


def _world() -> tuple[World, Callable[[Callable[[], Any]], None]]:
    """And what runs a function as an invocation of a Lambda."""
    world, journal = World(), PowertoolsJournal()
    world.journal = cast("Any", journal)
    requests = itertools.count(1)

    def invoke(work: Callable[[], Any]) -> None:
        @logger.inject_lambda_context
        def handler(_: Any, __: Any) -> None:
            work()
            journal.flush()

        handler({}, cast("Any", _context(next(requests))))

    return world, invoke


def _context(request: int) -> Context:
    return Context(
        function_name=_FUNCTION,
        invoked_function_arn=f"arn:aws:lambda:us-east-1:123456789012:function:{_FUNCTION}",
        aws_request_id=str(UUID(int=request)),
    )


@contextmanager
def _at(level: str) -> Iterator[None]:
    """While the logger has that level."""
    before = logger.log_level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _capturing() -> Iterator[Callable[[], int]]:
    """Bytes since it was asked last."""
    with printed_by("worker") as text:

        def taken() -> int:
            count = len(text.getvalue().encode())
            text.seek(0)
            text.truncate()
            return count

        yield taken
