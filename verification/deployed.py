"""What a deployed stack shows of itself to whoever judges it: rows of its tables, payloads, and processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from functions.adapters.dynamodb.dead_letters import MARKS
from functions.adapters.dynamodb.ledger_row import STARTS
from functions.domain.instants import from_ms
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.lifecycle import TERMINAL, State
from tickwheel.client.jobs import NewJob, Submitted
from verification.history import DeadLetterSeen, Job, Row

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Process:
    """A process that runs a function. memory: what it keeps in memory, in bytes."""

    pid: int
    function: str
    memory: int


def rows_among(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those among what the ledger's table has; the others count starts of attempts that have no row."""
    return (item for item in items if STARTS not in item["k"]["S"])


def row_of(item: dict[str, Any]) -> Row:
    """A row of the ledger."""
    state = State(item["s"]["S"])
    return Row(
        key=item["k"]["S"],
        state=state,
        attempt=int(item.get("a", {"N": "0"})["N"]),
        fence=int(item.get("f", {"N": "0"})["N"]),
        settled_at=from_ms(int(item["u"]["N"])) if state in TERMINAL else None,
        reason=item.get("e", {"S": ""})["S"],
    )


def dead_letters_of(items: Iterable[dict[str, Any]]) -> list[DeadLetterSeen]:
    """Those among the rows of the dead letters; the others mark the hours that have any."""
    return [_letter_of(item) for item in items if not item["p"]["S"].endswith(f"#{MARKS}")]


def _letter_of(item: dict[str, Any]) -> DeadLetterSeen:
    tenant, identity = item["p"]["S"].rpartition("#")[0], item["s"]["S"].partition("#")[2]
    return DeadLetterSeen(f"{tenant}#{identity}", item["c"]["S"])


def job_of(asked: NewJob, answer: Submitted) -> Job:
    """A job that the API has taken."""
    return Job(
        key=parse_job_id(answer.id).key,
        tenant=asked.tenant,
        delivery=Delivery(asked.delivery or Delivery.EXACTLY_ONCE),
        due_at=answer.due_at,
        payload=text_of(asked.payload),
    )


def text_of(payload: Any) -> str:
    """A payload as its target gets it."""
    return json.dumps(payload, separators=(",", ":"))


def processes_of(folder: str, functions: tuple[str, ...]) -> list[Process]:
    """The processes of these functions: each runs below the folder of its cloud."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,rss=,args="], capture_output=True, text=True, check=True)
    return list(_read(listed.stdout, folder, functions))


def memory_of(pid: int) -> int:
    """What a process keeps in memory, in bytes."""
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(shown.stdout) * _KIB


def _read(listed: str, folder: str, functions: tuple[str, ...]) -> Iterator[Process]:
    for line in listed.splitlines():
        pid, memory, command = line.split(maxsplit=2)
        if folder in command:
            for function in functions:
                if f"{function}Function" in command:
                    yield Process(int(pid), function, int(memory) * _KIB)
