"""Both clients behind one interface, so that a test of the one is a test of the other: they are one source, and do the same.

The tests of a module that makes its clients by `made_client` run twice (`tests/unit/conftest.py`).
"""

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, cast

from tickwheel.client import AsyncClient, Backoff, Client

KINDS = ("sync", "async")


class Chosen:
    """The kind of client that the running test is about."""

    kind = "sync"


def made_client(*arguments: Any, backoff: Backoff | None = None, **options: Any) -> Client:
    """A client, or an AsyncClient that is waited for at each call."""
    backoff = backoff or Backoff()
    if Chosen.kind == "sync":
        return Client(*arguments, backoff=backoff, **options)

    async def sleep(seconds: float) -> None:
        backoff.sleep(seconds)

    client = AsyncClient(*arguments, backoff=replace(backoff, async_sleep=sleep), **options)
    return cast("Client", _WaitedFor(client, asyncio.Runner()))


class _WaitedFor:
    """What an asynchronous object has: coroutines are run to their ends, and asynchronous iterators are iterators."""

    def __init__(self, asynchronous: Any, runner: asyncio.Runner) -> None:
        self._asynchronous = asynchronous
        self._runner = runner

    def __enter__(self) -> Self:
        self._runner.run(self._asynchronous.__aenter__())
        return self

    def __exit__(self, *raised: object) -> None:
        with self._runner:
            self._runner.run(self._asynchronous.__aexit__(*raised))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._asynchronous, name)
        if inspect.isroutine(found):
            return lambda *arguments, **options: self._waited_for(found(*arguments, **options))
        return _WaitedFor(found, self._runner) if type(found).__name__.startswith("Async") else found

    def _waited_for(self, found: Any) -> Any:
        if inspect.iscoroutine(found):
            return self._runner.run(found)
        return self._each(found) if hasattr(found, "__anext__") else found

    def _each(self, values: Any) -> Iterator[Any]:
        async def take() -> Any:
            return await anext(values)

        while True:
            try:
                value = self._runner.run(take())
            except StopAsyncIteration:
                return
            yield value
