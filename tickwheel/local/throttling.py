"""Throttling of DynamoDB, which an emulator has no reason for, and a store in AWS may have at any time."""

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

PATH = "/_tickwheel/throttle"
"""`POST /_tickwheel/throttle?share=0.3`: from now on so many of the requests to DynamoDB are refused; 0 ends it."""

Serve = Callable[..., Awaitable[None]]

_OF_DYNAMODB = b"DynamoDB_20120810."
_REFUSAL = {
    "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
    "message": "Rate of requests exceeds the allowed throughput.",
}


class Throttling:
    """An ASGI application before another: what it refuses has not been done. chance: draws from 0 up to 1."""

    def __init__(self, serve: Serve, chance: Callable[[], float] = random.random) -> None:
        self._serve = serve
        self._chance = chance
        self._share = 0.0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serves a request, or refuses it."""
        if scope["type"] == "http" and scope["path"] == PATH:
            await self._set(scope, send)
        elif self._share and _is_for_dynamodb(scope) and self._chance() < self._share:
            await _answer(send, 400, _REFUSAL)
        else:
            await self._serve(scope, receive, send)

    async def _set(self, scope: dict[str, Any], send: Any) -> None:
        text = parse_qs(scope["query_string"].decode()).get("share", [""])[0]
        try:
            share = float(text)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            await _answer(send, 400, {"message": f"share is {text!r}: use a number from 0 to 1"})
            return
        self._share = share
        await _answer(send, 200, {"share": share})


def _is_for_dynamodb(scope: dict[str, Any]) -> bool:
    return scope["type"] == "http" and any(
        name.lower() == b"x-amz-target" and value.startswith(_OF_DYNAMODB) for name, value in scope["headers"]
    )


async def _answer(send: Any, status: int, body: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/x-amz-json-1.0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
