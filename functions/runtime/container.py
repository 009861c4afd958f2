"""The parts of one process, wired by name: whatever has a field is given what has its name.

A Lambda, a process of a world on virtual time, a simulated one and a measured one differ in what they are given (stores, a
clock, chance), and in nothing of what is built of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from functions.services.far_ring.collecting import Collecting
from functions.services.far_ring.flow_limits import KnownFlowLimits
from functions.services.far_ring.flow_order import FlowOrders
from functions.services.far_ring.flow_reader import FlowReader
from functions.services.far_ring.flow_turns import FlowTurns
from functions.services.far_ring.pacer import Pacer
from functions.services.far_ring.placer import Placer
from functions.services.jobs.callback_caller import CallbackCaller
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.ends import Ends
from functions.services.jobs.flow_gate import FlowGate
from functions.services.jobs.foreign_messages import ForeignMessages
from functions.services.jobs.occurrences import Occurrences
from functions.services.jobs.rescheduler import Rescheduler
from functions.services.jobs.result_keeper import ResultKeeper
from functions.services.jobs.settler import Settler
from functions.services.schedules.changer import ScheduleChanger
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Asides, Pauser
from functions.services.schedules.run_ends import RunEnds
from functions.services.schedules.stops import Stops
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Breakers
from functions.services.targets.concurrency_limiter import ConcurrencyLimiter
from functions.services.telemetry.pulse import PulseTally
from functions.services.telemetry.usage import UsageTally
from functions.services.tenants.plans import KnownPlans
from functions.services.tenants.submission_rates import SubmissionRates

Built = TypeVar("Built")

SERVICES: Mapping[str, type] = MappingProxyType(
    {
        "asides": Asides,
        "breakers": Breakers,
        "callbacks": CallbackCaller,
        "canceller": Canceller,
        "changer": ScheduleChanger,
        "collecting": Collecting,
        "conditions": KnownConditions,
        "ends": Ends,
        "flow_gate": FlowGate,
        "flow_limits": KnownFlowLimits,
        "flow_orders": FlowOrders,
        "flow_reader": FlowReader,
        "flow_turns": FlowTurns,
        "foreign": ForeignMessages,
        "limiter": ConcurrencyLimiter,
        "materialiser": Materialiser,
        "occurrences": Occurrences,
        "pacer": Pacer,
        "pauser": Pauser,
        "placer": Placer,
        "plans": KnownPlans,
        "pulse": PulseTally,
        "rescheduler": Rescheduler,
        "result_keeper": ResultKeeper,
        "runs": RunEnds,
        "settler": Settler,
        "stops": Stops,
        "submission_rates": SubmissionRates,
        "tally": UsageTally,
    }
)
"""What is built where it is asked for, by the names of the fields that ask."""


class Given(Protocol):
    """What is not built: adapters, functions, constants."""

    def __contains__(self, name: object, /) -> bool:
        """Whether it has something of this name."""
        ...

    def __getitem__(self, name: str, /) -> Any:
        """What has this name."""
        ...


class Container:
    """Builds each part once, when it is first asked for.

    given: comes first. parts: beside the services. instead: classes that stand in for others, in tests of the tests.
    """

    def __init__(
        self,
        given: Given,
        *,
        parts: Mapping[str, type] = MappingProxyType({}),
        instead: Mapping[type, type] = MappingProxyType({}),
    ) -> None:
        self._given = given
        self._parts = {**SERVICES, **parts}
        self._instead = instead
        self._built: dict[str, Any] = {}

    def build(self, wanted: type[Built], **special: Any) -> Built:
        """A new one. special: what this one is given in place of what the others get.

        A field that has a default and that nobody knows by its name keeps it. Raises KeyError for one without a default.
        """
        made = self._instead.get(wanted, wanted)
        names = [
            name for name, has_default in _fields_of(made) if name in special or self._knows(name) or not has_default
        ]
        return made(**{name: special[name] if name in special else self[name] for name in names})

    def __getitem__(self, name: str) -> Any:
        """The part of this name. Raises KeyError."""
        if name in self._given:
            return self._given[name]
        if name not in self._built:
            self._built[name] = self.build(self._parts[name])
        return self._built[name]

    def _knows(self, name: str) -> bool:
        return name in self._given or name in self._parts


@lru_cache
def _fields_of(made: Any) -> list[tuple[str, bool]]:
    """By name, and whether there is a default."""
    return [
        (part.name, part.default is not MISSING or part.default_factory is not MISSING)
        for part in fields(made)
        if part.init
    ]
