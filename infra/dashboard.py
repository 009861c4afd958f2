"""One page in the order of an incident: are jobs late, where do they wait, whose are they, what has changed.

On top is what is in alarm, and where the runbook says what to do. Of the signals the earliest come first: the oldest bucket
grows old before its jobs are late, and the slowest of them are late before the others. Causes come before distributions.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from functions.domain.instants import MILLISECOND
from functions.domain.metrics import DIMENSIONS
from infra import service_graphs
from infra.alarms import CRITICAL_LAG, OLDEST_BUCKET_AGE_S, Alarms
from infra.api import Api
from infra.burn_rates import FAST, SLOW
from infra.metrics import BURYING, ENDED_BY_TARGETS, emitted, incidents
from infra.package import Function
from infra.ready_queues import ReadyQueues
from infra.runbook import RUNBOOK, place_of, section_link
from infra.single_alarms import PROMOTION_LAG_S
from infra.stage import Stage
from infra.storage import StorageStack
from infra.topics import Topics
from infra.widgets import graph, heading, line, of, of_each, of_values, query

PERCENTILES = ("p50", "p95", "p99", "p99.9")

PAGES = ("Jobs are late", "A promise is broken", "Jobs fail for good", "A function fails")
"""What pages; each is the title of its section of the runbook."""


class Dashboard(Construct):
    """The dashboard of a stage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        api: Api,
        ready_queues: ReadyQueues,
        functions: Sequence[Function],
        storage: StorageStack,
        alarms: Alarms,
        topics: Topics,
    ) -> None:
        super().__init__(scope, construct_id)
        by_name = {function.name: function for function in functions}
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            default_interval=cdk.Duration.hours(3),
            widgets=[
                _on_top(self, alarms, topics=topics),
                [heading("Are jobs late?")],
                _first_signs(stage),
                _lateness(functions, stage=stage),
                [heading("Where: submission")],
                service_graphs.gateway(api),
                _submission(stage),
                [heading("Where: promotion")],
                _promotion(stage),
                _fires(stage),
                [heading("Where: queues")],
                service_graphs.queues(ready_queues, stage=stage),
                [heading("Where: execution")],
                _execution(stage),
                _targets(ready_queues, stage=stage),
                [heading("Where: functions and stores")],
                service_graphs.functions(functions),
                service_graphs.concurrency(functions, stage=stage, columns=2),
                service_graphs.tables(storage),
                service_graphs.audit_stream(storage.audit.stream_name),
                [heading("Whose are they?")],
                _tenants(by_name["worker"]),
                [heading("What has changed?")],
                _changes(stage),
                [_changed_by_hand(by_name["api"])],
                [heading("Which jobs are late?")],
                *(_lag_by(dimension, stage=stage) for dimension in DIMENSIONS["lag_ms"]),
            ],
        )


def _runbook_text(scope: Construct) -> str:
    place = place_of(scope)
    whole = f"`{place}` of this release" if place == RUNBOOK else f"[{place}]({place})"
    rows = [f"| {page} | {section_link(scope, page, page.lower().replace(' ', '-'))} |" for page in PAGES]
    lines = [
        f"**Runbook:** {whole}.",
        "",
        "| pages | section |",
        "|---|---|",
        *rows,
        "",
        "The description of each alarm ends with its section. `tickwheel status` says what is behind, and why.",
        "",
    ]
    return "\n".join(lines)


def _on_top(scope: Construct, alarms: Alarms, *, topics: Topics) -> list[cloudwatch.IWidget]:
    def states(title: str, shown: Sequence[cloudwatch.IAlarm], *, width: int) -> cloudwatch.IWidget:
        return cloudwatch.AlarmStatusWidget(title=title, alarms=list(shown), width=width, height=8)

    # The local cloud has no composites: there, what they would combine pages for nobody, and is shown alone.
    return [
        cloudwatch.TextWidget(markdown=_runbook_text(scope), width=6, height=8),
        *([states("Pages", topics.paging, width=4)] if topics.paging else []),
        states("What they combine", alarms.parts_of_pages, width=8 if topics.paging else 12),
        states("Tickets", topics.ticketing, width=6),
    ]


def _first_signs(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Oldest bucket that is not drained (s)",
            emitted("oldest_bucket_age_s", service="scanner", stage=stage, statistic="Maximum"),
            emitted("promotion_lag_s", service="sweeper", stage=stage, statistic="Maximum"),
            columns=3,
            lines=[
                line(OLDEST_BUCKET_AGE_S, "oldest_bucket_age_s: alarm"),
                line(PROMOTION_LAG_S, "promotion_lag_s: alarm"),
            ],
        ),
        graph(
            "Lag p99 (ms)",
            emitted("lag_ms", service="worker", stage=stage, statistic="p99"),
            columns=3,
            lines=[_objective(stage)],
        ),
        graph(
            "How late critical jobs begin, p90 (ms)",
            emitted("critical_late_ms", service="worker", stage=stage, statistic="p90"),
            columns=3,
            lines=[_objective(stage), line(CRITICAL_LAG / MILLISECOND, "alarm")],
        ),
    ]


def _objective(stage: Stage) -> cloudwatch.HorizontalAnnotation:
    return line(stage.objective.lag / MILLISECOND, f"objective: {100 * stage.objective.share:g} % of attempts")


def _lateness(functions: Sequence[Function], *, stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Lag, the other percentiles (ms)",
            *(emitted("lag_ms", service="worker", stage=stage, statistic=share) for share in ("p50", "p95", "p99.9")),
            columns=3,
            lines=[_objective(stage)],
        ),
        graph(
            f"Share of attempts that began more than {stage.objective.lag.total_seconds():g} s late",
            emitted("late", service="worker", stage=stage, statistic="Average", period=cdk.Duration.minutes(5)),
            columns=3,
            lines=[
                line(stage.objective.error_budget, "error budget"),
                *(
                    line(burn.factor * stage.objective.error_budget, f"{burn.factor:g} times: page")
                    for burn in (SLOW, FAST)
                ),
            ],
        ),
        graph(
            "Must be zero",
            emitted("early", service="worker", stage=stage),
            emitted("stragglers", service="sweeper", stage=stage),
            emitted("clock_skewed", service="scanner", stage=stage),
            *of_each("chains_broken", stage=stage),
            *(emitted("dead_lettered", service=service, stage=stage) for service in BURYING),
            *of_each("audit_lines_lost", stage=stage),
            incidents(stage),
            *(
                function.dropped_invocations().with_(label=f"{function.name}: invocations dropped")
                for function in functions
                if function.sends_to_itself
            ),
            columns=3,
        ),
    ]


def _lag_by(dimension: str, *, stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            f"Lag {share} by {dimension} (ms)",
            *of_values("lag_ms", dimension, service="worker", stage=stage, statistic=share),
            columns=len(PERCENTILES),
            lines=[_objective(stage)],
        )
        for share in PERCENTILES
    ]


def _submission(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Taken in",
            *of("api", "jobs_submitted", "triggered", "backfilled", stage=stage),
            columns=3,
        ),
        graph(
            "Refused: rates and quotas of tenants, and classes that are shed",
            *of(
                "api",
                "submissions_throttled",
                "reads_throttled",
                "submissions_over_quota",
                "submissions_shed",
                stage=stage,
            ),
            emitted("shedding", service="sweeper", stage=stage),
            columns=3,
        ),
        graph("Failed by a store or a fault", *of("api", "requests_failed", stage=stage), columns=3),
    ]


def _promotion(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Promoted, announced before a herd, and read again by the audit",
            emitted("promoted", service="scanner", stage=stage),
            emitted("warm_messages", service="scanner", stage=stage),
            emitted("audited", service="sweeper", stage=stage),
            columns=4,
        ),
        graph(
            "Tenants with more due than their turn or cap, or paused; age of the oldest bucket of all, also of theirs (s, right)",
            emitted("cursors_behind", service="scanner", stage=stage),
            right=[emitted("held_age_s", service="scanner", stage=stage, statistic="Maximum")],
            columns=4,
        ),
        graph(
            "Smallest budget of a class: jobs that a tick of a shard may promote",
            emitted("budget", service="sweeper", stage=stage, statistic="Minimum"),
            columns=4,
        ),
        graph(
            "Deepest ready queue: jobs that it holds",
            emitted("depth", service="sweeper", stage=stage, statistic="Maximum"),
            columns=4,
        ),
    ]


def _fires(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Fires of schedules",
            *of_each("occurrences", stage=stage),
            *of_each("alarms_due", stage=stage),
            columns=4,
        ),
        graph(
            "Fires that were missed or skipped",
            *of_each("misfires", stage=stage),
            *of_each("skipped", stage=stage),
            columns=4,
        ),
        graph("Time since the fire before, p50 (s)", *of_each("gap_s", stage=stage, statistic="p50"), columns=4),
        graph(
            "Fires that wait for a window, p99 (s)",
            *of_each("outside_window_wait_s", stage=stage, statistic="p99"),
            columns=4,
        ),
    ]


def _execution(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Attempts and what they ended in",
            *of("worker", "attempts", "succeeded", "retried", "failed", "expired", stage=stage),
            *(emitted("failed", service=service, stage=stage) for service in ("scanner", "sweeper", "dead_letters")),
            *of_each("cancelled", stage=stage),
            columns=4,
        ),
        graph(
            "Outcomes that targets reported",
            *of("api", *(name for name in ENDED_BY_TARGETS if name != "retry_in_s"), stage=stage),
            columns=4,
        ),
        graph(
            "Claims",
            *of(
                "worker",
                *("held", "leases_expired", "rescues", "claims_lost", "duplicates_dropped", "returned"),
                stage=stage,
            ),
            emitted("requeued", service="dead_letters", stage=stage),
            emitted("claims_lost", service="api", stage=stage),
            columns=4,
        ),
        graph(
            "Put back before their claim: open breaker, paused tenant, no free permit; of deleted tenants: forgotten",
            *of("worker", "parked", "parked_by_pause", "parked_by_cap", "parked_by_flow", "forgotten", stage=stage),
            emitted("forgotten", service="dead_letters", stage=stage),
            columns=4,
        ),
    ]


def _targets(ready_queues: ReadyQueues, *, stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Time that targets took to answer (ms)",
            *(emitted("target_ms", service="worker", stage=stage, statistic=share) for share in ("p50", "p99")),
            columns=3,
        ),
        service_graphs.in_flight(ready_queues, stage=stage, columns=3),
        graph("Time until the next attempt, p99 (s)", *of_each("retry_in_s", stage=stage, statistic="p99"), columns=3),
    ]


def _tenants(worker: Function) -> list[cloudwatch.IWidget]:
    # From the log: a metric with the tenant for a dimension would cost by the tenant.
    return [
        query(
            "Tenants by attempts that began late",
            'filter message = "began_late"',
            "stats count(*) as attempts, pct(lag_ms, 99) as lag_p99 by tenant",
            "sort attempts desc",
            "limit 20",
            log_group_names=[worker.log_group.log_group_name],
            columns=2,
        ),
        query(
            "Tenants by attempts that did not succeed",
            'filter message = "job_settled" and outcome != "succeeded"',
            "stats count(*) as attempts by tenant, outcome, error",
            "sort attempts desc",
            "limit 20",
            log_group_names=[worker.log_group.log_group_name],
            columns=2,
        ),
    ]


def _changes(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        graph(
            "Breakers of destinations: opened, closed by a probe (worker) or by hand (api)",
            *of("worker", "breakers_opened", "breakers_closed", stage=stage),
            emitted("breakers_closed", service="api", stage=stage),
            columns=4,
        ),
        graph(
            "Schedules: paused after failures, healed; runs abandoned",
            *of_each("chains_set_aside", stage=stage),
            *of_each("schedules_paused", stage=stage),
            *of_each("runs_abandoned", stage=stage),
            *of_each("schedules_healed", stage=stage),
            columns=4,
        ),
        graph(
            "Dead letters, by hand",
            *of("api", "dead_letters_replayed", "dead_letters_purged", stage=stage),
            columns=4,
        ),
        graph(
            "Turns of operations that ended in an error",
            emitted("operation_failures", service="operations", stage=stage),
            columns=4,
        ),
    ]


def _changed_by_hand(api: Function) -> cloudwatch.IWidget:
    changes = ("tenant_changed", "breaker_reset", "operation_accepted", "dead_letters_replayed", "dead_letters_purged")
    return query(
        "By hand: tenants, breakers, operations, dead letters",
        f"filter message in {list(changes)}".replace("'", '"'),
        "fields @timestamp, message, caller, tenant, what",
        "sort @timestamp desc",
        "limit 50",
        log_group_names=[api.log_group.log_group_name],
        columns=1,
    )
