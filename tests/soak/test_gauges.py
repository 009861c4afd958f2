from typing import Any

import pytest

from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import job_id_of
from soak.gauges import is_settled_later
from testkit.builders import a_job


def a_row(delivery: Delivery) -> dict[str, Any]:
    return {"s": {"S": "scheduled"}, "i": {"S": str(job_id_of(a_job(delivery=delivery)))}}


@pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE])
def test_a_job_that_holds_its_key_is_open_until_it_is_settled(delivery: Delivery) -> None:
    assert is_settled_later(a_row(delivery))


def test_that_of_an_at_least_once_job_waits_for_its_ttl_alone() -> None:
    assert not is_settled_later(a_row(Delivery.AT_LEAST_ONCE))


def test_a_run_of_a_schedule_is_open() -> None:
    assert is_settled_later({"s": {"S": "running"}, "l": {"N": "0"}})
