# Written by `make format` (`scripts/sync_client.py`) from async_calls/call.py: change it there.
"""How calls are made: a request, and all pages of an answer."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

from tickwheel.client.answers import Answer, read_answer
from tickwheel.client.fields import without_none

A = TypeVar("A", bound=Answer)

RAW_IN_IDS = ":+"
"""What ids of jobs and dead letters have in a path as it is. A signature encodes the path once more
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html), and signers differ in what they do with
what is encoded already."""


class Call(Protocol):
    """Sends a request and gives the JSON of its answer; raises ApiProblem and Unreachable."""

    def __call__(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool,
        content: bytes | None = None,
        key: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        """See Client."""
        ...


class Ask(Protocol):
    """Asks for the page behind a mark, or for the first."""

    def __call__(self, after: str | None) -> Any:
        """The answer, with the mark of the `next`."""
        ...


def pages_of(ask: Ask) -> Iterator[Any]:
    """The answers, each of which names where the `next` begins; `ask` is called with that, and first with None."""
    after: str | None = None
    while True:
        answer = ask(after)
        after = read_answer(lambda page: page["next"], answer)
        yield answer
        if after is None:
            return


def listed(call: Call, path: str, name: str, kind: type[A], **query: Any) -> Iterator[A]:
    """The values of a list that stands under a name on each page; a request for each page."""

    def ask(after: str | None) -> Any:
        return call("GET", f"{path}?{urlencode(without_none({**query, 'after': after}))}", repeatable=True)

    for page in pages_of(ask):
        for value in read_answer(lambda answer: [kind.from_json(each) for each in answer[name]], page):
            yield value
