"""The part of the API's description that is about the health of the stage."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import operation


def health_paths() -> dict[str, Any]:
    """The route of the stage's health; it is for operators."""
    return {"/v1/health": {"get": operation("getHealth", "Tell how the stage does.", answers={200: "Health"})}}
