"""The keys of webhooks as the client and the command line show them."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.api_server import Answer, ApiServer
from tests.either_client import made_client
from tickwheel.cli import app
from tickwheel.client.backoff import Backoff
from tickwheel.client.webhook_keys import WebhookKey
from tickwheel.errors import ApiProblem, Unreachable

KEYS = {"keys": [{"id": "k2", "secret": "whsec_bmV3"}, {"id": "k1", "secret": "whsec_b2xk"}]}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def asked(server: ApiServer, tenant: str = "acme") -> list[WebhookKey]:
    with made_client(server.url, region="us-east-1", backoff=Backoff(attempts=1)) as client:
        return client.webhook_keys(tenant)


def test_a_tenant_s_keys_come_in_the_order_in_which_they_sign() -> None:
    with ApiServer(Answer(200, KEYS)) as server:
        keys = asked(server)

    assert keys == [WebhookKey("k2", "whsec_bmV3"), WebhookKey("k1", "whsec_b2xk")]
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/tenants/acme/webhook-keys")


def test_a_tenant_is_one_part_of_the_path_whatever_it_is_called() -> None:
    problem = {"status": 404, "code": "no_such_route", "title": "x"}
    with ApiServer(Answer(404, problem)) as server, pytest.raises(ApiProblem):
        asked(server, "../a?b#c")

    assert server.requests[0].path == "/v1/tenants/..%2Fa%3Fb%23c/webhook-keys"


def test_a_secret_is_not_in_the_text_of_a_key() -> None:
    assert repr(WebhookKey("k1", "whsec_b2xk")) == "WebhookKey(id='k1')"


@pytest.mark.parametrize(
    "body", [{}, {"keys": [{"id": "k1"}], "was": "whsec_b2xk"}, {"keys": ["whsec_b2xk"]}, ["whsec_b2xk"]]
)
def test_an_answer_that_is_not_understood_is_not_repeated(body: Any) -> None:
    with (
        ApiServer(Answer(200, body)) as server,
        pytest.raises(Unreachable, match="answer is not understood") as raised,
    ):
        asked(server)

    assert "b2xk" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_the_command_prints_a_key_a_line() -> None:
    with ApiServer(Answer(200, KEYS)) as server:
        result = CliRunner().invoke(app, ["webhook-keys", "acme"], env={"TICKWHEEL_ENDPOINT": server.url})

    assert (result.exit_code, result.stdout) == (0, "k2 whsec_bmV3\nk1 whsec_b2xk\n")


def test_the_command_prints_json_for_scripts() -> None:
    with ApiServer(Answer(200, KEYS)) as server:
        result = CliRunner().invoke(app, ["webhook-keys", "acme", "--json"], env={"TICKWHEEL_ENDPOINT": server.url})

    assert json.loads(result.stdout) == KEYS


def test_the_command_needs_a_tenant() -> None:
    result = CliRunner().invoke(app, ["webhook-keys"])

    assert result.exit_code == 2
