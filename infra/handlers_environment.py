"""What a user's handlers are configured with: variables of the worker's environment, beside its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk

from infra.stage_parts import InvalidStage

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
"""https://docs.aws.amazon.com/lambda/latest/api/API_Environment.html"""

_OTHERS = ("AWS_", "LAMBDA_", "POWERTOOLS_", "PYTHON", "LD_")
"""How names begin that Lambda, Python or a library reads."""

TAKEN = frozenset(
    [
        "ALLOWED_NETWORKS",
        "ALLOWED_TARGETS",
        "AUDIT_STREAM",
        "BUCKET_SECONDS",
        "DEAD_LETTERS_TABLE",
        "GUARD_SECONDS",
        "LAG_OBJECTIVE_MS",
        "LEDGER_TABLE",
        "LOG_LEVEL",
        "LOOKAHEAD_SECONDS",
        "PATH",
        "PATIENCE",
        "PAYLOAD_BUCKET",
        "PLANS",
        "READY_QUEUE_URLS",
        "SCAN_SHARDS",
        "SCHEDULES_TABLE",
        "SCHEDULE_STATE_TABLE",
        "SHARDS_TABLE",
        "SKEW_SECONDS",
        "STAGE",
        "TENANTS_TABLE",
        "TIMERS_TABLE",
        "TZ",
        "WATCHING",
        "WEBHOOK_SECRET",
        "WRITE_SHARDS",
    ]
)
"""What the worker, Lambda or Python reads by another name than these beginnings; a test has the worker's."""


def check_handlers_environment(environment: Any, *, has_handlers: bool) -> Mapping[str, str]:
    """The variables themselves. Raises InvalidStage."""
    if not isinstance(environment, Mapping):
        raise InvalidStage(
            f"handlers_environment is {environment!r}: give texts by their names, such as {{'SMTP_HOST': …}}"
        )
    if environment and not has_handlers:
        raise InvalidStage("handlers_environment is given without handlers, which would read it: give those too")
    for name, value in environment.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidStage(
                f"handlers_environment: {name!r} is no name: use two or more of A-Z a-z 0-9 _, a letter first"
            )
        if name in TAKEN or name.startswith(_OTHERS):
            raise InvalidStage(
                f"handlers_environment: {name} is the worker's own: use another name, such as APP_{name}"
            )
        if not isinstance(value, str) and not cdk.Token.is_unresolved(value):
            raise InvalidStage(f"handlers_environment: {name} is {value!r}: a variable is a text")
    return environment
