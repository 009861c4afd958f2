"""A rule that makes a job of an event: what a stage may say of it, and the template that EventBridge fills in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from functions.api.http.requests import Rules
from functions.api.jobs.bodies import BATCH_LIMIT, JobBody
from functions.domain.targets.handler_names import HandlerNames
from infra.stage_parts import InvalidStage

MOST_RULES = 50
"""Of the 300 that a bus may have (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html)."""

MOST_PATHS = 99
"""EventBridge takes 100, of which one is for the event's id
(https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_InputTransformer.html)."""

MOST_OF_A_TEMPLATE = 8_192
"""Characters: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_InputTransformer.html"""

MOST_OF_A_PATTERN = 4_096
"""Characters: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html"""

MOST_OF_A_PATH = 256

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
"""Of a rule: with the stage's it has room in the 64 characters of EventBridge's, and in an idempotency key."""

_CALLED = ("target", "on_success", "on_failure", "on_end")

EVENT_ID = "tickwheel-event-id"
"""The variable that EventBridge puts the event's id into."""

_BUS = re.compile(r"[A-Za-z0-9._/-]{1,256}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_PATH = re.compile(r"\$(\.[A-Za-z0-9_/-]+(\[([0-9]+|\*)\])?)+", re.ASCII)
_PLACEHOLDER = re.compile(r"<([A-Za-z0-9_.-]+)>", re.ASCII)
_TEXTS_OF_EVENTS = frozenset({"aws.events.rule-arn", "aws.events.rule-name", "aws.events.event.ingestion-time"})
_WHOLE_EVENTS = frozenset({"aws.events.event", "aws.events.event.json"})
"""Variables that EventBridge has by itself; the last are JSON, and can only be a value by themselves
(https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRule:
    """Events of a bus that become jobs of a tenant.

    pattern: which events, as EventBridge has it. paths: variables, each with the JSON path of its value in the event.
    job: a body of the API, a job or {"jobs": [...]}, in whose texts <variable> stands for its value; a text that is nothing but
    <variable> is the value itself, whatever its type. The job's tenant may be left out.
    """

    tenant: str
    pattern: Mapping[str, Any] = field(hash=False)
    job: Mapping[str, Any] = field(hash=False)
    paths: Mapping[str, str] = field(default_factory=dict, hash=False)
    bus: str = "default"

    def input_paths(self) -> dict[str, str]:
        """The variables, as EventBridge takes them."""
        return {**self.paths, EVENT_ID: "$.id"}

    def template(self, name: str) -> str:
        """The message as EventBridge takes it: JSON, but for the values that it puts in. name: of the rule.

        A job that names no key has one of the event's id: EventBridge may deliver an event more than once
        (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-event-delivery.html), and each delivery is a message.
        """
        key = f"{name}:<{EVENT_ID}>"
        body = self.job
        if "jobs" in body:
            keyed = [_keyed(job, f"{key}:{index}") for index, job in enumerate(body["jobs"])]
            return _as_template({**body, "jobs": keyed})
        return _as_template(_keyed(body, key))


def check_event_rules(
    stage: str, event_rules: Mapping[str, EventRule], *, queues: Mapping[str, Sequence[str]], rules: Rules
) -> None:
    """Raises InvalidStage with every problem. queues: of the stage, by tenant. rules: what the stage takes as a job."""
    problems = [
        f"{name}: {problem}" for name, rule in event_rules.items() for problem in _problems(name, rule, queues, rules)
    ]
    if len(event_rules) > MOST_RULES:
        problems.append(f"there are {len(event_rules)} rules: use at most {MOST_RULES}")
    if problems:
        raise InvalidStage(f"{stage}: event_rules: " + "; ".join(problems))


def check_handlers(stage: str, event_rules: Mapping[str, EventRule], *, names: HandlerNames) -> None:
    """Raises InvalidStage where a job of a rule names a handler that is not there; what an event fills in is looked at when it is there."""
    for name, rule in event_rules.items():
        for job in rule.job.get("jobs", (rule.job,)):
            for member in _CALLED:
                kind, _, handler = str(job.get(member, "")).partition(":")
                if kind == "handler" and "<" not in handler and handler not in names:
                    raise InvalidStage(f"{stage}: event_rules: {name}: {member} {names.objection(handler)}")


def _problems(name: str, rule: EventRule, queues: Mapping[str, Sequence[str]], rules: Rules) -> Iterator[str]:
    if not NAME.fullmatch(name):
        yield f"the name must match {NAME.pattern}"
    if rule.tenant not in queues:
        yield f"tenant {rule.tenant!r} has no queue: name it in submission_queues, with no senders if only rules send"
    if not _BUS.fullmatch(rule.bus):
        yield f"bus is {rule.bus!r}: use the name of a bus of this account and region, not its ARN"
    if not rule.pattern:
        yield 'pattern is empty: name at least a source, as {"source": ["shop"]}'
    if (size := len(json.dumps(rule.pattern))) > MOST_OF_A_PATTERN:
        yield f"pattern has {size} characters: EventBridge takes {MOST_OF_A_PATTERN}"
    yield from _problems_of_paths(rule.paths)
    used: set[str] = set()
    for where, text, is_key in _texts(rule.job):
        used.update(_PLACEHOLDER.findall(text))
        yield from _problems_of_text(where, text, rule.paths, is_key=is_key)
    for variable in sorted(rule.paths.keys() - used):
        yield f"paths has {variable!r}, which the job does not use: leave it out"
    yield from _problems_of_body(rule, rules)


def _problems_of_paths(paths: Mapping[str, str]) -> Iterator[str]:
    if len(paths) > MOST_PATHS:
        yield f"paths has {len(paths)} variables: use at most {MOST_PATHS}"
    for variable, path in paths.items():
        if not _VARIABLE.fullmatch(variable) or variable.lower().startswith("aws") or variable == EVENT_ID:
            yield f"paths has the variable {variable!r}: use {_VARIABLE.pattern}, not beginning with aws, nor {EVENT_ID}"
        if len(path) > MOST_OF_A_PATH or not _PATH.fullmatch(path):
            yield f"paths has {path[:MOST_OF_A_PATH]!r} for {variable!r}: use a path such as $.detail.items[0].id, of at most {MOST_OF_A_PATH} characters"


def _problems_of_text(where: str, text: str, paths: Mapping[str, str], *, is_key: bool) -> Iterator[str]:
    for variable in _PLACEHOLDER.findall(text):
        if is_key:
            yield f"job has the placeholder <{variable}> in the name of a member at {where}: EventBridge fills in values only"
        elif variable in _WHOLE_EVENTS and text != f"<{variable}>":
            yield f"job has <{variable}> within a text at {where}: it is JSON, and must be the whole value"
        elif variable not in {*paths, *_TEXTS_OF_EVENTS, *_WHOLE_EVENTS}:
            yield f"job has <{variable}> at {where}, which paths does not name"
    rest = _PLACEHOLDER.sub("", text)
    if "<" in rest or ">" in rest:
        yield f"job has a < or > at {where} that belongs to no variable: EventBridge would look for one"


def _problems_of_body(rule: EventRule, rules: Rules) -> Iterator[str]:
    if "jobs" not in rule.job:
        yield from _problems_of_job("job", rule.job, rule.tenant, rules)
    elif rule.job.keys() != {"jobs"}:
        yield "job has more than its jobs: a batch has nothing else"
    elif not isinstance(rule.job["jobs"], list | tuple) or not 0 < len(rule.job["jobs"]) <= BATCH_LIMIT:
        yield f"job.jobs must be a list of 1 to {BATCH_LIMIT} jobs"
    else:
        for index, job in enumerate(rule.job["jobs"]):
            if isinstance(job, Mapping):
                yield from _problems_of_job(f"job.jobs.{index}", job, rule.tenant, rules)
            else:
                yield f"job.jobs.{index} must be a job"
                return
    if (size := len(rule.template("x" * 40))) > MOST_OF_A_TEMPLATE:
        yield f"job has {size} characters as a template: EventBridge takes {MOST_OF_A_TEMPLATE}"


def _problems_of_job(where: str, job: Mapping[str, Any], tenant: str, rules: Rules) -> Iterator[str]:
    """Of what is known before an event: a member that a variable is in is looked at when the event is there."""
    open_members = {name for name, value in job.items() if _is_open(value)}
    if "tenant" in job and job["tenant"] != tenant:
        yield f"{where}.tenant is not {tenant!r}: leave it out, the queue of the rule says whose the job is"
    known = {name: value for name, value in job.items() if name not in open_members}
    try:
        JobBody.model_validate({**known, "tenant": tenant}, context=rules)
    except ValidationError as error:
        for found in error.errors(include_url=False):
            if found["loc"] and found["loc"][0] in open_members:
                continue
            yield ".".join([where, *map(str, found["loc"])]) + f": {found['msg']}"


def _is_open(value: Any) -> bool:
    return any(_PLACEHOLDER.search(text) for _, text, is_key in _texts(value) if not is_key)


def _texts(value: Any, where: str = "") -> Iterator[tuple[str, str, bool]]:
    """Every text of it, with where it is, and whether it is the name of a member."""
    match value:
        case str():
            yield where or "/", value, False
        case Mapping():
            for name, member in value.items():
                yield f"{where}/{name}", str(name), True
                yield from _texts(member, f"{where}/{name}")
        case list() | tuple():
            for index, member in enumerate(value):
                yield from _texts(member, f"{where}/{index}")
        case _:
            pass


def _keyed(job: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """What no event decides stands last: EventBridge does not escape values, and of two members of one name the last counts."""
    open_first = sorted(job.items(), key=lambda member: not _is_open(member[1]))
    return {**dict(open_first), "idempotency_key": job.get("idempotency_key", key)}


def _as_template(body: Mapping[str, Any]) -> str:
    text = json.dumps(body)
    # A text that is nothing but a variable is its value, with its type: EventBridge puts quotes around those that are texts.
    return re.sub(rf'"({_PLACEHOLDER.pattern})"', r"\1", text)
