"""EventBridge: what `aws scheduler list-schedules`, `get-schedule` and `aws events list-rules` print, and templates of CloudFormation, SAM and CDK."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tickwheel.imports.documents import line_of, plain, text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfInterval, Place
from tickwheel.imports.sources.aws_expressions import Read, read_expression
from tickwheel.imports.yaml_documents import read_any

_CALLED = ("arn:aws:lambda:", "arn:aws:sqs:", "arn:aws:sns:", "arn:aws:events:", "arn:aws:states:")
_OF_FUNCTIONS = ("AWS::Serverless::Function", "AWS::Serverless::StateMachine")
_MOST_DEPTH = 8

_Values = Mapping[str, Any]


def read_eventbridge(file: str, data: bytes) -> Iterator[Found]:
    """The schedules of a file, and rules that have an expression; rules of event patterns are none."""
    for document in read_any(text_of(data)):
        if not isinstance(document, dict):
            raise Unreadable("is neither what the AWS CLI prints nor a template")
        if isinstance(document.get("Resources"), dict):
            yield from _template(file, document)
            continue
        schedules = document.get("Schedules") or document.get("Rules") or [document]
        for each in schedules if isinstance(schedules, list) else []:
            if isinstance(each, dict) and (each.get("ScheduleExpression") or "Target" in each):
                is_rule = "Rules" in document or ":rule/" in str(each.get("Arn", ""))
                yield _found(Place(file, line_of(each)), _name_of(each), each, is_rule=is_rule)


def _name_of(values: _Values) -> str:
    group, name = values.get("GroupName", "default"), str(values.get("Name", ""))
    return name if group == "default" or not isinstance(group, str) else f"{group}.{name}"


def _template(file: str, template: _Values) -> Iterator[Found]:
    """Resources of a template, with the defaults of its parameters in place of references to them."""
    parameters = template.get("Parameters")
    defaults = {
        name: each["Default"]
        for name, each in (parameters.items() if isinstance(parameters, dict) else ())
        if isinstance(each, dict) and "Default" in each
    }
    for logical, resource in template["Resources"].items():
        if not isinstance(resource, dict):
            continue
        kind, place = resource.get("Type"), Place(file, line_of(resource, line_of(template)))
        properties = _resolved(resource.get("Properties") or {}, defaults)
        if not isinstance(properties, dict):
            continue
        if kind in {"AWS::Scheduler::Schedule", "AWS::Events::Rule"} and "ScheduleExpression" in properties:
            name = _name_of(properties) if isinstance(properties.get("Name"), str) else logical
            yield _found(place, name, properties, is_rule=kind == "AWS::Events::Rule")
        elif kind in _OF_FUNCTIONS and isinstance(properties.get("Events"), dict):
            for event_name, event in properties["Events"].items():
                yield from _event(place, f"{logical}.{event_name}", event)


def _event(place: Place, name: str, event: Any) -> Iterator[Found]:
    if not isinstance(event, dict) or event.get("Type") not in {"Schedule", "ScheduleV2"}:
        return
    given = event.get("Properties") or {}
    values = dict(given) if isinstance(given, dict) else {}
    is_rule = event["Type"] == "Schedule"
    if is_rule:
        values["ScheduleExpression"] = values.get("Schedule")
        values.setdefault("State", "DISABLED" if values.get("Enabled") is False else None)
    target = {each: values[each] for each in ("Input", "RetryPolicy", "DeadLetterConfig") if each in values}
    values["Target"] = target
    yield _found(Place(place.file, line_of(event, place.line)), name, values, is_rule=is_rule)


def _found(place: Place, name: str, values: _Values, *, is_rule: bool) -> Found:
    written = values.get("ScheduleExpression")
    text = written if isinstance(written, str) else json.dumps(plain(written))[:200]
    try:
        return _entry(place, name, values, text, is_rule=is_rule)
    except Unreadable as problem:
        return LeftOut(place=place, name=name, written=text, reason=str(problem))


def _entry(place: Place, name: str, values: _Values, text: str, *, is_rule: bool) -> Entry:
    if "ScheduleExpression" not in values:
        raise Unreadable(
            "has no ScheduleExpression: list-schedules prints none, so give what get-schedule prints of it"
        )
    if not name:
        raise Unreadable("has no Name")
    zone = "UTC" if is_rule else values.get("ScheduleExpressionTimezone") or "UTC"
    if not isinstance(zone, str):
        raise Unreadable("has a time zone that a deployment makes: put the text in its place")
    read = read_expression(values["ScheduleExpression"], zone)
    target, remarks = _target(values, is_rule=is_rule)
    fields = {**read.fields, **_bounds(values)}
    window, more = _window(values, read)
    retry, lost = _retry(target)
    state = values.get("State")
    if state is not None and not isinstance(state, str):
        more = (*more, "its State is made by a deployment: taken as ENABLED")
    arn = target.get("Arn")
    if not (isinstance(arn, str) and arn.startswith(_CALLED)):
        arn = None
    return Entry(
        place=place,
        name=name,
        written=text if zone == "UTC" else f"{text} {zone}",
        rule=read.rule,
        payload=_payload(target),
        target=arn,
        fields={**fields, **window},
        job=retry,
        remarks=(*remarks, *more, *lost),
        is_suspended=isinstance(state, str) and state.upper() == "DISABLED",
    )


def _target(values: _Values, *, is_rule: bool) -> tuple[_Values, tuple[str, ...]]:
    if not is_rule:
        target = values.get("Target")
        return (target if isinstance(target, dict) else {}), ()
    targets = values.get("Targets")
    if not isinstance(targets, list) or not targets or not isinstance(targets[0], dict):
        target = values.get("Target")
        return (target if isinstance(target, dict) else {}), ()
    others = len(targets) - 1
    return targets[0], (
        f"{others} more of its targets are not carried over: put a schedule for each",
    ) if others else ()


def _payload(target: _Values) -> Any:
    given = target.get("Input")
    if given is None:
        return None
    if not isinstance(given, str):
        return plain(given)
    try:
        return json.loads(given)
    except ValueError:
        return given


def _bounds(values: _Values) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, field in (("StartDate", "start"), ("EndDate", "end")):
        given = values.get(name)
        if given is None:
            continue
        text = str(given)
        has_offset = text.endswith("Z") or "+" in text[10:] or "-" in text[10:]
        found[field] = text if has_offset else f"{text}Z"
    return found


def _window(values: _Values, read: Read) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A flexible window is a delay of up to so many minutes: a spread, which may be as long as one likes."""
    window = values.get("FlexibleTimeWindow")
    minutes = window.get("MaximumWindowInMinutes") if isinstance(window, dict) else None
    if not isinstance(window, dict) or window.get("Mode") != "FLEXIBLE" or not isinstance(minutes, int):
        return {}, ()
    if isinstance(read.rule, OfInterval) and read.rule.interval.total_seconds() <= minutes * 60:
        return {}, (f"its flexible window of {minutes} minutes is as long as its interval: not carried over",)
    seconds = min(minutes * 60, 86_400)
    return {"spread": seconds}, (f"delayed by a constant below {minutes} minutes; there by another delay each time",)


def _retry(target: _Values) -> tuple[dict[str, Any], tuple[str, ...]]:
    policy = target.get("RetryPolicy")
    lost = (
        ("its dead-letter queue is not carried over: dead letters are kept here",)
        if "DeadLetterConfig" in target
        else ()
    )
    names = [name for name in ("EcsParameters", "KinesisParameters", "SageMakerPipelineParameters") if name in target]
    lost += (f"its {', '.join(names)} are not carried over",) if names else ()
    if not isinstance(policy, dict):
        return {}, lost
    job: dict[str, Any] = {}
    attempts, age = policy.get("MaximumRetryAttempts"), policy.get("MaximumEventAgeInSeconds")
    if isinstance(attempts, int):
        job["retry"] = {"attempts": min(attempts + 1, 100)}
        lost += ("of its retries 99 are carried over",) if attempts >= 100 else ()  # noqa: PLR2004
    if isinstance(age, int):
        job["expires_after"] = age
    return job, lost


def _resolved(value: Any, defaults: _Values, depth: int = 0) -> Any:
    if depth > _MOST_DEPTH:
        return value
    if isinstance(value, dict):
        if set(value) == {"Ref"} and value["Ref"] in defaults:
            return defaults[value["Ref"]]
        if set(value) == {"Fn::Sub"} and isinstance(value["Fn::Sub"], str):
            return _substituted(value, defaults)
        resolved = type(value)({name: _resolved(each, defaults, depth + 1) for name, each in value.items()})
        if hasattr(value, "line"):
            resolved.line = value.line  # type: ignore[attr-defined]
        return resolved
    return [_resolved(each, defaults, depth + 1) for each in value] if isinstance(value, list) else value


def _substituted(value: _Values, defaults: _Values) -> Any:
    text = value["Fn::Sub"]
    for name, default in defaults.items():
        text = text.replace(f"${{{name}}}", str(default))
    return value if "${" in text else text
