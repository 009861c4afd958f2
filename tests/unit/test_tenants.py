"""The routes of tenants on fakes: what they write, what they answer, and what they refuse."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.http.answers import problem_answer
from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.router import serve
from functions.api.openapi import document
from functions.api.tenants.manager import TenantManager
from functions.api.tenants.routes import TenantServices, routes
from functions.domain.errors import TickwheelError
from functions.domain.instants import format_instant
from functions.domain.schedules.load import Load
from functions.domain.tenants.backlog import Backlog
from functions.domain.tenants.changes import EFFECTIVE_AFTER
from functions.domain.tenants.plan import Tenant, TenantStatus
from functions.ports.tenants import EVERYBODY
from testkit.builders import NOON
from testkit.events import Context, a_request
from testkit.fakes import (
    FakeClock,
    InMemoryDeletionStore,
    InMemoryTenantStore,
    InMemoryUsageStore,
    RecordingAudit,
    RecordingJournal,
)
from testkit.fakes.schedules import InMemoryScheduleStore
from testkit.fakes.webhook_keys import GivenWebhookKeys
from tests.unit.test_client_tenants import UNLIMITED

PLANS: dict[str, dict[str, Any]] = {"default": {"max_pending": 100}, "gold": {"weight": 5}}
ROLE = "arn:aws:iam::123456789012:role/billing"
OPERATOR = "arn:aws:sts::123456789012:assumed-role/ops/ann"
BUILT_IN = {**UNLIMITED, "max_pending": 100}

NO_SCHEDULES = {"count": 0, "max_schedules": 10_000, "fires_per_minute": 0, "max_fires_per_minute": 600}


class ContendedStore(InMemoryTenantStore):
    """Somebody else is faster, so many times."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    def change(self, name: str, tenant: Tenant, *, seen: int) -> bool:
        if self.losses:
            self.losses -= 1
            met = self.get(name) or Tenant()
            assert super().change(name, Tenant(limits={"weight": 9}, version=met.version + 1), seen=met.version)
        return super().change(name, tenant, seen=seen)


@dataclass
class LoadedSchedules(InMemoryScheduleStore):
    """Schedules that come to what a test says."""

    loaded: Load = field(default_factory=Load)

    def load(self, tenant: str) -> Load:
        return self.loaded


class Api:
    """The routes over a store of tenants."""

    def __init__(self, store: InMemoryTenantStore | None = None) -> None:
        self.store = store or InMemoryTenantStore()
        self.journal = RecordingJournal()
        self.clock = FakeClock()
        self.backlog: Backlog | None = None
        self.schedules = LoadedSchedules()

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        manager = TenantManager(
            clock=self.clock,
            store=self.store,
            usage=InMemoryUsageStore(),
            deletions=InMemoryDeletionStore(),
            schedules=self.schedules,
            journal=self.journal,
            audit=RecordingAudit(),
            plans=PLANS,
            backlogs=lambda _: self.backlog,
        )
        app = APIGatewayHttpResolver()
        services = TenantServices(manager=manager, webhook_keys=GivenWebhookKeys())
        serve(app, routes, services, checks=())
        app.exception_handler([Misshapen, TickwheelError])(_refuse)
        context: Any = Context()
        answer = app.resolve(a_request(method, path, body, query=query, caller=OPERATOR), context)
        return answer["statusCode"], json.loads(answer["body"])

    def answer(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        status, answer = self.call(method, path, body)
        assert status == 200, answer
        return answer

    def audit(self) -> list[dict[str, Any]]:
        return [keys for name, keys in self.journal.events if name == "tenant_changed"]


def _refuse(error: Exception) -> Response[str]:
    return problem_answer(problem_of(error))


class TestWhatACapCanNeverServe:
    @pytest.fixture
    def api(self) -> Api:
        api = Api(InMemoryTenantStore())
        api.answer("PUT", "/v1/tenants/acme", {"limits": {"execution_rate": 0.5}})
        return api

    def test_usage_says_what_waits_for_it_and_for_how_long(self, api: Api):
        api.backlog = Backlog(count=108_000, rate=0.5)

        answer = api.answer("GET", "/v1/tenants/acme/usage")

        assert answer["cap"] == {
            "execution_rate": 0.5,
            "waiting": 108_000,
            "waiting_days": 2.5,
            "is_exceeded_by_schedules": False,
        }

    @pytest.mark.parametrize(("fires", "is_exceeded"), [(1_800, False), (1_801, True)])
    def test_usage_says_whether_the_schedules_alone_fire_more_than_it_serves(
        self, api: Api, fires: int, is_exceeded: bool
    ):
        api.schedules.loaded = Load(schedules=1, fires=fires)

        assert api.answer("GET", "/v1/tenants/acme/usage")["cap"]["is_exceeded_by_schedules"] is is_exceeded

    def test_what_cannot_be_known_just_now_is_said_so(self, api: Api):
        cap = api.answer("GET", "/v1/tenants/acme/usage")["cap"]

        assert (cap["waiting"], cap["waiting_days"]) == (None, None)

    def test_a_tenant_without_one_gets_nothing_of_it(self):
        assert "cap" not in Api().answer("GET", "/v1/tenants/acme/usage")


def test_a_tenant_without_a_row_is_reported_with_what_everybody_has():
    assert Api().call("GET", "/v1/tenants/acme") == (
        200,
        {
            "tenant": "acme",
            "plan": "default",
            "limits": BUILT_IN,
            "own_limits": [],
            "principals": [],
            "status": "active",
            "note": "",
            "version": 0,
            "schedules": NO_SCHEDULES,
        },
    )


def test_a_tenant_that_was_put_is_reported_with_its_limits_and_which_are_its_own():
    api = Api()
    body = {"plan": "gold", "limits": {"max_concurrency": 10}, "principals": [ROLE], "note": "ü"}

    put = api.answer("PUT", "/v1/tenants/acme", body)

    assert put == {
        "tenant": "acme",
        "plan": "gold",
        "limits": {**BUILT_IN, "weight": 5, "max_concurrency": 10},
        "own_limits": ["max_concurrency"],
        "principals": [ROLE],
        "status": "active",
        "note": "ü",
        "version": 1,
        "changed_at": format_instant(NOON),
        "in_effect_by": format_instant(NOON + EFFECTIVE_AFTER),
    }
    assert api.answer("GET", "/v1/tenants/acme") == {**put, "schedules": NO_SCHEDULES}


def test_a_patch_takes_a_limit_away_and_keeps_the_others():
    api = Api()
    api.answer("PUT", "/v1/tenants/acme", {"plan": "gold", "limits": {"weight": 7, "subshards": 8}, "note": "x"})

    answer = api.answer("PATCH", "/v1/tenants/acme", {"limits": {"weight": None}, "note": None})

    assert (answer["own_limits"], answer["limits"]["weight"], answer["note"], answer["plan"]) == (
        ["subshards"],
        5,
        "",
        "gold",
    )
    assert api.answer("PATCH", "/v1/tenants/acme", {"limits": None, "plan": None})["limits"] == BUILT_IN


@pytest.mark.parametrize(("verb", "status"), [("pause", "paused"), ("drain", "draining"), ("resume", "active")])
def test_a_verb_gives_a_tenant_its_status(verb: str, status: str):
    api = Api()
    api.store.change("acme", Tenant(limits={"weight": 2}, version=1), seen=0)

    answer = api.answer("POST", f"/v1/tenants/acme:{verb}", {"note": "why"})

    assert answer["status"] == status
    assert answer["own_limits"] == ["weight"]
    if verb != "resume":
        assert (answer["note"], answer["status_since"], answer["version"]) == ("why", format_instant(NOON), 2)


def test_a_verb_needs_no_body():
    assert Api().answer("POST", "/v1/tenants/acme:pause")["status"] == "paused"


def test_a_verb_that_there_is_not_is_no_route():
    status, problem = Api().call("POST", "/v1/tenants/acme:freeze", {})

    assert (status, problem["code"]) == (404, "no_such_route")
    assert "append one of :pause, :resume, :drain" in problem["detail"]


def test_a_pause_of_the_stage_is_everybody_s_row_and_no_tenant_s():
    api = Api()

    paused = api.answer("POST", "/v1/pause", {"note": "a bad deploy"})

    assert (paused["status"], paused["note"], paused["version"]) == ("paused", "a bad deploy", 1)
    assert list(api.store.rows) == [EVERYBODY]
    assert api.answer("GET", "/v1/tenants/acme")["status"] == "active"
    assert api.answer("POST", "/v1/resume")["status"] == "active"
    assert api.call("GET", "/v1/tenants", limit=10) == (200, {"tenants": [], "next": None})


def test_tenants_with_a_row_are_reported_page_by_page():
    api = Api()
    for name in ("c", "a", "b"):
        api.answer("PUT", f"/v1/tenants/{name}", {})

    _, first = api.call("GET", "/v1/tenants", limit=2)
    _, second = api.call("GET", "/v1/tenants", limit=2, after=first["next"])

    assert [tenant["tenant"] for tenant in first["tenants"]] == ["a", "b"]
    assert ([tenant["tenant"] for tenant in second["tenants"]], second["next"]) == (["c"], None)


def test_every_change_leaves_one_line_of_who_what_before_and_after():
    api = Api()
    api.answer("PUT", "/v1/tenants/acme", {"limits": {"weight": 2}})
    api.answer("PUT", "/v1/tenants/acme", {"limits": {"weight": 2}})
    api.answer("POST", "/v1/tenants/acme:pause", {"note": "why"})
    api.answer("POST", "/v1/pause")

    assert [(line["caller"], line["tenant"], line["what"]) for line in api.audit()] == [
        (OPERATOR, "acme", "put"),
        (OPERATOR, "acme", "pause"),
        (OPERATOR, EVERYBODY, "pause"),
    ]
    put, paused, _ = api.audit()
    assert (put["before"], put["after"]["limits"]) == ({}, {"weight": 2})
    assert paused["before"] == put["after"]
    assert (paused["after"]["status"], paused["after"]["note"]) == ("paused", "why")


def test_a_change_of_a_version_that_is_there_no_more_is_refused():
    api = Api()
    api.answer("PUT", "/v1/tenants/acme", {"version": 0})

    for method, path in (("PUT", ""), ("PATCH", ""), ("POST", ":pause")):
        status, problem = api.call(method, f"/v1/tenants/acme{path}", {"version": 0, "note": "x"})
        assert (status, problem["code"]) == (409, "tenant_changed")
        assert "has version 1, not 0" in problem["detail"]
    assert api.answer("PATCH", "/v1/tenants/acme", {"version": 1, "note": "x"})["version"] == 2


def test_a_lost_race_is_run_again_on_what_is_there_then():
    api = Api(ContendedStore(losses=3))

    answer = api.answer("PATCH", "/v1/tenants/acme", {"limits": {"max_concurrency": 4}})

    assert (answer["own_limits"], answer["version"]) == (["weight", "max_concurrency"], 4)
    assert len(api.audit()) == 1


def test_who_keeps_losing_learns_that_the_tenant_is_busy():
    api = Api(ContendedStore(losses=4))

    status, problem = api.call("PATCH", "/v1/tenants/acme", {"limits": {"max_concurrency": 4}})

    assert (status, problem["code"]) == (409, "tenant_busy")
    assert api.audit() == []


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
@pytest.mark.parametrize("status", [TenantStatus.DELETING, TenantStatus.DELETED])
def test_a_deleted_tenant_is_not_turned(verb: str, status: TenantStatus):
    api = Api()
    api.store.change("acme", Tenant(status=status, version=1), seen=0)

    refused, problem = api.call("POST", f"/v1/tenants/acme:{verb}", {})

    assert (refused, problem["code"]) == (409, "tenant_deleted")
    assert api.store.number == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"plan": "silver"}, "use one of default, gold"),
        ({"plan": "Gold"}, "plan"),
        ({"limits": {"weight": 0}}, "weight is 0"),
        ({"limits": {"wieght": 1}}, "'wieght' is no limit"),
        ({"limits": {"subshards": "unlimited"}}, "subshards is 'unlimited'"),
        ({"limits": 3}, "limits"),
        ({"principals": ["billing"]}, "is no pattern"),
        ({"principals": [ROLE] * 21}, "principals"),
        ({"principals": ROLE}, "principals"),
        ({"note": "x" * 501}, "note"),
        ({"version": -1}, "version"),
        ({"version": "1"}, "version"),
        ({"status": "paused"}, "status"),
        ([], "must be a JSON object"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_a_tenant_cannot_have_is_refused(method: str, body: Any, said: str):
    api = Api()

    status, problem = api.call(method, "/v1/tenants/acme", body)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert said in problem["detail"]
    assert api.store.rows == {}


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("PUT", ""), ("PATCH", ""), ("POST", ":pause")])
def test_what_is_no_tenant_s_id_is_refused(method: str, path: str):
    for name in ("a b", EVERYBODY, "x" * 65):
        status, problem = Api().call(method, f"/v1/tenants/{name}{path}", {})
        assert (status, problem["errors"][0]["field"]) == (422, "tenant")


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 501}, {"after": "~"}, {"before": "a"}])
def test_a_list_that_cannot_be_answered_is_refused(query: dict[str, Any]):
    assert Api().call("GET", "/v1/tenants", **query)[0] == 422


def test_what_learns_of_a_tenant_is_what_is_described():
    api = Api()
    never_changed = api.answer("GET", "/v1/tenants/globex")
    api.answer("PUT", "/v1/tenants/acme", {})
    answer = api.answer("POST", "/v1/tenants/acme:pause")
    schemas = document()["components"]["schemas"]

    assert set(answer) == set(schemas["Tenant"]["properties"]) - {"deletion", "schedules"}
    assert set(never_changed["schedules"]) == set(schemas["Load"]["properties"])
    _, deleting = api.call("DELETE", "/v1/tenants/umbrella", confirm="umbrella")
    assert set(deleting["deletion"]) == set(schemas["Deletion"]["properties"])
    assert set(answer["limits"]) == set(schemas["Tenant"]["properties"]["limits"]["properties"])
    assert set(schemas["Tenant"]["required"]) | {"schedules"} == set(never_changed)
    assert set(api.answer("POST", "/v1/pause")) == set(schemas["StageStatus"]["properties"])
