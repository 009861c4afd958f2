"""Where the benchmarks touch botocore: every client that is made inside hears their handlers.

So the code that is measured is the code that is deployed, down to the last line above the socket.
"""

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from functions.adapters import clients

Handler = Callable[..., Any]

_NO_ACCOUNT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def hearing(handlers: Mapping[str, Handler], *, endpoints: Mapping[str, str] | None = None) -> Iterator[None]:
    """While inside, clients know no account, go to these endpoints, and call these handlers by event name."""
    before = dict(os.environ), boto3.DEFAULT_SESSION
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(_NO_ACCOUNT)
    os.environ.update({f"AWS_ENDPOINT_URL_{service.upper()}": url for service, url in (endpoints or {}).items()})
    clients.session.cache_clear()
    session = clients.session()
    for event, handler in handlers.items():
        session.register(event, handler)
    boto3.setup_default_session(botocore_session=session)
    try:
        yield
    finally:
        clients.session.cache_clear()
        os.environ.clear()
        os.environ.update(before[0])
        boto3.DEFAULT_SESSION = before[1]


def body_of(request: AWSPreparedRequest) -> bytes:
    """What would have been sent; of the JSON protocols only."""
    assert isinstance(request.body, bytes)
    return request.body


def answer(request: AWSPreparedRequest, body: bytes) -> AWSResponse:
    """What a `before-send` handler returns so that nothing is sent: an answer of the JSON protocols."""
    headers = HTTPHeaders.from_dict({"Content-Type": "application/x-amz-json-1.0", "Content-Length": str(len(body))})
    return AWSResponse(request.url, 200, headers, _Body(body))


class _Body(io.BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.getvalue()
