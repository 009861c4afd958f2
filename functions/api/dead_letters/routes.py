"""The routes of dead letters: each parses, calls one function, answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.admission.admission import TOO_MUCH, Admission
from functions.api.dead_letters import answers
from functions.api.dead_letters.finder import DeadLetterFinder, DeadLetterPage
from functions.api.dead_letters.purge import Purger
from functions.api.dead_letters.replay import Replayed, Replayer
from functions.api.dead_letters.requests import FilterQuery, ListQuery, PurgeBody, ReplayBody
from functions.api.http.access import BODY, DEAD_LETTER, QUERY
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.route import Routes
from functions.domain.dead_letters.dead_letter_id import parse_dead_letter_id
from functions.domain.errors import DeadLetterNotFound, JobBusy, JobNotFailed, NotPlaced, NotReplayable, PayloadGone

MOST_COUNTED = 5_000
"""Dead letters that one request of a dry run counts, if its queries go so far."""


_A_SEARCH = 20
"""Reads: all of these look for what is selected, and may find nothing to change."""

routes = Routes("a dead letter")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterServices:
    """What the routes of dead letters work with."""

    admission: Admission
    finder: DeadLetterFinder
    replayer: Replayer
    purger: Purger


@routes.route("GET /v1/dead-letters", access=QUERY, query=ListQuery, answers={200: "DeadLetters"}, reads=_A_SEARCH)
def list_dead_letters(services: DeadLetterServices, request: Request) -> Response[str]:
    """List the dead letters of a tenant, newest first."""
    query = request.query_as(ListQuery)
    return answer(HTTPStatus.OK, answers.page_body(_find(services, query, limit=query.limit)))


@routes.route(
    "POST /v1/dead-letters:replay",
    access=BODY,
    body=ReplayBody,
    refuses=TOO_MUCH,
    answers={200: "Replays | Matches"},
    reads=_A_SEARCH,
)
def replay_dead_letters(services: DeadLetterServices, request: Request) -> Response[str]:
    """Replay up to 200 dead letters that match a filter. With `dry_run`, count them and change nothing."""
    body = request.body_as(ReplayBody)
    if body.dry_run:
        return answer(HTTPStatus.OK, answers.dry_run_body(_find(services, body, limit=MOST_COUNTED)))
    services.admission.check_open(body.tenant)
    replays = services.replayer.replay_part(body.wanted(), after=body.after, rate=body.rate, caller=request.caller)
    return answer(HTTPStatus.OK, answers.replays_body(replays))


@routes.route(
    "POST /v1/dead-letters:purge", access=BODY, body=PurgeBody, answers={200: "Purges | Matches"}, reads=_A_SEARCH
)
def purge_dead_letters(services: DeadLetterServices, request: Request) -> Response[str]:
    """Purge up to 200 dead letters that match a filter. With `dry_run`, count them and change nothing."""
    body = request.body_as(PurgeBody)
    if body.dry_run:
        return answer(HTTPStatus.OK, answers.dry_run_body(_find(services, body, limit=MOST_COUNTED)))
    purges = services.purger.purge_part(body.wanted(), after=body.after, caller=request.caller)
    return answer(HTTPStatus.OK, answers.purges_body(purges))


@routes.route(
    "GET /v1/dead-letters/{id}", access=DEAD_LETTER, refuses=(DeadLetterNotFound,), answers={200: "DeadLetter"}
)
def get_dead_letter(services: DeadLetterServices, _: Request, letter_id: str) -> Response[str]:
    """Get a dead letter with its payload."""
    return answer(HTTPStatus.OK, answers.inspected_body(services.finder.inspect(parse_dead_letter_id(letter_id))))


@routes.route("DELETE /v1/dead-letters/{id}", access=DEAD_LETTER, answers={200: "Purge"})
def purge_dead_letter(services: DeadLetterServices, request: Request, letter_id: str) -> Response[str]:
    """Purge a dead letter."""
    parsed = parse_dead_letter_id(letter_id)
    services.purger.purge(parsed, caller=request.caller)
    return answer(HTTPStatus.OK, answers.purge_body(parsed))


@routes.route(
    "POST /v1/dead-letters/{id}:replay",
    access=DEAD_LETTER,
    refuses=(DeadLetterNotFound, NotReplayable, PayloadGone, JobNotFailed, JobBusy, *TOO_MUCH, NotPlaced),
    answers={200: "Replay", 202: "Replay"},
)
def replay_dead_letter(services: DeadLetterServices, request: Request, letter_id: str) -> Response[str]:
    """Replay a dead letter: run its job again."""
    parsed = parse_dead_letter_id(letter_id)
    services.admission.check_open(parsed.tenant)
    outcome = services.replayer.replay(parsed, caller=request.caller)
    status = HTTPStatus.ACCEPTED if isinstance(outcome, Replayed) else HTTPStatus.OK
    return answer(status, answers.replay_body(outcome))


def _find(services: DeadLetterServices, query: FilterQuery, *, limit: int) -> DeadLetterPage:
    finder, wanted = services.finder, query.wanted()
    return finder.find(wanted, begin=finder.begin(wanted, after=query.after), limit=limit)
