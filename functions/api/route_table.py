"""Every route of the API: what the router answers, the gateway lets through, and the description describes."""

from __future__ import annotations

from functions.api.dead_letters.routes import routes as dead_letters
from functions.api.http.route import Route
from functions.api.jobs.routes import routes as jobs
from functions.api.operations.routes import routes as operations
from functions.api.schedules.routes import routes as schedules
from functions.api.stage.routes import routes as stage
from functions.api.targets.flow_routes import routes as flows
from functions.api.targets.routes import routes as targets
from functions.api.tenants.routes import routes as tenants

ROUTES: tuple[Route, ...] = (
    *jobs.declared,
    *schedules.declared,
    *dead_letters.declared,
    *targets.declared,
    *flows.declared,
    *operations.declared,
    *tenants.declared,
    *stage.declared,
)
