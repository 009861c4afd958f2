"""The bodies of requests and answers, in JSON; of an error what botocore makes of it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from http.client import responses
from typing import Any

from botocore.exceptions import HTTPClientError
from botocore.parsers import create_parser

_BLOBS = (b'"B"', b'"BS"', b"\\u0042")
"""One of them is in every answer that has an attribute in base64."""

_parse: Any = create_parser("json").parse


def encode(params: Mapping[str, Any]) -> bytes:
    """The body of a request. Bytes become base64."""
    return json.dumps(params, default=_encode_other, separators=(",", ":")).encode()


def decode(content: bytes, *, has_blobs: bool) -> dict[str, Any]:
    """The answer to a call that was taken. has_blobs: it has values in base64, which become bytes.

    Raises HTTPClientError for what is no answer of a service: the call may have been done, and may be tried again. botocore
    would take it for an empty one, by which a row would not exist.
    """
    try:
        found = json.loads(content) if content else {}
        if has_blobs and any(mark in content for mark in _BLOBS):
            found = _with_bytes(found)
    except (ValueError, RecursionError):
        raise HTTPClientError(error="its answer is no JSON") from None
    if not isinstance(found, dict):
        raise HTTPClientError(error="its answer is no object")
    return {name: value for name, value in found.items() if value is not None}


def decode_error(content: bytes, *, status: int, headers: Mapping[str, str], has_blobs: bool) -> dict[str, Any]:
    """The answer to a call that was refused, as a ClientError has it; with what stands beside code and message in it."""
    try:
        parsed: dict[str, Any] = _parse({"body": content, "headers": headers, "status_code": status}, None)
    except Exception:  # noqa: BLE001  botocore reads what services say; this may be from anything in between
        return _of_status(status)
    if not isinstance(parsed.get("Error", {}).get("Code"), str):
        return _of_status(status)
    try:
        found = decode(content, has_blobs=has_blobs)
    except HTTPClientError:
        return parsed
    return {name: value for name, value in found.items() if name not in _SAID} | parsed


_SAID = frozenset({"__type", "message", "Message"})


def _of_status(status: int) -> dict[str, Any]:
    error = {"Code": str(status), "Message": responses.get(status, "")}
    return {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}


def _encode_other(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise TypeError(f"no request has a {type(value).__name__}")


def _with_bytes(value: Any) -> Any:
    match value:
        case {"B": str(text), **others} if not others:
            return {"B": b64decode(text, validate=True)}
        case {"BS": list(texts), **others} if not others:
            return {"BS": [b64decode(text, validate=True) for text in texts]}
        case dict():
            return {name: _with_bytes(each) for name, each in value.items()}
        case list():
            return [_with_bytes(each) for each in value]
        case _:
            return value
