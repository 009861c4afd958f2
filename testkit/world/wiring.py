"""One Lambda of a world: the stores behind ports, everything else as every process has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.dead_letters.finder import LetterFinder
from functions.api.jobs.known_ids import KnownIds
from functions.api.schedules.asked_fires import AskedFires
from functions.runtime.container import Container
from functions.scanner.parts import PARTS as SCANNER_PARTS
from functions.services.targets.seating import Usher
from functions.worker.parts import PARTS as WORKER_PARTS
from testkit.world.port import Port
from testkit.world.process import Process

_PARTS: Mapping[str, type] = {
    "admission": Admission,
    "gate": Gate,
    "usher": Usher,
    "finder": LetterFinder,
    "known": KnownIds,
    "asked": AskedFires,
    **SCANNER_PARTS,
    **WORKER_PARTS,
}


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
        "side_by_side": process.map_side_by_side,
    }
    return Container(everything, parts=_PARTS, instead=lambdas)
