"""Where processes begin: what their operations need of a world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from testkit.fakes import FakeClock, InMemoryReadyQueue
from testkit.world.process import Conditions, Process
from testkit.world.promises import Promises
from testkit.world.stores import SeenShards

FUNCTION_LIMIT = timedelta(seconds=60)


class Host(ABC):
    """first_seen: when the consumer of the dead-letter queues was first given a message."""

    clock: FakeClock
    ready: InMemoryReadyQueue
    shards: SeenShards
    promises: Promises
    first_seen: dict[str, datetime]

    @abstractmethod
    def process(self, kind: str, conditions: Conditions, *, limit: timedelta = FUNCTION_LIMIT) -> Process:
        """A new process."""

    @abstractmethod
    def build(
        self, wanted: type, process: Process, *, given: Mapping[str, Any] = MappingProxyType({}), **special: Any
    ) -> Any:
        """What a process runs. given: to all that it is made of; special: to it alone."""

    @abstractmethod
    def begin(self, process: Process, body: Callable[[], Any], conditions: Conditions) -> Process:
        """Run it, or hold it at its first call."""
