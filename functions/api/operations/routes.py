"""The routes of operations: each parses, calls one function, answers."""

from __future__ import annotations

from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.http.access import BODY, PATH, QUERY
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.route import KEY, Routes
from functions.api.operations.answers import operation_body, operations_body
from functions.api.operations.manager import OperationManager
from functions.api.operations.requests import OperationBody, OperationsQuery
from functions.domain.errors import KeyReused, OperationNotFound, TooManyOperations

routes = Routes("an operation")


@routes.route("GET /v1/operations", access=QUERY, query=OperationsQuery, answers={200: "Operations"}, reads=5)
def list_operations(manager: OperationManager, request: Request) -> Response[str]:
    """List the operations of a tenant."""
    query = request.query_as(OperationsQuery)
    operations, after = manager.page(query.tenant, after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, operations_body(operations, after=after))


@routes.route(
    "POST /v1/operations",
    access=BODY,
    body=OperationBody,
    headers=(KEY,),
    refuses=(KeyReused, TooManyOperations),
    answers={202: "Operation"},
)
def accept_operation(manager: OperationManager, request: Request) -> Response[str]:
    """Start an operation: cancel, reschedule, run or export all jobs that match a filter."""
    asked = request.body_as(OperationBody).asked()
    operation = manager.accept(asked, key=request.key(), caller=request.caller)
    return answer(HTTPStatus.ACCEPTED, operation_body(operation))


@routes.route("GET /v1/operations/{tenant}/{id}", access=PATH, refuses=(OperationNotFound,), answers={200: "Operation"})
def get_operation(manager: OperationManager, _: Request, tenant: str, operation_id: str) -> Response[str]:
    """Get an operation."""
    operation = manager.get(tenant, operation_id)
    return answer(HTTPStatus.OK, operation_body(operation, parts=manager.parts(operation)))


@routes.route(
    "POST /v1/operations/{tenant}/{id}:stop",
    access=PATH,
    refuses=(OperationNotFound,),
    answers={200: "Operation", 202: "Operation"},
)
def stop_operation(manager: OperationManager, request: Request, tenant: str, operation_id: str) -> Response[str]:
    """Stop an operation at its next step. Changes already made are kept."""
    operation = manager.stop(tenant, operation_id, caller=request.caller)
    status = HTTPStatus.OK if operation.state.is_over else HTTPStatus.ACCEPTED
    return answer(status, operation_body(operation))
