"""Payloads that are too large for a row, on S3."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from botocore.exceptions import ClientError

from functions.adapters.clients import code_of
from functions.domain.jobs.job import Job

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3PayloadStore:
    """One object a job, `jobs/{tenant}/{identity}`: putting it again writes the same object."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, job: Job, text: str) -> str:
        """The object's key is the pointer."""
        pointer = f"jobs/{quote(job.tenant, safe='')}/{quote(job.identity, safe='')}"
        self._client.put_object(Bucket=self._bucket, Key=pointer, Body=text.encode(), ContentType="application/json")
        return pointer

    def put_for_schedule(self, key: str, text: str) -> str:
        """`schedules/{tenant}/{schedule id}/{hash}`: a change of the payload leaves what is on its way its own."""
        tenant, _, schedule_id = key.partition("#")
        name = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        pointer = f"schedules/{quote(tenant, safe='')}/{quote(schedule_id, safe='')}/{name}"
        self._client.put_object(Bucket=self._bucket, Key=pointer, Body=text.encode(), ContentType="application/json")
        return pointer

    def get(self, pointer: str) -> str | None:
        """None once the job that it belonged to has been settled."""
        try:
            return self._client.get_object(Bucket=self._bucket, Key=pointer)["Body"].read().decode()
        except ClientError as error:
            if code_of(error) in ("NoSuchKey", "404"):
                return None
            raise

    def delete(self, pointer: str) -> None:
        """S3 answers alike whether there was an object or not."""
        self._client.delete_object(Bucket=self._bucket, Key=pointer)
