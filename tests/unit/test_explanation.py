"""Each reason from the facts that it is reported for, and each state with a reason."""

from dataclasses import replace
from typing import Any

import pytest

from functions.domain.explanation.explain import explain
from functions.domain.explanation.facts import Explanation, Facts, Reason
from functions.domain.far_ring.cursor import ClassCursor, OwnCursor, Position
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND, from_seconds
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.collection import CollectionState
from functions.domain.jobs.job import Delivery, Job
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import fire_of, identity_of
from functions.domain.lifecycle import State
from functions.domain.schedules.state import Status
from functions.domain.targets.flows import FlowId, FlowLimits, FlowWait, parse_rate
from functions.domain.tenants.backlog import Backlog
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from testkit.builders import LOCAL_WHEEL, NOON, a_job, a_state, a_timer, an_occurrence_timer

LATER = NOON + HOUR
FAR = a_timer(due_at=LATER)
HELD_BACK = ClassCursor(Position(0), {"acme": OwnCursor(Position(60), is_held_back=True)})
NEAR = a_timer(due_at=NOON + MINUTE)
DUE = a_timer(due_at=NOON - MINUTE)
FIRE = an_occurrence_timer(fire_at=NOON + MINUTE)
ASKED_FOR = a_timer(due_at=NOON + MINUTE, identity=identity_of("nightly", NOON, "b1"))
UNLEDGERED = a_timer(due_at=NOON - MINUTE, delivery=Delivery.AT_LEAST_ONCE)


def a_row(state: State, **overrides: Any) -> LedgerRow:
    fields: dict[str, Any] = {"attempt": 2, "fence": 3, "due_at": NOON - MINUTE, "updated_at": NOON - SECOND}
    return LedgerRow(state=state, **{**fields, **overrides})


def facts(job: Job, **overrides: Any) -> Facts:
    return Facts(**{"job_id": job_id_of(job), "now": NOON, "wheel": LOCAL_WHEEL, **overrides})


PAUSED = TenantPlan(status=TenantStatus.PAUSED, note="invoice 7")
CAPPED = TenantPlan(max_concurrency=2)
RUNNING = a_row(State.RUNNING, lease_until=NOON + MINUTE)

STRIPE = FlowId("acme", "stripe")
ORDERED = FlowLimits(is_ordered=True)
AN_HOUR = FlowLimits(rate=parse_rate("1/h"))
IN_A_ROOM = a_row(State.SCHEDULED, attempt=0, parked_until=LATER, waits_for="acme#stripe")
OF_STAGE = FlowWait(flow=FlowId("~", "smtp"), limits=FlowLimits(concurrency=2), before=0, starts_at=None)

TABLE = [
    (Reason.WAITING, facts(FAR.job, timer=FAR), LATER, "due at 2027-03-01T13:00:00.000Z"),
    (Reason.IN_READY_QUEUE, facts(NEAR.job), NOON + MINUTE, "due at 2027-03-01T12:01:00.000Z"),
    (Reason.IN_READY_QUEUE, facts(DUE.job), NOON - MINUTE, "since 60 s"),
    (Reason.IN_READY_QUEUE, facts(DUE.job, timer=DUE), NOON - MINUTE, "since 60 s"),
    (
        Reason.IN_READY_QUEUE,
        facts(DUE.job, row=a_row(State.SCHEDULED)),
        NOON - SECOND,
        "attempt 2 was given back, because",
    ),
    (
        Reason.SPREAD_OR_JITTERED,
        facts(FIRE.job, schedule=a_state(), nominal_at=NOON),
        NOON + MINUTE,
        "nightly says 2027-03-01T12:00:00.000Z",
    ),
    (Reason.IN_READY_QUEUE, facts(FIRE.job, schedule=a_state(), nominal_at=NOON + MINUTE), NOON + MINUTE, "due at"),
    (Reason.LEASED, facts(DUE.job, row=RUNNING), NOON + MINUTE, "attempt 2, until 2027-03-01T12:01:00.000Z"),
    (
        Reason.LEASED,
        facts(DUE.job, row=replace(RUNNING, lease_until=NOON - LOCAL_WHEEL.skew - MILLISECOND)),
        NOON - LOCAL_WHEEL.skew - MILLISECOND,
        "attempt 2 has died",
    ),
    (
        Reason.HELD,
        facts(DUE.job, row=replace(RUNNING, held="{}")),
        NOON + MINUTE,
        "last reported at 2027-03-01T11:59:59",
    ),
    (
        Reason.WAITING_FOR_FLOW,
        facts(DUE.job, row=IN_A_ROOM, flow_wait=FlowWait(flow=STRIPE, limits=AN_HOUR, before=2, starts_at=LATER)),
        LATER,
        "flow stripe of tenant acme (rate 1/h), behind 2 others of its tenant, and starts at 2027-03-01T13:00:00.000Z or later",
    ),
    (
        Reason.WAITING_FOR_FLOW,
        facts(DUE.job, row=replace(IN_A_ROOM, state=State.RETRYING, waits_for="~#smtp"), flow_wait=OF_STAGE),
        None,
        "flow smtp of the stage (concurrency 2), as the first of its tenant",
    ),
    (
        Reason.WAITING_FOR_FLOW,
        facts(DUE.job, row=IN_A_ROOM, flow_wait=FlowWait(flow=STRIPE, limits=ORDERED, before=2, starts_at=None)),
        None,
        "flow stripe of tenant acme (ordered), behind 2 others of its tenant, one after the other by their due times",
    ),
    (
        Reason.COLLECTED,
        facts(DUE.job, collection=CollectionState(number=3, opens_at=LATER)),
        LATER,
        "release 3 is due at 2027-03-01T13:00:00.000Z",
    ),
    (Reason.IN_READY_QUEUE, facts(DUE.job, row=IN_A_ROOM), NOON - MINUTE, "had its turn in flow stripe of tenant acme"),
    (
        Reason.RETRYING,
        facts(DUE.job, row=a_row(State.RETRYING, due_at=LATER, error="HTTP 500.")),
        LATER,
        "Attempt 3 is due at 2027-03-01T13:00:00.000Z, after attempt 2 failed: HTTP 500.",
    ),
    (Reason.PARKED, facts(DUE.job, breaker_until=LATER), LATER, "waits until 2027-03-01T13:00:00.000Z"),
    (
        Reason.PARKED,
        facts(DUE.job, row=a_row(State.SCHEDULED, fence=0, attempt=0, parked_until=LATER)),
        LATER,
        "breaker",
    ),
    (Reason.PARKED, facts(DUE.job, row=a_row(State.RETRYING, parked_until=LATER)), LATER, "breaker"),
    (
        Reason.TENANT_PAUSED,
        facts(DUE.job, row=a_row(State.RETRYING, parked_until=LATER), plan=PAUSED, breaker_until=LATER),
        None,
        "tenant acme is paused (invoice 7)",
    ),
    (Reason.TENANT_PAUSED, facts(DUE.job, plan=PAUSED), None, "tenant acme is paused (invoice 7)"),
    (Reason.WAITING, facts(FAR.job, timer=FAR, plan=PAUSED), LATER, "due at"),
    (Reason.UNTRACKED, facts(UNLEDGERED.job, plan=PAUSED), NOON - MINUTE, "keeps no row"),
    (
        Reason.PARKED,
        facts(DUE.job, row=a_row(State.RETRYING, parked_until=LATER), plan=CAPPED),
        LATER,
        "or all 2 calls",
    ),
    (
        Reason.PARKED,
        facts(DUE.job, row=a_row(State.RETRYING, parked_until=LATER), plan=CAPPED, breaker_until=LATER),
        LATER,
        "the breaker is open",
    ),
    (
        Reason.AT_CONCURRENCY_CAP,
        facts(DUE.job, row=a_row(State.RETRYING, parked_until=LATER), plan=CAPPED, is_breaker_closed=True),
        LATER,
        "tenant acme may have 2 calls at the same time, and they were taken",
    ),
    (
        Reason.PARKED,
        facts(DUE.job, row=a_row(State.RETRYING, parked_until=LATER), plan=TenantPlan(), is_breaker_closed=True),
        LATER,
        "was open, or its tenant paused.",
    ),
    (
        Reason.OVER_CAP,
        facts(FAR.job, timer=FAR, now=LATER, behind=ClassCursor(Position(0), {"acme": OwnCursor(Position(60))})),
        from_seconds(60),
        "those that were due at 1970-01-01T00:01:00.000Z go out now",
    ),
    (
        Reason.TENANT_PAUSED,
        facts(FAR.job, timer=FAR, behind=HELD_BACK, now=LATER, plan=PAUSED),
        None,
        "paused",
    ),
    (
        Reason.OVER_CAP,
        facts(FAR.job, timer=FAR, behind=HELD_BACK, now=LATER, plan=TenantPlan(execution_rate=0.5)),
        from_seconds(60),
        "more due than the 0.5 jobs a second of its execution_rate",
    ),
    (
        Reason.OVER_CAP,
        facts(
            FAR.job,
            timer=FAR,
            behind=ClassCursor(Position(0), {"acme": OwnCursor(Position(60))}),
            now=LATER,
            plan=TenantPlan(execution_rate=0.5),
            backlog=Backlog(count=86_400, rate=0.5),
        ),
        from_seconds(60),
        "about 86400 jobs wait, which take 2.0 days at that rate",
    ),
    (
        Reason.WAITING,
        facts(FAR.job, timer=FAR, now=LATER, behind=ClassCursor(Position(60))),
        from_seconds(60),
        "has come to 1970-01-01T00:01:00.000Z",
    ),
    (
        Reason.BUFFERED,
        facts(
            FIRE.job,
            schedule=a_state(waiting=str(job_id_of(FIRE.job)), waiting_since=NOON, holder="j1~x", status=Status.PAUSED),
        ),
        NOON,
        "to come to its end: j1~x",
    ),
    (
        Reason.PAUSED,
        facts(FIRE.job, schedule=a_state(status=Status.PAUSED, note="maintenance")),
        NOON - HOUR,
        "nightly is paused (maintenance)",
    ),
    (Reason.PAUSED, facts(FIRE.job, schedule=a_state(status=Status.DELETED)), NOON - HOUR, "nightly is deleted"),
    (Reason.PAUSED, facts(FIRE.job), None, "nightly is deleted"),
    (Reason.IN_READY_QUEUE, facts(ASKED_FOR.job, schedule=a_state(status=Status.PAUSED)), NOON + MINUTE, "due at"),
    (
        Reason.CANCEL_REQUESTED,
        facts(DUE.job, row=replace(RUNNING, cancel_requested=True, held="{}")),
        NOON + MINUTE,
        "while it was running",
    ),
    (
        Reason.CANCEL_REQUESTED,
        facts(UNLEDGERED.job, row=a_row(State.SCHEDULED, cancel_requested=True)),
        None,
        "while it was scheduled",
    ),
    (Reason.UNTRACKED, facts(UNLEDGERED.job), NOON - MINUTE, "keeps no row"),
    (Reason.SUCCEEDED, facts(DUE.job, row=a_row(State.SUCCEEDED)), NOON - SECOND, "with attempt 2"),
    (Reason.DEAD, facts(DUE.job, row=a_row(State.FAILED, error="HTTP 404")), NOON - SECOND, "attempt 2: HTTP 404."),
    (Reason.CANCELLED, facts(DUE.job, row=a_row(State.CANCELLED)), NOON - SECOND, "cancelled"),
    (Reason.EXPIRED, facts(DUE.job, row=a_row(State.EXPIRED)), NOON - SECOND, "too late"),
    (Reason.ATTEMPTED, facts(DUE.job, row=a_row(State.ATTEMPTED)), NOON - SECOND, "started once"),
    (Reason.SKIPPED, facts(FIRE.job, row=a_row(State.SKIPPED, error="overlap: x")), NOON - SECOND, "overlap: x"),
    (Reason.MOVED, facts(DUE.job, row=a_row(State.MOVED, moved_to="j1~y")), NOON - SECOND, "as job j1~y"),
]


@pytest.mark.parametrize(("reason", "known", "at", "said"), TABLE)
def test_a_job_is_explained_by_what_is_known_of_it(reason: Reason, known: Facts, at: Any, said: str):
    explanation = explain(known)

    assert (explanation.reason, explanation.at) == (reason, at)
    assert said in explanation.detail
    assert is_a_sentence(explanation.detail)
    assert is_a_sentence(explanation.remedy)


def test_every_reason_is_reported():
    assert {reason for reason, *_ in TABLE} == set(Reason)


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_reason(state: State):
    assert isinstance(explain(facts(DUE.job, row=LedgerRow(state=state))), Explanation)


def test_a_far_job_is_in_the_ready_queue_once_its_bucket_is_open():
    opens_at = LATER - LOCAL_WHEEL.lookahead

    assert explain(facts(FAR.job, timer=FAR, now=opens_at - MILLISECOND)).reason is Reason.WAITING
    assert explain(facts(FAR.job, timer=FAR, now=opens_at)).reason is Reason.IN_READY_QUEUE


def test_an_at_least_once_job_is_on_its_way_until_it_is_due():
    job = a_job(due_at=NOON + MILLISECOND, delivery=Delivery.AT_LEAST_ONCE)

    assert explain(facts(job)).reason is Reason.IN_READY_QUEUE
    assert explain(facts(job, now=NOON + MILLISECOND)).reason is Reason.UNTRACKED


@pytest.mark.parametrize(
    "known", [{"breaker_until": NOON}, {"row": a_row(State.SCHEDULED, fence=0, attempt=0, parked_until=NOON)}]
)
def test_a_breaker_that_has_been_open_parks_nothing(known: dict[str, Any]):
    assert explain(facts(DUE.job, **known)).reason is Reason.IN_READY_QUEUE


def test_a_job_that_is_not_due_waits_for_its_time_and_not_for_a_breaker():
    assert explain(facts(NEAR.job, breaker_until=LATER)).reason is Reason.IN_READY_QUEUE


@pytest.mark.parametrize(("suffix", "found"), [("", ""), ("b1", "b1"), ("b1:x", "b1:x")])
def test_the_identity_of_a_fire_reports_which_schedule_it_is(suffix: str, found: str):
    assert fire_of(identity_of("night.ly-1", NOON, suffix)) == ("night.ly-1", NOON, found)


def test_a_run_that_was_triggered_says_its_schedule_and_no_time():
    assert fire_of("nightly:trigger:k0123") == ("nightly", None, "trigger:k0123")


@pytest.mark.parametrize("identity", ["job-1", "k0123", "0f8c", "a.b_c-d+e"])
def test_the_identity_of_any_other_job_reports_none(identity: str):
    assert fire_of(identity) is None


def is_a_sentence(text: str) -> bool:
    return text[0].isupper() and text.endswith(".")
