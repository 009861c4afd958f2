"""How fast a stage spends its error budget: the share of late attempts, over a long and a short window.

The windows and factors are those of the Site Reliability Workbook (Beyer and others, 2018), chapter 5: the long window
shows that it matters, and the short one that it still goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from functions.domain.instants import DAY, HOUR, MINUTE
from infra.metrics import emitted
from infra.runbook import alarm, all_of
from infra.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Burn:
    """A rate at which the budget, which is for 30 days, would be spent so many times faster."""

    name: str
    factor: float
    long: timedelta
    short: timedelta


FAST = Burn(name="BurnFast", factor=14.4, long=HOUR, short=5 * MINUTE)
SLOW = Burn(name="BurnSlow", factor=6, long=6 * HOUR, short=30 * MINUTE)

STEADY_DAYS = 3

ENOUGH_LATE = 10
"""Late attempts within a long window below which no alarm is raised: on a quiet stage one of them is a large share."""

SECTION = "too-many-jobs-begin-late"


class BurnRates(Construct):
    """`pages`: rules, each of two windows, whose alarms are `parts`. `ticket`: the budget is spent as fast as it comes in, for three days.

    Rules and not composites: one more costs as much as five alarms, and the page's own rule can hold both.
    """

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        windows = [self._both_windows(burn) for burn in (FAST, SLOW)]
        self.parts = [each for both in windows for each in both]
        self.pages = [all_of(*both) for both in windows]
        self.ticket = self._steady()

    def _both_windows(self, burn: Burn) -> tuple[cloudwatch.Alarm, cloudwatch.Alarm]:
        threshold = _threshold(burn.factor, stage=self._stage)
        long = _over_the_long_window(self, burn, stage=self._stage)
        short = alarm(
            self,
            f"{burn.name}Short",
            # Of itself: no floor here, or on a quiet stage five minutes would never hold enough.
            metric=emitted("late", service="worker", stage=self._stage, statistic="Average", period=_cdk(burn.short)),
            threshold=threshold,
            meaning=f"{_percent(threshold)} of attempts began late within {_words(burn.short)}",
            section=SECTION,
        )
        return long, short

    def _steady(self) -> cloudwatch.Alarm:
        # No period is longer than a day, so three days are three periods, each of them above.
        threshold = _threshold(1, stage=self._stage)
        return alarm(
            self,
            "BurnSteady",
            metric=_share(DAY, stage=self._stage),
            threshold=threshold,
            periods=STEADY_DAYS,
            meaning=f"More than {_percent(threshold)} of attempts began late on each of {STEADY_DAYS} days",
            section=SECTION,
        )


def late_within_an_hour(scope: Construct, *, stage: Stage) -> cloudwatch.Alarm:
    """The fast rate over its long window alone: it stays on for up to an hour after it is over."""
    return _over_the_long_window(scope, FAST, stage=stage)


def _over_the_long_window(scope: Construct, burn: Burn, *, stage: Stage) -> cloudwatch.Alarm:
    threshold = _threshold(burn.factor, stage=stage)
    return alarm(
        scope,
        f"{burn.name}Long",
        metric=_share(burn.long, stage=stage),
        threshold=threshold,
        meaning=f"{_percent(threshold)} of attempts began late within {_words(burn.long)}",
        section=SECTION,
    )


def _threshold(factor: float, *, stage: Stage) -> float:
    return round(factor * stage.objective.error_budget, 9)


def _share(window: timedelta, *, stage: Stage) -> cloudwatch.MathExpression:
    def late(statistic: str) -> cloudwatch.Metric:
        return emitted("late", service="worker", stage=stage, statistic=statistic, period=_cdk(window))

    return cloudwatch.MathExpression(
        expression=f"IF(late >= {ENOUGH_LATE}, share, 0)",
        using_metrics={"late": late("Sum"), "share": late("Average")},
        label="share of late attempts",
        period=_cdk(window),
    )


def _cdk(window: timedelta) -> cdk.Duration:
    return cdk.Duration.seconds(int(window.total_seconds()))


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _words(window: timedelta) -> str:
    hours = window // HOUR
    return f"{hours} h" if hours else f"{window // MINUTE} min"
