"""What every payload store keeps: one object a job, as long as the job."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.s3.payloads import S3PayloadStore
from functions.ports.payloads import PayloadStore
from testkit.builders import a_job
from testkit.fakes import InMemoryPayloadStore

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}


@pytest.fixture(params=["memory", "moto"])
def payloads(request: pytest.FixtureRequest) -> Iterator[PayloadStore]:
    if request.param == "memory":
        yield InMemoryPayloadStore()
        return
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="payloads")
        yield S3PayloadStore(client, "payloads")


def test_a_payload_is_got_by_its_pointer(payloads: PayloadStore):
    pointer = payloads.put(a_job(), '{"é":"\U0001f600"}')

    assert payloads.get(pointer) == '{"é":"\U0001f600"}'


def test_a_payload_put_twice_is_one_object(payloads: PayloadStore):
    job = a_job()

    assert payloads.put(job, "1") == payloads.put(job, "2")
    assert payloads.get(payloads.put(job, "2")) == "2"


def test_jobs_and_tenants_have_objects_of_their_own(payloads: PayloadStore):
    jobs = [a_job(tenant=tenant, identity=identity) for tenant, identity in [("a", "x:1"), ("a", "x+1"), ("a.x", "1")]]

    pointers = [payloads.put(job, job.key) for job in jobs]

    assert [payloads.get(pointer) for pointer in pointers] == [job.key for job in jobs]


def test_the_payload_of_a_schedule_is_got_by_its_pointer(payloads: PayloadStore):
    pointer = payloads.put_for_schedule("acme#nightly", '{"é":"\U0001f600"}')

    assert payloads.get(pointer) == '{"é":"\U0001f600"}'


def test_the_same_payload_of_a_schedule_has_the_same_pointer(payloads: PayloadStore):
    assert payloads.put_for_schedule("acme#nightly", "1") == payloads.put_for_schedule("acme#nightly", "1")


def test_a_changed_payload_of_a_schedule_leaves_what_is_on_its_way_its_own(payloads: PayloadStore):
    before = payloads.put_for_schedule("acme#nightly", "1")
    after = payloads.put_for_schedule("acme#nightly", "2")

    assert (payloads.get(before), payloads.get(after)) == ("1", "2")


def test_schedules_and_jobs_have_objects_of_their_own(payloads: PayloadStore):
    pointers = [
        payloads.put_for_schedule("a#x", "1"),
        payloads.put_for_schedule("a.x#1", "1"),
        payloads.put_for_schedule("b#x", "1"),
        payloads.put(a_job(tenant="a", identity="x"), "1"),
    ]

    payloads.delete(pointers[0])

    assert [payloads.get(pointer) for pointer in pointers] == [None, "1", "1", "1"]


def test_a_payload_that_is_gone_is_none(payloads: PayloadStore):
    pointer = payloads.put(a_job(), "1")
    payloads.delete(pointer)

    assert payloads.get(pointer) is None


def test_deleting_a_payload_again_changes_nothing(payloads: PayloadStore):
    pointer = payloads.put(a_job(), "1")
    payloads.delete(pointer)
    payloads.delete(pointer)

    assert payloads.get(pointer) is None
