"""Operations on many jobs: those that are meant are counted, cancelled, moved, hastened and exported, and no others."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink, Target
from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, Submitted
from tickwheel.client.operations import JobFilter, Operation

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

TENANT = "bulk"
NEIGHBOUR = "bulk-neighbour"

LARGE = random.Random(7).randbytes(10_000).hex()
"""What compression leaves above the limit of a row, so that it is kept in the bucket."""


@dataclass(frozen=True)
class Jobs:
    """Jobs that wait in the far ring, by their tags: all due within seconds, so that a walk has few buckets to read."""

    due_at: datetime
    counted: list[Submitted]
    cancelled: list[Submitted]
    moved: list[Submitted]
    fixed: list[Submitted]
    hastened: list[Submitted]
    targets: list[Target]
    exported: list[Submitted]
    of_neighbour: list[Submitted]

    def tagged(self, tag: str, *, tenant: str = TENANT) -> JobFilter:
        """Those of a tag, in a range around their time: a whole day is too many buckets for the local cloud."""
        margin = timedelta(minutes=1)
        return JobFilter(tenant=tenant, tag=tag, due_from=self.due_at - margin, due_until=self.due_at + 2 * margin)


@pytest.fixture(scope="module")
def jobs(client: Client, sink: Sink) -> Jobs:
    due_at = datetime.now(UTC) + timedelta(minutes=20)

    def submitted(*new: NewJob) -> list[Submitted]:
        answers = client.submit_many(new)
        accepted = [answer for answer in answers if isinstance(answer, Submitted) and answer.ring == "far"]
        assert len(accepted) == len(new), answers
        return accepted

    def some(count: int, tag: str, *, tenant: str = TENANT) -> list[NewJob]:
        instants = [due_at + timedelta(seconds=number) for number in range(count)]
        return [NewJob("handler:echo", tenant=tenant, run_at=run_at, tags=["all", tag]) for run_at in instants]

    targets = [sink.target(is_hastened=True) for _ in range(4)]
    return Jobs(
        due_at=due_at,
        counted=submitted(*some(3, "counted")),
        cancelled=submitted(
            *some(5, "cancelled"),
            NewJob("handler:echo", tenant=TENANT, run_at=due_at, tags=["cancelled"], priority="critical"),
            NewJob("handler:echo", tenant=TENANT, run_at=due_at, tags=["cancelled"], payload=LARGE),
        ),
        moved=submitted(
            *some(3, "moved"), NewJob("handler:echo", tenant=TENANT, run_at=due_at, tags=["moved"], payload=LARGE)
        ),
        fixed=submitted(NewJob("handler:echo", tenant=TENANT, run_at=due_at, tags=["moved"], delivery="at_least_once")),
        hastened=submitted(
            *(NewJob(target.url, tenant=TENANT, run_at=due_at, tags=["hastened"]) for target in targets)
        ),
        targets=targets,
        exported=submitted(
            *some(2, "exported"), NewJob("handler:echo", tenant=TENANT, run_at=due_at, tags=["exported"], payload=LARGE)
        ),
        of_neighbour=submitted(*some(3, "cancelled", tenant=NEIGHBOUR)),
    )


def test_a_dry_run_counts_the_jobs_that_are_selected_and_changes_nothing(client: Client, jobs: Jobs) -> None:
    done = ended(client, client.operations.cancel(jobs.tagged("counted"), dry_run=True))

    assert (done.state, done.matched, done.done, done.share) == ("done", 3, 0, 1.0)
    assert {example.job_id for example in done.examples} == {job.id for job in jobs.counted}
    assert states(client, jobs.counted) == {"scheduled"}


def test_a_cancel_ends_the_jobs_that_are_selected_and_no_others(
    deployment: Deployment, client: Client, jobs: Jobs
) -> None:
    done = ended(client, client.operations.cancel(jobs.tagged("cancelled")))

    assert (done.state, done.matched, done.done, done.refused) == ("done", 7, 7, {})
    assert states(client, jobs.cancelled) == {"cancelled"}
    assert [deployment.timer_row(job.id) for job in jobs.cancelled] == [None] * 7
    assert states(client, [*jobs.counted, *jobs.fixed, *jobs.of_neighbour]) == {"scheduled"}


def test_jobs_are_moved_and_go_on_under_their_old_ids_too(client: Client, jobs: Jobs) -> None:
    # To a day that has no mark yet.
    done = ended(client, client.operations.reschedule(jobs.tagged("moved"), by=timedelta(days=1)))

    assert (done.state, done.done, done.refused) == ("done", 4, {"not_changeable": 1})
    for job in jobs.moved:
        moved = client.get(job.id)
        assert (moved.state, moved.due_at - job.due_at) == ("scheduled", timedelta(days=1))
        assert moved.id != job.id
    assert client.get(jobs.fixed[0].id).due_at == jobs.fixed[0].due_at


def test_jobs_that_are_to_run_now_run_once_long_before_their_time(client: Client, jobs: Jobs) -> None:
    done = ended(client, client.operations.run_now(jobs.tagged("hastened"), rate=10))

    assert (done.state, done.done, done.refused) == ("done", 4, {})
    for job, target in zip(jobs.hastened, jobs.targets, strict=True):
        reaches(client, job.id, "succeeded")
        [arrival] = target.arrivals
        assert done.created_at <= arrival.at < job.due_at


def test_an_export_s_file_holds_the_jobs_that_are_selected_with_their_payloads(
    client: Client, jobs: Jobs, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.jsonl"
    done = ended(client, client.operations.export(jobs.tagged("exported")))

    count = client.operations.download(done, file)

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert (done.state, done.matched, count) == ("done", 3, 3)
    assert {line["id"]: line.get("payload") for line in lines} == {
        job.id: payload for job, payload in zip(jobs.exported, [None, None, LARGE], strict=True)
    }
    assert {(line["tenant"], line["target"], line["state"]) for line in lines} == {
        (TENANT, "handler:echo", "scheduled")
    }


def test_an_operation_is_listed_can_be_stopped_and_leaves_lines_that_say_who_asked(
    deployment: Deployment, client: Client, jobs: Jobs
) -> None:
    asked = client.operations.cancel(jobs.tagged("nobody-s", tenant=NEIGHBOUR))
    stopped = client.operations.stop(asked.id, tenant=NEIGHBOUR)
    done = ended(client, asked)

    assert stopped.stop_requested or stopped.is_over
    assert done.state in ("done", "stopped")
    assert [each.id for each in client.operations.list(tenant=NEIGHBOUR)] == [asked.id]
    for name, event in (("Api", "operation_accepted"), ("Operations", "operation_ended")):
        [line] = eventually(
            lambda name=name, event=event: [
                line for line in deployment.events(name, event) if line["operation"] == asked.id
            ],
            bool,
            what=f"{event} is in the log",
        )
        assert (line["tenant"], line["action"], line["caller"]) == (NEIGHBOUR, "cancel", asked.caller)
    assert asked.caller


def test_the_api_may_wake_what_carries_operations_on(deployment: Deployment, client: Client, jobs: Jobs) -> None:
    ended(client, client.operations.cancel(jobs.tagged("counted"), dry_run=True))

    assert deployment.events("Api", "waking_failed") == []


def ended(client: Client, operation: Operation) -> Operation:
    """The operation at its end: the next tick carries it on, if nothing did before."""
    return eventually(
        lambda: client.operations.get(operation.id, tenant=operation.tenant),
        lambda found: found.is_over,
        what=f"{operation.id} is over",
    )


def states(client: Client, jobs: Sequence[Submitted]) -> set[str]:
    return {client.get(job.id).state for job in jobs}
