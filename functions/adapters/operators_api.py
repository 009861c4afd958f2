"""The API of the stage, asked as its operator, over HTTP; and the answer that CloudFormation waits for."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import URLLib3Session

from functions.adapters import clients
from functions.ports.resources import ApiAnswer, ApiUnreachable

_SERVICE = "execute-api"
_TIMEOUTS: Any = (3, 30)
"""Seconds to connect, and to answer: as long as the API itself may take."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0

_LATER = frozenset({403, 408, 429})
"""May be taken later. 403 too: for some seconds IAM does not know what was deployed just now
(https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency)."""

_BUSY = frozenset({"schedule_busy", "tenant_busy"})


class OperatorsApi:
    """Implements StageApi with the role of operators.

    endpoint: its base address. role: the role's ARN. left: seconds that an invocation has left for this.
    """

    def __init__(self, *, endpoint: str, region: str, role: str, left: Callable[[], float]) -> None:
        self._endpoint, self._region, self._role, self._left = endpoint, region, role, left
        self._credentials: Credentials | None = None
        self._http = URLLib3Session(timeout=_TIMEOUTS)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        body: Any = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> ApiAnswer:
        """Raises ApiUnreachable where nothing was answered in time; a refusal that may be over later is the last one."""
        url = f"{self._endpoint}{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        pause = _FIRST_PAUSE
        while True:
            answer = self._try(method, url, body, headers)
            is_final = answer is not None and answer.status < 500 and answer.status not in _LATER  # noqa: PLR2004
            if answer is not None and is_final and answer.code not in _BUSY:
                return answer
            wait = random.uniform(pause / 2, pause)  # noqa: S311  # spreads load, guards nothing
            if self._left() < wait + _TIMEOUTS[1]:
                if answer is None:
                    raise ApiUnreachable
                return answer
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _try(self, method: str, url: str, body: Any, headers: Mapping[str, str]) -> ApiAnswer | None:
        said = None if body is None else json.dumps(body).encode()
        try:
            request = AWSRequest(
                method=method, url=url, data=said, headers={"Content-Type": "application/json", **headers}
            )
            SigV4Auth(self._operator(), _SERVICE, self._region).add_auth(request)
            response = self._http.send(_to_loopback(request).prepare())
        except (BotoCoreError, ClientError):
            return None
        try:
            answered = json.loads(response.content)
        except ValueError:
            answered = {}
        return ApiAnswer(response.status_code, answered if isinstance(answered, dict) else {})

    def _operator(self) -> Credentials:
        if self._credentials is None:
            found = clients.sts().assume_role(RoleArn=self._role, RoleSessionName="tickwheel-resources")["Credentials"]
            keys = (found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
            self._credentials = Credentials(*keys)
        return self._credentials


def answer_cloudformation(event: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Put the answer where CloudFormation waits for it. Raises where it was not taken: Lambda then invokes again."""
    said = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")} | dict(body)
    # Its signature holds for no content type (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html).
    request = AWSRequest(
        method="PUT", url=event["ResponseURL"], data=json.dumps(said).encode(), headers={"Content-Type": ""}
    )
    response = URLLib3Session(timeout=_TIMEOUTS).send(request.prepare())
    if response.status_code >= 300:  # noqa: PLR2004
        raise NotTaken(response.status_code)


class NotTaken(Exception):
    """CloudFormation did not take an answer; the status is the argument."""


def _to_loopback(request: AWSRequest) -> AWSRequest:
    """Names below `localhost`, as the local cloud has them, are this machine (RFC 6761); many resolvers do not know that."""
    parts = urlsplit(str(request.url))
    if (parts.hostname or "").endswith(".localhost"):
        request.headers["Host"] = parts.netloc
        request.url = parts._replace(netloc=f"127.0.0.1:{parts.port or 80}").geturl()
    return request
