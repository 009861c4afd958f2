"""Large results in memory."""

from __future__ import annotations

from functions.domain.jobs.job_id import JobId


class InMemoryResultStore:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], str] = {}

    def put(self, job_id: JobId, pointer: str, text: str) -> None:
        self.objects[job_id.tenant, job_id.identity, pointer] = text

    def get(self, job_id: JobId, pointer: str) -> str | None:
        return self.objects.get((job_id.tenant, job_id.identity, pointer))
