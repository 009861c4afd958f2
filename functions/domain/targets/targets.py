"""The text of a target: what it names, what it shares with its neighbours, and whether a stage allows it.

A target is an HTTP endpoint (`https://…`), a Python function of the worker (`handler:NAME`), or the ARN of a Lambda
function, an SQS queue, an SNS topic, an EventBridge bus or a Step Functions state machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import urlsplit

from functions.domain.errors import InvalidJob, InvalidPattern, UnknownHandler
from functions.domain.targets.handler_names import HandlerNames
from functions.domain.targets.kinds import QUALIFIER, QUALIFIER_LETTERS, SERVICES, Kind

MAX_TARGET_LENGTH = 2_048
PARTITIONS = ("aws", "aws-cn", "aws-us-gov")

OWN_PREFIX = "Tickwheel-"
"""How the names of all queues and functions of every stage begin. None is ever a target: a message that a tenant puts on
a ready queue would be another tenant's job."""

DEFAULT_TARGETS = ("https://*", "handler:*")

_DEFAULT_PORTS = {"https": 443, "http": 80}
_SHOWN = 80

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d{1,2}", re.ASCII)
_REGION_LETTERS = re.compile(r"[a-z0-9*?-]+", re.ASCII)
_ACCOUNT_LENGTH = 12
_ACCOUNT_LETTERS = re.compile(r"[0-9*?]+", re.ASCII)

_HANDLER = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_HANDLER_LETTERS = re.compile(r"[A-Za-z0-9_.*?-]{1,64}", re.ASCII)

_HOST = r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?"
_IP_V6 = r"\[[0-9a-f:.]+\]"

# No other character: parsers of URLs disagree on where a host with a backslash ends.
_AUTHORITY = re.compile(rf"(?P<host>{_HOST}|{_IP_V6})\.?(:\d{{1,5}})?", re.ASCII)
_URL_PATTERN = re.compile(
    rf"(?P<scheme>https?)://(?P<host>\*|(\*\.)?{_HOST}|{_IP_V6})(:(?P<port>\d{{1,5}}))?", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target taken apart.

    destination: what it fails together with: `scheme://host:port` in lower case and without the scheme's own port,
    `handler:NAME`, or the ARN without version or alias. host, port: of a URL. region, account: of an ARN. name: of a
    handler, or of the resource of an ARN.
    """

    kind: Kind
    text: str
    destination: str
    host: str = ""
    port: int = 0
    region: str = ""
    account: str = ""
    name: str = ""

    @property
    def is_fifo(self) -> bool:
        """Whether it is a queue or a topic that keeps an order."""
        return self.kind in (Kind.SQS, Kind.SNS) and self.name.endswith(".fifo")


_SERVICES = ", ".join(SERVICES)


def parse_target(text: str) -> Target:
    """What a text names. Raises InvalidJob for what Tickwheel cannot call."""
    if len(text) > MAX_TARGET_LENGTH:
        raise _refused(f"is longer than {MAX_TARGET_LENGTH} characters", text[:_SHOWN] + "…")
    scheme, _, rest = text.partition(":")
    if scheme == "handler":
        if not _HANDLER.fullmatch(rest):
            raise _refused("handler: must be followed by a name of [A-Za-z0-9_.-]{1,64}", text)
        return Target(kind=Kind.HANDLER, text=text, destination=text, name=rest)
    if scheme == "arn":
        return _parse_arn(text)
    if scheme in _DEFAULT_PORTS:
        return _parse_url(text, scheme)
    raise _refused("has an unknown scheme: known are https://, handler: and arn:", text)


def check_target(
    text: str, *, allowed: AllowedTargets, allow_plain_http: bool, handlers: HandlerNames | None = None
) -> str:
    """The target itself; InvalidJob when Tickwheel cannot call it, or the stage does not allow it. handlers: None where unknown.

    Raises UnknownHandler for a handler that is not among them.
    """
    if text.startswith("http:") and not allow_plain_http:
        raise _refused("http:// is not allowed in this stage: use https://", text)
    target = parse_target(text)
    if not allowed.is_allowed(target):
        raise _refused(allowed.objection(target), text)
    if target.kind is Kind.HANDLER and handlers is not None and target.name not in handlers:
        raise UnknownHandler(handlers.objection(target.name), field="target", value=text)
    return text


def check_asynchronous(is_async: bool, *, target: str) -> bool:
    """The wish itself; InvalidJob when the target cannot be handed a job without waiting for its answer."""
    if is_async and parse_target(target).kind is not Kind.LAMBDA:
        raise InvalidJob(
            "is for Lambda functions only: leave it out, or give the ARN of a function as the target",
            field="asynchronous",
            value=is_async,
        )
    return is_async


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    """The targets that a stage allows, as patterns.

    `https://*` is any host, `https://*.example.com` any subdomain of one, however deep, `https://example.com` just that
    host; with a port, only on that port. `handler:*`, and ARNs, take IAM's wildcards: `*` for any characters of a part
    between colons, `?` for one. The ARN of a function or state machine allows its versions and aliases too.
    Raises InvalidPattern.
    """

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            _check_pattern(pattern)

    def is_allowed(self, target: Target) -> bool:
        """Whether one of the patterns allows it."""
        return not _is_own(target) and any(_matches(pattern, target) for pattern in self.patterns)

    def objection(self, target: Target) -> str:
        """Why a target is not allowed, and what to do."""
        if _is_own(target):
            return f"names a resource of Tickwheel itself: nothing that is called {OWN_PREFIX}… can be a target"
        listed = ", ".join(self.patterns) or "none"
        return (
            f"is not among the targets that this stage allows, which are {listed}: use one of them, or have it added to "
            "the stage's `targets` in infra/stage.py and deployed"
        )

    def arns(self, kind: Kind) -> tuple[str, ...]:
        """The patterns that name resources of a service."""
        return tuple(pattern for pattern in self.patterns if _kind_of(pattern) is kind)


def _parse_url(text: str, scheme: str) -> Target:
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if not is_plain or not text.startswith(f"{scheme}://"):
        raise _refused("is not a URL with a host", text)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port  # `port` is checked when it is read
    except ValueError as error:
        raise _refused(f"is not a URL: {error}", text) from None
    if not host:
        raise _refused("is not a URL with a host", text)
    if parts.username is not None or parts.password is not None:
        # A password in a URL would stand in logs and dead letters.
        raise _refused("must not carry a user name or password", f"{scheme}://…@{host}")
    authority = _AUTHORITY.fullmatch(parts.netloc.lower())
    if authority is None:
        raise _refused("is not a URL with a plain host: use letters, digits, dots and hyphens, and a port", text)
    host = _same_host(authority["host"])
    port = _DEFAULT_PORTS[scheme] if port is None else port
    own_port = "" if port == _DEFAULT_PORTS[scheme] else f":{port}"
    return Target(kind=Kind.HTTP, text=text, destination=f"{scheme}://{host}{own_port}", host=host, port=port)


def _parse_arn(text: str) -> Target:
    if "*" in text or "?" in text:
        raise _refused("must name one resource: wildcards are for the stage's `targets`", text)
    parts = text.split(":", 5)
    kind = _kind_of(text)
    if kind is None:
        raise _refused(f"has an ARN of a service that Tickwheel does not call: known are {_SERVICES}", text)
    _, partition, _, region, account, behind = parts
    service = SERVICES[kind]
    name, _, qualifier = behind.removeprefix(service.prefix).partition(":")
    is_whole = (
        partition in PARTITIONS
        and _REGION.fullmatch(region)
        and (account.isascii() and account.isdigit() and len(account) == _ACCOUNT_LENGTH)
        and behind.startswith(service.prefix)
        and service.name.fullmatch(name)
    )
    is_bare = behind == f"{service.prefix}{name}"
    if not is_whole or not (is_bare or (service.is_qualified and QUALIFIER.fullmatch(qualifier))):
        raise _refused(f"is not an ARN of {kind}: it looks like {_example(kind)}", text)
    destination = text.removesuffix(f":{qualifier}") if qualifier else text
    return Target(kind=kind, text=text, destination=destination, region=region, account=account, name=name)


def _kind_of(arn: str) -> Kind | None:
    """The service of an ARN, or of a pattern of ARNs, with a target behind the account; None otherwise."""
    parts = arn.split(":", 5)
    if parts[0] != "arn" or len(parts) < 6:  # noqa: PLR2004  arn, partition, service, region, account, resource
        return None
    return next((kind for kind in SERVICES if kind == parts[2]), None)


def _example(kind: Kind) -> str:
    service = SERVICES[kind]
    return f"arn:aws:{kind}:REGION:ACCOUNT:{service.prefix}NAME{'[:ALIAS]' if service.is_qualified else ''}"


def _is_own(target: Target) -> bool:
    return target.kind in SERVICES and target.name.startswith(OWN_PREFIX)


def _matches(pattern: str, target: Target) -> bool:
    if target.kind is Kind.HTTP:
        return _matches_url(pattern, target)
    # Part by part: no wildcard reaches over a colon, as IAM lets some do.
    parts = pattern.split(":")
    named = (text.split(":") for text in (target.text, target.destination))
    return any(
        len(parts) == len(names) and all(_glob(part).fullmatch(name) for part, name in zip(parts, names, strict=True))
        for names in named
    )


def _matches_url(pattern: str, target: Target) -> bool:
    found = _URL_PATTERN.fullmatch(pattern.lower())
    if found is None or not target.text.startswith(f"{found['scheme']}://"):
        return False
    if found["port"] is not None and int(found["port"]) != target.port:
        return False
    host = found["host"]
    if host == "*":
        return True
    return target.host.endswith(host[1:]) if host.startswith("*") else target.host == _same_host(host)


@lru_cache(1_024)
def _glob(pattern: str) -> re.Pattern[str]:
    # Python's own translation never goes back behind a star that has matched, so many stars cost no more than one. It
    # knows sets of characters too, which IAM's wildcards do not.
    return re.compile(translate(pattern.replace("[", "[[]")))


def _same_host(host: str) -> str:
    """An IPv6 address in its one short form; any other host as it is."""
    if not host.startswith("["):
        return host
    try:
        return f"[{IPv6Address(host[1:-1]).compressed}]"
    except AddressValueError:
        return host


def _check_pattern(pattern: str) -> None:
    """Refuse what allows everything by accident, or nothing at all."""
    scheme, _, rest = pattern.partition(":")
    if scheme in _DEFAULT_PORTS:
        found = _URL_PATTERN.fullmatch(pattern.lower())
        if found is None or not 0 < int(found["port"] or 1) < 65_536:  # noqa: PLR2004
            raise InvalidPattern(pattern, "use https://HOST, https://*.HOST for its subdomains or https://*, no path")
    elif scheme == "handler":
        if not _HANDLER_LETTERS.fullmatch(rest):
            raise InvalidPattern(pattern, "use handler:NAME or handler:*, of [A-Za-z0-9_.-]{1,64}")
    elif scheme == "arn":
        _check_arn_pattern(pattern)
    else:
        raise InvalidPattern(pattern, f"use https://…, handler:… or an ARN of {_SERVICES}")


def _check_arn_pattern(pattern: str) -> None:
    kind = _kind_of(pattern)
    if kind is None:
        raise InvalidPattern(pattern, f"use a whole ARN of one of {_SERVICES}, such as {_example(Kind.SQS)}")
    _, partition, _, region, account, behind = pattern.split(":", 5)
    service = SERVICES[kind]
    name, *qualifiers = behind.removeprefix(service.prefix).split(":")
    can_match = (
        any(_glob(partition).fullmatch(known) for known in PARTITIONS)
        and _may_be(region, _REGION, _REGION_LETTERS)
        and _may_be_account(account)
        and behind.startswith(service.prefix)
        and _may_be(name, service.name, service.letters)
        and not name.startswith(OWN_PREFIX)
        and len(qualifiers) <= int(service.is_qualified)
        and all(_may_be(qualifier, QUALIFIER, QUALIFIER_LETTERS) for qualifier in qualifiers)
    )
    if not can_match:
        raise InvalidPattern(pattern, f"no target can match it: one looks like {_example(kind)}")


def _may_be(part: str, whole: re.Pattern[str], letters: re.Pattern[str]) -> bool:
    """Whether a part of a pattern can match a part of an ARN, as far as its letters show."""
    has_wildcard = "*" in part or "?" in part
    return (letters if has_wildcard else whole).fullmatch(part) is not None


def _may_be_account(part: str) -> bool:
    digits = len(part.replace("*", ""))
    fits = digits <= _ACCOUNT_LENGTH if "*" in part else digits == _ACCOUNT_LENGTH
    return fits and _ACCOUNT_LETTERS.fullmatch(part) is not None


def _refused(message: str, value: str) -> InvalidJob:
    return InvalidJob(message, field="target", value=value)


def destination_of(target: str) -> str:
    """What a target shares with its neighbours, such as `https://host`; nothing for what is no target."""
    try:
        return parse_target(target).destination
    except InvalidJob:
        return ""
