"""Flows as programs and the command line name them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.command_line import assert_wrong_usage, run
from tests.either_client import made_client
from tickwheel.client import Client
from tickwheel.client.backoff import Backoff
from tickwheel.client.flows import Flow, FlowLimits
from tickwheel.errors import InvalidJob


def test_every_mistake_of_a_flow_is_named_at_once() -> None:
    with pytest.raises(InvalidJob) as refused:
        Flow("", rate="", burst=True, concurrency=1.5)  # type: ignore[arg-type]

    assert [problem.field for problem in refused.value.problems] == [
        *("flow.key", "flow.rate", "flow.burst", "flow.concurrency")
    ]


@pytest.mark.parametrize(
    ("text", "flow"),
    [
        ("stripe", Flow("stripe")),
        ("a:b.c", Flow("a:b.c")),
        ("stripe,rate=60/min", Flow("stripe", rate="60/min")),
        ("stripe,concurrency=5,burst=10,rate=60/min", Flow("stripe", rate="60/min", burst=10, concurrency=5)),
        ("smtp,scope=stage", Flow("smtp", scope="stage")),
        ("bookings,ordered=yes", Flow("bookings", ordered=True)),
    ],
)
def test_a_flow_is_read_from_one_text(text: str, flow: Flow) -> None:
    assert Flow.parse(text) == flow


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "key: is required"),
        ("stripe,60/min", "is not a flow: write stripe, or stripe,rate=60/min"),
        ("stripe,limit=5", "is not a flow: write stripe, or stripe,rate=60/min"),
        ("stripe,concurrency=many", "'many' is not a whole number"),
        ("stripe,burst=-1", "'-1' is not a whole number"),
        ("stripe,scope=world", "scope: is one of tenant, stage"),
        ("stripe,ordered=no", "write ordered=yes, or leave it out"),
    ],
)
def test_a_text_that_is_no_flow_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Flow.parse(text)


def test_the_command_refuses_an_option_that_is_no_flow() -> None:
    assert_wrong_usage("submit", "handler:echo", "--tenant", "acme", "--flow", "stripe,60/min", said="is not a flow")


def flow_json(**changes: Any) -> dict[str, Any]:
    return {"tenant": "acme", "key": "stripe", "rate": "60/min", "burst": 10, "concurrency": 5, **changes}


def figures_json(**changes: Any) -> dict[str, Any]:
    figures = {"is_set": True, "waiting": 7, "waiting_tenants": 1, "has_more": False, "running": 5}
    return {**flow_json(), **figures, "next_start_at": "2030-01-31T09:00:00.000Z", **changes}


def a_client(server: ApiServer) -> Client:
    return made_client(
        server.url, region="us-east-1", backoff=Backoff(attempts=2, base_seconds=0, sleep=lambda _: None)
    )


def test_limits_are_set_for_a_tenant_and_for_the_stage() -> None:
    stage = flow_json(tenant=None, rate=None, burst=None)
    with ApiServer(Answer(200, flow_json()), Answer(200, stage)) as server, a_client(server) as client:
        mine = client.set_flow("stripe", tenant="acme", rate="60/min", burst=10, concurrency=5)
        of_stage = client.set_flow("a:b", concurrency=5)

    assert [(request.method, request.path, request.json) for request in server.requests] == [
        ("PUT", "/v1/flows/stripe?tenant=acme", {"rate": "60/min", "burst": 10, "concurrency": 5}),
        ("PUT", "/v1/flows/a:b", {"concurrency": 5}),
    ]
    assert mine == FlowLimits(tenant="acme", key="stripe", rate="60/min", burst=10, concurrency=5)
    assert (of_stage.tenant, of_stage.rate) == (None, None)


def test_limits_that_cannot_be_sent_are_refused_before() -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidJob, match=r"flow.burst"):
        client.set_flow("stripe", rate="1/s", burst=1.5)  # type: ignore[arg-type]

    assert server.requests == []


def test_a_flow_is_read_with_what_goes_on_in_it() -> None:
    with ApiServer(Answer(200, figures_json())) as server, a_client(server) as client:
        found = client.flow("stripe", tenant="acme")

    assert server.requests[0].path == "/v1/flows/stripe?tenant=acme"
    assert (found.waiting, found.running, found.next_start_at) == (7, 5, datetime(2030, 1, 31, 9, tzinfo=UTC))


def test_flows_are_listed_page_by_page() -> None:
    first = Answer(200, {"flows": [flow_json()], "next": "stripe"})
    second = Answer(200, {"flows": [flow_json(key="twilio")], "next": None})
    with ApiServer(first, second) as server, a_client(server) as client:
        found = [flow.key for flow in client.flows(tenant="acme", page_size=1)]

    assert found == ["stripe", "twilio"]
    assert server.requests[1].path == "/v1/flows?tenant=acme&limit=1&after=stripe"


def test_limits_are_deleted_also_where_the_answer_was_lost() -> None:
    answer = Answer(200, {"tenant": "acme", "key": "stripe", "was_set": True})
    with ApiServer(Answer(503, {}), answer) as server, a_client(server) as client:
        assert client.delete_flow("stripe", tenant="acme")

    assert [request.method for request in server.requests] == ["DELETE", "DELETE"]


def test_the_command_sets_limits() -> None:
    with ApiServer(Answer(200, flow_json())) as server:
        arguments = ["--rate", "60/min", "--burst", "10", "--concurrency", "5", "--tenant", "acme"]
        result = run("flow", "set", "stripe", *arguments, "--json", server=server)

    assert json.loads(result.stdout) == {**flow_json(), "ordered": False}
    assert (server.requests[0].method, server.requests[0].path) == ("PUT", "/v1/flows/stripe?tenant=acme")
    assert server.requests[0].json == {"rate": "60/min", "burst": 10, "concurrency": 5}


def test_the_command_gives_a_flow_an_order() -> None:
    with ApiServer(Answer(200, flow_json(rate=None, burst=None, concurrency=None, ordered=True))) as server:
        result = run("flow", "set", "stripe", "--ordered", "--tenant", "acme", "--json", server=server)

    assert json.loads(result.stdout)["ordered"] is True
    assert server.requests[0].json == {"ordered": True}


def test_the_command_does_not_set_limits_that_limit_nothing() -> None:
    assert_wrong_usage("flow", "set", "stripe", "--burst", "5", said="--rate, --concurrency or both are required")


def test_the_command_shows_a_flow() -> None:
    with ApiServer(Answer(200, figures_json())) as server:
        lines = run("flow", "show", "stripe", "--tenant", "acme", server=server).stdout.splitlines()

    shown = [line.split() for line in lines]
    assert ["waiting", "7"] in shown
    assert ["next", "start", "at", "2030-01-31T09:00:00Z"] in shown


def test_the_command_lists_a_row_a_flow_and_says_where_there_is_none() -> None:
    flows = [flow_json(), flow_json(key="own", rate=None, burst=None)]
    with ApiServer(Answer(200, {"flows": flows, "next": None})) as server:
        lines = run("flow", "list", "--tenant", "acme", server=server).stdout.splitlines()
    with ApiServer(Answer(200, {"flows": [], "next": None})) as server:
        none = run("flow", "list", server=server).stdout

    assert [line.split() for line in lines[1:]] == [["stripe", "60/min", "10", "5"], ["own", "5"]]
    assert none == "no flow of the stage has limits\n"


@pytest.mark.parametrize(
    ("was_set", "said"), [(True, "deleted the limits of flow stripe\n"), (False, "flow stripe had no limits\n")]
)
def test_the_command_deletes_limits(was_set: bool, said: str) -> None:
    with ApiServer(Answer(200, {"tenant": "acme", "key": "stripe", "was_set": was_set})) as server:
        unasked = run("flow", "delete", "stripe", "--tenant", "acme", server=server, typed="n\n")
        assert (unasked.exit_code, server.requests) == (1, [])
        assert "Delete the limits of the flow stripe of acme?" in unasked.stderr
        assert run("flow", "delete", "stripe", "--tenant", "acme", "--yes", server=server).stdout == said
