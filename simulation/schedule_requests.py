"""Schedules that are put by way of the API: the deployed route, and what each request takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.http.problems import Misshapen, Refusals
from functions.api.http.reading import Request
from functions.api.http.requests import Rules
from functions.api.schedules.batch import ScheduleBatch
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.routes import ScheduleServices, put_schedule
from functions.domain.errors import TickwheelError
from functions.runtime.container import Container
from simulation.network import Throttled
from simulation.wiring import Surroundings


@dataclass(frozen=True, slots=True)
class Put:
    """A request to put a schedule. body: its definition, as JSON has it."""

    tenant: str
    schedule_id: str
    body: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Of the schedule."""
        return f"{self.tenant}#{self.schedule_id}"

    def request(self) -> Request:
        """As the gateway hands it on."""
        event = {"body": json.dumps(self.body), "queryStringParameters": {"tenant": self.tenant}, "requestContext": {}}
        return Request(APIGatewayProxyEventV2(event), {"id": self.schedule_id})


@dataclass(slots=True)
class PutCounts:
    """What has become of them: of the sample, but for the units.

    created: keys, with when that was answered (s). refused: by the error. writes, reads: units of DynamoDB, as of the whole
    stage. steps: of 5 KB, of the audit trail.
    """

    asked: int = 0
    created: dict[str, float] = field(default_factory=dict[str, float])
    refused: Counter[str] = field(default_factory=Counter[str])
    writes: float = 0.0
    reads: float = 0.0
    steps: int = 0


class PutRoute:
    """The route in one environment of the API function."""

    def __init__(self, around: Surroundings, container: Container) -> None:
        manager = container.build(ScheduleManager, limits=lambda tenant: around.plans.of(tenant).load_limits)
        puts = container.build(ScheduleBatch, manager=manager)
        refusals, rules = container.build(Refusals), self._rules_of(around, container)
        self._services = container.build(ScheduleServices, manager=manager, puts=puts, refusals=refusals, rules=rules)

    def answer(self, put: Put) -> str | None:
        """Put it; by which error it was refused, if it was."""
        try:
            put_schedule(self._services, put.request(), put.schedule_id)
        except (TickwheelError, Misshapen, Throttled) as error:
            return type(error).__name__
        return None

    @staticmethod
    def _rules_of(around: Surroundings, container: Container) -> Callable[[], Rules]:
        stage = around.size.stage
        return lambda: Rules(
            now=container["clock"].now(),
            allow_plain_http=stage.allow_plain_http,
            allowed=stage.allowed_targets,
            max_timeout=stage.longest_attempt,
        )
