"""Files of jobs on S3, and the queue that says which of them are to be read on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import code_of
from functions.domain.instants import SECOND, from_ms, parse_instant, to_ms
from functions.domain.jobs.submission_files import FileProgress, SentFile, place_of
from functions.ports.submission_files import FileGone

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

_TURN = "turn_of_file"
"""The member of a message that Tickwheel sent itself."""

_GONE = ("NoSuchKey", "404", "PreconditionFailed", "412", "InvalidRange", "416")


class S3SubmissionFiles:
    """bucket, queue_url: of the stage; each of them a list, which is empty where it takes no files."""

    def __init__(self, s3: S3Client, sqs: SQSClient, *, bucket: Sequence[str], queue_url: Sequence[str]) -> None:
        self._s3 = s3
        self._sqs = sqs
        self._bucket = next(iter(bucket), "")
        self._queue_url = next(iter(queue_url), "")

    def read(self, file: SentFile, *, offset: int, length: int) -> bytes:
        """A request. Of this content alone, whatever was put in its place."""
        span = f"bytes={offset}-{offset + length - 1}"
        try:
            found = self._s3.get_object(Bucket=self._bucket, Key=file.key, Range=span, IfMatch=f'"{file.etag}"')
        except ClientError as error:
            if code_of(error) in _GONE:
                raise FileGone from None
            raise
        return found["Body"].read()

    def progress(self, file: SentFile) -> FileProgress | None:
        """A request."""
        try:
            found = self._s3.get_object(Bucket=self._bucket, Key=_progress_of(file))
        except ClientError as error:
            if code_of(error) in ("NoSuchKey", "404"):
                return None
            raise
        return FileProgress.read(json.loads(found["Body"].read()))

    def save(self, file: SentFile, progress: FileProgress) -> None:
        """A request. `results/TENANT/NAME.progress.json`."""
        self._put(_progress_of(file), json.dumps(progress.written()), "application/json")

    def refuse(self, file: SentFile, *, first_line: int, refused: Sequence[Mapping[str, Any]]) -> None:
        """A request. `results/TENANT/NAME.refused/LINE.jsonl`: the same part is the same object."""
        text = "".join(f"{json.dumps(line)}\n" for line in refused)
        self._put(f"{file.results}.refused/{first_line:012d}.jsonl", text, "application/x-ndjson")

    def go_on(self, file: SentFile, wait: timedelta) -> None:
        """A request."""
        turn = {**asdict(file), "put_at": to_ms(file.put_at)}
        delay = -(-wait // SECOND)
        self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=json.dumps({_TURN: turn}), DelaySeconds=delay)

    def _put(self, key: str, text: str, content_type: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType=content_type)


def sent_file(body: str) -> SentFile:
    """The file that a message is about: an event of S3 by EventBridge, or a turn that was sent.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    Raises InvalidInput for an object that is no file of jobs; ValueError, KeyError for another message.
    """
    told = json.loads(body)
    if _TURN in told:
        turn = told[_TURN]
        return SentFile(**{**turn, "put_at": from_ms(turn["put_at"])})
    put = told["detail"]["object"]
    tenant, name = place_of(put["key"])
    return SentFile(
        tenant=tenant,
        name=name,
        etag=put["etag"].strip('"'),
        version=put.get("sequencer", told["id"]),
        size=int(put["size"]),
        put_at=parse_instant(told["time"]),
    )


def _progress_of(file: SentFile) -> str:
    return f"{file.results}.progress.json"
