"""All checks of an account, for a stage and for a rate."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.account import Account, Caller, Unknown
from doctor.check import Check, Diagnosis, Level
from infra.capacity import CONCURRENCY, UNRESERVED, Need, needed_quotas
from infra.stage import Stage

OLDEST_BOOTSTRAP = 6
"""What the rule `CheckBootstrapVersion` of every template asks for."""

_LOG_IN = "log in (`aws sso login`, or AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), choose a region with AWS_REGION"
_BOOTSTRAPPING = "https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html"


def examine(
    stage: Stage, *, executions: float | None = None, is_only_where: bool = False, account: Account | None = None
) -> Diagnosis:
    """Ask the account of whoever calls. is_only_where: which account and region, and nothing more."""
    account = account or Account()
    return Diagnosis(
        stage=stage.name,
        executions=executions,
        checks=list(_checks(account, stage, executions, is_only_where=is_only_where)),
    )


def _checks(account: Account, stage: Stage, executions: float | None, *, is_only_where: bool) -> Iterator[Check]:
    try:
        caller = account.caller()
    except Unknown as error:
        yield Check(name="caller", level=Level.REFUSED, seen=f"AWS does not know who deploys: {error}", command=_LOG_IN)
        return
    yield Check(name="caller", level=Level.OK, seen=caller.arn)
    yield Check(name="account", level=Level.OK, seen=caller.account)
    yield Check(name="region", level=Level.OK, seen=caller.region)
    if is_only_where:
        return
    yield _bootstrap(account, caller)
    yield _other_stages(account, stage)
    for need in needed_quotas(stage, executions=executions):
        yield _quota(account, caller, need)


def _bootstrap(account: Account, caller: Caller) -> Check:
    name, needed = "bootstrap", f"version {OLDEST_BOOTSTRAP}"
    try:
        version = account.bootstrap_version()
    except Unknown as error:  # who may deploy may not be allowed to look
        return Check(name=name, level=Level.WARNING, seen=f"could not be asked: {error}", needed=needed)
    if version is not None and version >= OLDEST_BOOTSTRAP:
        return Check(name=name, level=Level.OK, seen=f"version {version}", needed=needed, page=_BOOTSTRAPPING)
    seen = "none" if version is None else f"version {version}"
    return Check(
        name=name,
        level=Level.REFUSED,
        seen=f"{seen} in account {caller.account}, {caller.region}",
        needed=needed,
        command="make bootstrap",
        page=_BOOTSTRAPPING,
    )


def _other_stages(account: Account, stage: Stage) -> Check:
    try:
        others = [name for name in account.stages() if name != stage.name]
    except Unknown as error:
        return Check(name="other stages", level=Level.WARNING, seen=f"could not be asked: {error}")
    if not others:
        return Check(name="other stages", level=Level.OK, seen="none")
    return Check(
        name="other stages",
        level=Level.WARNING,
        seen=f"{', '.join(others)}; they share the quotas below, and nothing else",
    )


def _quota(account: Account, caller: Caller, need: Need) -> Check:
    quota = need.quota
    found = account.value_of(quota, region=caller.region)
    origin = f" (AWS's default, assumed: {found.assumed})" if found.assumed else ""
    lacking = need.least - found.value
    is_enough = lacking <= 0
    too_little = Level.REFUSED if need.is_deployed and not found.assumed else Level.WARNING
    return Check(
        name=quota.name,
        level=Level.OK if is_enough else too_little,
        seen=f"{_number(found.value)}{origin}",
        needed=f"{_number(need.least)} ({need.because})",
        command="" if is_enough else _request(account, caller, need, lacking=lacking),
        page=quota.page,
    )


def _request(account: Account, caller: Caller, need: Need, *, lacking: float) -> str:
    quota, wanted = need.quota, need.least
    if quota is UNRESERVED:
        # What is asked for is the whole, of which others have reserved the rest.
        wanted = account.value_of(CONCURRENCY, region=caller.region).value + lacking
    if quota.code is None:
        return f"ask AWS Support for more: {quota.page}"
    if not quota.is_adjustable:
        return f"AWS raises it with the requests a second: {quota.page}"
    instead = f"{need.instead}, or ask for more: " if need.instead else ""
    return (
        f"{instead}aws service-quotas request-service-quota-increase --service-code {quota.service} --quota-code {quota.code} "
        f"--desired-value {max(quota.default, wanted):.0f}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
