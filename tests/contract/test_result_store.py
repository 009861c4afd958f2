"""What every store of results keeps: objects that only the id of their job finds."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.s3.results import S3ResultStore
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.ports.results import ResultStore
from testkit.builders import a_job
from testkit.fakes import InMemoryResultStore

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}


@pytest.fixture(params=["memory", "moto"])
def results(request: pytest.FixtureRequest) -> Iterator[ResultStore]:
    if request.param == "memory":
        yield InMemoryResultStore()
        return
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="payloads")
        yield S3ResultStore(client, "payloads", writer=client)


def test_a_result_is_got_by_its_pointer_as_often_as_it_was_put(results: ResultStore):
    results.put(an_id(), "p", '{"é":"\U0001f600"}')
    results.put(an_id(), "p", '{"é":"\U0001f600"}')

    assert results.get(an_id(), "p") == '{"é":"\U0001f600"}'


def test_no_pointer_finds_the_result_of_another_job_or_tenant(results: ResultStore):
    ids = [an_id(tenant, identity) for tenant, identity in [("a", "x:1"), ("a", "x+1"), ("a.x", "1"), ("b", "x:1")]]

    for job_id in ids[:3]:
        results.put(job_id, "p", job_id.key)

    assert [results.get(job_id, "p") for job_id in ids] == [*(job_id.key for job_id in ids[:3]), None]


def test_two_results_of_a_job_are_two_objects(results: ResultStore):
    results.put(an_id(), "p", "1")
    results.put(an_id(), "q", "2")

    assert (results.get(an_id(), "p"), results.get(an_id(), "q")) == ("1", "2")


def test_a_result_that_is_gone_is_none(results: ResultStore):
    assert results.get(an_id(), "p") is None


def an_id(tenant: str = "acme", identity: str = "j1") -> JobId:
    return job_id_of(a_job(tenant=tenant, identity=identity))
