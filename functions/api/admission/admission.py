"""Whether a tenant may submit something: by its plan, its rate, and how the stage does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from functions.domain import errors
from functions.domain.jobs.job import Priority
from functions.domain.jobs.submission import Submission
from functions.domain.targets.flows import FlowId, FlowScope, NamedFlow
from functions.ports.recorder import Journal
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.flow_limits import KnownFlowLimits
from functions.services.stage.conditions import KnownConditions
from functions.services.tenants.submission_rates import SubmissionRates

TOO_MUCH = (errors.RateExceeded, errors.QuotaExceeded, errors.BacklogExceeded)
"""What keeps jobs out that come too fast, or are too many."""

SHED_FOR = timedelta(minutes=1)
"""How the stage stands is published once a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Checks what is submitted against the plans of tenants and the state of the stage."""

    plans: TenantPlans
    submission_rates: SubmissionRates
    conditions: KnownConditions
    flow_limits: KnownFlowLimits
    journal: Journal

    def check_open(self, tenant: str) -> None:
        """It takes something in. Raises TenantClosed."""
        plan = self.plans.of(tenant)
        if plan.is_closed:
            raise errors.TenantClosed(tenant, plan.status.value)

    def check_priority(self, tenant: str, priority: Priority) -> None:
        """Its jobs may have this class. Raises PriorityNotAllowed."""
        top = self.plans.of(tenant).top_priority
        if priority < top:
            raise errors.PriorityNotAllowed(tenant, priority=priority.name.lower(), top=top.name.lower())

    def check(self, tenant: str, priority: Priority) -> None:
        """It takes something of this class in. Raises TenantClosed, PriorityNotAllowed."""
        self.check_open(tenant)
        self.check_priority(tenant, priority)

    def check_flows(self, tenant: str, flows: Sequence[NamedFlow], *, field: str = "flow") -> None:
        """Somebody has set limits for each of the stage's flows among these. Raises InvalidJob.

        A tenant's own flow may be named before it has any. Half a read unit for a flow of the stage, once in a while; none
        for others. field: in which they were named.
        """
        for place, named in enumerate(flows):
            is_of_stage = named.scope is FlowScope.STAGE
            if is_of_stage and self.flow_limits.of(FlowId(named.owner_of(tenant), named.key)) is None:
                raise errors.InvalidJob(
                    f"names a flow of the stage that has no limits: an operator sets them with PUT /v1/flows/{named.key}, "
                    "and they are known everywhere within a minute",
                    field=f"{field}.{place}.key",
                    value=named.key,
                )

    def check_shed(self, priority: Priority) -> None:
        """The stage takes jobs of this class in. Raises Shed."""
        conditions = self.conditions.now()
        if conditions is not None and priority in conditions.shed:
            self.journal.count("submissions_shed")
            lag = timedelta(seconds=max(conditions.lags.values(), default=0))
            raise errors.Shed(priority.name.lower(), lag=lag, retry_after=SHED_FOR)

    def take(self, submissions: Sequence[Submission]) -> list[errors.TickwheelError | None]:
        """What keeps each submission out, in order: of a tenant that is too fast, the last ones. None lets it in.

        A write for each tenant among them whose rate is limited, a second one after a while of none.
        """
        refused: dict[int, errors.TickwheelError] = {}
        by_tenant: dict[str, list[int]] = {}
        for index, submission in enumerate(submissions):
            by_tenant.setdefault(submission.tenant, []).append(index)
        for tenant, indexes in by_tenant.items():
            count, refusal = self.take_many(tenant, len(indexes))
            refused |= {index: refusal for index in indexes[count:] if refusal is not None}
        return [refused.get(index) for index in range(len(submissions))]

    def take_many(self, tenant: str, asked: int) -> tuple[int, errors.TickwheelError | None]:
        """How many jobs of a tenant may come in now, and what keeps the next one out, where one is."""
        taken = self.submission_rates.take(tenant, asked)
        if taken.refusal is not None:
            self.journal.count("submissions_throttled", asked - taken.count)
        return taken.count, taken.refusal

    def take_one(self, tenant: str) -> None:
        """Something comes in that makes the work of a job, and waits already. Raises RateExceeded."""
        _, refusal = self.take_many(tenant, 1)
        if refusal is not None:
            raise refusal
