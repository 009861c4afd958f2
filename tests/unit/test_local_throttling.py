import asyncio
import json
from typing import Any

import pytest

from tickwheel.local.throttling import PATH, Throttling

DYNAMODB = [(b"X-Amz-Target", b"DynamoDB_20120810.PutItem")]
SQS = [(b"x-amz-target", b"AmazonSQS.SendMessage")]


def a_request(path: str = "/", *, headers: list[tuple[bytes, bytes]] | None = None, query: str = "") -> dict[str, Any]:
    return {"type": "http", "path": path, "headers": headers or [], "query_string": query.encode()}


class Cloud:
    """What stands behind, and what it was asked."""

    def __init__(self, *draws: float) -> None:
        self.served: list[dict[str, Any]] = []
        left = list(draws)
        self.throttling = Throttling(self._serve, chance=lambda: left.pop(0))

    async def _serve(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.served.append(scope)

    def ask(self, scope: dict[str, Any]) -> tuple[int, Any] | None:
        """The answer, if it was not served by what stands behind."""
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.throttling(scope, None, send))
        return (sent[0]["status"], json.loads(sent[1]["body"])) if sent else None

    def throttle(self, share: str) -> tuple[int, Any] | None:
        return self.ask(a_request(PATH, query=f"share={share}"))


def test_nothing_is_throttled_unless_it_is_asked_for() -> None:
    cloud = Cloud()
    assert cloud.ask(a_request(headers=DYNAMODB)) is None
    assert len(cloud.served) == 1


def test_the_share_of_requests_to_dynamodb_that_is_asked_for_is_refused_and_not_done() -> None:
    cloud = Cloud(0.29, 0.3)
    assert cloud.throttle("0.3") == (200, {"share": 0.3})
    status, body = cloud.ask(a_request(headers=DYNAMODB)) or (0, {})
    assert status == 400
    assert body["__type"].endswith("#ThrottlingException")
    assert cloud.served == []
    assert cloud.ask(a_request(headers=DYNAMODB)) is None
    assert len(cloud.served) == 1


def test_other_services_and_connections_are_not_throttled() -> None:
    cloud = Cloud()
    cloud.throttle("1")
    for scope in (a_request(headers=SQS), a_request(), {"type": "lifespan"}):
        assert cloud.ask(scope) is None
    assert len(cloud.served) == 3


def test_throttling_ends() -> None:
    cloud = Cloud()
    cloud.throttle("1")
    cloud.throttle("0")
    assert cloud.ask(a_request(headers=DYNAMODB)) is None


@pytest.mark.parametrize("share", ["1.1", "-0.1", "half", "", "nan"])
def test_a_share_that_is_none_is_refused(share: str) -> None:
    status, body = Cloud().throttle(share) or (0, {})
    assert status == 400
    assert "use a number from 0 to 1" in body["message"]
