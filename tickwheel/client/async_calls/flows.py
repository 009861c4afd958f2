"""Operations on flows."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from tickwheel.client.answers import read_answer
from tickwheel.client.async_calls.call import RAW_IN_IDS, listed
from tickwheel.client.fields import encode, without_none
from tickwheel.client.flows import Flow, FlowFigures, FlowLimits

_PATH = "/v1/flows"


class AsyncFlowCalls(ABC):
    """A part of the client. Every call is retried when an answer was lost: twice is the same as once.

    tenant: whose flow it is; None for one of the whole stage, which is for operators. Each raises Unreachable, and ApiProblem when the
    scheduler refuses.
    """

    async def set_flow(
        self,
        key: str,
        *,
        tenant: str | None = None,
        rate: str | None = None,
        burst: int | None = None,
        concurrency: int | None = None,
        ordered: bool | None = None,
    ) -> FlowLimits:
        """Sets the limits of a flow, in place of those before: a rate such as `60/min`, a concurrency, an order, or several of them.

        They apply to all jobs that name it, within a minute. Raises InvalidJob for values that cannot be sent.
        """
        asked = Flow(key, rate=rate, burst=burst, concurrency=concurrency, ordered=ordered).as_json()
        content = encode({name: value for name, value in asked.items() if name != "key"})
        body = await self._call("PUT", _path_of(key, tenant), content=content, repeatable=True)
        return read_answer(FlowLimits.from_json, body)

    async def flow(self, key: str, *, tenant: str | None = None) -> FlowFigures:
        """Gets a flow and what goes on in it. Raises ApiProblem (404 `flow_not_found`) if it has no limits and nothing has used it of late."""
        return read_answer(FlowFigures.from_json, await self._call("GET", _path_of(key, tenant), repeatable=True))

    def flows(self, *, tenant: str | None = None, page_size: int = 100) -> AsyncIterator[FlowLimits]:
        """Lists the flows whose limits were set, in the order of their keys; one request per page."""
        return listed(self._call, _PATH, "flows", FlowLimits, tenant=tenant, limit=page_size)

    async def delete_flow(self, key: str, *, tenant: str | None = None) -> bool:
        """Deletes the limits of a flow. Returns whether it had some.

        The request is retried after a lost answer. Limits that the first request deleted then count as not there.
        """
        body = await self._call("DELETE", _path_of(key, tenant), repeatable=True)
        return read_answer(lambda answer: bool(answer["was_set"]), body)

    @abstractmethod
    async def _call(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool,
        content: bytes | None = None,
        key: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        """Sends a request and gives the JSON of its answer; see Client."""


def _path_of(key: str, tenant: str | None) -> str:
    query = urlencode(without_none({"tenant": tenant}))
    path = f"{_PATH}/{quote(key, safe=RAW_IN_IDS)}"
    return f"{path}?{query}" if query else path
