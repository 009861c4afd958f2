"""How a route reads its request: the body however it was carried, the query, and what does not fit a model."""

from http import HTTPStatus
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from pydantic import BaseModel, ConfigDict

from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.reading import body_of, query_of, read_as
from functions.domain.errors import InvalidInput
from testkit.events import a_request


class Note(BaseModel):
    """A model that a request may fit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    note: str = ""


def event(**request: Any) -> APIGatewayProxyEventV2:
    return APIGatewayProxyEventV2(a_request("POST", "/v1/x", **request))


@pytest.mark.parametrize("is_base64", [False, True])
def test_a_body_is_the_same_however_it_was_carried(is_base64: bool):
    assert body_of(event(body={"note": "é"}, is_base64=is_base64)) == {"note": "é"}


@pytest.mark.parametrize("request_", [{}, {"raw": "{"}])
def test_a_body_that_is_missing_or_no_json_is_refused(request_: dict[str, str]):
    with pytest.raises(InvalidInput, match="is not JSON"):
        body_of(event(**request_))


def test_a_query_is_its_parameters_by_their_names_and_none_is_empty():
    assert query_of(event(query={"tenant": "acme", "limit": 7})) == {"tenant": "acme", "limit": "7"}
    assert query_of(event()) == {}


def test_what_fits_a_model_is_that_and_what_does_not_is_told_as_invalid_input():
    assert read_as(Note, {"note": "x"}) == Note(note="x")

    with pytest.raises(Misshapen) as refused:
        read_as(Note, {"nota": "x"})
    told = problem_of(refused.value)
    assert (told["status"], told["code"]) == (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input")
    assert [error["field"] for error in told["errors"]] == ["nota"]
