"""Who asks, and for whom he may act.

A caller is known by the ARN that signed his request, or by a token of the stage's issuer that names his tenant. Patterns
of ARNs say who may act: for a tenant those of its plan, for all of them and for the stage those of its operators.

An assumed role signs as `arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION`, which is the role
`arn:aws:iam::ACCOUNT:role/NAME`: its path is not included. So patterns are compared with names alone. A name is unique in
its account whatever its path is, so a whole name with a path before it means that name; a path before a name with a `*`
would allow roles that are not below it, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from functions.domain.errors import InvalidInput
from functions.domain.jobs.job import TENANT
from functions.domain.tenants.plan import MAX_PRINCIPAL_LENGTH

ANYBODY = "*"
"""The pattern of everybody who can sign a request to the stage's API."""

_PARTITION = r"aws[a-z-]{0,20}"
_NAME = r"[A-Za-z0-9+=,.@_-]"
_PATTERN = re.compile(
    rf"arn:(?P<partition>{_PARTITION}):iam::(?P<account>\d{{12}}):(?P<kind>role|user)/(?P<path>[!-~]*/)?(?P<name>[A-Za-z0-9+=,.@_*-]{{1,64}})",
    re.ASCII,
)
_ASSUMED = re.compile(rf"arn:({_PARTITION}):sts::(\d{{12}}):assumed-role/({_NAME}{{1,64}})/[!-.0-~]{{1,64}}", re.ASCII)
_USER = re.compile(rf"arn:({_PARTITION}):iam::(\d{{12}}):user/(?:[!-~]*/)?({_NAME}{{1,64}})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Principal:
    """An identity of IAM, without its path. kind: `role` or `user`."""

    partition: str
    account: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"arn:{self.partition}:iam::{self.account}:{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. name: for people. principal: who signed; None for whom no pattern names, such as a root user.

    is_token: known by a token and not by a signature. tenant: that the token names; empty for none.
    """

    name: str
    principal: Principal | None = None
    is_token: bool = False
    tenant: str = ""

    @property
    def shown(self) -> str:
        """What an operator would write down to let him act."""
        return str(self.principal) if self.principal is not None else self.name


def caller_by_arn(arn: str) -> Caller:
    """The caller who signed a request."""
    return Caller(name=arn, principal=principal_of(arn))


def caller_by_token(subject: str, tenant: object) -> Caller:
    """The caller whom a token names. tenant: its claim, whatever that is; what is no tenant's id is none."""
    named = tenant if isinstance(tenant, str) and TENANT.fullmatch(tenant) else ""
    return Caller(name=f"token of {subject}", is_token=True, tenant=named)


def principal_of(arn: str) -> Principal | None:
    """The role or user behind an ARN; None for any other."""
    assumed = _ASSUMED.fullmatch(arn)
    if assumed is not None:
        return Principal(assumed[1], assumed[2], "role", assumed[3])
    user = _USER.fullmatch(arn)
    return Principal(user[1], user[2], "user", user[3]) if user is not None else None


def check_pattern(pattern: str) -> str:
    """A pattern of ARNs. Raises InvalidInput for what could match nobody, or more than it seems to."""
    if pattern == ANYBODY:
        return pattern
    found = _PATTERN.fullmatch(pattern) if len(pattern) <= MAX_PRINCIPAL_LENGTH else None
    if found is None:
        raise InvalidInput(
            f"{pattern[:80]!r} is no pattern of a role or a user: use arn:aws:iam::ACCOUNT:role/NAME, or user/NAME, "
            f"with * only in the name, or {ANYBODY} for everybody who can sign"
        )
    if found["path"] and "*" in found["name"]:
        raise InvalidInput(
            f"{pattern[:80]!r} has a path before a *: of a role that was assumed the path is not known, so this would "
            "allow roles elsewhere; leave the path out"
        )
    return pattern


def may_act(caller: Caller, tenant: str, *, principals: Iterable[str], operators: Iterable[str]) -> bool:
    """Whether a caller may act for a tenant. principals: the patterns of its plan."""
    if caller.is_token:
        return bool(caller.tenant) and caller.tenant == tenant
    return is_operator(caller, operators) or _is_among(caller, principals)


def is_operator(caller: Caller, operators: Iterable[str]) -> bool:
    """Whether a caller may act for all tenants, and for the stage. A token never says so."""
    return not caller.is_token and _is_among(caller, operators)


def _is_among(caller: Caller, patterns: Iterable[str]) -> bool:
    return any(pattern == ANYBODY or _matches(caller.principal, pattern) for pattern in patterns)


def _matches(principal: Principal | None, pattern: str) -> bool:
    found = _PATTERN.fullmatch(pattern)
    if principal is None or found is None:
        return False
    place = (found["partition"], found["account"], found["kind"])
    is_there = place == (principal.partition, principal.account, principal.kind)
    return is_there and matches_name(principal.name, found["name"])


def matches_name(name: str, pattern: str) -> bool:
    """Whether a name is one of a pattern's, in which `*` stands for any text.

    Each part between two stars is looked for once, from where the one before ended: the first place is as good as any.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
