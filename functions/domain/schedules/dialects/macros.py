"""Words in place of an expression: @every of robfig/cron and Temporal, and others."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from functions.domain.instants import format_duration
from functions.domain.schedules.dialects.dialect import Dialect, of_interval
from functions.domain.schedules.rules import MAX_INTERVAL

_GO_TIME = r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|[smhd]))+"
_EVERY = re.compile(rf"@every\s+({_GO_TIME})(?:/({_GO_TIME}))?")
_GO_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|[smhd])")
_GO_UNITS = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600", "d": "86400"}


def read_macro(text: str, _: str) -> Dialect | None:
    """Reads what begins with @ and is no macro of ours."""
    lowered = text.lower()
    if lowered.startswith("@every "):
        return _at_every(lowered)
    if lowered == "@every_minute":
        return Dialect("a macro of Cronos", {"": {"cron": "* * * * *"}})
    if lowered == "@every_second":
        return Dialect("a macro of Cronos", {"": {"every": "PT1S"}})
    if lowered == "@reboot":
        return Dialect("a macro of crontabs", {}, "there is no machine here whose start it could mean")
    return None


def _at_every(text: str) -> Dialect:
    name = "robfig/cron's @every, or Temporal's"
    match = _EVERY.fullmatch(text)
    if match is None:
        return Dialect(name, {}, 'its interval is none: write {"every": "PT5M"} for five minutes')
    # robfig/cron rounds down to whole seconds, and up to the first: https://pkg.go.dev/github.com/robfig/cron/v3#Every
    interval, phase = (int(_seconds(each)) if each else 0 for each in match.groups())
    if interval > MAX_INTERVAL.total_seconds() or phase >= max(1, interval):
        return Dialect(name, {}, "an interval is at most ten years, and its phase is shorter than it")
    dialect = of_interval(name, timedelta(seconds=max(1, interval)))
    if not match[2]:
        return dialect
    # Temporal counts from the epoch: https://docs.temporal.io/schedule#spec
    every = {"interval": dialect.meanings[""]["every"], "phase": format_duration(timedelta(seconds=phase))}
    return Dialect(name, {"": {"every": every}})


def _seconds(text: str) -> Decimal:
    return sum((Decimal(number) * Decimal(_GO_UNITS[unit]) for number, unit in _GO_DURATION.findall(text)), Decimal(0))
