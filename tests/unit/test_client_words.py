"""The client does not import the scheduler: that it offers the same words is held here."""

from enum import StrEnum
from typing import Any, get_args

import pytest

from functions.domain.jobs.job import Delivery, Precision
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import Strategy
from functions.domain.operations.operation import OperationKind, OperationState
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.schedule import Misfire, Roll, WindowMode
from functions.domain.stage.health import HealthStatus
from functions.domain.targets.flows import FlowScope
from functions.domain.targets.options import Method
from functions.domain.wheel import Ring
from tickwheel.client import flows, health, jobs, operations, schedule_parts, schedules


@pytest.mark.parametrize(
    ("offered", "known"),
    [
        (health.HealthStatus, HealthStatus),
        (flows.Scope, FlowScope),
        (jobs.Delivery, Delivery),
        (jobs.Method, Method),
        (jobs.Precision, Precision),
        (jobs.Ring, Ring),
        (jobs.Strategy, Strategy),
        (operations.Action, OperationKind),
        (operations.OperationState, OperationState),
        (schedule_parts.Roll, Roll),
        (schedules.Fold, Fold),
        (schedules.Gap, Gap),
        (schedules.Misfire, Misfire),
        (schedules.Overlap, Overlap),
        (schedules.WindowMode, WindowMode),
    ],
)
def test_the_client_offers_the_words_that_the_scheduler_takes(offered: Any, known: type[StrEnum]):
    assert list(get_args(offered)) == [word.value for word in known]
