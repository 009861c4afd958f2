"""Whoever may act for one tenant can do nothing to another, by no route: each has a row in a table here."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.client
import pytest

from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tables import ALL_TABLES, TENANTS
from functions.adapters.dynamodb.tenants import DynamoDBTenantStore
from functions.adapters.wire.client import SignedClient
from functions.api.route_table import ROUTES
from functions.domain.tenants.plan import Tenant
from infra.api import GATEWAY_ROUTES
from testkit.builders import a_breaker
from tests.integration.stage import BUCKET, QUEUES, Stage

ACCOUNT = "123456789012"
OURS, THEIRS = "acme", "globex"
"""Whose everything is that is asked for, and whose role and token ask for it without a right."""

JOB = {"tenant": OURS, "target": "handler:echo", "delay": 3_600}
THEIR_JOB = {**JOB, "tenant": THEIRS}
DAILY = {"cron": "0 3 * * *", "job": {"target": "handler:echo"}}
PAST = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}


def signed(role: str) -> dict[str, Any]:
    return {"caller": f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/session"}


def token(**claims: Any) -> dict[str, Any]:
    return {"token": {"sub": "ann", **claims}}


OPERATOR = signed("ops")
OF_OURS = {"role": signed("acme-api"), "token": token(tenant=OURS)}
STRANGERS = {
    "role of another": signed("globex-api"),
    "token of another": token(tenant=THEIRS),
    "token of none": token(),
    "token of a list": token(tenant=f"[{OURS}]"),
    "user of the name": {"caller": f"arn:aws:iam::{ACCOUNT}:user/acme-api"},
    "role of another account": {"caller": "arn:aws:sts::210987654321:assumed-role/acme-api/session"},
    "root": {"caller": f"arn:aws:iam::{ACCOUNT}:root"},
    "nobody": {},
}


@dataclass(frozen=True)
class Call:
    """A request about something of ours. {job}, {letter}, {operation}: an id that there is."""

    path: str
    body: Any = None
    query: dict[str, Any] = field(default_factory=dict)


_MINE = {"tenant": OURS}

CALLS: dict[tuple[str, str], list[Call]] = {
    ("POST", "/v1/jobs"): [Call("/v1/jobs", JOB)],
    ("POST", "/v1/jobs:batch"): [
        Call("/v1/jobs:batch", {"jobs": [JOB]}),
        Call("/v1/jobs:batch", {"jobs": [THEIR_JOB, 7, JOB]}),
    ],
    ("GET", "/v1/jobs/{}"): [Call("/v1/jobs/{job}")],
    ("PATCH", "/v1/jobs/{}"): [Call("/v1/jobs/{job}", {"delay": 7_200})],
    ("POST", "/v1/jobs/{}"): [Call("/v1/jobs/{job}:run-now"), Call("/v1/jobs/{job}:frobnicate")],
    ("GET", "/v1/jobs/{}/payload"): [Call("/v1/jobs/{job}/payload")],
    ("GET", "/v1/jobs/{}/explain"): [Call("/v1/jobs/{job}/explain")],
    ("POST", "/v1/jobs/{}/heartbeat"): [Call("/v1/jobs/{job}/heartbeat", {"fence": 1})],
    ("POST", "/v1/jobs/{}/complete"): [Call("/v1/jobs/{job}/complete", {"fence": 1})],
    ("POST", "/v1/jobs/{}/fail"): [Call("/v1/jobs/{job}/fail", {"fence": 1, "error": "x"})],
    ("DELETE", "/v1/jobs/{}"): [Call("/v1/jobs/{job}")],
    ("GET", "/v1/schedules"): [Call("/v1/schedules", query=_MINE)],
    ("POST", "/v1/schedules:fires"): [
        Call("/v1/schedules:fires", {"tenant": OURS}),
        Call("/v1/schedules:fires", {"schedules": [{**DAILY, "tenant": OURS, "id": "x"}]}),
        Call("/v1/schedules:fires", {"schedules": [{**DAILY, "tenant": t, "id": "x"} for t in (THEIRS, OURS)]}),
    ],
    ("POST", "/v1/schedules:batch"): [
        Call("/v1/schedules:batch", {"schedules": [{**DAILY, "tenant": OURS, "id": "weekly"}]}),
        Call("/v1/schedules:batch", {"schedules": [{**DAILY, "tenant": t, "id": "weekly"} for t in (THEIRS, OURS)]}),
    ],
    ("PUT", "/v1/schedules/{}"): [
        Call("/v1/schedules/nightly", DAILY, _MINE | {"dry_run": "true"}),
        Call("/v1/schedules/weekly", DAILY, _MINE),
    ],
    ("PATCH", "/v1/schedules/{}"): [Call("/v1/schedules/nightly", {"cron": "0 4 * * *"}, _MINE)],
    ("GET", "/v1/schedules/{}"): [
        Call("/v1/schedules/nightly", query=_MINE),
        Call("/v1/schedules/nightly:preview", query=_MINE),
        Call("/v1/schedules/nightly:stats", query=_MINE),
    ],
    ("POST", "/v1/schedules/{}"): [
        Call("/v1/schedules/nightly:pause", query=_MINE),
        Call("/v1/schedules/nightly:resume", query=_MINE),
        Call("/v1/schedules/nightly:trigger", query=_MINE),
        Call("/v1/schedules/nightly:backfill", PAST, _MINE),
    ],
    ("DELETE", "/v1/schedules/{}"): [Call("/v1/schedules/nightly", query=_MINE)],
    ("GET", "/v1/dead-letters"): [Call("/v1/dead-letters", query=_MINE)],
    ("POST", "/v1/dead-letters:replay"): [
        Call("/v1/dead-letters:replay", _MINE | {"dry_run": True}),
        Call("/v1/dead-letters:replay", _MINE),
    ],
    ("GET", "/v1/dead-letters/{}"): [Call("/v1/dead-letters/{letter}")],
    ("POST", "/v1/dead-letters/{}"): [Call("/v1/dead-letters/{letter}:replay")],
    ("DELETE", "/v1/dead-letters/{}"): [Call("/v1/dead-letters/{letter}")],
    ("POST", "/v1/dead-letters:purge"): [Call("/v1/dead-letters:purge", _MINE)],
    ("GET", "/v1/breakers"): [Call("/v1/breakers", query=_MINE)],
    ("POST", "/v1/breakers:reset"): [Call("/v1/breakers:reset", _MINE | {"destination": "https://example.com"})],
    ("GET", "/v1/flows"): [Call("/v1/flows", query=_MINE)],
    ("GET", "/v1/flows/{}"): [Call("/v1/flows/stripe", query=_MINE)],
    ("PUT", "/v1/flows/{}"): [Call("/v1/flows/stripe", {"rate": "1/s"}, _MINE)],
    ("DELETE", "/v1/flows/{}"): [Call("/v1/flows/stripe", query=_MINE)],
    ("GET", "/v1/operations"): [Call("/v1/operations", query=_MINE)],
    ("POST", "/v1/operations"): [
        Call("/v1/operations", _MINE | {"action": action, "all": True, "dry_run": True})
        for action in ("cancel", "run_now", "export")
    ],
    ("GET", "/v1/operations/{}/{}"): [Call(f"/v1/operations/{OURS}/{{operation}}")],
    ("POST", "/v1/operations/{}/{}"): [Call(f"/v1/operations/{OURS}/{{operation}}:stop")],
    ("GET", "/v1/tenants/{}"): [Call(f"/v1/tenants/{OURS}")],
    ("GET", "/v1/tenants/{}/webhook-keys"): [Call(f"/v1/tenants/{OURS}/webhook-keys")],
    ("GET", "/v1/tenants/{}/usage"): [Call(f"/v1/tenants/{OURS}/usage")],
}
"""What whoever may act for our tenant may ask, and nobody else but an operator."""

FOR_OPERATORS: dict[tuple[str, str], list[Call]] = {
    ("GET", "/v1/health"): [Call("/v1/health")],
    ("GET", "/v1/tenants"): [Call("/v1/tenants")],
    ("PUT", "/v1/tenants/{}"): [Call(f"/v1/tenants/{OURS}", {"limits": {"weight": 100}})],
    ("PATCH", "/v1/tenants/{}"): [Call(f"/v1/tenants/{OURS}", {"limits": {"weight": 100}})],
    ("DELETE", "/v1/tenants/{}"): [Call(f"/v1/tenants/{OURS}", query={"confirm": THEIRS})],
    ("POST", "/v1/tenants/{}"): [Call(f"/v1/tenants/{OURS}:{verb}") for verb in ("pause", "resume", "drain")],
    ("POST", "/v1/pause"): [Call("/v1/pause")],
    ("POST", "/v1/resume"): [Call("/v1/resume")],
}
OPEN = {("GET", "/openapi.json"): [Call("/openapi.json")]}


class Watched:
    """Every request to AWS while it watches, but for those that read plans."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        for kind in (botocore.client.BaseClient, SignedClient):
            made: Any = kind
            monkeypatch.setattr(kind, "_make_api_call", self._recorded(made._make_api_call))

    def _recorded(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def record(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            if "~plans" not in json.dumps(parameters, default=str):
                self.seen.append(f"{operation} {parameters.get('TableName', '')}".strip())
            return make(client, operation, parameters)

        return record


class World:
    """A stage whose operators, principals and tokens mean something, with a thing of each kind."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = stage
        self.ids = _seeded(stage)
        monkeypatch.setenv("OPERATORS", json.dumps([f"arn:aws:iam::{ACCOUNT}:role/ops"]))
        monkeypatch.setenv("JWT_TENANT_CLAIM", "tenant")
        stage.forget_modules()
        tenants = DynamoDBTenantStore(Table(stage.dynamodb, TENANTS.name))
        for tenant in (OURS, THEIRS):
            row = Tenant(principals=(f"arn:aws:iam::{ACCOUNT}:role/{tenant}-*",), version=1)
            assert tenants.change(tenant, row, seen=0)
        stage.module("api")

    def ask(self, route: tuple[str, str], call: Call, who: dict[str, Any]) -> tuple[int, Any]:
        path = call.path.format(**self.ids)
        options = {"query": call.query} if call.query else {}
        return self.stage.call(route[0], path, call.body, **options, **who)

    def stored(self) -> str:
        """All that is stored anywhere, but for the counts of the stage, which a process writes every twenty seconds."""
        rows = {
            schema.name: [row for row in self.stage.rows(schema.name) if not _is_counted_by_the_stage(row)]
            for schema in ALL_TABLES
        }
        objects = boto3.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
        depths = {
            queue: self.stage.sqs.get_queue_attributes(QueueUrl=self.stage.urls[queue], AttributeNames=names)[
                "Attributes"
            ]
            for queue in QUEUES
        }
        return json.dumps([rows, [each["Key"] for each in objects], depths], sort_keys=True)


def _is_counted_by_the_stage(row: dict[str, Any]) -> bool:
    return row.get("t", {}).get("S", "").startswith(("~pulse#", "~busy#"))


@pytest.fixture
def world(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(stage, monkeypatch)


def _seeded(stage: Stage) -> dict[str, str]:
    failed = stage.submit(target="handler:none-of-this-name", retry={"attempts": 1})
    stage.work()
    assert stage.get(failed["id"])["state"] == "failed"
    (letter,) = stage.call("GET", "/v1/dead-letters", query=_MINE)[1]["dead_letters"]
    assert stage.call("PUT", "/v1/schedules/nightly", DAILY, query=_MINE)[0] == 201
    breaker = a_breaker(tenant=OURS, opened_at=stage.now())
    DynamoDBBreakerStore(Table(stage.dynamodb, TENANTS.name)).put(breaker, seen=None)
    operation = stage.call("POST", "/v1/operations", _MINE | {"action": "export", "all": True})[1]
    job = stage.submit(delay=3_600, payload={"n": 1})
    return {"job": job["id"], "letter": letter["id"], "operation": operation["id"]}


def cases(table: dict[tuple[str, str], list[Call]]) -> Iterator[tuple[tuple[str, str], Call]]:
    yield from ((route, call) for route, calls in table.items() for call in calls)


def shape(path: str) -> str:
    """As the tables here have it: a verb is the end of an id."""
    return re.sub(r"{\w+}(:[\w-]+$)?", "{}", path)


def test_every_route_is_in_these_tables_and_at_the_gateway():
    here = set(CALLS) | set(FOR_OPERATORS) | set(OPEN)

    assert {(route.method, shape(route.path)) for route in ROUTES} == here
    assert {(method, shape(path)) for method, path in GATEWAY_ROUTES} == here


def test_a_stranger_is_refused_by_every_route_before_anything_is_read_or_written(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    before = world.stored()
    watched = Watched(monkeypatch)

    for who, identity in STRANGERS.items():
        for route, call in cases(CALLS | FOR_OPERATORS):
            status, problem = world.ask(route, call, identity)
            assert (status, problem["code"]) == (403, "forbidden"), (who, route, call)
            assert "is no operator" in problem["detail"] or f"may not act for tenant {OURS}: " in problem["detail"]

    assert watched.seen == []
    assert world.stored() == before


def test_what_is_refused_is_refused_with_the_same_words_whether_it_exists_or_not(world: World):
    there = world.ids["job"]
    absent = there[:-4] + "0000"
    stranger = STRANGERS["role of another"]

    assert world.stage.call("GET", f"/v1/jobs/{absent}", **OPERATOR)[0] == 404
    assert world.stage.call("GET", f"/v1/jobs/{there}", **stranger) == world.stage.call(
        "GET", f"/v1/jobs/{absent}", **stranger
    )


@pytest.mark.parametrize("who", OF_OURS)
def test_who_acts_for_a_tenant_is_let_through_to_all_of_it_and_of_it_alone(world: World, who: str):
    for route, call in cases(CALLS):
        status, answer = world.ask(route, call, OF_OURS[who])
        if THEIRS in json.dumps(call.body):
            assert (status, answer["code"]) == (403, "forbidden"), (route, call)
        else:
            assert status not in (401, 403), (route, call, answer)
    for route, call in cases(FOR_OPERATORS):
        assert world.ask(route, call, OF_OURS[who])[1]["code"] == "forbidden", (route, call)


def test_an_operator_is_let_through_to_everything(world: World):
    for route, call in cases(CALLS | FOR_OPERATORS | OPEN):
        status, answer = world.ask(route, call, OPERATOR)
        assert status not in (401, 403), (route, call, answer)


def test_whoever_signs_may_read_what_the_api_is(world: World):
    for identity in STRANGERS.values():
        assert world.ask(("GET", "/openapi.json"), OPEN["GET", "/openapi.json"][0], identity)[0] == 200


def test_a_refusal_says_who_asked_for_whom_and_what_an_operator_does_about_it(world: World):
    _, signature = world.stage.call("POST", "/v1/jobs", JOB, **STRANGERS["role of another"])
    _, of_token = world.stage.call("POST", "/v1/jobs", JOB, **STRANGERS["token of another"])

    role = f"arn:aws:iam::{ACCOUNT}:role/globex-api"
    assert signature["detail"] == (
        f"{role} may not act for tenant acme: an operator allows it by `tickwheel tenant set acme --principal {role}`"
    )
    assert of_token["detail"] == "token of ann may not act for tenant acme: its token names tenant globex"


def test_what_belongs_to_no_tenant_is_for_operators(world: World):
    for path, query in (("/v1/dead-letters", {"tenant": "?"}), ("/v1/dead-letters/d1~~abc~x", {})):
        for who in (*STRANGERS.values(), *OF_OURS.values()):
            status, problem = world.stage.call("GET", path, query=query, **who)
            assert status == 403
            assert problem["detail"].endswith(
                "is no operator of this stage: what belongs to no tenant is for operators"
            )
        assert world.stage.call("GET", path, query=query, **OPERATOR)[0] in (200, 404)


def test_flows_of_the_stage_are_for_operators(world: World):
    calls = [
        ("GET", "/v1/flows", None),
        ("GET", "/v1/flows/stripe", None),
        ("PUT", "/v1/flows/stripe", {"rate": "1/s"}),
        ("PUT", "/v1/flows/stripe", {"rate": "1/s", "tenant": OURS}),
        ("PUT", "/v1/flows/stripe", {"rate": "1/s", "jobs": [{"tenant": OURS}]}),
        ("DELETE", "/v1/flows/stripe", None),
    ]
    before = world.stored()

    for who in (*STRANGERS.values(), *OF_OURS.values()):
        for method, path, body in calls:
            for query in ({}, {"tenant": ""}, {"tenant": "~"}):
                assert world.stage.call(method, path, body, query=query, **who)[0] == 403, (method, path, body, query)

    assert world.stored() == before
    assert world.stage.call("PUT", "/v1/flows/stripe", {"rate": "1/s"}, **OPERATOR)[0] == 200


def test_a_tenant_opens_to_a_principal_that_an_operator_has_set(world: World):
    stranger, stage = signed("newcomer"), world.stage
    assert stage.call("GET", "/v1/breakers", query=_MINE, **stranger)[0] == 403

    principals = [f"arn:aws:iam::{ACCOUNT}:role/newcomer"]
    assert stage.call("PATCH", "/v1/tenants/acme", {"principals": principals}, **OPERATOR)[0] == 200
    stage.forget_modules()  # another process, or this one half a minute later

    assert stage.call("GET", "/v1/breakers", query=_MINE, **stranger)[0] == 200
    assert stage.call("GET", "/v1/breakers", query=_MINE, **OF_OURS["role"])[0] == 403


THEIR_ROLE, OUR_ROLE = STRANGERS["role of another"], OF_OURS["role"]


BODIES: list[tuple[dict[str, Any], str, int]] = [
    (THEIR_ROLE, '{"tenant":"globex","tenant":"acme","target":"handler:echo"}', 403),
    (THEIR_ROLE, '{"tenant":"acme","tenant":"globex","target":"handler:echo"}', 202),
    (THEIR_ROLE, '{"\\u0074enant":"\\u0061cme","target":"handler:echo"}', 403),
    (OUR_ROLE, '{"tenant":"ACME","target":"handler:echo"}', 403),
    (OUR_ROLE, '{"Tenant":"acme","target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":["acme"],"target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":{"id":"acme"},"target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":7,"target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":null,"target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":"acme ","target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":"~everybody","target":"handler:echo"}', 422),
    (OUR_ROLE, '{"tenant":"~plans","target":"handler:echo"}', 422),
    (OUR_ROLE, '[{"tenant":"acme","target":"handler:echo"}]', 422),
    (OUR_ROLE, "tenant=acme", 422),
    (OUR_ROLE, "", 422),
]


def test_a_body_names_the_tenant_that_its_route_reads(world: World):
    for who, raw, expected in BODIES:
        for is_base64 in (False, True):
            before = world.stored()
            status, answer = world.stage.call("POST", "/v1/jobs", raw=raw, is_base64=is_base64, **who)
            assert status == expected, (who, raw, answer)
            assert (world.stored() == before) is (status != 202), (who, raw)


PATHS: list[tuple[str, dict[str, str], int]] = [
    ("/v1/operations/%61cme/o1", {}, 403),
    ("/v1/operations/%2561cme/o1", {}, 404),
    ("/v1/tenants/%61cme", {}, 403),
    ("/v1/tenants/%61cme/webhook-keys", {}, 403),
    ("/v1/tenants/Globex", {}, 403),
    ("/v1/tenants/globex", {}, 200),
    ("/v1/tenants/globex", {"tenant": "acme"}, 403),
    ("/v1/tenants/~everybody", {}, 422),
    ("/v1/breakers", {"tenant": "acme,globex"}, 422),
    ("/v1/breakers", {"tenant": "globex,acme"}, 422),
    ("/v1/breakers", {"Tenant": "acme"}, 422),
    ("/v1/breakers", {}, 422),
    ("/v1/dead-letters", {"tenant": "?"}, 403),
    ("/v1/dead-letters/d1~~abc~x", {}, 403),
    ("/v1/dead-letters/d1~acme~abc~x", {}, 403),
    ("/v1/dead-letters/d1~globex~abc~x", {}, 404),
    ("/v1/dead-letters/d1~a b~abc~x", {}, 404),
    ("/v1/jobs/j1", {}, 404),
    ("/v1/nothing", {}, 404),
]


def test_a_path_and_a_query_name_the_tenants_that_their_route_reads(world: World):
    for path, query, expected in PATHS:
        status, answer = world.stage.call("GET", path, query=query, **THEIR_ROLE)
        assert status == expected, (path, query, answer)


@pytest.mark.parametrize("who", [THEIR_ROLE, OUR_ROLE])
def test_an_id_of_one_tenant_beside_the_name_of_another_needs_both(world: World, who: dict[str, Any]):
    job = f"/v1/jobs/{world.ids['job']}"

    for asked in ({"query": {"tenant": THEIRS}}, {"body": {"tenant": THEIRS}}):
        assert world.stage.call("DELETE", job, **asked, **who)[0] == 403
    assert world.stage.call("GET", job, **OPERATOR)[1]["state"] == "scheduled"


def test_an_id_that_is_spelt_in_the_path_another_way_names_its_tenant_all_the_same(world: World):
    encoded = "".join(f"%{ord(letter):02x}" for letter in world.ids["job"])

    assert world.stage.call("GET", f"/v1/jobs/{encoded}", **THEIR_ROLE)[0] == 403
    assert world.stage.call("GET", f"/v1/jobs/{encoded}", **OUR_ROLE)[0] == 200
