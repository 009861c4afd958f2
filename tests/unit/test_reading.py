"""How a route reads its request: the body however it was carried, the query, and what does not fit a model."""

from contextlib import suppress
from http import HTTPStatus
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from pydantic import BaseModel, ConfigDict

from functions.api.http import reading
from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.reading import Request
from functions.api.http.requests import parse_body
from functions.domain.errors import InvalidInput
from testkit.events import a_request


class Note(BaseModel):
    """A model that a request may fit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    note: str = ""


def read(**request: Any) -> Request:
    return Request(APIGatewayProxyEventV2(a_request("POST", "/v1/x", **request)), {})


@pytest.mark.parametrize("is_base64", [False, True])
def test_a_body_is_the_same_however_it_was_carried(is_base64: bool):
    assert read(body={"note": "é"}, is_base64=is_base64).body == {"note": "é"}


@pytest.mark.parametrize("request_", [{}, {"raw": "{"}])
def test_a_body_that_is_missing_or_no_json_is_refused(request_: dict[str, str]):
    with pytest.raises(InvalidInput, match="is not JSON"):
        _ = read(**request_).body


def test_a_query_is_its_parameters_by_their_names_and_none_is_empty():
    assert read(query={"tenant": "acme", "limit": 7}).query == {"tenant": "acme", "limit": "7"}
    assert read().query == {}


def test_what_fits_a_model_is_that_and_what_does_not_is_reported_as_invalid_input():
    assert read(body={"note": "x"}).body_as(Note) == Note(note="x")

    with pytest.raises(Misshapen) as refused:
        read(body={"nota": "x"}).body_as(Note)
    answer = problem_of(refused.value)
    assert (answer["status"], answer["code"]) == (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input")
    assert [error["field"] for error in answer["errors"]] == ["nota"]


def test_a_body_that_may_be_left_out_is_empty_where_it_is():
    assert read().optional_body_as(Note) == Note()
    assert read(body={"note": "x"}).optional_body_as(Note) == Note(note="x")


@pytest.mark.parametrize("raw", ['{"note":"x"}', "{"])
def test_a_body_is_parsed_once_whoever_reads_it_and_whatever_it_is(raw: str, monkeypatch: pytest.MonkeyPatch):
    parsed: list[Any] = []

    def parse(body: str | None, *, is_base64: bool = False) -> Any:
        parsed.append(body)
        return parse_body(body, is_base64=is_base64)

    monkeypatch.setattr(reading, "parse_body", parse)
    request = read(raw=raw)

    for _ in range(3):
        with suppress(InvalidInput):
            _ = request.body
    assert parsed == [raw]
