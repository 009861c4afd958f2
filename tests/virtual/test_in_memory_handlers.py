"""Handlers that a user has registered, in the scheduler in memory: as a deployment runs them, and refuses others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from tickwheel import handlers as users
from tickwheel.client.jobs import NewJob, Refused
from tickwheel.errors import ApiProblem
from tickwheel.handlers import Invocation, PermanentFailure, handler
from tickwheel.testing import Scheduler


class Invoice(BaseModel):
    number: int


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """What is registered here is gone afterwards."""
    before = dict(users._handlers)
    seen: list[Invocation] = []

    @handler("invoice")
    async def send(invoice: Invoice, invocation: Invocation) -> dict[str, Any]:
        seen.append(invocation)
        if invoice.number < 0:
            raise PermanentFailure("no such invoice")
        return {"sent": invoice.number, "given": type(invocation).__module__}

    yield
    users._handlers.clear()
    users._handlers.update(before)


def test_a_registered_handler_runs_when_its_job_is_due(scheduler: Scheduler):
    job = scheduler.client.submit("handler:invoice", tenant="acme", payload={"number": 7})

    (call,) = scheduler.advance(seconds=5)

    assert call.target == "handler:invoice"
    assert scheduler.client.get(job.id).result == {"sent": 7, "given": "tickwheel.handlers"}


@pytest.mark.parametrize(
    ("payload", "error"), [({"number": "x"}, "InvalidPayload: number: "), ({"number": -1}, "no such")]
)
def test_what_is_not_retried_by_a_worker_is_not_retried_here(
    scheduler: Scheduler, payload: Mapping[str, Any], error: str
):
    job = scheduler.client.submit("handler:invoice", tenant="acme", payload=payload)

    assert len(scheduler.advance(days=2)) == 1

    failed = scheduler.client.get(job.id)
    assert (failed.state, failed.attempt) == ("failed", 1)
    assert error in (failed.error or "")


def test_another_name_is_refused_as_a_deployment_refuses_it(scheduler: Scheduler):
    with pytest.raises(ApiProblem, match=r"did you mean handler:invoice\?") as refused:
        scheduler.client.submit("handler:invioce", tenant="acme")

    assert refused.value.code == "unknown_handler"
    scheduler.client.submit("handler:echo", tenant="acme")


def test_the_first_hundred_wrong_names_of_a_request_learn_what_is_near(scheduler: Scheduler):
    jobs = [NewJob("handler:invioce", tenant="acme") for _ in range(120)]

    for _ in range(2):
        refusals = scheduler.client.submit_many(jobs)
        texts = [str(refusal.problem) for refusal in refusals if isinstance(refusal, Refused)]

        assert [("did you mean handler:invoice?" in text) for text in texts] == [True] * 100 + [False] * 20
        assert all("unknown_handler" in text and "handler:invioce" in text for text in texts)
        assert "has echo, invoice, trial: use one of them" in texts[-1]


def test_what_the_test_itself_brings_is_known_too_and_comes_first(scheduler: Scheduler):
    scheduler.handler("invoice")(lambda payload, _: "of the test")
    scheduler.answer("handler:later", lambda _: "answered")

    jobs = [scheduler.client.submit(f"handler:{name}", tenant="acme") for name in ("invoice", "later")]
    scheduler.advance(seconds=5)

    assert [scheduler.client.get(job.id).result for job in jobs] == ["of the test", "answered"]


def test_where_nothing_is_registered_any_name_is_taken(scheduler: Scheduler):
    users._handlers.clear()

    assert scheduler.client.submit("handler:of-no-module", tenant="acme").id
