"""A tenant is deleted from the real tables and the bucket, and nobody else is touched."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.tables import ALL_TABLES, TENANTS
from functions.domain.instants import MINUTE
from functions.domain.targets.concurrency import Permit
from functions.domain.targets.flows import THE_STAGE, FlowId
from functions.domain.tenants.changes import EFFECTIVE_AFTER, FORGOTTEN_AFTER
from functions.services.far_ring.flow_order import row_of
from functions.services.tenants.plans import KNOWN_FOR
from testkit.builders import a_breaker, a_filter, a_timer, an_operation
from testkit.events import Context
from tests.integration.stage import BUCKET, Stage

WAIT = EFFECTIVE_AFTER + MINUTE + timedelta(seconds=6)
DAILY: dict[str, Any] = {"cron": "0 3 * * *", "job": {"target": "handler:echo"}}
LARGE = {"text": "".join(str(number * number) for number in range(9_000))}


def fill(stage: Stage, tenant: str) -> dict[str, Any]:
    """Something of each kind, by the ways in which it comes to be."""
    mine = {"tenant": tenant}
    stage.submit(tenant=tenant, target="handler:none-of-this-name", retry={"attempts": 1})
    stage.submit(tenant=tenant)
    stage.work()
    far = stage.submit(tenant=tenant, delay=3_600, payload=LARGE)
    stage.submit(tenant=tenant, delay=300_000, delivery="at_least_once", priority="low")
    stage.submit(tenant=tenant, delay=30)
    stage.submit(tenant=tenant, collect={"key": "export", "for": 3_600})
    for name in ("nightly", "gone", "small"):
        body = {**DAILY, "job": {"target": "handler:echo", **({} if name == "small" else {"payload": LARGE})}}
        assert stage.call("PUT", f"/v1/schedules/{name}", body, query=mine)[0] == 201
    assert stage.call("DELETE", "/v1/schedules/gone", query=mine)[0] == 200
    status, operation = stage.call("POST", "/v1/operations", mine | {"action": "export", "all": True})
    assert status == 202
    operations = stage.module("operations")
    operations.handler({}, Context())
    assert stage.call("GET", f"/v1/operations/{tenant}/{operation['id']}")[1]["parts"]
    wiring, now = operations.wiring, stage.now()
    breaker = a_breaker(tenant=tenant, opened_at=now)
    worker = stage.module("worker").wiring
    worker.breaker_store.put(breaker, seen=None)
    worker.permits.take(Permit(tenant=tenant, number=1, owner="o", lease_until=now + MINUTE), now=now, skew=MINUTE)
    stage.dynamodb.put_item(TableName=TENANTS.name, Item={"t": {"S": tenant}, "i": {"S": "rate#execution"}})
    wiring.pending_store.add(tenant, now.date(), 3)
    fill_flows(stage, tenant)
    return far


def fill_flows(stage: Stage, tenant: str) -> None:
    """An order, a room and a permit of its own flow, and what waits in the room of one of the stage's."""
    assert stage.call("PUT", "/v1/flows/stripe", {"ordered": True}, query={"tenant": tenant})[0] == 200
    worker, timer = stage.module("worker").wiring, a_timer(tenant=tenant, due_at=stage.now())
    own, of_stage = FlowId(tenant, "stripe"), FlowId(THE_STAGE, "smtp")
    for flow in (own, of_stage):
        worker.flows.wait(flow, timer)
        worker.flows.note_entry(flow)
    worker.flows.line_up(own, row_of(timer))
    worker.flows.hold(own, row_of(timer))
    worker.flows.miss(own, now=stage.now())
    permit = Permit(tenant=str(own), number=1, owner="o", lease_until=stage.now() + MINUTE)
    worker.permits.take(permit, now=stage.now(), skew=MINUTE)


def stored(stage: Stage, tenant: str) -> list[str]:
    """Every row and object that has the tenant in its key or is his alone, but what goes within the hour."""
    rows = [
        f"{schema.name}: {json.dumps(row, sort_keys=True, default=repr)}"
        for schema in ALL_TABLES
        for row in stage.rows(schema.name)
        if not (is_of_an_hour(row) and int(row["x"]["N"]) < stage.now().timestamp() + 3_600)
        and any(part == tenant for key in row.values() for part in str(key.get("S", "")).split("#"))
    ]
    objects = [each["Key"] for each in stage.s3.list_objects_v2(Bucket=BUCKET).get("Contents", []) if "Key" in each]
    return sorted(rows) + [key for key in objects if key.split("/")[1] == tenant]


def is_of_an_hour(row: Mapping[str, Any]) -> bool:
    """Who stood out in a minute: it goes by its ttl."""
    return row.get("t", {}).get("S", "").startswith("~busy#")


def erase(stage: Stage) -> None:
    stage.module("operations").handler({}, Context(remaining_ms=600_000))


@pytest.mark.long
@pytest.mark.timeout(240)
def test_nothing_of_a_tenant_is_left_but_its_row_and_another_keeps_all(stage: Stage):
    fill(stage, "acme")
    fill(stage, "acme2")
    kinds = {line.split(":")[0].split("/")[0] for line in stored(stage, "acme")}
    assert kinds >= {"timers", "ledger", "schedules", "schedule_state", "tenants", "dead_letters", "jobs", "exports"}
    kept = stored(stage, "acme2")

    status, answer = stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})
    assert (status, answer["status"], answer["deletion"]["part"]) == (202, "deleting", "operations"), answer
    erase(stage)
    assert stage.call("GET", "/v1/tenants/acme")[1]["status"] == "deleting"
    stage.travel(WAIT)
    # That of a request which did not know yet.
    operations = stage.module("operations").wiring.operations
    assert operations.create(an_operation(wanted=a_filter(tenant="acme"), created_at=stage.now())) is None
    erase(stage)

    assert stage.call("GET", "/v1/tenants/acme")[1]["status"] == "deleted"
    assert [line.split(":")[0] for line in stored(stage, "acme")] == ["tenants"]
    (marker,) = (row for row in stage.rows("tenants") if row["i"]["S"] == "acme" and not is_of_an_hour(row))
    assert marker["t"]["S"] == "~plans"
    assert [line for line in stored(stage, "acme2") if "usage#" not in line] == [
        line for line in kept if "usage#" not in line
    ]


def test_the_flows_of_a_tenant_go_with_it_and_so_does_what_waits_for_those_of_the_stage(stage: Stage):
    for tenant in ("acme", "acme2"):
        fill_flows(stage, tenant)
    kept = [line for line in stored(stage, "acme2") if "#" in line]
    assert {
        name for line in stored(stage, "acme") for name in ("order", "room#", "seat#", "flow#") if name in line
    } == {*("order", "room#", "seat#", "flow#")}

    stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})
    stage.travel(WAIT)
    erase(stage)

    assert stage.call("GET", "/v1/tenants/acme")[1]["status"] == "deleted"
    assert [line.split(":")[0] for line in stored(stage, "acme")] == ["tenants"]
    assert [line for line in stored(stage, "acme2") if "#" in line] == kept
    waiting = [row["i"]["S"] for row in stage.rows("tenants") if row["t"]["S"] == "~#smtp"]
    assert [each.partition("#")[2].partition("#")[0] for each in waiting if each.startswith("room#")] == ["acme2"]


@pytest.mark.long
def test_what_comes_of_it_afterwards_is_forgotten_and_leaves_nothing(stage: Stage):
    far = stage.submit(delay=3_600)
    stage.submit()  # its message waits in the queue
    assert stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})[0] == 202
    stage.travel(WAIT)
    erase(stage)

    stage.work(within_seconds=10)
    assert stage.rows("timers") == []
    for method, path in (("DELETE", f"/v1/jobs/{far['id']}"), ("POST", f"/v1/jobs/{far['id']}:run-now")):
        status, problem = stage.call(method, path)
        assert (status, problem["code"]) == (409, "tenant_closed")
    status, answer = stage.call("POST", "/v1/jobs:batch", {"jobs": [{"tenant": "acme", "target": "handler:echo"}]})
    assert (status, answer["results"][0]["problem"]["code"]) == (200, "tenant_closed")

    assert [line.split(":")[0] for line in stored(stage, "acme")] == ["tenants"]


@pytest.mark.long
def test_a_ledger_that_is_left_alone_keeps_its_rows(stage: Stage):
    stage.submit()
    stage.work()
    stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme", "ledger": "ttl"})
    stage.travel(WAIT)
    erase(stage)

    left = stored(stage, "acme")
    assert [line.split(":")[0] for line in left] == ["ledger", "tenants"], left


def test_a_deletion_must_be_confirmed(stage: Stage):
    for query in ({}, {"confirm": "acm"}, {"confirm": "acme", "ledger": "burn"}):
        status, problem = stage.call("DELETE", "/v1/tenants/acme", query=query)
        assert (status, problem["code"]) == (422, "invalid_input"), problem
    assert stage.call("GET", "/v1/tenants/acme")[1]["status"] == "active"


def test_a_tenant_is_there_again_after_its_last_messages(stage: Stage):
    stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})
    stage.travel(WAIT)
    erase(stage)
    assert stage.call("PUT", "/v1/tenants/acme", {})[1]["code"] == "tenant_deleted"

    stage.travel(FORGOTTEN_AFTER)
    assert stage.call("PUT", "/v1/tenants/acme", {})[0] == 200
    stage.travel(2 * KNOWN_FOR)
    assert stage.submit(delay=3_600)["state"] == "scheduled"


@pytest.mark.long
def test_large_results_of_a_tenant_go_with_it_and_those_of_another_stay(stage: Stage):
    for tenant in ("acme", "acme2"):
        stage.submit(tenant=tenant, payload=LARGE)
    stage.work()
    assert [key.split("/")[:2] for key in kept_results(stage)] == [["results", "acme"], ["results", "acme2"]]

    stage.call("DELETE", "/v1/tenants/acme", query={"confirm": "acme"})
    stage.travel(WAIT)
    erase(stage)

    assert [key.split("/")[1] for key in kept_results(stage)] == ["acme2"]


def kept_results(stage: Stage) -> list[str]:
    found = stage.s3.list_objects_v2(Bucket=BUCKET, Prefix="results/").get("Contents", [])
    return sorted(each["Key"] for each in found if "Key" in each)
