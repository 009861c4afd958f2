"""A soak: load, schedules, troubles and gauges side by side on one deployed stack; then the end of all, and a judgement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from soak.curves import growth_of, judge_curves, lags_of, percentile, warm_up_of
from soak.gauges import Gauges
from soak.load import LONGEST_WAIT, Load, Sinks
from soak.outcome import JobEnd
from soak.record import LATENESS, Record
from soak.schedules import Schedules
from soak.troubles import Troubles
from testkit.deployment import FUNCTIONS, Deployment
from tickwheel.client import Client
from tickwheel.local import Stack
from verification.checker import Invariant, Judgement, judge
from verification.deployed import dead_letters_of, row_of
from verification.history import History
from verification.sink import Sink

PATIENCE = timedelta(minutes=6)
"""For what is parked behind a breaker, and for a killed worker's message: it is hidden for 95 s, twice if its next one dies."""

_TELL_EVERY = 30.0
_MUST_BE_GONE = ("depth", "dead-letter queues", "leases", "ledger, open", "cursors behind")
_ENDS = (Invariant.NOTHING_LOST, Invariant.SCHEDULES_KEPT, Invariant.ENDS_AGREE, Invariant.DEAD_LETTERS_ACCOUNTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """minutes: of load, after which everything has to come to its end. rate: jobs a second."""

    minutes: float
    rate: float
    seed: int


def soak(stack: Stack, plan: Workload, tell: Callable[[str], None]) -> JobEnd:
    """Run it; a first Ctrl-C ends the load, and what is not over by then is not judged."""
    deployment = Deployment(stack)
    try:
        with Sink() as usual, Sink() as moody, Client(stack.api_endpoint) as client:
            return _Soak(deployment, client, Sinks(usual, moody), plan, tell).run()
    finally:
        deployment.close()


class _Soak:
    def __init__(
        self, deployment: Deployment, client: Client, sinks: Sinks, plan: Workload, tell: Callable[[str], None]
    ) -> None:
        self._deployment = deployment
        self._sinks = sinks
        self._plan = plan
        self._tell = tell
        self._record = Record()
        self._load = Load(client, sinks, self._record, plan.rate, plan.seed)
        self._schedules = Schedules(client, sinks, self._record)
        self._troubles = Troubles(deployment, self._load, self._schedules, self._record, plan.seed)
        self._gauges = Gauges(deployment, client)
        self._stop = threading.Event()
        self._stop_gauges = threading.Event()

    def run(self) -> JobEnd:
        """From the first job to the judgement."""
        self._schedules.create()
        until = self._gauges.begun_at + timedelta(minutes=self._plan.minutes)
        with ThreadPoolExecutor(3, thread_name_prefix="soak") as pool:
            gauges = pool.submit(self._gauges.run, self._stop_gauges)
            try:
                is_whole = self._run_load(pool, until, gauges)
                ended_at = datetime.now(UTC)
                if is_whole:
                    is_whole = self._await_ends(ended_at)
            finally:
                self._stop.set()
                self._stop_gauges.set()
            gauges.result()
        return self._outcome(ended_at, is_whole=is_whole)

    def _run_load(self, pool: ThreadPoolExecutor, until: datetime, gauges: Future[None]) -> bool:
        """False when it was interrupted."""
        running = [
            pool.submit(self._load.run, until, self._stop),
            pool.submit(self._troubles.run, until, self._stop),
        ]
        reported_at = time.monotonic()
        is_whole = True
        try:
            while any(not future.done() for future in running):
                time.sleep(0.5)
                for future in (*running, gauges):
                    if future.done() and (error := future.exception()) is not None:
                        self._tell(f"given up: {error!r}")  # what ends it may take its time
                        raise error
                if time.monotonic() > reported_at + _TELL_EVERY:
                    reported_at = time.monotonic()
                    self._tell(self._progress())
        except KeyboardInterrupt:
            self._tell("interrupted: what is under way is not judged")
            is_whole = False
        finally:
            self._stop.set()
        for future in running:
            future.result()
        return is_whole

    def _await_ends(self, ended_at: datetime) -> bool:
        """Until nothing is missing any more, or for as long as it may take; False when it was interrupted.

        Schedules end when the last job is due: as long as they fire, a run of theirs is always under way.
        """
        give_up_at = ended_at + LONGEST_WAIT + PATIENCE
        last_due = ended_at + LONGEST_WAIT
        try:
            while datetime.now(UTC) < last_due:
                time.sleep(min(_TELL_EVERY, max(0.0, (last_due - datetime.now(UTC)).total_seconds())))
                self._tell(self._progress())
            self._schedules.delete()
            reported_at = time.monotonic()
            while datetime.now(UTC) < give_up_at and (missing := self._missing(ended_at)):
                if time.monotonic() > reported_at + _TELL_EVERY:
                    reported_at = time.monotonic()
                    self._tell(f"{missing} are under way")
                time.sleep(5)
            self._settle()
        except KeyboardInterrupt:
            self._tell("interrupted: what is under way is not judged")
            return False
        return True

    def _settle(self) -> None:
        """Copies that were doubled, and fires of schedules that are gone, are still on their way to nothing."""
        give_up_at = time.monotonic() + PATIENCE.total_seconds()
        while time.monotonic() < give_up_at:
            self._gauges.read(is_whole=True)
            if not any(self._gauges.last(name) for name in _MUST_BE_GONE):
                return
            time.sleep(5)

    def _missing(self, until: datetime) -> int:
        return sum(each.invariant in _ENDS for each in judge(self._history(fires_until=until)).violations)

    def _history(self, *, fires_until: datetime, jobs_until: datetime | None = None) -> History:
        rows = {row.key: row for row in map(row_of, self._gauges.scan("Ledger"))}
        letters = dead_letters_of(self._gauges.scan("DeadLetters"))
        calls = sorted([*self._sinks.usual.calls, *self._sinks.moody.calls], key=lambda call: call.called_at)
        return self._record.history(
            calls, rows, letters, fires_until=fires_until, jobs_until=jobs_until, now=datetime.now(UTC)
        )

    def _outcome(self, ended_at: datetime, *, is_whole: bool) -> JobEnd:
        over_by = ended_at if is_whole else ended_at - LATENESS
        history = self._history(fires_until=over_by, jobs_until=None if is_whole else over_by)
        judgement = judge(history)
        if not is_whole:
            judgement = _of_what_is_over(judgement, history, over_by)
        seconds = (ended_at - self._gauges.begun_at).total_seconds()
        lags = lags_of(history.calls, steady=self._record.steady, begun_at=self._gauges.begun_at)
        letters = self._gauges.curves["rows of dead_letters"]
        curves = {**self._gauges.curves, **lags, "dead letters": growth_of(letters)}
        start = warm_up_of(seconds)
        lines, size = self._logged()
        return JobEnd(
            seed=self._plan.seed,
            rate=self._plan.rate,
            seconds=seconds,
            judged_from=start,
            is_whole=is_whole,
            jobs=len(history.jobs),
            fires=sum(len(fires.due) for fires in history.fires),
            calls=len(history.calls),
            refused=self._record.refused_count,
            lag=self._lag(history),
            struck=dict(self._record.struck),
            judgement=judgement,
            curves=curves,
            judged=judge_curves(
                curves,
                {function: list(lives.values()) for function, lives in self._gauges.lives.items()},
                start=start,
                end=seconds,
            ),
            broken=self._record.broken,
            left={name: self._gauges.last(name) for name in _MUST_BE_GONE} if is_whole else {},
            log_lines=lines,
            log_bytes=size,
        )

    def _lag(self, history: History) -> Mapping[str, float]:
        first: dict[str, float] = {}
        for call in history.calls:
            if call.attempt == 1 and call.key in self._record.steady:
                lag = (call.called_at - call.scheduled_at).total_seconds() * 1000
                first.setdefault(call.key, max(0.0, lag))
        ordered = sorted(first.values())
        return {f"p{percent}": percentile(ordered, percent) for percent in (50, 95, 99)} if ordered else {}

    def _logged(self) -> tuple[int, int]:
        lines = [line for function in FUNCTIONS for line in self._deployment.log(function)]
        return len(lines), sum(len(line) for line in lines)

    def _progress(self) -> str:
        gauges = self._gauges
        calls = [*self._sinks.usual.calls, *self._sinks.moody.calls]
        p95 = lags_of(calls, steady=self._record.steady, begun_at=gauges.begun_at)["lag p95"]
        minutes = (datetime.now(UTC) - gauges.begun_at).total_seconds() / 60
        parts: list[Any] = [
            f"{minutes:5.1f} min",
            f"{self._record.job_count:,} jobs",
            f"{len(calls):,} calls",
            f"lag p95 {p95[-2][1]:,.0f} ms" if len(p95) > 1 else "no lag yet",
            f"{gauges.last('depth'):.0f} messages",
            f"{gauges.last('processes'):.0f} processes, the largest worker {gauges.last('memory Worker'):.0f} MiB",
            f"emulator {gauges.last('memory emulator'):.0f} MiB",
            f"{sum(self._record.struck.values())} faults",
        ]
        return ", ".join(parts)


def _of_what_is_over(judgement: Judgement, history: History, over_by: datetime) -> Judgement:
    """Without jobs that were under way when they were left."""
    young = {call.key for call in history.calls if call.called_at > over_by}
    young |= {job.key for job in history.jobs if job.due_at > over_by}
    kept = [violation for violation in judgement.violations if violation.key not in young]
    return Judgement(judgement.checks, kept)
