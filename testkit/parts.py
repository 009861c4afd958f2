"""What a world is made of beside the services: the parts of every Lambda, by the names of the fields that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from functions.api.admission.admission import Admission
from functions.api.admission.quota import Quota
from functions.api.dead_letters.finder import DeadLetterFinder
from functions.api.jobs.batch_intake import BatchIntake
from functions.api.jobs.intake import Intake
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.submit import Submitter
from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.extra_runs import ExtraRuns
from functions.operations.apply_to_job import Applier
from functions.scanner.parts import PARTS as SCANNER_PARTS
from functions.worker.parts import PARTS as WORKER_PARTS

PARTS: Mapping[str, type] = MappingProxyType(
    {
        **SCANNER_PARTS,
        **WORKER_PARTS,
        "admission": Admission,
        "applier": Applier,
        "asked": AskedFires,
        "extra_runs": ExtraRuns,
        "batch": BatchIntake,
        "finder": DeadLetterFinder,
        "intake": Intake,
        "known": KnownIds,
        "quota": Quota,
        "submitter": Submitter,
    }
)
