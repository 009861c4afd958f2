"""The files of exports, on S3."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from functions.domain.instants import SECOND

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

URL_LIFE = timedelta(minutes=15)
"""How long a part may be downloaded from an URL, at most: it ends with the credentials that have signed it."""


class S3ExportStore:
    """One object a part, `exports/{tenant}/{operation}/{part:05d}.jsonl.gz`: a gzip file with one JSON object a line."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, operation_id: str, part: int, lines: Sequence[str]) -> None:
        """The same lines are the same object."""
        text = "".join(f"{line}\n" for line in lines)
        self._client.put_object(
            Bucket=self._bucket,
            Key=_key(tenant, operation_id, part),
            Body=gzip.compress(text.encode(), mtime=0),
            # Not an encoding of the answer: what is downloaded is the file that its name says.
            ContentType="application/gzip",
        )

    def urls(self, tenant: str, operation_id: str, parts: int) -> list[str]:
        """Presigned, without a call to S3: whoever has one needs no other right."""
        return [
            self._client.generate_presigned_url(
                "get_object",
                Params={"Bucket": self._bucket, "Key": _key(tenant, operation_id, part)},
                ExpiresIn=URL_LIFE // SECOND,
            )
            for part in range(1, parts + 1)
        ]


def _key(tenant: str, operation_id: str, part: int) -> str:
    return f"exports/{quote(tenant, safe='')}/{quote(operation_id, safe='')}/{part:05d}.jsonl.gz"
