# Written by `make format` (`scripts/sync_client.py`) from async_calls/dead_letters.py: change it there.
"""Operations on dead letters, as `client.dead_letters`.

All of them are sent again by themselves when an answer was lost: a job is replayed once, and purging twice is the same as
once. Only an `at_least_once` job, which keeps no row, may run again.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from tickwheel.client.answers import read_answer
from tickwheel.client.calls.call import RAW_IN_IDS, Call, listed, pages_of
from tickwheel.client.dead_letters import DeadLetter, DeadLetterFilter, Matches, Part, Replay
from tickwheel.client.fields import encode, without_none

_PATH = "/v1/dead-letters"
_MOST_SHOWN = 10


class DeadLetters:
    """Lists, gets, replays and purges dead letters. Every call raises ApiProblem if the scheduler refuses it, and Unreachable."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def list(self, matching: DeadLetterFilter, *, page_size: int = 50) -> Iterator[DeadLetter]:
        """Lists the matching dead letters, newest first; one request per page. Pages may be empty."""
        return listed(self._call, _PATH, "dead_letters", DeadLetter, **matching.as_json(), limit=page_size)

    def get(self, letter_id: str) -> DeadLetter:
        """Gets a dead letter with its payload. Raises ApiProblem (404) if it was replayed or purged, or has expired."""
        body = self._call("GET", _path_of(letter_id), repeatable=True)
        return read_answer(DeadLetter.from_json, body, is_secret=True)

    def replay(self, letter_id: str) -> Replay:
        """Replays a dead letter: gives its job another budget of attempts, the first of them now.

        Raises ApiProblem: 409 with code `not_replayable`, `payload_gone` or `job_not_failed`, 404 for no such letter.
        """
        return read_answer(
            Replay.from_json, self._call("POST", f"{_path_of(letter_id)}:replay", repeatable=True, content=b"{}")
        )

    def purge(self, letter_id: str) -> None:
        """Purges a dead letter and the payload that only it needs. Purging it again is not an error."""
        self._call("DELETE", _path_of(letter_id), repeatable=True)

    def count(self, matching: DeadLetterFilter) -> Matches:
        """Counts the matching dead letters, and returns the newest of them. Changes nothing."""
        count, newest = 0, []
        for page in self._parts("purge", {**matching.as_json(), "dry_run": True}):
            count += read_answer(lambda answer: int(answer["matched"]), page)
            newest += read_answer(lambda answer: [DeadLetter.from_json(each) for each in answer["dead_letters"]], page)
        return Matches(matched=count, newest=tuple(newest[:_MOST_SHOWN]))

    def replay_many(
        self,
        matching: DeadLetterFilter,
        *,
        rate: float | None = None,
        on_progress: Callable[[Part], None] | None = None,
    ) -> Part:
        """Replays all matching dead letters, newest first; with a rate, so many per second, at most 12 hours ahead.

        One request after the other; `on_progress` is called with what each of them did. Repeating it replays nothing
        twice.
        """
        return self._work("replay", without_none({**matching.as_json(), "rate": rate}), on_progress)

    def purge_many(self, matching: DeadLetterFilter, *, on_progress: Callable[[Part], None] | None = None) -> Part:
        """Purges all matching dead letters; otherwise like `replay_many`."""
        return self._work("purge", matching.as_json(), on_progress)

    def _work(self, verb: str, body: dict[str, Any], on_progress: Callable[[Part], None] | None) -> Part:
        parts: list[Part] = []
        for answer in self._parts(verb, body):
            parts.append(read_answer(Part.from_json, answer))
            if on_progress is not None:
                on_progress(parts[-1])
        return Part.together(parts)

    def _parts(self, verb: str, body: dict[str, Any]) -> Iterator[Any]:
        def ask(after: str | None) -> Any:
            content = encode(without_none({**body, "after": after}))
            return self._call("POST", f"{_PATH}:{verb}", repeatable=True, content=content)

        return pages_of(ask)


def _path_of(letter_id: str) -> str:
    return f"{_PATH}/{quote(letter_id, safe=RAW_IN_IDS)}"
