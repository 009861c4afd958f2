"""Operations on many jobs: an owner asks for one, and ticks carry it on. Each is a process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.api.operations.manager import Asked, OperationManager
from functions.domain.errors import AlreadySettled, TooLate
from functions.domain.jobs.job_id import JobId
from functions.operations.apply_to_job import Applier
from functions.operations.executor import OperationExecutor
from functions.services.jobs.canceller import Canceller
from testkit.world.clients import REQUEST_LIMIT
from testkit.world.host import FUNCTION_LIMIT, Host
from testkit.world.operated import OPERATES
from testkit.world.process import SMOOTHLY, Conditions, Process
from testkit.world.promises import Promises


@dataclass(frozen=True)
class _Told:
    """A canceller whose answers are promises, as if each job had been cancelled by a request of its own."""

    canceller: Canceller
    promises: Promises
    process: Process

    def cancel(self, job_id: JobId, *, caller: str = "") -> bool:
        expected = self.promises.jobs.get(str(job_id))
        try:
            is_cancelled = self.canceller.cancel(job_id, caller=caller)
        except (AlreadySettled, TooLate):
            if expected is not None:
                expected.removed_by.discard(self.process.name)
            raise
        if expected is not None:
            tell = self.promises.cancelled if is_cancelled else self.promises.cancel_requested
            tell(str(job_id))
        return is_cancelled


class Operations(Host):
    """Requests for operations, and turns of them."""

    def ask_for(self, asked: Asked, conditions: Conditions = SMOOTHLY) -> Process:
        """An owner asks for an operation."""
        process = self.process("ask", conditions, limit=REQUEST_LIMIT)
        number = process.name.rpartition("#")[2]
        manager = self.build(OperationManager, process, identity=lambda: f"{number:>025}")
        return self.begin(process, lambda: manager.accept(asked, key=None, caller="owner"), conditions)

    def stop(self, tenant: str, operation_id: str, conditions: Conditions = SMOOTHLY) -> Process:
        """An owner stops one."""
        process = self.process("stop", conditions, limit=REQUEST_LIMIT)
        manager = self.build(OperationManager, process)
        return self.begin(process, lambda: manager.stop(tenant, operation_id, caller="owner"), conditions)

    def operate(self, conditions: Conditions = SMOOTHLY, *, time_limit: timedelta = FUNCTION_LIMIT) -> Process:
        """One tick: a turn of each that is open."""
        process = self.process(OPERATES, conditions)
        canceller = _Told(self.build(Canceller, process), self.promises, process)
        applier = self.build(Applier, process, canceller=canceller)
        executor = self.build(OperationExecutor, process, applier=applier)
        return self.begin(process, lambda: executor.carry_on(time_limit=time_limit), conditions)
