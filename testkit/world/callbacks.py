"""What is promised about callbacks: each end of a job is told once to each that it asked to be told, and nothing but ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from functions.domain.far_ring.timer_record import unpack
from functions.domain.jobs.callbacks import Callbacks, is_callback
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId, parse_job_id
from functions.domain.lifecycle import State
from functions.ports.dead_letters import DeadLetter

_OF = {
    State.SUCCEEDED: {"on_success", "on_end"},
    State.FAILED: {"on_failure", "on_end"},
    State.EXPIRED: {"on_failure", "on_end"},
    State.CANCELLED: {"on_end"},
}
"""Who is told of which end, as the documentation says."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a callback was called with: its name, and the id and the state of the job that it tells of."""

    name: str
    job_id: str
    state: State


def told_in(payload: str | None) -> Told:
    """What the payload of a callback says."""
    body: dict[str, Any] = json.loads(payload or "{}")
    return Told(body["callback"], body["job"]["id"], State(body["job"]["state"]))


class CallbackPromises:
    """Which jobs have called whom. expect: notes a violation where it is told something that is not true."""

    def __init__(self, expect: Callable[[bool, str], None]) -> None:
        self._expect = expect
        self._told: dict[tuple[str, str], dict[str, Told]] = {}
        self._ends: dict[str, set[State]] = {}
        self._replayed: set[str] = set()
        self._withdrawn: dict[tuple[str, str], set[State]] = {}

    def replayed(self, key: str) -> None:
        """Its job may fail once more, and be told of that once more."""
        self._replayed.add(key)

    def ended(self, key: str, state: State) -> None:
        """The row of a job has come to an end."""
        self._ends.setdefault(key, set()).add(state)

    def cancelled(self, timer: Timer) -> None:
        """A callback has been cancelled before it was called: whoever cancels all jobs of a tenant cancels those, too."""
        told = told_in(unpack(timer.job.payload))
        self._withdrawn.setdefault((told.job_id, told.name), set()).add(told.state)

    def begin(self, timer: Timer, payload: str | None) -> None:
        """The target of a job is called; of a callback, it must tell of an end that has been recorded."""
        if not is_callback(timer.job.identity):
            return
        told = self._note(timer, payload)
        job_id = parse_job_id(told.job_id)
        self._expect(told.name in _OF[told.state], f"{told.name} was told of {told.state}: {told.job_id}")
        if job_id.is_ledgered:
            has_ended = told.state in self._ends.get(job_id.key, ())
            self._expect(has_ended, f"told before its end: {told}")

    def check(
        self,
        jobs: Mapping[JobId, Callbacks],
        *,
        rows: Mapping[str, LedgerRow],
        letters: list[DeadLetter],
        succeeded: Callable[[str], bool],
    ) -> None:
        """All is over: who asked for it was told of each end, by one job. letters: of callbacks that nobody took, among others."""
        for letter in letters:
            if letter.timer is not None and is_callback(letter.timer.job.identity):
                self._note(letter.timer, unpack(letter.timer.job.payload))
        for (told_id, name), tellings in self._told.items():
            is_once = len(tellings) == 1 or parse_job_id(told_id).key in self._replayed
            self._expect(is_once, f"{name} of {told_id} was called by {len(tellings)} jobs")
        for job_id, callbacks in jobs.items():
            names = {name.value for name, _ in callbacks.named()}
            withdrawn = {name: self._withdrawn.get((str(job_id), name), set()) for name in names}
            told = {name: self._told.get((str(job_id), name), {}) for name in names}
            found = {name: {each.state for each in tellings.values()} for name, tellings in told.items() if tellings}
            expected = self._expected(job_id, rows, is_success=succeeded(job_id.key))
            row = rows.get(job_id.key)
            if row is not None and row.state is State.MOVED:
                self._expect(not found, f"{job_id} goes on under another id, and told {found}")
            elif expected is None:
                is_told = found.keys() >= names & {"on_end"} or bool(withdrawn["on_end"])
                self._expect(is_told, f"on_end was not told of {job_id}: {found}")
            else:
                # A replay goes on after an end that was told.
                ends = {
                    expected,
                    *(self._ends.get(job_id.key, ()) if job_id.key in self._replayed else ()),
                } & _OF.keys()
                due = {name: {end for end in ends if name in _OF[end]} for name in names}
                due = {name: told_of - (withdrawn[name] - found.get(name, set())) for name, told_of in due.items()}
                due = {name: told_of for name, told_of in due.items() if told_of}
                self._expect(found == due, f"{job_id} ended as {expected}, and told {found} instead of {due}")

    def _expected(self, job_id: JobId, rows: Mapping[str, LedgerRow], *, is_success: bool) -> State | None:
        """How a job has ended; None where several ends are possible, because it keeps no row."""
        row = rows.get(job_id.key)
        if job_id.delivery is Delivery.AT_LEAST_ONCE:
            is_cancelled = row is not None and row.state is State.CANCELLED
            return State.CANCELLED if is_cancelled and not is_success else None
        return row.state if row is not None and row.state in _OF else None

    def _note(self, timer: Timer, payload: str | None) -> Told:
        told = told_in(payload)
        self._told.setdefault((told.job_id, told.name), {})[timer.job.identity] = told
        return told
