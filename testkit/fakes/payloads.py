"""Large payloads in memory."""

from __future__ import annotations

import hashlib

from functions.domain.jobs.job import Job


class InMemoryPayloadStore:
    def __init__(self) -> None:
        self.objects: dict[str, str] = {}

    def put(self, job: Job, text: str) -> str:
        pointer = f"{job.tenant}/{job.identity}"
        self.objects[pointer] = text
        return pointer

    def put_for_schedule(self, key: str, text: str) -> str:
        pointer = f"schedules/{key}/{hashlib.blake2b(text.encode()).hexdigest()}"
        self.objects[pointer] = text
        return pointer

    def get(self, pointer: str) -> str | None:
        return self.objects.get(pointer)

    def delete(self, pointer: str) -> None:
        self.objects.pop(pointer, None)
