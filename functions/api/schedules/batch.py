"""Many schedules in one request, each judged by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from functions.api.admission.admission import Admission
from functions.api.http.problems import Misshapen
from functions.api.http.requests import Rules, StrictModel, Tenant
from functions.api.schedules.asked_change import Asking
from functions.api.schedules.bodies import read_schedule
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.standing import PutKind, Standing, standing_of
from functions.domain.errors import InvalidSchedule, NotPlaced, TickwheelError
from functions.domain.faults import fault_of
from functions.domain.schedules.schedule import Schedule, check_new_schedule
from functions.domain.schedules.state import Status
from functions.domain.schedules.step_budget import STEPS_OF_A_REQUEST, Budget
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.schedules import MOST_TOGETHER, ScheduleAndState
from functions.services.schedules.caught_up import CaughtUpChanger
from functions.services.schedules.changer import ScheduleChanger
from functions.services.schedules.materialiser import Carried, Chain, Materialiser

BEGIN_WITHIN, CARRY_WITHIN = 6.0, 3.0
"""Seconds of a request after which no other schedule of it is begun, and those in which first fires are worked out then. One that waits
for its turn may take six, and an answer has 16."""


class ScheduleBatchBody(
    StrictModel,
    json_schema_extra={
        "examples": [
            {
                "schedules": [
                    {"tenant": "acme", "id": "nightly", "cron": "0 3 * * *", "job": {"target": "handler:echo"}},
                    {"tenant": "acme", "id": "hourly", "every": 3_600, "job": {"target": "handler:echo"}},
                ]
            }
        ]
    },
):
    """Up to 25 schedules, each with its tenant and id. Each is checked separately, so an invalid one does not prevent the others."""

    schedules: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_TOGETHER)]


class _Name(BaseModel):
    """The name of a definition: the rest of it is read by itself."""

    tenant: Tenant
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A schedule that is stored as it was asked for."""

    standing: Standing
    kind: PutKind


@dataclass(slots=True)
class _Answers:
    """What became of each schedule, by its number from 0. Of a name that was asked for twice only the first one is put."""

    refused: dict[int, Exception] = field(default_factory=dict[int, Exception])
    put: dict[int, tuple[Asking, ScheduleAndState]] = field(default_factory=dict[int, tuple[Asking, ScheduleAndState]])
    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def enter(self, schedule: Schedule, number: int) -> None:
        """Raises InvalidSchedule where another one of the request has its name."""
        first = self.numbers.setdefault(schedule.uid, number)
        if first != number:
            raise InvalidSchedule(
                f"is also that of schedule {first} of this request, counted from 0: give each of them once",
                field="id",
                value=schedule.schedule_id,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleBatch:
    """Puts many schedules: those of a tenant are written together where that goes, and their first fires are placed together."""

    manager: ScheduleManager
    admission: Admission
    changer: ScheduleChanger
    materialiser: Materialiser
    clock: Clock
    journal: Journal

    def put(self, bodies: Sequence[Any], rules: Rules, *, caller: str = "") -> list[Put | Exception]:
        """An answer each, in order: put, or the Misshapen or TickwheelError that refuses it. Putting any of them again is safe."""
        answers = _Answers()
        schedules: dict[int, Schedule] = {}
        for number, body in enumerate(bodies):
            try:
                schedules[number] = self.read(body, rules)
            except Exception as error:  # noqa: BLE001  it is that of one: those beside it are put
                answers.refused[number] = self._refusal(error, tenant=_tenant_of(body))
        self._put(schedules, answers, caller=caller)
        return self._in_order(answers, count=len(bodies))

    def put_read(self, schedules: Sequence[Schedule], *, caller: str = "") -> list[Put | Exception]:
        """As `put`, of schedules that their tenants may have."""
        answers = _Answers()
        self._put(dict(enumerate(schedules)), answers, caller=caller)
        return self._in_order(answers, count=len(schedules))

    def read(self, body: Any, rules: Rules) -> Schedule:
        """A schedule that its tenant may have. Raises Misshapen, and what refuses it."""
        try:
            name = _Name.model_validate(body)
        except ValidationError as error:
            raise Misshapen(InvalidSchedule, error) from None
        definition = {key: value for key, value in body.items() if key not in _Name.model_fields}
        schedule = check_new_schedule(read_schedule(definition, rules).schedule(name.tenant, name.id))
        self.admission.check(schedule.tenant, schedule.job.priority)
        self.admission.check_flows(schedule.tenant, schedule.job.flows, field="job.flow")
        return schedule

    def _put(self, schedules: Mapping[int, Schedule], answers: _Answers, *, caller: str) -> None:
        ends_at = self.clock.monotonic() + BEGIN_WITHIN
        by_tenant: dict[str, dict[str, Asking]] = {}
        for number, schedule in schedules.items():
            try:
                answers.enter(schedule, number)
                asking = self.manager.asking_to_put(schedule, caller=caller)
            except Exception as error:  # noqa: BLE001  as above
                answers.refused[number] = self._refusal(error, tenant=schedule.tenant)
            else:
                by_tenant.setdefault(schedule.tenant, {})[asking.key] = asking
        for tenant, askings in by_tenant.items():
            self._change(askings, answers, tenant=tenant, ends_at=ends_at)
        self._carry_on(answers)

    def _change(self, askings: Mapping[str, Asking], answers: _Answers, *, tenant: str, ends_at: float) -> None:
        caught_up = CaughtUpChanger(changer=self.changer, materialiser=self.materialiser)
        try:
            changed = caught_up.change_many({key: each.edit for key, each in askings.items()}, ends_at=ends_at)
        except Exception as error:  # noqa: BLE001  a store failed, for this tenant
            changed = dict.fromkeys(askings, self._refusal(error, tenant=tenant))
        for key, asking in askings.items():
            answer, number = changed[key], answers.numbers[key]
            if isinstance(answer, Exception):
                answers.refused[number] = answer
            else:
                asking.note(*answer)
                answers.put[number] = asking, answer

    def _carry_on(self, answers: _Answers) -> None:
        """Place the first fires of those that have changed, and of those of which it is not recorded that they are placed."""
        now, ends_at = self.clock.now(), self.clock.monotonic() + CARRY_WITHIN
        chains: dict[int, Chain] = {}
        for number, (_, (stored, state)) in answers.put.items():
            assert stored is not None
            assert state is not None
            is_placed = state.alarm_at is not None and state.alarm_at > now
            if state.status is Status.ACTIVE and state.link is not None and not is_placed:
                chains[number] = Chain(stored, state.link)
        for number, carried in zip(
            chains, self.materialiser.materialise(list(chains.values()), ends_at=ends_at), strict=True
        ):
            if carried is Carried.REFUSED:
                answers.refused[number] = NotPlaced(["the schedule is stored, but its next fire is not placed yet"])

    def _in_order(self, answers: _Answers, *, count: int) -> list[Put | Exception]:
        now, budget = self.clock.now(), Budget(STEPS_OF_A_REQUEST)
        found: list[Put | Exception] = []
        for number in range(count):
            refusal = answers.refused.get(number)
            if refusal is not None:
                found.append(refusal)
                continue
            asking, (stored, state) = answers.put[number]
            assert stored is not None
            assert state is not None
            before = asking.found
            kind = PutKind.UPDATED if before is None or before.version != stored.version else PutKind.UNCHANGED
            kind = PutKind.CREATED if before is None else kind
            found.append(Put(standing=standing_of(stored, state, now=now, budget=budget), kind=kind))
        return found

    def _refusal(self, error: Exception, *, tenant: str) -> Exception:
        if isinstance(error, TickwheelError | Misshapen):
            return error
        self.journal.event("submission_failed", tenant=tenant, error=fault_of(error))
        return NotPlaced([f"a store failed: {type(error).__name__}"])


def _tenant_of(body: Any) -> str:
    tenant = body.get("tenant") if isinstance(body, dict) else None
    return tenant if isinstance(tenant, str) else ""
