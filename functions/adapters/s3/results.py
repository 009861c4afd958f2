"""Results that are too large for a row, on S3."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from botocore.exceptions import ClientError

from functions.adapters.clients import code_of
from functions.domain.jobs.job_id import JobId

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3ResultStore:
    """One object a result, `results/{tenant}/{identity}/{pointer}`, which a rule of the bucket deletes.

    writer: a client that gives up soon, because the lease of an attempt does not wait for it.
    """

    def __init__(self, client: S3Client, bucket: str, *, writer: S3Client) -> None:
        self._client = client
        self._bucket = bucket
        self._writer = writer

    def put(self, job_id: JobId, pointer: str, text: str) -> None:
        """A request."""
        key = key_of(job_id, pointer)
        self._writer.put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType="application/json")

    def get(self, job_id: JobId, pointer: str) -> str | None:
        """A request."""
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=key_of(job_id, pointer))
        except ClientError as error:
            if code_of(error) in ("NoSuchKey", "404"):
                return None
            raise
        return found["Body"].read().decode()


def key_of(job_id: JobId, pointer: str) -> str:
    """The key of an object: it begins with the tenant, whose deletion finds it by that."""
    return f"results/{quote(job_id.tenant, safe='')}/{quote(job_id.identity, safe='')}/{pointer}"
