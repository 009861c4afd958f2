"""Change parts of a definition: an RFC 7396 merge patch, and what is not in the JSON that it patches."""

from __future__ import annotations

import json
from typing import Any

from functions.api.http.merge_patch import merged
from functions.api.http.requests import Rules
from functions.api.schedules.bodies import RULES, read_schedule
from functions.domain.errors import InvalidInput
from functions.domain.jobs.job import Payload
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.schedules.record import POINTER, encode_schedule
from functions.domain.schedules.schedule import Schedule


def patched(current: Schedule, patch: Any, rules: Rules, *, stored_payload: str | None = None) -> Schedule:
    """A schedule after an RFC 7396 merge patch of its definition; a rule in the patch takes the place of its rule.

    stored_payload: JSON text of the payload that is in the payload store, where the patch reaches into it.
    Raises Misshapen, InvalidSchedule, InvalidInput.
    """
    if not isinstance(patch, dict):
        raise InvalidInput("the body must be a JSON object: an RFC 7396 merge patch of the definition")
    written = encode_schedule(current, REQUESTED)
    if any(patch.get(rule) is not None for rule in RULES):
        written = {name: value for name, value in written.items() if name not in RULES or name in patch}
    pointer = written["job"].pop(POINTER, None)
    keeps_payload = pointer is not None and not names_payload(patch)
    if pointer is not None and stored_payload is not None and not keeps_payload:
        written["job"]["payload"] = json.loads(stored_payload)
    try:
        edited = merged(written, patch)
    except RecursionError:
        raise InvalidInput("the body is nested too deeply") from None
    body = read_schedule(edited, rules)
    kept = Payload(pointer=pointer) if keeps_payload else None
    return body.schedule(current.tenant, current.schedule_id, kept=kept)


def names_payload(patch: Any) -> bool:
    """Whether a merge patch changes the payload of the job."""
    return isinstance(patch, dict) and isinstance(patch.get("job"), dict) and "payload" in patch["job"]


def names_spread(patch: Any) -> bool:
    """Whether a merge patch says something of the spread: null takes the default of now."""
    return isinstance(patch, dict) and "spread" in patch
