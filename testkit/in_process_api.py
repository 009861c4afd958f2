"""The API in the process of a test: how requests reach it, and what it is set to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from functions.domain.instants import SECOND
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets
from functions.domain.tenants.access import ANYBODY
from functions.domain.tenants.plan import Limits
from functions.domain.wheel import Wheel
from functions.runtime.settings import ApiSettings
from testkit.events import Context, a_request

_ANYWHERE = (
    *DEFAULT_TARGETS,
    "http://*",
    "arn:aws:lambda:*:*:function:*",
    "arn:aws:sqs:*:*:*",
    "arn:aws:sns:*:*:*",
    "arn:aws:events:*:*:event-bus/*",
    "arn:aws:states:*:*:stateMachine:*",
)
_ACCOUNT = "123456789012"
_CALLER = f"arn:aws:iam::{_ACCOUNT}:user/test"


class InProcess(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Hands requests to the API as the gateway does, signed by one caller. It is as good for an AsyncClient."""

    def __init__(
        self,
        resolve: Callable[[dict[str, Any], Any], dict[str, Any]],
        failures: list[Exception],
        one_revision: Callable[[], Any],
    ) -> None:
        self._resolve = resolve
        self._failures = failures
        self._one_revision = one_revision

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self.handle_request(request)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises what the API failed with: it would be a 503 of a deployment, and a log line."""
        event = a_request(
            request.method,
            request.url.raw_path.partition(b"?")[0].decode(),
            raw=request.read().decode() or None,
            headers=dict(request.headers),
            query=dict(request.url.params),
            caller=_CALLER,
        )
        with self._one_revision():
            answer = self._resolve(event, Context())
        if self._failures:
            raise self._failures.pop(0)
        return httpx.Response(
            answer["statusCode"], headers=answer.get("headers", {}), content=(answer.get("body") or "").encode()
        )


def api_settings(wheel: Wheel, plans: Mapping[str, Limits]) -> ApiSettings:
    """Of an API whose adapters nobody builds. plans: limits by the names of plans."""
    named = {f"{name}_TABLE": name.lower() for name in _TABLES}
    return ApiSettings.model_validate(
        {
            "STAGE": "test",
            "BUCKET_SECONDS": wheel.bucket // SECOND,
            "LOOKAHEAD_SECONDS": wheel.lookahead // SECOND,
            "SKEW_SECONDS": wheel.skew // SECOND,
            "GUARD_SECONDS": wheel.guard // SECOND,
            "WRITE_SHARDS": wheel.write_shards,
            "SCAN_SHARDS": wheel.scan_shards,
            "PLANS": {name: dict(limits) for name, limits in plans.items()},
            **named,
            "READY_QUEUE_URLS": ("critical", "high", "normal", "low"),
            "AUDIT_STREAM": "audit",
            "PAYLOAD_BUCKET": "payloads",
            "WEBHOOK_SECRET": "webhooks",
            "ALLOWED_TARGETS": AllowedTargets(_ANYWHERE),
            "ALLOW_PLAIN_HTTP": True,
            "MAX_TIMEOUT_SECONDS": 110,
            "OPERATIONS_FUNCTION": "operations",
            "OPERATORS": (ANYBODY,),
            "JWT_TENANT_CLAIM": "",
            "SUBMISSION_QUEUE_URLS": (),
            "REFUSED_QUEUE_URLS": (),
        }
    )


_TABLES = ("TIMERS", "TENANTS", "SHARDS", "LEDGER", "SCHEDULES", "SCHEDULE_STATE", "DEAD_LETTERS")
