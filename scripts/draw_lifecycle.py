"""Draw the life of a job from the transition table: docs/job-lifecycle.md and its picture.

`python scripts/draw_lifecycle.py` writes both; a test compares the page with the table. The picture needs Graphviz,
and is left as it is where there is none.
"""

import json
import shutil
import subprocess
from pathlib import Path

from functions.domain.lifecycle import TERMINAL, TRANSITIONS, Event, State

PAGE = Path(__file__).resolve().parent.parent / "docs" / "job-lifecycle.md"
MEASURED = PAGE.parents[1] / "bench" / "results" / "recovery.json"
PICTURE = PAGE.parent / "pictures" / "job-lifecycle.svg"

MEANING = {
    State.ABSENT: "no row exists: a job without an idempotency key that no worker has claimed",
    State.SCHEDULED: "an idempotency key is registered, or an attempt was released: the attempt waits for a worker",
    State.RUNNING: "a worker has claimed an attempt, with a lease and a fence",
    State.RETRYING: "an attempt failed, and the next one is in the wheel",
    State.SUCCEEDED: "the target succeeded",
    State.FAILED: "the last attempt failed, or too many workers died; a dead letter exists",
    State.CANCELLED: "a caller or its schedule cancelled the job",
    State.EXPIRED: "the job was still waiting at the end of its `expires_after`",
    State.SKIPPED: "a fire of a schedule did not become a run; the row has the reason",
    State.MOVED: "the job continues under another id, which the row contains, at another time or with another content",
    State.ATTEMPTED: "an `at_most_once` job was started; its outcome is not recorded here",
}

CAUSE = {
    Event.REGISTER: "a submission with an idempotency key writes its row first",
    Event.PARK: "its destination is not called: the same attempt waits in the wheel, and this row informs the bucket audit",
    Event.CLAIM: "a worker claims an attempt; from `retrying` only a higher one than the row's",
    Event.RESCUE: "the lease is over by more than LEASE_SKEW: another worker takes the attempt, with a larger fence; counted, at most 3 times",
    Event.ATTEMPT: "a worker starts an `at_most_once` job",
    Event.LAPSE: "an `at_most_once` job is received after its `expires_after`: it is never started",
    Event.RELEASE: "a store or a queue failed, not the target: the attempt is released, for the same or a higher one",
    Event.HOLD: "the target answered 202: its lease is renewed, and a watchdog is in the wheel",
    Event.MOVE: "its owner gave it another time or content: this and the new timer are one transaction",
    Event.REPLAY: "an operator gives a dead letter another budget of attempts: this and a far row of the attempt are one "
    "transaction; repeatable until a worker claims it",
    Event.SUCCEED: "the target answered with success; conditional on the fence",
    Event.RETRY: "the attempt failed: the next one is placed first, then this is written; refused when a cancel is requested",
    Event.FAIL: "the last attempt failed: this and the dead letter are one transaction",
    Event.EXPIRE: "claimed after its `expires_after`: settled without running",
    Event.CANCEL: "the tombstone: conditional on the job being neither running nor settled",
    Event.WITHDRAW: "a running job with a requested cancel fails, or is rescued: no attempt follows",
    Event.ABANDON: "a schedule no longer waits for a run whose row has not changed for 14 days, or whose cancel was requested and whose lease is over",
    Event.SKIP: "a fire comes due while its schedule is paused or deleted, or while a run is in its way; never after it has begun",
    Event.DELIVER: "a release gave the job to its target together with others: one write is its claim and its end",
    Event.RETURN: "the job failed in a release: its next attempt is placed first, then this is written",
    Event.BURY: "the attempt's workers died 4 times, or no queue will ever take it: this and the dead letter are one transaction",
}


def page() -> str:
    """The page as the table has it."""
    states = "\n".join(
        f"| `{state}` | {'the end' if state in TERMINAL else ''} | {MEANING[state]} |" for state in State
    )
    events = "\n".join(
        f"| {event} | {', '.join(f'`{source}`' for source in sources)} | `{target}` | {CAUSE[event]} |"
        for event, (sources, target) in TRANSITIONS.items()
    )
    return f"""# The life of a job

Made by `python scripts/draw_lifecycle.py` from the table in `functions/domain/lifecycle.py`; a test keeps the two equal.

One row of the ledger is one logical execution. Every arrow is one conditional write with an owner token, so a write
whose answer was lost recognises itself, and losing to another worker is a normal result. An `at_least_once` job without
an idempotency key has no row and so no states: it is run, and leaves a line in the log.

![The states of a job](pictures/job-lifecycle.svg)

| state | | meaning |
|---|---|---|
{states}

| event | from | to | when |
|---|---|---|---|
{events}

## When a worker dies

Its messages come back, and another worker takes its attempts with larger fences.

1. A batch that goes on for more than a second has its messages hidden every 15 s, each time for 45 s. When its worker is killed, they come back
   45 s later at most ([decision 45](decisions/0045-a-live-worker-hides-its-messages.md)).
2. An `exactly_once` attempt is taken over when its lease is over for every clock: the job's timeout, 5 s, and LEASE_SKEW (20 s; 5 s on `local`)
   after its claim. Until then the message is put off once, to that instant.

So a job runs again within 90 s on every stage, if its timeout is at most 60 s. From the death of a worker until the next call of the target, without the start of a
worker and the poll, for which 5 s of the 90 are kept (`tests/virtual/test_recovery.py`, with the constants of each stage):

| timeout of the job | `local` | `small`, `dev` | `prod`, `scale` |
|---|---|---|---|
| up to 20 s | 45 s | 45 s | 45 s |
| 30 s, the default | 45 s | 54 s | 54 s |
| 50 s | 59 s | 74 s | 74 s |
| 60 s | | | 84 s |
| 110 s, the longest | | | 134 s |
| any, `at_least_once` | 45 s | 45 s | 45 s |
| any, killed in its first second or before it began | 85 s | 85 s | 145 s |

The last line is the visibility timeout of the ready queues: the worker's timeout, which Lambda requires of it, and 25 s. A job that was held after a
202 is called again when its lease is over by LEASE_SKEW. An `at_most_once` job is not called again. `python -m bench recovery` kills workers of the
local stack with SIGKILL, and prints how soon their jobs run again beside the times of the table. When it was last kept:

| job | called again after | by the table |
|---|---|---|
{_measured()}
"""


def _measured() -> str:
    found = json.loads(MEASURED.read_text())["recoveries"]
    return "\n".join(f"| {name} | {row['took_s']} s | {row['expected_s']:g} s |" for name, row in found.items())


def drawing() -> str:
    """The same as a graph in Graphviz's language."""
    nodes = "\n".join(
        f'  "{state}" [{"peripheries=2, fillcolor=" + chr(34) + "#e8f3ec" + chr(34) if state in TERMINAL else ""}];'
        for state in State
    )
    edges: dict[tuple[State, State], list[str]] = {}
    for event, (sources, target) in TRANSITIONS.items():
        for source in sources:
            edges.setdefault((source, target), []).append(event)
    arrows = "\n".join(
        f'  "{source}" -> "{target}" [label="{", ".join(events)}"];' for (source, target), events in edges.items()
    )
    return f"""digraph lifecycle {{
  rankdir=LR; nodesep=0.35; ranksep=0.9; bgcolor="white";
  node [shape=box, style="rounded,filled", fillcolor="#eef2fa", fontname="Helvetica", fontsize=12];
  edge [fontname="Helvetica", fontsize=10, color="#555555"];
{nodes}
{arrows}
}}
"""


def main() -> None:
    """Write the page, and the picture where Graphviz is."""
    PAGE.write_text(page())
    dot = shutil.which("dot")
    if dot is None:
        print("Graphviz is not here: the picture stays as it is")
        return
    PICTURE.parent.mkdir(exist_ok=True)
    drawn = subprocess.run([dot, "-Tsvg"], input=drawing(), capture_output=True, text=True, check=True)
    PICTURE.write_text(drawn.stdout)


if __name__ == "__main__":
    main()
