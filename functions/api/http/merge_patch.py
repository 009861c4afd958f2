"""Merge patches of JSON (RFC 7396)."""

from __future__ import annotations

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """A JSON value after a merge patch (RFC 7396, section 2). Raises RecursionError."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
