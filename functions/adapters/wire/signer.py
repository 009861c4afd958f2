"""botocore's signer, for requests to one address that have each header once: what is the same for many is made once."""

from __future__ import annotations

import hmac
from functools import lru_cache
from hashlib import sha256
from typing import Any

from botocore.auth import SIGNED_HEADERS_BLACKLIST, SigV4Auth
from botocore.awsrequest import AWSRequest

_SIGNED = "headers_to_sign"


class Signer(SigV4Auth):
    """Signs a request of `wire.client`. host: as the address of its requests has it.

    botocore derives the key of a day for each request, and collects the headers of each twice, in a message of e-mail.
    """

    def __init__(self, credentials: Any, service: str, region: str, *, host: str) -> None:
        super().__init__(credentials, service, region)
        self._scope = (region, service)
        self._host = host

    def headers_to_sign(self, request: Any) -> Any:
        """Their names in lower case, with their values."""
        found = request.context.get(_SIGNED)
        if found is None:
            names = ((name.lower(), value) for name, value in request.headers.items())
            kept = {name: value for name, value in names if name not in SIGNED_HEADERS_BLACKLIST}
            found = request.context[_SIGNED] = dict(sorted({"host": self._host, **kept}.items()))
        return found

    def canonical_headers(self, headers_to_sign: Any) -> str:
        """Sorted, without blanks that mean nothing."""
        return "\n".join(f"{name}:{' '.join(value.split())}" for name, value in headers_to_sign.items())

    def signed_headers(self, headers_to_sign: Any) -> str:
        """Their names."""
        return ";".join(headers_to_sign)

    def signature(self, string_to_sign: str, request: Any) -> str:
        """By the key of the day."""
        key = _key(self.credentials.secret_key, request.context["timestamp"][:8], *self._scope)
        return hmac.new(key, string_to_sign.encode(), sha256).hexdigest()


def host_of(url: str) -> str:
    """As botocore signs it: with its port, where that is not the usual one of its scheme."""
    request: Any = AWSRequest("POST", url)
    nobody: Any = None
    return SigV4Auth(nobody, "", "").headers_to_sign(request)["host"]


@lru_cache(maxsize=16)
def _key(secret: str, day: str, region: str, service: str) -> bytes:
    """See https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), sha256).digest()
    return key
