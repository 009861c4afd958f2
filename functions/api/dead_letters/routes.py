"""The routes of dead letters: each parses, calls one function, answers. A verb is what follows the last colon in a path."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.admission.admission import Admission
from functions.api.dead_letters.answers import (
    dry_run_body,
    inspected_body,
    page_body,
    purge_body,
    purges_body,
    replay_body,
    replays_body,
)
from functions.api.dead_letters.finder import Found, LetterFinder
from functions.api.dead_letters.purge import Purger
from functions.api.dead_letters.replay import Replayed, Replayer
from functions.api.dead_letters.requests import FilterQuery, ListQuery, PurgeBody, ReplayBody
from functions.api.http.answers import answer, problem_answer
from functions.api.http.problems import problem
from functions.api.http.reading import body_of, caller_of, query_of, read_as
from functions.domain.dead_letters.letter_id import LetterId, parse_letter_id

CONTEXT = "dead_letters"
"""The name under which the routes find what they need in the resolver's context."""

MOST_COUNTED = 5_000
"""Letters that one request of a dry run counts, if its queries go so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterDesk:
    """What the routes need."""

    admission: Admission
    finder: LetterFinder
    replayer: Replayer
    purger: Purger


router = APIGatewayHttpRouter()


@router.get("/v1/dead-letters")
def list_letters() -> Response[str]:
    """Tell a tenant's dead letters, newest first, page by page."""
    query = read_as(ListQuery, query_of(router.current_event))
    return answer(HTTPStatus.OK, page_body(_find(query, limit=query.limit)))


@router.get("/v1/dead-letters/<letter_id>")
def get_letter(letter_id: str) -> Response[str]:
    """Tell a dead letter with its payload."""
    return answer(HTTPStatus.OK, inspected_body(_desk().finder.inspect(_parse(letter_id))))


@router.post("/v1/dead-letters/<path>")
def act_on_letter(path: str) -> Response[str]:
    """Do what the verb of the path says: replay a dead letter."""
    letter_id, _, verb = unquote(path).rpartition(":")
    if verb != "replay":
        detail = f"{verb[:100]!r} is nothing that can be asked of a dead letter: append :replay to its id"
        no_route = problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route", detail=detail)
        return problem_answer(no_route)
    parsed = parse_letter_id(letter_id)
    _desk().admission.check_open(parsed.tenant)
    outcome = _desk().replayer.replay(parsed, caller=caller_of(router.current_event))
    status = HTTPStatus.ACCEPTED if isinstance(outcome, Replayed) else HTTPStatus.OK
    return answer(status, replay_body(outcome))


@router.delete("/v1/dead-letters/<letter_id>")
def purge_letter(letter_id: str) -> Response[str]:
    """Forget a dead letter."""
    parsed = _parse(letter_id)
    _desk().purger.purge(parsed, caller=caller_of(router.current_event))
    return answer(HTTPStatus.OK, purge_body(parsed))


@router.post("/v1/dead-letters:replay")
def replay_letters() -> Response[str]:
    """Replay a bounded part of the dead letters that are meant; or count them."""
    body = read_as(ReplayBody, body_of(router.current_event))
    if body.dry_run:
        return answer(HTTPStatus.OK, dry_run_body(_find(body, limit=MOST_COUNTED)))
    _desk().admission.check_open(body.tenant)
    replayer = _desk().replayer
    replays = replayer.replay_part(
        body.wanted(), after=body.after, rate=body.rate, caller=caller_of(router.current_event)
    )
    return answer(HTTPStatus.OK, replays_body(replays))


@router.post("/v1/dead-letters:purge")
def purge_letters() -> Response[str]:
    """Forget a bounded part of the dead letters that are meant; or count them."""
    body = read_as(PurgeBody, body_of(router.current_event))
    if body.dry_run:
        return answer(HTTPStatus.OK, dry_run_body(_find(body, limit=MOST_COUNTED)))
    return answer(
        HTTPStatus.OK,
        purges_body(_desk().purger.purge_part(body.wanted(), after=body.after, caller=caller_of(router.current_event))),
    )


def _desk() -> LetterDesk:
    return router.context[CONTEXT]


def _find(query: FilterQuery, *, limit: int) -> Found:
    finder, wanted = _desk().finder, query.wanted()
    return finder.find(wanted, begin=finder.begin(wanted, after=query.after), limit=limit)


def _parse(letter_id: str) -> LetterId:
    return parse_letter_id(unquote(letter_id))
