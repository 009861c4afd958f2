"""Sends requests to one endpoint on connections that stay open, and raises what botocore's own session raises.

That one looks its pool up anew for each request, and reads the bundle of certificates anew for each connection.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from functools import cache
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import urllib3
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import URLLib3Session, create_urllib3_context, get_cert_path
from botocore.utils import get_environ_proxies
from urllib3 import exceptions as urllib3_errors


class Reply:
    """What came back: an AWSResponse, of which botocore's handlers use so much."""

    __slots__ = ("content", "headers", "status_code", "url")

    def __init__(self, url: str, status_code: int, headers: Mapping[str, str], content: bytes) -> None:
        self.url = url
        self.status_code = status_code
        self.headers = headers
        self.content = content


class Connections:
    """Of one endpoint, with the timeouts and the number of a botocore Config. Behind a proxy, botocore's session takes its place.

    bundle: what botocore knows as `ca_bundle`: the certificates that are trusted; False for any.
    """

    def __init__(self, url: str, config: Any, *, bundle: str | bool | None) -> None:
        options: Any = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        trusted: Any = bundle if bundle is not None else os.environ.get("REQUESTS_CA_BUNDLE") or True
        timeouts: Any = (config.connect_timeout, config.read_timeout)
        self._url = url
        self._path = urlsplit(url).path or "/"
        self._pool: Any = None
        self._proxied: Any = None
        if proxies := get_environ_proxies(url):
            self._proxied = URLLib3Session(
                verify=trusted,
                proxies=proxies,
                timeout=timeouts,
                max_pool_connections=config.max_pool_connections,
                socket_options=options,
            )
            return
        pooled: Any = {
            "maxsize": config.max_pool_connections,
            "timeout": urllib3.Timeout(connect=timeouts[0], read=timeouts[1]),
            "socket_options": options,
        }
        if url.startswith("https:"):
            pooled |= {"ssl_context": _context(trusted), "cert_reqs": "CERT_REQUIRED" if trusted else "CERT_NONE"}
        self._pool = urllib3.connection_from_url(url, **pooled)

    def send(self, request: AWSPreparedRequest) -> Any:
        """The answer, whatever its status. Raises HTTPClientError or botocore's ConnectionError."""
        if self._proxied:
            return self._proxied.send(request)
        try:
            answer = self._pool.urlopen(
                "POST",
                self._path,
                body=request.body,
                headers=request.headers,
                retries=_NEVER,
                assert_same_host=False,
                decode_content=False,
            )
        except urllib3_errors.SSLError as error:
            raise SSLError(endpoint_url=self._url, error=error) from error
        except (urllib3_errors.NewConnectionError, socket.gaierror) as error:
            raise EndpointConnectionError(endpoint_url=self._url, error=error) from error
        except urllib3_errors.ConnectTimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self._url, error=error) from error
        except urllib3_errors.ReadTimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
        except urllib3_errors.ProtocolError as error:
            raise ConnectionClosedError(endpoint_url=self._url, error=error, request=request) from error
        except Exception as error:
            raise HTTPClientError(error=error) from error
        return Reply(self._url, answer.status, answer.headers, answer.data)


_NEVER = urllib3.Retry(total=False)


@cache
def _context(trusted: Any) -> SSLContext:
    """One for all connections, with its certificates read once."""
    context: Any = create_urllib3_context()
    if trusted:
        context.load_verify_locations(get_cert_path(trusted))
    else:
        context.verify_mode = 0
    return context
