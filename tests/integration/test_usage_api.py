"""What tenants use, over the real tables: counted by every function that runs their jobs, answered by the API."""

from datetime import timedelta
from typing import Any

from tests.integration.stage import Stage

FAILING: dict[str, Any] = {"target": "handler:none-of-this-name", "retry": {"attempts": 1}}


def usage(stage: Stage, tenant: str = "acme", **query: str) -> dict[str, Any]:
    status, answer = stage.call("GET", f"/v1/tenants/{tenant}/usage", query=query)
    assert status == 200, answer
    return answer


def test_jobs_are_counted_from_their_submission_to_their_end(stage: Stage):
    stage.submit(payload={"n": 1})
    stage.submit(**FAILING)
    stage.submit(delay=3_600)
    stage.submit(tenant="umbrella", delay=3_600)
    stage.work()

    answer = usage(stage)

    expected = {"submitted": 3, "executed": 2, "succeeded": 1, "failed": 1, "units": 2 + 5 + 1, "bytes": len('{"n":1}')}
    assert answer["total"] == expected
    today = stage.now().date()
    assert (answer["until"], answer["from"]) == (str(today), str(today - timedelta(days=29)))
    assert sum(day["submitted"] for day in answer["days"]) == 3
    assert usage(stage, "umbrella")["total"]["submitted"] == 1
    assert usage(stage, "nobody")["days"] == []


def test_days_that_are_asked_for_are_checked(stage: Stage):
    stage.submit(delay=3_600)

    assert usage(stage, **{"from": "2026-01-01", "until": "2026-01-02"})["days"] == []
    for query in (
        {"from": "2026-01-02", "until": "2026-01-01"},
        {"from": "2024-01-01", "until": "2026-01-01"},
        {"from": "yesterday"},
    ):
        status, problem = stage.call("GET", "/v1/tenants/acme/usage", query=query)
        assert (status, problem["code"]) == (422, "invalid_input"), problem
