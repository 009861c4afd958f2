"""What wakes somebody on a stage that is watched fully, once a fault, and what makes a ticket. Each alarm leads to its section of the runbook."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from functions.domain.instants import MILLISECOND
from infra.burn_rates import BurnRates
from infra.function_alarms import (
    api_throttles,
    camel_case,
    dropped_invocations,
    errors,
    silence,
    worker_throttles,
)
from infra.metrics import BURYING, emitted
from infra.package import Function
from infra.ready_queues import ReadyQueues
from infra.runbook import alarm, any_of, composite
from infra.single_alarms import failed_requests, held_too_long, promotion_lag, queue_age, unconsumed_dead_letters
from infra.stage import PRIORITIES, Stage
from infra.topics import Topics

OLDEST_BUCKET_AGE_S = 120
"""Since it opened: about when the first of its jobs come due, so this is raised before they are very late."""

RESCUES_PER_100_ATTEMPTS = 5
"""Above, workers die or leases are too short; a few come with every deployment."""

DEAD_LETTER_MINUTES = 15
"""How long a dead letter keeps its alarm on: jobs that fail every few minutes page once."""

WAITING_FOR_OFFICE_HOURS = ("operations",)
"""Functions whose errors hold no job up."""

MAKING_JOBS_LATE = ("scanner", "worker")
"""Functions whose errors do: that is one fault, and one page."""

TICKING = ("scanner", "sweeper")
"""Functions without whose ticks jobs are late, or nobody sees it."""

CRITICAL_LAG = timedelta(seconds=30)
"""How late a tenth of the critical attempts of a minute may begin."""


class Alarms(Construct):
    """Alarms on single metrics, and over them one page for each kind of fault.

    Missing data is healthy and does not breach, except for invocations of the scanner and the sweeper, which are ticks
    (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html).

    parts_of_pages: the alarms on single metrics that page together.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        ready_queues: ReadyQueues,
        functions: Sequence[Function],
        topics: Topics,
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        ages = {
            priority: queue_age(self, priority, queue=queue, stage=stage)
            for priority, queue in zip(PRIORITIES, ready_queues.queues, strict=True)
        }
        by_name = {function.name: function for function in functions}
        failures = {function.name: errors(self, function) for function in functions}
        late = [
            self._oldest_bucket(),
            promotion_lag(self, stage=stage),
            self._critical_late(),
            *(age for priority, age in ages.items() if priority != "low"),
            *(failures[name] for name in MAKING_JOBS_LATE),
        ]
        elsewhere = (*WAITING_FOR_OFFICE_HOURS, *MAKING_JOBS_LATE)
        failing = [
            *(failure for name, failure in failures.items() if name not in elsewhere),
            failed_requests(self, stage=stage),
            api_throttles(self, by_name["api"]),
            *(silence(self, by_name[name]) for name in TICKING),
        ]
        broken = [*self._broken_promises(), *dropped_invocations(self, functions)]
        letters = [*self._dead_lettered(), unconsumed_dead_letters(self, ready_queues)]
        topics.ticket(
            ages["low"],
            *(failures[name] for name in WAITING_FOR_OFFICE_HOURS),
            worker_throttles(self, by_name["worker"]),
            self._operation_failures(),
            self._shedding(),
            held_too_long(self, stage=stage),
            self._chains_set_aside(),
        )
        self.parts_of_pages: list[cloudwatch.Alarm] = [*late, *broken, *letters, *failing]
        if not stage.emulated:  # the emulator knows neither alarms on expressions nor composites
            topics.ticket(self._rescue_rate())
            self._pages(late=late, broken=broken, letters=letters, failing=failing, topics=topics)

    def _pages(
        self,
        *,
        late: Sequence[cloudwatch.Alarm],
        broken: Sequence[cloudwatch.Alarm],
        letters: Sequence[cloudwatch.Alarm],
        failing: Sequence[cloudwatch.Alarm],
        topics: Topics,
    ) -> None:
        burns = BurnRates(self, "Burns", stage=self._stage)
        self.parts_of_pages += burns.parts
        is_late = composite(
            self,
            "JobsAreLate",
            rule=any_of(*late, rules=burns.pages),
            meaning="Jobs are late, or about to be",
            section="jobs-are-late",
        )
        topics.page(
            is_late,
            composite(
                self,
                "PromiseBroken",
                rule=any_of(*broken),
                meaning="Something happened that must never happen",
                section="a-promise-is-broken",
            ),
            composite(
                self,
                "JobsFail",
                rule=any_of(*letters),
                meaning="Jobs fail for good, or their messages kill workers",
                section="jobs-fail-for-good",
            ),
            composite(
                self,
                "FunctionsFail",
                rule=any_of(*failing),
                meaning="A function fails, and jobs are not late yet",
                section="a-function-fails",
                # A deployment or a store that fails all functions makes jobs late: that is one fault, and pages as that.
                unless=is_late,
            ),
        )
        topics.ticket(burns.ticket)

    def _broken_promises(self) -> list[cloudwatch.Alarm]:
        return [
            self._above_zero(
                "Stragglers",
                metric="stragglers",
                service="sweeper",
                meaning="Promotion passed over a job",
                section="a-job-was-passed-over",
            ),
            self._above_zero(
                "ChainsBroken",
                metric="chains_broken",
                service="sweeper",
                meaning="A schedule cannot be worked out any more",
                section="a-schedule-cannot-be-worked-out",
            ),
            self._above_zero(
                "Early",
                metric="early",
                service="worker",
                meaning="A job began before its time",
                section="a-job-began-early",
            ),
            self._above_zero(
                "ClockSkewed",
                metric="clock_skewed",
                service="scanner",
                meaning="A scanner's clock is wrong by more than half of SKEW: it promotes nothing",
                section="a-clock-is-wrong",
                periods=3,
                breaching=2,
            ),
        ]

    def _dead_lettered(self) -> list[cloudwatch.Alarm]:
        return [
            self._above_zero(
                f"DeadLetteredBy{camel_case(service)}",
                metric="dead_lettered",
                service=service,
                meaning=f"A job failed for good: dead_lettered of the {service}",
                section="jobs-fail-for-good",
                periods=DEAD_LETTER_MINUTES,
                breaching=1,
            )
            for service in BURYING
        ]

    def _above_zero(
        self,
        construct_id: str,
        *,
        metric: str,
        service: str,
        meaning: str,
        section: str,
        periods: int = 1,
        breaching: int | None = None,
    ) -> cloudwatch.Alarm:
        return alarm(
            self,
            construct_id,
            metric=emitted(metric, service=service, stage=self._stage),
            threshold=0,
            meaning=meaning,
            section=section,
            periods=periods,
            breaching=breaching,
        )

    def _operation_failures(self) -> cloudwatch.Alarm:
        return self._above_zero(
            "OperationFailures",
            metric="operation_failures",
            service="operations",
            meaning="Turns of an operation end in errors: the next goes on, and ten in a row give the operation up",
            section="an-operation-fails",
            periods=3,
            breaching=2,
        )

    def _shedding(self) -> cloudwatch.Alarm:
        return self._above_zero(
            "Shedding",
            metric="shedding",
            service="sweeper",
            meaning="Submissions are refused because the stage is behind",
            section="submissions-are-shed",
        )

    def _chains_set_aside(self) -> cloudwatch.Alarm:
        return self._above_zero(
            "ChainsSetAside",
            metric="chains_set_aside",
            # Whichever function sets it aside first: the sweep tries it again, and reports it, too.
            service="sweeper",
            meaning="The next fire of a schedule takes too much to find; the third time the schedule is paused",
            section="a-schedule-takes-too-much",
        )

    def _oldest_bucket(self) -> cloudwatch.Alarm:
        return alarm(
            self,
            "OldestBucket",
            metric=emitted("oldest_bucket_age_s", service="scanner", stage=self._stage, statistic="Maximum"),
            threshold=OLDEST_BUCKET_AGE_S,
            periods=3,
            meaning="The oldest bucket that is not drained is too old: promotion is behind",
            section="the-oldest-bucket-is-too-old",
        )

    def _critical_late(self) -> cloudwatch.Alarm:
        return alarm(
            self,
            "CriticalLate",
            metric=emitted("critical_late_ms", service="worker", stage=self._stage, statistic="p90"),
            threshold=CRITICAL_LAG / MILLISECOND,
            # Not by a single job, whose worker may have died.
            periods=3,
            breaching=2,
            meaning="Critical jobs begin more than half a minute late",
            section="critical-jobs-are-late",
        )

    def _rescue_rate(self) -> cloudwatch.Alarm:
        window = cdk.Duration.minutes(5)
        rate = cloudwatch.MathExpression(
            expression="IF(attempts > 0, 100 * rescues / attempts, 0)",
            using_metrics={
                name: emitted(name, service="worker", stage=self._stage, period=window)
                for name in ("rescues", "attempts")
            },
            label="rescues per 100 attempts",
            period=window,
        )
        return alarm(
            self,
            "RescueRate",
            metric=rate,
            threshold=RESCUES_PER_100_ATTEMPTS,
            periods=2,
            meaning="Too many attempts are rescues: workers die, or outlive their leases",
            section="many-attempts-are-rescues",
        )
