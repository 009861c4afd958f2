"""Export jobs: a line each, collected into parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import unpack
from functions.domain.instants import format_instant
from functions.domain.jobs.description import describe_job
from functions.domain.lifecycle import State
from functions.domain.operations.selection import next_attempt
from functions.operations.apply_to_job import SelectedJob
from functions.ports.operations import ExportStore
from functions.ports.payloads import PayloadStore

PART_SIZE = 4_000_000
"""Characters of a part, about."""


@dataclass(slots=True)
class ExportPart:
    """The lines of a part of an export that is not put yet."""

    lines: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to put it."""
        return self.size >= PART_SIZE

    def add(self, described: Sequence[dict[str, Any]]) -> None:
        """A line a job."""
        lines = [json.dumps(job, separators=(",", ":"), ensure_ascii=False) for job in described]
        self.lines.extend(lines)
        self.size += sum(map(len, lines))

    def put(self, exports: ExportStore, tenant: str, operation_id: str, number: int) -> None:
        """Keep it under its number, and begin the next."""
        exports.put(tenant, operation_id, number, self.lines)
        self.lines, self.size = [], 0


def describe(selected: SelectedJob, payloads: PayloadStore) -> dict[str, Any]:
    """A job that waits, as JSON values: how it was asked for, what it waits for, and its payload, where it has one still."""
    job = selected.timer.job
    attempt, due_at = next_attempt(selected.timer, selected.row)
    state = selected.row.state if selected.row is not None else State.SCHEDULED
    described = {
        "id": str(selected.job_id),
        "tenant": job.tenant,
        "state": state.value,
        "attempt": attempt,
        "due_at": format_instant(due_at),
        **describe_job(job),
    }
    try:
        text = unpack(job.payload) if job.payload.pointer is None else payloads.get(job.payload.pointer)
    except Undecodable:
        return described
    return described if text is None else {**described, "payload": json.loads(text)}
