from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from infra.stage import Stage
from tickwheel.demo.workload import DOOMED_COUNT, Fate, PlannedJob, plan, read_rows

ROWS = read_rows(Path(__file__).parents[2] / "examples" / "kubernetes-periodics.jsonl")
SINK = "http://127.0.0.1:1234"


@pytest.fixture(scope="module")
def jobs() -> list[PlannedJob]:
    return plan(ROWS)


def test_there_is_a_job_for_each_row_of_each_tenant(jobs):
    assert [(job.tenant, job.name) for job in jobs] == [(row["tenant"], row["name"]) for row in ROWS]
    assert len({job.name for job in jobs}) == 1_335
    assert len({job.tenant for job in jobs}) == 66


def test_every_run_plans_the_same(jobs):
    assert plan(ROWS) == jobs


def test_a_job_is_planned_by_its_name_and_not_by_its_place(jobs):
    assert sorted(plan(reversed(ROWS)), key=lambda job: job.name) == sorted(jobs, key=lambda job: job.name)


def test_both_comes_due_of_the_local_stage_are_used(jobs):
    guard = Stage.named("local").wheel.guard

    far = [job for job in jobs if job.delay >= guard]

    assert 50 < len(far) < len(jobs) / 4
    assert [job for job in jobs if job.is_far] == far
    assert max(job.delay for job in jobs if not job.is_far) <= guard / 2  # they are over before the far ones are due
    assert max(job.delay for job in jobs) < guard + timedelta(seconds=20)
    assert min(job.delay for job in jobs) < timedelta(seconds=5)


def test_a_tenth_goes_to_the_handler_and_a_tenth_of_the_rest_stumbles(jobs):
    for_sink = [job for job in jobs if job.calls_sink]
    fates = Counter(job.fate for job in for_sink)

    assert len(jobs) - len(for_sink) == round(len(jobs) / 10)
    assert fates[Fate.DOOMED] == DOOMED_COUNT
    assert fates[Fate.STUMBLES] == round(len(for_sink) / 10)
    assert all(job.fate is Fate.SUCCEEDS for job in jobs if not job.calls_sink)


def test_priorities_and_precisions_are_mixed(jobs):
    assert {job.priority for job in jobs} == {"critical", "high", "normal", "low"}
    assert {job.precision for job in jobs} == {"default", "exact"}


def test_a_job_carries_its_row_under_its_name(jobs):
    planned = next(job for job in jobs if job.calls_sink)

    job = planned.new_job(sink=SINK)

    assert job.target == f"{SINK}/{planned.tenant}/{planned.name}"
    assert job.idempotency_key == planned.name
    assert job.payload == dict(planned.facts)
    assert job.delay == planned.delay


def test_the_others_call_the_handler(jobs):
    planned = next(job for job in jobs if not job.calls_sink)

    assert planned.new_job(sink=SINK).target == "handler:echo"


def test_a_doomed_job_gives_up_within_seconds(jobs):
    doomed = next(job for job in jobs if job.fate is Fate.DOOMED)

    retry = doomed.new_job(sink=SINK).retry

    assert retry is not None
    assert retry.attempts is not None
    assert retry.base is not None
    assert retry.base * 2**retry.attempts < timedelta(seconds=10)
