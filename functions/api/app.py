"""What answers the routes of the API, made of the parts that it is given: those of a Lambda, or of a scheduler in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from pydantic import ValidationError

from functions.api.dead_letters.routes import DeadLetterServices
from functions.api.dead_letters.routes import routes as dead_letter_routes
from functions.api.http.access_check import AccessCheck
from functions.api.http.answers import problem_answer
from functions.api.http.problems import Misshapen, Refusals, problem
from functions.api.http.read_rates import ReadRates
from functions.api.http.requests import Rules
from functions.api.http.route import Routes
from functions.api.http.router import serve
from functions.api.jobs.explain import Explainer
from functions.api.jobs.find import Finder
from functions.api.jobs.routes import JobServices
from functions.api.jobs.routes import routes as job_routes
from functions.api.operations.manager import OperationManager
from functions.api.operations.routes import routes as operation_routes
from functions.api.schedules.batch import ScheduleBatch
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.routes import ScheduleServices
from functions.api.schedules.routes import routes as schedule_routes
from functions.api.stage.health import HealthReader
from functions.api.stage.pulse import PulseReader
from functions.api.stage.routes import StageServices
from functions.api.stage.routes import routes as stage_routes
from functions.api.targets.flow_routes import FlowServices
from functions.api.targets.flow_routes import routes as flow_routes
from functions.api.targets.routes import BreakerServices
from functions.api.targets.routes import routes as breaker_routes
from functions.api.tenants.manager import TenantManager
from functions.api.tenants.routes import TenantServices
from functions.api.tenants.routes import routes as tenant_routes
from functions.domain.errors import TickwheelError
from functions.domain.targets.handler_names import HandlerNames
from functions.ports.targets import WebhookKeys
from functions.runtime.settings import ApiSettings
from functions.runtime.wiring import identity

Built = TypeVar("Built")


class Parts(Protocol):
    """What the services are built of, by the names of their fields."""

    def build(self, wanted: type[Built], **special: Any) -> Built:
        """A new one. special: what this one is given in place of what the others get."""
        ...

    def __getitem__(self, name: str, /) -> Any:
        """The part of this name, as all have it that are built."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """resolver: answers events of the gateway. rules, refusals: for what comes by other ways."""

    resolver: APIGatewayHttpResolver
    rules: Callable[[], Rules]
    refusals: Refusals


def app_of(
    parts: Parts,
    settings: ApiSettings,
    *,
    webhook_keys: WebhookKeys,
    handlers: Callable[[], HandlerNames | None],
    document: Callable[[], str],
    report: Callable[[Exception], None],
) -> App:
    """All routes. handlers: those that jobs may name. document: their description. report: is called with what a request failed with."""
    refusals = parts.build(Refusals)

    def rules() -> Rules:
        known = handlers()
        return Rules(
            now=parts["clock"].now(),
            allow_plain_http=settings.ALLOW_PLAIN_HTTP,
            allowed=settings.ALLOWED_TARGETS,
            handlers=None if known is None else known.of_a_request(),
            max_timeout=timedelta(seconds=settings.MAX_TIMEOUT_SECONDS),
        )

    resolver = APIGatewayHttpResolver()
    access_check = parts.build(AccessCheck, operators=settings.OPERATORS, tenant_claim=settings.JWT_TENANT_CLAIM)
    read_rates = parts.build(ReadRates)
    for routes, services in _services(parts, settings, refusals, rules, webhook_keys, document):
        serve(resolver, routes, services, checks=(access_check.check, read_rates.check))
    _answer_errors(resolver, refusals, report)
    return App(resolver=resolver, rules=rules, refusals=refusals)


def _services(  # noqa: PLR0917  what the routes of one feature or another need
    parts: Parts,
    settings: ApiSettings,
    refusals: Refusals,
    rules: Callable[[], Rules],
    webhook_keys: WebhookKeys,
    document: Callable[[], str],
) -> tuple[tuple[Routes, Any], ...]:
    """What answers the routes of each resource."""
    breakers, plans, backlogs = parts["breaker_store"], parts["plans"], parts["quota"].backlog
    finder = parts.build(Finder)
    explainer = parts.build(Explainer, finder=finder, breakers=breakers, backlogs=backlogs)
    schedules = parts.build(
        ScheduleManager,
        limits=lambda tenant: plans.of(tenant).load_limits,
        default_spread=lambda tenant: plans.of(tenant).default_spread,
    )
    tenants = parts.build(
        TenantManager, store=parts["tenants"], usage=parts["usage_store"], plans=settings.PLANS, backlogs=backlogs
    )
    return (
        (job_routes, parts.build(JobServices, finder=finder, explainer=explainer, refusals=refusals, rules=rules)),
        (
            schedule_routes,
            parts.build(
                ScheduleServices,
                manager=schedules,
                puts=parts.build(ScheduleBatch, manager=schedules),
                refusals=refusals,
                rules=rules,
            ),
        ),
        (dead_letter_routes, parts.build(DeadLetterServices)),
        (breaker_routes, parts.build(BreakerServices, breaker_store=breakers)),
        (flow_routes, parts.build(FlowServices)),
        (operation_routes, parts.build(OperationManager, identity=identity)),
        (tenant_routes, TenantServices(manager=tenants, webhook_keys=webhook_keys)),
        (
            stage_routes,
            StageServices(
                health=parts.build(
                    HealthReader, stage=settings.STAGE, breakers=breakers, pulse=parts.build(PulseReader)
                ),
                document=document,
            ),
        ),
    )


def _answer_errors(resolver: APIGatewayHttpResolver, refusals: Refusals, report: Callable[[Exception], None]) -> None:
    @resolver.exception_handler([ValidationError, Misshapen, TickwheelError])
    def on_refused(error: Exception) -> Response[str]:  # pyright: ignore[reportUnusedFunction]  the resolver has it
        """Answer an error as a problem."""
        return problem_answer(refusals.problem(error))

    @resolver.exception_handler(Exception)
    def on_unexpected(error: Exception) -> Response[str]:  # pyright: ignore[reportUnusedFunction]
        """A store failed, or there is a fault in Tickwheel: the log says which."""
        report(error)
        title = "Something failed; submit or ask again"
        return problem_answer(problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", title))

    @resolver.not_found
    def no_route(_: NotFoundError) -> Response[str]:  # pyright: ignore[reportUnusedFunction]
        """Answer that there is no such route."""
        return problem_answer(problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route"))
