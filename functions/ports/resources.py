"""What the resources of users' stacks need: the API of their stage, as an operator, and whom to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer of the API. body: its JSON; empty where it has none."""

    status: int
    body: Mapping[str, Any]

    @property
    def is_done(self) -> bool:
        """Whether the API did what it was asked for."""
        return 200 <= self.status < 300  # noqa: PLR2004

    @property
    def code(self) -> str:
        """What a problem is called; empty for none."""
        return str(self.body.get("code", "")) if not self.is_done else ""


class StageApi(Protocol):
    """The API of a stage."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        body: Any = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> ApiAnswer:
        """Sends a request, again where it may succeed later. Raises ApiUnreachable where no answer came in time."""
        ...


class ApiUnreachable(Exception):
    """No answer came in time: whether the request was carried out is not known."""
