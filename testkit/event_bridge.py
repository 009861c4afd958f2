"""What EventBridge's input transformer makes of an event: values are put into the template as they are, escaped or not.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_VARIABLE = re.compile(r"<([A-Za-z0-9_.-]+)>")
_NOTHING = object()


def transformed(template: str, paths: Mapping[str, str], event: Mapping[str, Any]) -> str:
    """The message. A variable whose path the event does not have leaves nothing behind."""
    values = {name: _at(path, event) for name, path in paths.items()} | {
        "aws.events.event.json": event,
        "aws.events.event": {name: value for name, value in event.items() if name != "detail"},
        "aws.events.rule-name": "Tickwheel-dev-rule",
    }

    def put(found: re.Match[str]) -> str:
        value = values.get(found[1], _NOTHING)
        if value is _NOTHING:
            return ""
        before = template[: found.start()]
        is_within_text = len(re.findall(r'(?<!\\)"', before)) % 2 == 1
        if isinstance(value, str):
            return value if is_within_text else f'"{value}"'
        return json.dumps(value).replace('"', "") if is_within_text else json.dumps(value)

    return _VARIABLE.sub(put, template)


def _at(path: str, event: Mapping[str, Any]) -> Any:
    value: Any = event
    for name, index in re.findall(r"\.([A-Za-z0-9_/-]+)(?:\[(\d+)\])?", path):
        if not isinstance(value, Mapping) or name not in value:
            return _NOTHING
        value = value[name]
        if index:
            value = value[int(index)]
    return value
