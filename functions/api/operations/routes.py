"""The routes of operations: each parses, calls one function, answers. A verb is what follows the colon in a path."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.http.answers import answer, problem_answer
from functions.api.http.problems import problem
from functions.api.http.reading import body_of, caller_of, key_of, query_of, read_as
from functions.api.operations.answers import operation_body, operations_body
from functions.api.operations.operator import OperationManager
from functions.api.operations.requests import OperationBody, OperationsQuery

CONTEXT = "operations"
"""The name under which the routes find what they need in the resolver's context."""

STOP = "stop"

router = APIGatewayHttpRouter()


@router.post("/v1/operations")
def accept_operation() -> Response[str]:
    """Take an operation in."""
    event = router.current_event
    asked = read_as(OperationBody, body_of(event)).asked()
    operation = _manager().accept(asked, key=key_of(event), caller=caller_of(event))
    return answer(HTTPStatus.ACCEPTED, operation_body(operation))


@router.get("/v1/operations")
def list_operations() -> Response[str]:
    """Tell a tenant's operations, page by page."""
    query = read_as(OperationsQuery, query_of(router.current_event))
    operations, after = _manager().page(query.tenant, after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, operations_body(operations, after=after))


@router.get("/v1/operations/<tenant>/<operation_id>")
def get_operation(tenant: str, operation_id: str) -> Response[str]:
    """Tell an operation as it stands, and where its files are."""
    operation = _manager().get(unquote(tenant), unquote(operation_id))
    return answer(HTTPStatus.OK, operation_body(operation, parts=_manager().parts(operation)))


@router.post("/v1/operations/<tenant>/<path>")
def act_on_operation(tenant: str, path: str) -> Response[str]:
    """Do what the verb of the path says: stop an operation."""
    operation_id, _, verb = unquote(path).rpartition(":")
    if verb != STOP:
        detail = f"{verb[:100]!r} is nothing that can be asked of an operation: append :{STOP} to its id"
        no_route = problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route", detail=detail)
        return problem_answer(no_route)
    operation = _manager().stop(unquote(tenant), operation_id, caller=caller_of(router.current_event))
    status = HTTPStatus.OK if operation.state.is_over else HTTPStatus.ACCEPTED
    return answer(status, operation_body(operation))


def _manager() -> OperationManager:
    return router.context[CONTEXT]
