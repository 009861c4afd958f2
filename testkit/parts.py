"""What a world is made of beside the services: the parts of every Lambda, by the names of the fields that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from functions.api.parts import PARTS as API_PARTS
from functions.operations.apply_to_job import Applier
from functions.scanner.parts import PARTS as SCANNER_PARTS
from functions.worker.parts import PARTS as WORKER_PARTS

PARTS: Mapping[str, type] = MappingProxyType(
    {
        **SCANNER_PARTS,
        **WORKER_PARTS,
        **API_PARTS,
        "applier": Applier,
    }
)
