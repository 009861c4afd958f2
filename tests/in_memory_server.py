"""A scheduler in memory behind HTTP on the loopback: for the command line, and for programs that make their own client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.api_server import Answer, ApiServer, Request
from tickwheel.testing import Scheduler


@contextmanager
def served(scheduler: Scheduler) -> Iterator[ApiServer]:
    """Its API at a URL. A minute passes whenever somebody asks how far an operation is."""
    transport = scheduler.client._http._transport

    def answer(request: Request) -> Answer:
        if request.method == "GET" and request.path.startswith("/v1/operations/"):
            scheduler.advance(minutes=1)
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        asked = httpx.Request(request.method, f"{server.url}{request.path}", headers=headers, content=request.body)
        answered = transport.handle_request(asked)
        kept = [(name, value) for name, value in answered.headers.items() if name.lower() != "content-length"]
        return Answer(answered.status_code, answered.read(), tuple(kept))

    with ApiServer(otherwise=answer) as server:
        yield server
