"""One Lambda of a world: the stores behind ports, everything else as every process has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from functions.api.admission.gate import Gate
from functions.api.schedules.asked_fires import AskedFires
from functions.runtime.container import Container
from testkit.parts import PARTS
from testkit.world.port import Port
from testkit.world.process import Process

_PARTS: Mapping[str, type] = {**PARTS, "gate": Gate, "asked": AskedFires}


def wiring_of(
    process: Process,
    *,
    stores: Mapping[str, Any],
    around: Callable[[Process, str, Callable[[], Any]], Any],
    lambdas: Mapping[type, type],
    given: Mapping[str, Any],
) -> Container:
    """The parts of one process. lambdas: classes that stand in for the real ones."""
    everything = {
        **given,
        **{name: Port(process, name, store, around) for name, store in stores.items()},
        "clock": process.clock,
        "end_side_by_side": process.map_side_by_side,
        "side_by_side": process.map_side_by_side,
    }
    return Container(everything, parts=_PARTS, instead=lambdas)
