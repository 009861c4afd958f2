"""How soon the job of a killed worker runs again on the local stack: from SIGKILL until the target is called again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.budgets import RECOVERY
from bench.results import write_result
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Delivery
from functions.worker.keeper import FIRST_AFTER, HIDDEN_FOR
from infra.stage import Stage
from tickwheel.client import Client
from tickwheel.client.jobs import Priority
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer
from tickwheel.local import Stack, local_stack
from verification.deployed import processes_of

_STAGE = Stage.named("local")
_PRIORITIES: tuple[Priority, ...] = tuple(Priority)
_LIVES_FOR = FIRST_AFTER + 2 * SECOND
"""So that a worker that hides its messages has done so once."""

_PATIENCE = timedelta(minutes=5)
_STARTED_WITHIN = timedelta(seconds=180)
_LOOK_SECONDS = 0.02
_AT_ONCE = "/at-once"
_USUAL_TIMEOUT = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Case:
    """A job whose worker is killed. lives_for: so long after its target was called. Of a class of its own, and so with a worker of its own."""

    name: str
    priority: Priority = Priority.NORMAL
    delivery: Delivery = Delivery.EXACTLY_ONCE
    timeout: timedelta = _USUAL_TIMEOUT
    lives_for: timedelta = _LIVES_FOR

    @property
    def expected(self) -> timedelta:
        """When its message and its attempt are free again, after the death, as docs/job-lifecycle.md has it."""
        if self.lives_for < FIRST_AFTER:
            return _STAGE.visibility
        lease = self.timeout + LEASE_MARGIN + _STAGE.wheel.lease_skew - FIRST_AFTER
        return max(HIDDEN_FOR, lease) if self.delivery is Delivery.EXACTLY_ONCE else HIDDEN_FOR


ROUNDS: Sequence[Sequence[Case]] = (
    (
        Case("timeout of 30 s, the default"),
        Case("timeout of 50 s, the longest", Priority.CRITICAL, timeout=_STAGE.longest_attempt),
        Case("at_least_once", Priority.LOW, Delivery.AT_LEAST_ONCE),
    ),
    (Case("killed in its first second", lives_for=timedelta(0)),),
)
"""What is killed together."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """A job that ran again. took: from the death of its worker until its target was called again."""

    case: Case
    took: timedelta


def run(console: Console) -> list[str]:
    """Deploy, kill, wait, print, write recovery.json; a sentence for each job that did not run again in time."""
    load = os.getloadavg()[0]
    with Progress(console=console, transient=True) as progress, _Targets() as targets:
        task = progress.add_task("recovery", total=None)
        with local_stack(progress=lambda line: progress.update(task, description=line[:60])) as stack:
            start_workers(stack, targets)
            targets.wait({_AT_ONCE: len(_PRIORITIES)}, within=_STARTED_WITHIN)
            found = [
                recovery
                for cases in ROUNDS
                for recovery in measure(
                    stack, targets, cases, tell=lambda text: progress.update(task, description=text)
                )
            ]
    _print(console, found, load)
    rows = {
        recovery.case.name: {
            "took_s": round(recovery.took.total_seconds(), 1),
            "expected_s": recovery.case.expected.total_seconds(),
        }
        for recovery in found
    }
    write_result("recovery.json", {"recoveries": rows, "load_average_before": round(load, 1)})
    return broken_promises(found)


def start_workers(stack: Stack, targets: _Targets) -> None:
    """Run a job of each class: what is measured is when a job is free again, not how long a worker takes to start."""
    with Client(stack.api_endpoint) as client:
        for priority in _PRIORITIES:
            client.submit(
                f"{targets.url}{_AT_ONCE}",
                tenant="acme",
                run_at=datetime.now(UTC),
                priority=priority,
                # The first request starts a function, which may take longer than its client waits.
                idempotency_key=f"{uuid4()}",
            )


def measure(stack: Stack, targets: _Targets, cases: Sequence[Case], *, tell: Callable[[str], None]) -> list[Recovery]:
    """Kill all workers once each of these jobs is called, and wait until each is called again."""
    targets.released.clear()
    with Client(stack.api_endpoint) as client:
        for case in cases:
            client.submit(
                f"{targets.url}/{case.priority}",
                tenant="acme",
                run_at=datetime.now(UTC),
                priority=case.priority,
                delivery=case.delivery.value,
                timeout=case.timeout,
            )
    paths = {case: f"/{case.priority}" for case in cases}
    before = {path: targets.count(path) for path in paths.values()}
    tell("until every target is called")
    targets.wait({path: count + 1 for path, count in before.items()}, within=_STARTED_WITHIN)
    time.sleep(cases[0].lives_for.total_seconds())
    for worker in processes_of(str(stack.folder), ("Worker",)):
        os.kill(worker.pid, signal.SIGKILL)
    died_at = time.monotonic()
    targets.released.set()
    start_workers(stack, targets)
    tell("until every target is called again")
    targets.wait({path: count + 2 for path, count in before.items()}, within=_PATIENCE)
    return [
        Recovery(case, timedelta(seconds=targets.called_at(path, before[path] + 1) - died_at))
        for case, path in paths.items()
    ]


def broken_promises(found: Sequence[Recovery]) -> list[str]:
    """A sentence for each that took longer than is promised, of those that are promised so: killed after their first second."""
    too_early = [
        f"recovery, {each.case.name}: its target was called again before its worker was killed, on a machine that is too slow"
        for each in found
        if each.took < timedelta(0)
    ]
    return too_early + [
        f"recovery, {each.case.name}: {each.took.total_seconds():.0f} s, the budget is {RECOVERY.total_seconds():.0f} s"
        for each in found
        if each.took > RECOVERY and each.case.lives_for >= FIRST_AFTER
    ]


class _Targets(LoopbackServer):
    """Targets by path, whose calls are not answered before they are released; but those of `_AT_ONCE`."""

    def __init__(self) -> None:
        super().__init__(_Request, poll_seconds=0.1)
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._calls: dict[str, list[float]] = {}

    def call(self, path: str) -> None:
        """Note a call."""
        with self._lock:
            self._calls.setdefault(path, []).append(time.monotonic())

    def count(self, path: str) -> int:
        """How often it has been called."""
        with self._lock:
            return len(self._calls.get(path, ()))

    def called_at(self, path: str, index: int) -> float:
        """When one of its calls came (monotonic, s)."""
        with self._lock:
            return self._calls[path][index]

    def wait(self, counts: Mapping[str, int], *, within: timedelta) -> None:
        """Until each has been called so often. Raises TimeoutError."""
        ends_at = time.monotonic() + within.total_seconds()
        while missing := {path: count for path, count in counts.items() if self.count(path) < count}:
            if time.monotonic() > ends_at:
                raise TimeoutError(f"not called so often within {within}: {missing}")
            time.sleep(_LOOK_SECONDS)


class _Request(KeptAliveRequest):
    server: _Targets  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:  # noqa: N802  its name in http.server
        """A call by a worker."""
        self.server.call(self.path)
        self.read_body()
        if self.path != _AT_ONCE:
            self.server.released.wait(_PATIENCE.total_seconds())
        with suppress(ConnectionError):  # who called may have been killed
            self.answer(200)


def _print(console: Console, found: Sequence[Recovery], load: float) -> None:
    table = Table(title="From the death of a worker until its job's target is called again, local stack", box=SIMPLE)
    table.add_column("job")
    table.add_column("seconds", justify="right")
    table.add_column("free again after, at most", justify="right")
    for each in found:
        table.add_row(each.case.name, f"{each.took.total_seconds():.1f}", f"{each.case.expected.total_seconds():.0f}")
    console.print(table)
    console.print(f"Promised: {RECOVERY.total_seconds():.0f} s. Load average before: {load:.1f}.", highlight=False)
