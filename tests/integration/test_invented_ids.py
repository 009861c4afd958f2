"""An id that nobody was given is 404 to every route that takes one, and leaves nothing behind."""

from typing import Any

import pytest

from functions.domain.jobs.job import Delivery
from tests.integration.stage import Stage

VERBS: dict[str, tuple[str, str, Any]] = {
    "get": ("GET", "", None),
    "explain": ("GET", "/explain", None),
    "cancel": ("DELETE", "", None),
    "change": ("PATCH", "", {"timeout": 3}),
    "run now": ("POST", ":run-now", None),
    "heartbeat": ("POST", "/heartbeat", {"fence": 1}),
    "complete": ("POST", "/complete", {"fence": 1}),
    "fail": ("POST", "/fail", {"fence": 1, "error": "x"}),
}
HOURLY = {"every": 3_600, "job": {"target": "handler:echo"}}
OLD = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize("delay", ["PT60S", "PT30M"], ids=["near", "far"])
def test_of_a_job_that_waits_only_the_id_that_was_given_is_answered(stage: Stage, delay: str, delivery: str):
    given = stage.submit(delay=delay, delivery=delivery)["id"]

    for invented in changed(given):
        refuses(stage, invented)

    assert stage.get(given)["state"] == "scheduled"
    assert stage.call("GET", f"/v1/jobs/{given}/explain")[0] == 200
    if delivery != Delivery.AT_LEAST_ONCE:
        assert stage.call("DELETE", f"/v1/jobs/{given}") == (200, {"id": given, "state": "cancelled"})


def test_of_a_job_with_a_key_only_the_id_that_was_given_is_answered(stage: Stage):
    given = stage.submit(delay=60, idempotency_key="order-7")["id"]

    for invented in changed(given):
        refuses(stage, invented)

    assert stage.call("DELETE", f"/v1/jobs/{given}") == (200, {"id": given, "state": "cancelled"})


def test_of_a_moved_job_both_ids_that_were_given_are_answered(stage: Stage):
    first = stage.submit(delay="PT1H")["id"]
    _, answer = stage.call("PATCH", f"/v1/jobs/{first}", {"delay": "PT2H"})

    for invented in changed(answer["id"]):
        refuses(stage, invented)

    assert stage.get(first)["id"] == stage.get(answer["id"])["id"] == answer["id"]


def test_of_a_fire_that_was_asked_for_only_the_id_that_was_given_is_answered(stage: Stage):
    stage.call("PUT", "/v1/schedules/nightly", HOURLY, query={"tenant": "acme"})
    _, answer = stage.call("POST", "/v1/schedules/nightly:trigger", query={"tenant": "acme"})

    for invented in changed(answer["job"]):
        refuses(stage, invented)

    assert stage.get(answer["job"])["state"] == "scheduled"


@pytest.mark.parametrize("kind", ["2e", "2l", "2m"])
def test_an_id_of_the_release_before_is_answered_from_its_row_alone(stage: Stage, kind: str):
    now = int(stage.now().timestamp()) // 60 * 60
    for ahead in (-3_600, 0, 60, 86_400):
        due = base36((now + ahead) * 1_000)
        refuses(stage, f"j1~acme~{kind}~{base36(now + ahead)}~1~{due}~{OLD}")


def test_a_fire_of_no_schedule_is_not_found(stage: Stage):
    now = int(stage.now().timestamp()) // 60 * 60
    fire = stage.now().strftime("%Y-%m-%dT%H:%M:00.000Z")

    refuses(stage, f"j1~acme~2e~{base36(now)}~1~{base36(now * 1_000)}~nightly:{fire}")


def test_a_dead_letter_of_a_job_that_did_not_fail_is_not_found(stage: Stage):
    given = stage.submit()["id"]
    stage.work(within_seconds=2)
    assert stage.get(given)["state"] == "succeeded"
    letter = f"d1~acme~{base36(int(stage.now().timestamp() * 1_000))}~{given.rpartition('~')[2]}"

    for method, path in (("GET", ""), ("POST", ":replay")):
        status, answer = stage.call(method, f"/v1/dead-letters/{letter}{path}")
        assert (status, answer["code"]) == (404, "dead_letter_not_found"), (method, path)


def test_the_secret_of_ids_is_made_once_for_all_processes(stage: Stage):
    first = stage.submit(delay=60)["id"]
    rows = stage.rows("tenants")
    stage.forget_modules()

    assert stage.get(first)["state"] == "scheduled"
    assert [row["k"] for row in stage.rows("tenants") if "k" in row] == [row["k"] for row in rows if "k" in row]


def test_without_its_secret_a_job_is_known_by_its_row(stage: Stage):
    near, far = stage.submit(delay=60)["id"], stage.submit(delay="PT1H")["id"]
    (row,) = [row for row in stage.rows("tenants") if row["i"]["S"] == "~revision"]
    stage.dynamodb.delete_item(TableName="tenants", Key={"t": row["t"], "i": row["i"]})
    stage.forget_modules()

    refuses(stage, near)
    assert stage.get(far)["state"] == "scheduled"
    assert stage.get(stage.submit(delay=60)["id"])["state"] == "scheduled"


def changed(given: str) -> list[str]:
    """One id for each part of an id, with another character in it."""
    parts = given.split("~")
    other = {0: "acmf", 1: "1" + parts[2][1:], 2: parts[2][0] + "elm"[("elm".index(parts[2][1]) + 1) % 3]}
    found = []
    for number, part in enumerate(parts[1:]):
        text = other.get(number) or part[:-1] + ("1" if part[-1] != "1" else "2")
        found.append("~".join((*parts[: number + 1], text, *parts[number + 2 :])))
    begins = parts[-1][0]
    return [*found, "~".join((*parts[:-1], ("a" if begins != "a" else "b") + parts[-1][1:]))]


def refuses(stage: Stage, job_id: str) -> None:
    before = stage.rows("ledger"), stage.rows("timers")
    for verb, (method, path, body) in VERBS.items():
        status, answer = stage.call(method, f"/v1/jobs/{job_id}{path}", body)
        assert (status, answer["code"]) == (404, "job_not_found"), (verb, job_id, answer)
    assert (stage.rows("ledger"), stage.rows("timers")) == before


def base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]
