"""Tenants as the client asks for them and reads them, against a real server."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.either_client import made_client
from tickwheel.client import Client
from tickwheel.client.backoff import Backoff
from tickwheel.client.tenants import LIMITS, Deletion, StageStatus, Tenant
from tickwheel.client.words import DeletionPart, LedgerDeletion, TenantStatus
from tickwheel.errors import ApiProblem, InvalidRequest, Unreachable

ROLE = "arn:aws:iam::123456789012:role/billing"
FEW = {"weight": 1, "subshards": 1, "read_rate": 100, "max_schedules": 10_000, "max_fires_per_minute": 600}
UNLIMITED: dict[str, Any] = {**dict.fromkeys(LIMITS, "unlimited"), **FEW, "top_priority": "critical", "spread": "PT0S"}
STAGE = {
    "status": "paused",
    "note": "why",
    "version": 3,
    "status_since": "2030-01-31T09:00:00.000Z",
    "changed_at": "2030-01-31T10:00:00.000Z",
    "in_effect_by": "2030-01-31T10:01:00.000Z",
}
LOST = Answer(503, {})


def tenant_json(**changes: Any) -> dict[str, Any]:
    return {
        "tenant": "acme",
        "plan": "gold",
        "limits": {**UNLIMITED, "weight": 3},
        "own_limits": ["weight"],
        "principals": [ROLE],
        **STAGE,
        **changes,
    }


def a_client(server: ApiServer) -> Client:
    return made_client(
        server.url, region="us-east-1", backoff=Backoff(attempts=2, base_seconds=0, sleep=lambda _: None)
    )


def test_a_tenant_is_read_with_all_that_learns_of_it() -> None:
    with ApiServer(Answer(200, tenant_json())) as server, a_client(server) as client:
        found = client.tenants.get("acme")

    assert server.requests[0].path == "/v1/tenants/acme"
    assert found == Tenant(
        tenant="acme",
        plan="gold",
        limits={**UNLIMITED, "weight": 3},
        own_limits=("weight",),
        principals=(ROLE,),
        status=TenantStatus.PAUSED,
        note="why",
        version=3,
        status_since=datetime(2030, 1, 31, 9, tzinfo=UTC),
        changed_at=datetime(2030, 1, 31, 10, tzinfo=UTC),
        in_effect_by=datetime(2030, 1, 31, 10, 1, tzinfo=UTC),
    )
    assert set(found.limits) == set(LIMITS)


def test_a_tenant_that_was_never_changed_has_no_instants() -> None:
    answer = {
        name: value for name, value in tenant_json(version=0).items() if not name.endswith(("_at", "since", "by"))
    }
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        found = client.tenants.get("acme")

    assert (found.status_since, found.changed_at, found.in_effect_by) == (None, None, None)


def test_tenants_are_reported_page_by_page() -> None:
    first = Answer(200, {"tenants": [tenant_json(tenant="a"), tenant_json(tenant="b")], "next": "b"})
    second = Answer(200, {"tenants": [tenant_json(tenant="c")], "next": None})
    with ApiServer(first, second) as server, a_client(server) as client:
        found = [tenant.tenant for tenant in client.tenants.list(page_size=2)]

    assert found == ["a", "b", "c"]
    assert [request.path for request in server.requests] == ["/v1/tenants?limit=2", "/v1/tenants?limit=2&after=b"]


def test_a_tenant_is_put_with_what_was_said() -> None:
    with ApiServer(otherwise=lambda _: Answer(200, tenant_json())) as server, a_client(server) as client:
        client.tenants.put("acme", plan="gold", limits={"weight": 3}, principals=[ROLE], note="ü", version=2)
        client.tenants.put("acme")

    assert [(request.method, request.path) for request in server.requests] == [("PUT", "/v1/tenants/acme")] * 2
    assert server.requests[0].json == {
        "plan": "gold",
        "limits": {"weight": 3},
        "principals": [ROLE],
        "note": "ü",
        "version": 2,
    }
    assert server.requests[1].json == {"limits": {}, "principals": [], "note": ""}


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ({}, {}),
        ({"plan": "gold", "note": ""}, {"plan": "gold", "note": ""}),
        ({"principals": []}, {"principals": []}),
        ({"limits": {"weight": 3}}, {"limits": {"weight": 3}}),
        ({"unset": ["weight"]}, {"limits": {"weight": None}}),
        ({"limits": {"subshards": 8}, "unset": ["weight"]}, {"limits": {"subshards": 8, "weight": None}}),
        ({"unset": ["limits", "plan", "note", "principals"]}, dict.fromkeys(("limits", "plan", "note", "principals"))),
        ({"unset": ["weight", "limits"]}, {"limits": None}),
        ({"version": 0}, {"version": 0}),
    ],
)
def test_a_patch_says_what_is_to_be_changed(said: dict[str, Any], sent: dict[str, Any]) -> None:
    with ApiServer(Answer(200, tenant_json())) as server, a_client(server) as client:
        client.tenants.patch("acme", **said)

    assert (server.requests[0].method, server.requests[0].json) == ("PATCH", sent)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"unset": ["wieght"]}, "use one of plan, limits, principals, note, weight"),
        ({"unset": ["plan"], "plan": "gold"}, "plan: is set and unset at the same time"),
        ({"unset": ["weight"], "limits": {"weight": 3}}, "weight: is set and unset at the same time"),
        ({"unset": ["limits"], "limits": {"weight": 3}}, "limits: is set and unset at the same time"),
    ],
)
def test_what_cannot_be_unset_is_refused_before_anything_is_sent(said: dict[str, Any], named: str) -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidRequest, match=named):
        client.tenants.patch("acme", **said)

    assert server.requests == []


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
def test_a_tenant_is_turned_with_a_reason(verb: str) -> None:
    with ApiServer(Answer(200, tenant_json())) as server, a_client(server) as client:
        turned = getattr(client.tenants, verb)("acme", note="why")

    assert (server.requests[0].method, server.requests[0].path) == ("POST", f"/v1/tenants/acme:{verb}")
    assert server.requests[0].json == {"note": "why"}
    assert turned.status == "paused"


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_the_whole_stage_is_turned_with_a_reason(verb: str) -> None:
    with ApiServer(Answer(200, STAGE)) as server, a_client(server) as client:
        turned = getattr(client, verb)(note="why", version=2)

    assert (server.requests[0].method, server.requests[0].path) == ("POST", f"/v1/{verb}")
    assert server.requests[0].json == {"note": "why", "version": 2}
    assert isinstance(turned, StageStatus)
    assert (turned.status, turned.version) == ("paused", 3)


def test_a_change_is_sent_again_when_its_answer_was_lost() -> None:
    with ApiServer(LOST, Answer(200, tenant_json())) as server, a_client(server) as client:
        client.tenants.pause("acme")

    assert len(server.requests) == 2


def test_a_change_of_a_version_is_not_sent_again_because_it_may_have_been_applied() -> None:
    with (
        ApiServer(LOST, Answer(200, tenant_json())) as server,
        a_client(server) as client,
        pytest.raises(ApiProblem),
    ):
        client.tenants.patch("acme", note="x", version=3)

    assert len(server.requests) == 1


def test_an_id_is_one_part_of_its_path_whatever_is_in_it() -> None:
    with ApiServer(Answer(200, tenant_json())) as server, a_client(server) as client:
        client.tenants.get("a/b:pause")

    assert server.requests[0].path == "/v1/tenants/a%2Fb%3Apause"


def test_an_answer_that_is_not_understood_says_so() -> None:
    with (
        ApiServer(Answer(200, {"tenant": "acme"})) as server,
        a_client(server) as client,
        pytest.raises(Unreachable, match="not understood"),
    ):
        client.tenants.get("acme")


DELETION = {"part": "timers", "deleted": {"operations": 1, "timers": 1200, "ledger": 0}, "ledger": "ttl"}


def test_a_tenant_is_deleted_by_its_id_twice_and_reported_how_far_that_is() -> None:
    answer = Answer(202, tenant_json(status="deleting", deletion=DELETION))
    with ApiServer(LOST, answer) as server, a_client(server) as client:
        found = client.tenants.delete("acme", confirm="acme", ledger="ttl")

    assert [(request.method, request.path) for request in server.requests] == [
        ("DELETE", "/v1/tenants/acme?confirm=acme&ledger=ttl")
    ] * 2
    assert found.deletion == Deletion(part=DeletionPart.TIMERS, deleted=DELETION["deleted"], ledger=LedgerDeletion.TTL)
