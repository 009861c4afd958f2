"""The headers of a conditional change: If-None-Match and If-Match, and the entity tag that answers have."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from functions.api.http.reading import Request
from functions.domain.errors import InvalidInput
from functions.domain.schedules.change_condition import ALWAYS, ChangeCondition

_IF_MATCH, _IF_NONE_MATCH = "If-Match", "If-None-Match"

IF_MATCH: Mapping[str, Any] = {
    "name": _IF_MATCH,
    "description": 'Change the schedule only if it has this version: `"7"`, or one of several. `*` stands for any.',
    "schema": {"type": "string", "examples": ['"7"']},
}
IF_NONE_MATCH: Mapping[str, Any] = {
    "name": _IF_NONE_MATCH,
    "description": "`*`: create the schedule, and change none.",
    "schema": {"type": "string", "enum": ["*"]},
}
ETAG: Mapping[str, Any] = {
    "name": "ETag",
    "description": "The version of the schedule, as `If-Match` takes it.",
    "schema": {"type": "string", "examples": ['"7"']},
}

_ANY = "*"
_TAG = re.compile(r'[ \t]*(W/)?(?:"([^"]*)"|([0-9]+))[ \t]*(?:,|$)', re.ASCII)
_LONGEST_VERSION = 18
_SHOWN = 80


def tag_of(version: int) -> str:
    """The entity tag of a version of a schedule."""
    return f'"{version}"'


def condition_of(request: Request, *, token: Callable[[], str]) -> ChangeCondition:
    """What the headers of a request want to be true. token: a fresh one, for a request without an idempotency key.

    Raises InvalidInput; Misshapen for the key.
    """
    key, headers = request.key(), request.event.headers
    if_match, if_none_match = headers.get(_IF_MATCH.lower()), headers.get(_IF_NONE_MATCH.lower())
    if if_match is None and if_none_match is None:
        return ALWAYS
    if if_none_match is not None and if_none_match.strip() != _ANY:
        raise InvalidInput(f"{_IF_NONE_MATCH} is {if_none_match[:_SHOWN]!r}, but must be *: create, and change nothing")
    is_any = if_match is not None and if_match.strip() == _ANY
    return ChangeCondition(
        is_new=if_none_match is not None,
        exists=is_any,
        versions=None if if_match is None or is_any else _versions_of(if_match),
        request=_name_of(request, key, [if_match, if_none_match], token),
    )


def _versions_of(header: str) -> frozenset[int]:
    """Those that strong tags name: the RFC lets no weak one match, and a tag that is no number is of no version."""
    versions: set[int] = set()
    position = 0
    while position < len(header):
        found = _TAG.match(header, position)
        if found is None:
            raise InvalidInput(
                f"{_IF_MATCH} is {header[:_SHOWN]!r}, but must be the version of the schedule in quotes, such as {tag_of(7)}, or *"
            )
        weak, quoted, bare = found.groups()
        text = quoted if bare is None else bare
        if not weak and text.isascii() and text.isdecimal() and len(text) <= _LONGEST_VERSION:
            versions.add(int(text))
        position = found.end()
    return frozenset(versions)


def _name_of(request: Request, key: str | None, conditions: list[str | None], token: Callable[[], str]) -> str:
    """The same for a repeat of the request under its key, and for no other: a key that is used again names another."""
    event = request.event
    said = [key, event.http_method, event.path, *conditions, event.body] if key is not None else [token()]
    return hashlib.blake2b("\0".join(part or "" for part in said).encode(), digest_size=8).hexdigest()
