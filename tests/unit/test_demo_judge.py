from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.domain.instants import MILLISECOND
from tickwheel.client.jobs import Job, Refused, Submission, Submitted
from tickwheel.client.words import JobState, Ring
from tickwheel.demo.judge import JobEnd, Verdict, judge, percentile
from tickwheel.demo.sink import Arrival
from tickwheel.demo.workload import Fate, PlannedJob
from tickwheel.errors import ApiProblem

DUE_AT = datetime(2027, 1, 31, 9, tzinfo=UTC)


def a_job(name: str = "nightly", **fields: Any) -> PlannedJob:
    job = PlannedJob(
        name=name,
        tenant="etcd",
        facts={"name": name, "tenant": "etcd"},
        calls_sink=True,
        fate=Fate.SUCCEEDS,
        delay=timedelta(seconds=30),
        priority="normal",
        precision="default",
    )
    return replace(job, **fields)


def an_arrival(name: str = "nightly", *, late: timedelta = 20 * MILLISECOND, **fields: Any) -> Arrival:
    arrival = Arrival(name=name, attempt=1, scheduled_at=DUE_AT, arrived_at=DUE_AT + late, accepted=True)
    return replace(arrival, **fields)


def a_state(state: str = "succeeded", *, name: str = "nightly", settled: timedelta = 30 * MILLISECOND) -> Job:
    return Job(id=f"id-of-{name}", tenant="etcd", state=JobState(state), due_at=DUE_AT, updated_at=DUE_AT + settled)


def judged(
    *jobs: PlannedJob,
    arrivals: tuple[Arrival, ...] = (),
    states: dict[str, Job] | None = None,
    dead_letters: tuple[str, ...] = (),
    submissions: dict[str, Submission] | None = None,
) -> Verdict:
    taken: dict[str, Submission] = {
        job.name: Submitted(
            id=f"id-of-{job.name}",
            tenant=job.tenant,
            due_at=DUE_AT,
            state=JobState.SCHEDULED,
            ring=Ring.NEAR,
            replayed=False,
        )
        for job in jobs
    }
    return judge(
        jobs,
        submissions=taken | (submissions or {}),
        arrivals=arrivals,
        states={"nightly": a_state()} if states is None else states,
        dead_letters=dead_letters,
    )


def outcome_of(verdict: Verdict) -> JobEnd:
    return verdict.jobs[0].outcome


def test_a_job_that_the_sink_took_and_that_is_settled_is_delivered():
    verdict = judged(a_job(), arrivals=(an_arrival(),))

    assert outcome_of(verdict) is JobEnd.DELIVERED
    assert (verdict.submitted, verdict.delivered, verdict.lost) == (1, 1, 0)
    assert verdict.faults == []


def test_a_job_that_never_arrived_is_lost_whatever_its_state_says():
    verdict = judged(a_job())

    assert outcome_of(verdict) is JobEnd.LOST
    assert verdict.lost == 1
    assert len(verdict.faults) == 1
    assert verdict.faults[0].startswith("1 job lost")
    assert verdict.faults[0].endswith(": nightly (succeeded, 0 requests, 0 answered with success)")


def test_a_job_that_arrived_but_never_settled_is_lost():
    verdict = judged(a_job(), arrivals=(an_arrival(),), states={"nightly": a_state("running")})

    assert outcome_of(verdict) is JobEnd.LOST


def test_a_job_whose_state_nobody_knows_is_lost():
    verdict = judged(a_job(), arrivals=(an_arrival(),), states={})

    assert "nightly (state unknown" in verdict.faults[0]


def test_a_job_of_the_handler_is_judged_by_its_state_alone():
    assert outcome_of(judged(a_job(calls_sink=False))) is JobEnd.DELIVERED
    assert outcome_of(judged(a_job(calls_sink=False), states={"nightly": a_state("retrying")})) is JobEnd.LOST


def test_a_retried_job_is_delivered_and_its_retries_are_counted():
    second = an_arrival(attempt=2, late=timedelta(seconds=2))

    verdict = judged(a_job(fate=Fate.STUMBLES), arrivals=(second, an_arrival(accepted=False)))

    assert outcome_of(verdict) is JobEnd.RETRIED
    assert (verdict.delivered, verdict.retried, verdict.duplicated) == (1, 1, 0)
    assert verdict.lags == [20 * MILLISECOND]
    assert verdict.faults == []


def test_a_second_effect_is_a_duplicate_by_whatever_attempt():
    verdict = judged(a_job(), arrivals=(an_arrival(), an_arrival(late=timedelta(seconds=1))))

    assert verdict.duplicated == 1
    assert verdict.faults == [
        "1 job had more than one effect: nightly (succeeded, 2 requests, 2 answered with success)"
    ]


def test_an_arrival_before_its_instant_is_early_even_by_a_millisecond():
    assert judged(a_job(), arrivals=(an_arrival(late=-MILLISECOND),)).early == 1
    assert judged(a_job(), arrivals=(an_arrival(late=timedelta(0)),)).early == 0


def test_an_arrival_before_the_instant_that_it_names_itself_is_early():
    verdict = judged(a_job(), arrivals=(an_arrival(scheduled_at=DUE_AT + timedelta(seconds=1)),))

    assert verdict.early == 1
    assert verdict.faults == ["1 job fired early: nightly"]


def test_a_job_of_the_handler_that_settled_before_it_was_due_is_early():
    verdict = judged(a_job(calls_sink=False), states={"nightly": a_state(settled=-MILLISECOND)})

    assert verdict.early == 1


def test_an_early_arrival_does_not_make_the_lag_negative():
    assert judged(a_job(), arrivals=(an_arrival(late=-MILLISECOND),)).lags == [timedelta(0)]


def test_a_doomed_job_must_become_a_dead_letter():
    doomed = a_job(fate=Fate.DOOMED)
    failures = tuple(an_arrival(attempt=attempt, accepted=False) for attempt in (1, 2, 3))
    states = {"nightly": a_state("failed")}

    buried = judged(doomed, arrivals=failures, states=states, dead_letters=("id-of-nightly",))
    missing = judged(doomed, arrivals=failures, states=states)

    assert (outcome_of(buried), buried.dead_lettered, buried.faults) == (JobEnd.DEAD_LETTERED, 1, [])
    assert missing.lost == 1
    assert "1 job failed every time but left no dead letter: nightly" in missing.faults


def test_no_other_job_may_become_a_dead_letter():
    verdict = judged(a_job(), arrivals=(an_arrival(),), dead_letters=("id-of-nightly",))

    assert verdict.faults == ["1 job became a dead letter although its target recovers: nightly"]


def test_a_dead_letter_of_no_job_is_a_fault():
    verdict = judged(a_job(), arrivals=(an_arrival(),), dead_letters=("id-of-a-stranger",))

    assert verdict.dead_lettered == 0
    assert verdict.faults == ["1 dead letter belongs to no job that was submitted"]


def test_a_job_that_was_refused_is_not_submitted_and_not_lost_but_a_fault():
    refused = Refused(
        job=a_job().new_job(sink="http://sink"), problem=ApiProblem(status=429, code="busy", title="busy")
    )

    verdict = judged(a_job(), submissions={"nightly": refused}, states={})

    assert outcome_of(verdict) is JobEnd.NOT_TAKEN
    assert (verdict.submitted, verdict.lost) == (0, 0)
    assert verdict.faults == ["1 job not accepted by the scheduler: nightly"]


def test_a_long_list_of_jobs_is_cut():
    verdict = judged(*(a_job(f"job-{number:02}") for number in range(25)), states={})

    assert verdict.lost == 25
    assert verdict.faults[0].startswith("25 jobs lost")
    assert verdict.faults[0].endswith("job-09 (state unknown, 0 requests, 0 answered with success) and 15 more")


def test_a_percentile_is_a_value_that_was_seen():
    values = [number * MILLISECOND for number in range(1, 101)]

    assert percentile(values, 50) == 50 * MILLISECOND
    assert percentile(values, 99) == 99 * MILLISECOND
    assert percentile(values[:1], 99) == MILLISECOND
    assert percentile([], 99) is None
