"""A folder of a user's handlers that is deployed with the stage."""

from __future__ import annotations

import pytest

from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.errors import ApiProblem

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_a_job_calls_a_handler_of_the_folder(client: Client) -> None:
    job = client.submit("handler:greet", tenant="acme", payload={"name": "Ada"})

    assert reaches(client, job.id, "succeeded").result == {"said": "hello Ada", "to": "acme"}


def test_a_payload_of_another_type_is_a_dead_letter_that_names_the_field(client: Client) -> None:
    job = client.submit("handler:greet", tenant="acme", payload={"names": ["Ada"]})

    failed = reaches(client, job.id, "failed")
    assert failed.attempt == 1
    assert "InvalidPayload: name: Field required" in str(failed.error)


def test_a_name_that_is_not_there_is_refused_with_the_one_that_was_meant(client: Client) -> None:
    with pytest.raises(ApiProblem, match=r"did you mean handler:greet\?") as refused:
        client.submit("handler:gret", tenant="acme")

    assert (refused.value.status, refused.value.code) == (422, "unknown_handler")
