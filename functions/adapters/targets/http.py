"""HTTP endpoints as targets."""

from __future__ import annotations

import logging
import re
import socket
import threading
from datetime import timedelta
from typing import Any

import urllib3
import urllib3.connection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as OverrunError
from urllib3.util.ssl_ import create_urllib3_context

from functions.adapters.targets.address_check import AddressCheck, RefusedAddressError
from functions.adapters.targets.calls import TIMEOUT, Call
from functions.adapters.targets.http_outcome import outcome_of
from functions.domain.instants import format_instant
from functions.domain.jobs.results import WHOLE_LIMIT
from functions.domain.targets.http_answers import AnswerMeaning, Judgement, judge
from functions.domain.targets.options import Method, TargetOptions
from functions.domain.targets.webhooks import keys_of, signed_headers
from functions.ports.clock import Clock
from functions.ports.targets import Failed, Invocation, Outcome, WebhookKeys

BODY_LIMIT = WHOLE_LIMIT
"""Bytes of a body that are read."""

_DRAINED = 16_384
"""Bytes of a body that nobody keeps, read to use its connection again."""

# It would log headers of answers that it cannot read, and the whole URL beside them.
logging.getLogger("urllib3.connection").setLevel(logging.ERROR)

_CONNECT_SECONDS = 5.0
_ABOUT_HOSTS = (NewConnectionError, ConnectTimeoutError, ReadTimeoutError, SSLError)
_CONNECTION = re.compile(r"^(<[^>]*>|\w+\([^)]*\)): ")
_WITHOUT_BODY = frozenset({Method.GET, Method.DELETE})


class HttpCaller:
    """Makes one request a call, signed, to an address that may be called. It follows nothing."""

    def __init__(self, *, clock: Clock, addresses: AddressCheck, keys: WebhookKeys) -> None:
        self._clock = clock
        self._addresses = addresses
        self._keys = keys
        # One for all connections: each would load the authorities of the system by itself, which takes 24 ms of CPU.
        context = create_urllib3_context()
        context.load_default_certs()
        # No retries and no redirects: an attempt is one request to the address that was asked for.
        self._http = urllib3.PoolManager(retries=False, maxsize=10, ssl_context=context)
        self._http.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Raises what the store of the keys raises, before the target is called: that is no failure of the target."""
        call = Call(timeout)
        body = None if payload is None and options.method in _WITHOUT_BODY else (payload or "null").encode()
        keys = keys_of(invocation.tenant, self._keys.masters())
        signature = signed_headers(
            keys, idempotency_key=invocation.idempotency_key, body=body or b"", at=self._clock.now()
        )
        headers = _headers(invocation, options, signature, has_body=body is not None)
        return call.run(lambda: self._exchange(call, target, body, headers, options))

    def _exchange(
        self, call: Call, url: str, body: bytes | None, headers: urllib3.HTTPHeaderDict, options: TargetOptions
    ) -> Outcome:
        _thread.call, _thread.addresses = call, self._addresses
        try:
            response = self._http.request(
                options.method.value,
                url,
                body=body,
                headers=headers,
                # The call cuts an overrun itself; this only ends a thread whose socket it could not shut.
                timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, call.seconds), read=call.seconds + 1),
                redirect=False,
                preload_content=False,
            )
        except RefusedAddressError as error:
            return Failed(f"RefusedAddress: {error}", error_class="refused_address", is_permanent=True)
        except (LocationValueError, UnicodeError) as error:
            return Failed(_text_of(error), error_class="invalid", is_permanent=True)
        except HTTPError as error:
            return Failed(_text_of(error), error_class=_class_of(error))
        judgement = judge(response.status, response.headers.get("Retry-After"), options=options, now=self._clock.now())
        answer = _Answer(response, judgement)
        # The status is the answer: what comes or does not come of the body changes nothing about the effect.
        call.record(answer.outcome)
        answer.read()
        return answer.outcome()


class _Answer:
    """An answer whose body is still on its way."""

    def __init__(self, response: urllib3.BaseHTTPResponse, judgement: Judgement) -> None:
        self._response = response
        self._judgement = judgement
        self._chunks: list[bytes] = []
        self._is_whole = False

    def read(self) -> None:
        """Read a short body to its end, so that its connection can be used again; otherwise close it."""
        size, limit = 0, BODY_LIMIT if self._judgement.meaning is AnswerMeaning.SUCCESS else _DRAINED
        try:
            while size <= limit:
                chunk = self._response.read1(limit + 1 - size)
                if not chunk:
                    self._is_whole = True
                    self._response.release_conn()
                    return
                self._chunks.append(chunk)
                size += len(chunk)
        except (HTTPError, OSError):
            pass
        self._response.close()

    def outcome(self) -> Outcome:
        """What the status means, with as much of the body as there is by now."""
        is_whole = self._is_whole  # before the chunks: none comes after it
        return outcome_of(self._response.status, self._judgement, b"".join(self._chunks), is_whole=is_whole)


_thread = threading.local()
"""The call that a thread makes, and the check of its addresses: connections are made deep in the library, by whoever needs one."""


class _CheckedConnection(urllib3.connection.HTTPConnection):
    """A connection to a checked address, which its call can cut. Certificate, SNI and Host keep the name."""

    def _new_conn(self) -> socket.socket:
        addresses: AddressCheck = _thread.addresses
        timeout = self.timeout if isinstance(self.timeout, int | float) else None
        try:
            return addresses.connect(
                self._dns_host, self.port, timeout=timeout, socket_options=self.socket_options or ()
            )
        except UnicodeError:
            raise LocationParseError(f"{self.host!r}, label empty or too long") from None
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"no connection to {self.host} within {timeout:g} s") from error
        except OSError as error:
            raise NewConnectionError(self, f"no connection to {self.host}: {error}") from error

    def connect(self) -> None:
        super().connect()
        _thread.call.use(self.sock)

    def request(self, *arguments: Any, **options: Any) -> None:
        if self.sock is not None:
            _thread.call.use(self.sock)
        super().request(*arguments, **options)


class _CheckedTLSConnection(_CheckedConnection, urllib3.connection.HTTPSConnection):
    pass


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _CheckedConnection  # pyright: ignore[reportAssignmentType]  the class that it replaces derives alike

    def _put_conn(self, conn: Any) -> None:
        """On the thread of its call: from now on it may serve others."""
        if not _thread.call.gives_back() and conn is not None:
            conn.close()
        super()._put_conn(conn)


class _HTTPSPool(_HTTPPool, urllib3.HTTPSConnectionPool):
    ConnectionCls = _CheckedTLSConnection  # pyright: ignore[reportAssignmentType]


def _headers(
    invocation: Invocation, options: TargetOptions, signature: dict[str, str], *, has_body: bool
) -> urllib3.HTTPHeaderDict:
    """What a target receives: everything it needs to deduplicate, and to refuse a stale or a forged attempt."""
    headers = urllib3.HTTPHeaderDict({"User-Agent": "Tickwheel/1"})
    if has_body:
        headers["Content-Type"] = "application/json"
    # One by one, so that a name replaces the same in any case: a job's goes before those above, never before those below.
    for name, value in (*options.headers, *_headers_of(invocation).items(), *signature.items()):
        headers[name] = value
    return headers


def _headers_of(invocation: Invocation) -> dict[str, str]:
    return {
        "Idempotency-Key": invocation.idempotency_key,
        "Tickwheel-Job-Id": invocation.job_id,
        "Tickwheel-Tenant": invocation.tenant,
        "Tickwheel-Attempt": str(invocation.attempt),
        "Tickwheel-Fence": str(invocation.fence),
        "Tickwheel-Scheduled-At": format_instant(invocation.scheduled_at),
        "traceparent": invocation.traceparent,
    }


def _text_of(error: Exception) -> str:
    """Its kind, and its text where that names a host at most: others repeat the whole URL, or what the target sent."""
    name = type(error).__name__
    if isinstance(error, _ABOUT_HOSTS):
        # Without the connection or pool that urllib3 puts before its text, and whose name means nothing to a reader.
        said = str(error.args[-1] if isinstance(error, ConnectTimeoutError) and error.args else error)
        return f"{name}: {_CONNECTION.sub('', said, count=1)}"
    cause = error.args[-1] if isinstance(error, ProtocolError) and error.args else None
    return f"{name}: {type(cause).__name__}" if isinstance(cause, Exception) else name


def _class_of(error: HTTPError) -> str:
    if isinstance(error, OverrunError) and not isinstance(error, NewConnectionError):
        return TIMEOUT
    return "tls" if isinstance(error, SSLError) else "connection"
