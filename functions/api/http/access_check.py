"""The one place that decides whether a caller may ask, before a route reads or writes anything.

A caller must be allowed to act for each tenant that his request names. So nobody learns from an answer whether what belongs to
another tenant exists.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.api.http.reading import Request
from functions.api.http.route import Route
from functions.domain.errors import Forbidden, TenantClosed
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.tenants.access import Caller, is_operator, may_act
from functions.ports.tenants import TenantPlans


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCheck:
    """Stands before every route. operators: patterns of who may act for everybody.

    tenant_claim: of a token, which names its tenant; empty where the stage takes no tokens.
    """

    plans: TenantPlans
    operators: tuple[str, ...]
    tenant_claim: str = ""

    def check(self, route: Route, request: Request) -> None:
        """Whether a request may reach its route. Raises Forbidden, TenantClosed."""
        self._check_caller(route, request)
        if route.method != "GET" and not route.judges_each:
            for tenant in route.access.tenants_of(request):
                self._check_not_deleted(tenant)

    def _check_caller(self, route: Route, request: Request) -> None:
        caller = request.identity(tenant_claim=self.tenant_claim)
        if route.access.is_open or is_operator(caller, self.operators):
            return
        tenants = route.access.tenants_of(request)
        if route.access.for_operators or (route.access.is_stages_without and not tenants):
            raise Forbidden(
                caller.shown, remedy="ask one, or sign as the role that the stage's output OperatorRoleArn names"
            )
        for tenant in tenants:
            self._check_tenant(caller, tenant)

    def _check_not_deleted(self, tenant: str) -> None:
        """Nothing is written for who is deleted, not even that a job is cancelled. Raises TenantClosed."""
        plan = self.plans.of(tenant)
        if plan.is_deleted:
            raise TenantClosed(tenant, plan.status.value)

    def _check_tenant(self, caller: Caller, tenant: str) -> None:
        if tenant == NO_TENANT:
            raise Forbidden(caller.shown, remedy="what belongs to no tenant is for operators")
        # A token says for whom it is: no plan is needed for that.
        principals = () if caller.is_token else self.plans.of(tenant).principals
        if not may_act(caller, tenant, principals=principals, operators=self.operators):
            raise Forbidden(caller.shown, tenant=tenant, remedy=_remedy(caller, tenant))


def _remedy(caller: Caller, tenant: str) -> str:
    if caller.is_token:
        return f"its token names tenant {caller.tenant}" if caller.tenant else "its token names no tenant"
    return f"an operator allows it by `tickwheel tenant set {tenant} --principal {caller.shown}`"
