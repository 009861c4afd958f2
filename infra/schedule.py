"""A schedule of Tickwheel as a resource of a user's stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypedDict

import aws_cdk as cdk
from constructs import Construct
from pydantic import ValidationError
from typing_extensions import Unpack

from functions.api.http.requests import Rules
from functions.api.schedules.bodies import RULES, ScheduleBody
from functions.domain.errors import InvalidInput
from functions.domain.jobs.job import TENANT
from functions.domain.schedules.schedule import SCHEDULE_ID, check_new_schedule
from functions.domain.targets.kinds import SERVICES
from functions.domain.targets.targets import AllowedTargets
from infra.given_targets import GivenTarget, Target, given_target
from infra.resources import ANSWERED_WITHIN
from infra.scheduler_access import SchedulerAccess
from infra.stage_parts import InvalidStage

SCHEDULE = "Custom::TickwheelSchedule"

_LONGEST_ID = 64
"""Of an id that is made of the place of a construct."""


class InvalidDefinition(ValueError):
    """A definition that the scheduler would refuse; the message names the construct, the field and what to do."""


class Definition(TypedDict, total=False):
    """A schedule, as `PUT /v1/schedules/{id}` takes it, but for its job. Durations may be timedeltas, instants aware datetimes."""

    at: datetime | str
    cron: str
    every: timedelta | int | str | Mapping[str, Any]
    rrule: Mapping[str, Any]
    poisson: Mapping[str, Any]
    timezone: str
    gap: Literal["next_valid", "skip"]
    fold: Literal["first", "second", "both"]
    windows: Sequence[Mapping[str, Any]]
    window_mode: Literal["skip", "defer", "scale"]
    calendar: Mapping[str, Any]
    spread: timedelta | int | str
    jitter: timedelta | int | str
    start: datetime | str
    end: datetime | str
    max_runs: int
    misfire: Literal["fire_all", "coalesce", "skip"]
    max_lateness: timedelta | int | str
    overlap: Literal["allow", "forbid", "buffer_one", "replace"]
    pause_after_failures: int
    history: int
    success_history: int
    failure_history: int


class Schedule(Construct):
    """Created, changed and deleted with its stack. tenant, schedule_id: whose it is, and its id; another one is another schedule.

    schedule_id: if not given, it is made of the construct's place in the app. target: a URL, `handler:NAME`, an ARN, or a construct among the
    scheduler's `targets`. job: the other fields of its job, as the API has them; targets of callbacks may be constructs too.
    What the scheduler would refuse is refused at synthesis: InvalidDefinition.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        scheduler: SchedulerAccess,
        tenant: str,
        target: str | Target,
        schedule_id: str | None = None,
        payload: Any = None,
        job: Mapping[str, Any] | None = None,
        **definition: Unpack[Definition],
    ) -> None:
        super().__init__(scope, construct_id)
        self.tenant = tenant
        self.schedule_id = schedule_id if schedule_id is not None else _id_of(self)
        whole: dict[str, Any] = {
            **definition,
            "job": {"target": target, **({} if payload is None else {"payload": payload}), **(job or {})},
        }
        self._check(whole, scheduler)
        scheduler.stands_before(cdk.Stack.of(self))
        resource = cdk.CustomResource(
            self,
            "Resource",
            resource_type=SCHEDULE,
            service_token=scheduler.resources_arn,
            service_timeout=ANSWERED_WITHIN,
            properties={
                "Tenant": self.tenant,
                "ScheduleId": self.schedule_id,
                # As a text: CloudFormation makes texts of the numbers in an object.
                "Definition": cdk.Stack.of(self).to_json_string(_as_json(whole, _Arns(scheduler.target_arns))),
            },
        )
        self.node.default_child = resource.node.default_child

    def _check(self, whole: Mapping[str, Any], scheduler: SchedulerAccess) -> None:
        for name, value, pattern in (("tenant", self.tenant, TENANT), ("schedule_id", self.schedule_id, SCHEDULE_ID)):
            if cdk.Token.is_unresolved(value) or not pattern.fullmatch(value):
                raise InvalidDefinition(
                    f"{self.node.path}: {name} is {value!r:.80}: use a text that matches {pattern.pattern}"
                )
        stage = scheduler.stage
        rules = Rules(
            now=datetime.now(UTC),
            allow_plain_http=stage.allow_plain_http,
            max_timeout=stage.longest_attempt,
            allowed=AllowedTargets((*stage.targets, *_STAND_INS.values())),
        )
        given = [rule for rule in RULES if whole.get(rule) is not None]
        if len(given) != 1:
            raise InvalidDefinition(
                f"{self.node.path}: give exactly one of {', '.join(RULES)}, not {' and '.join(given) or 'none'}"
            )
        try:
            read = ScheduleBody.model_validate(_as_json(whole, _stand_in), context=rules)
            check_new_schedule(read.schedule(self.tenant, self.schedule_id))
        except InvalidInput as error:
            told = f"{error.field} {error}" if error.field else str(error)
            raise InvalidDefinition(f"{self.node.path}: {told}") from None
        except ValidationError as error:
            raise InvalidDefinition(f"{self.node.path}: {_told(error)}") from None


def _id_of(construct: Construct) -> str:
    return cdk.Names.unique_resource_name(
        construct, max_length=_LONGEST_ID, separator="-", allowed_special_characters="-"
    )


_STAND_INS = {
    kind: f"arn:aws:{kind}:us-east-1:{'0' * 12}:{service.prefix}stand-in" for kind, service in SERVICES.items()
}
"""For ARNs that are not known before a deployment, where a definition is checked."""


def _stand_in(target: GivenTarget) -> str:
    return _STAND_INS[target.kind]


@dataclass(frozen=True)
class _Arns:
    """The ARN of a construct, of those that the scheduler may call; None where that is not known here."""

    known: Collection[str] | None

    def __call__(self, target: GivenTarget) -> str:
        if self.known is not None and target.arn not in self.known:
            raise InvalidDefinition(
                f"a construct that is called is not among the scheduler's `targets`: give it there, as Tickwheel(…, targets=[…]); this is a target of {target.kind}"
            )
        return target.arn


def _as_json(value: Any, arn_of: Callable[[GivenTarget], str]) -> Any:
    """As the API takes it. arn_of: a construct."""
    match value:
        case None | str() | bool() | int() | float():
            return value
        case timedelta():
            seconds = value.total_seconds()
            return int(seconds) if seconds.is_integer() else seconds
        case datetime() | date():
            return value.isoformat()
        case Mapping():
            return {str(name): _as_json(each, arn_of) for name, each in value.items()}
        case list() | tuple():
            return [_as_json(each, arn_of) for each in value]
        case _:
            try:
                given = given_target(value)
            except InvalidStage:
                raise InvalidDefinition(
                    f"{value!r:.80} is neither a value of JSON, nor an instant, a duration or a target"
                ) from None
            return arn_of(given)


def _told(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, found['loc']))} {found['msg']}" for found in error.errors(include_url=False)[:5]
    )
