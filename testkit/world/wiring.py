"""One Lambda of a world, wired by the names of what it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.dead_letters.finder import LetterFinder
from functions.api.jobs.known_ids import KnownIds
from functions.api.schedules.asked_fires import AskedFires
from functions.scanner.schedule_alarms import Ringer
from functions.services.far_ring.pacer import Pacer
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.jobs.occurrences import Occurrences
from functions.services.jobs.rescheduler import Rescheduler
from functions.services.jobs.settler import Settler
from functions.services.schedules.changer import ScheduleChanger
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Asides, Pauser
from functions.services.schedules.run_ends import RunEnds
from functions.services.schedules.stops import Stops
from functions.services.targets.seating import Usher
from functions.services.tenants.submission_rates import SubmissionRates
from testkit.world.port import Port
from testkit.world.process import Process

_PARTS: dict[str, type] = {
    "placer": Placer,
    "pacer": Pacer,
    "admission": Admission,
    "submission_rates": SubmissionRates,
    "gate": Gate,
    "changer": ScheduleChanger,
    "materialiser": Materialiser,
    "occurrences": Occurrences,
    "ends": Ends,
    "runs": RunEnds,
    "settler": Settler,
    "usher": Usher,
    "finder": LetterFinder,
    "known": KnownIds,
    "stops": Stops,
    "asked": AskedFires,
    "alarms": Ringer,
    "rescheduler": Rescheduler,
    "asides": Asides,
    "pauser": Pauser,
}


class Wiring:
    """The parts of one process, each made when it is first asked for. lambdas: classes that stand in for the real ones."""

    def __init__(
        self,
        process: Process,
        *,
        stores: Mapping[str, Any],
        around: Callable[[Process, str, Callable[[], Any]], Any],
        lambdas: Mapping[type, type],
        given: Mapping[str, Any],
    ) -> None:
        self._lambdas = lambdas
        self._given = {
            **given,
            **{name: Port(process, name, store, around) for name, store in stores.items()},
            "clock": process.clock,
            "side_by_side": process.map_side_by_side,
        }

    def build(self, wanted: type, **special: Any) -> Any:
        """special: what this one is given in place of what the others get."""
        made = self._lambdas.get(wanted, wanted)
        known = {*special, *self._given, *_PARTS}
        names = [name for name, has_default in _fields_of(made) if name in known or not has_default]
        return made(**{name: special[name] if name in special else self._part(name) for name in names})

    def _part(self, name: str) -> Any:
        if name not in self._given:
            self._given[name] = self.build(_PARTS[name])
        return self._given[name]


@lru_cache
def _fields_of(made: Any) -> list[tuple[str, bool]]:
    """By name, and whether what nobody gives has a default."""
    return [(part.name, part.default is not MISSING) for part in fields(made) if part.init]
