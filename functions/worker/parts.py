"""What a worker is made of, by the names of the fields that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from functions.worker.attempt import Attempts
from functions.worker.claimer import Claimer
from functions.worker.invocation import Invoker
from functions.worker.keeper import Keeper
from functions.worker.preconditions import Preconditions
from functions.worker.releases import Releases
from functions.worker.start import Starts

PARTS: Mapping[str, type] = MappingProxyType(
    {
        "attempts": Attempts,
        "claimer": Claimer,
        "invoker": Invoker,
        "keeper": Keeper,
        "preconditions": Preconditions,
        "releases": Releases,
        "starts": Starts,
    }
)
